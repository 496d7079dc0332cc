"""The archive of classes as a file: whose it is, when it is written, which ones stay."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from delta_outbox.runtime.class_archive import KEPT, ClassArchive


def _archive(cache: Path, *, java: str = "17.0.1", record: bool = False) -> ClassArchive:
    return ClassArchive.of(java=java, jars=(Path("delta.jar"),), cache=cache, record=record)


def test_archive_belongs_to_one_installation(tmp_path: Path) -> None:
    """Another Java or other jars have another archive."""
    ours = _archive(tmp_path).path
    others = (
        _archive(tmp_path, java="21.0.1"),
        ClassArchive.of(java="17.0.1", jars=(), cache=tmp_path),
    )
    assert ours == _archive(tmp_path, record=True).path
    assert ours not in [other.path for other in others]


def test_start_without_an_archive_asks_for_nothing(tmp_path: Path) -> None:
    """Without an archive, and when none is to be written, the JVM starts as ever."""
    assert [] == _archive(tmp_path).options()
    assert not (tmp_path / "classes").exists()


def test_archive_is_written_once(tmp_path: Path) -> None:
    """What is there is used, never written again; a draft becomes the archive at the end."""
    writing = _archive(tmp_path, record=True)
    (option, _quiet) = writing.options()
    assert "-XX:+RecordDynamicDumpInfo" == option
    writing.draft.write_text("classes")
    writing.keep()
    assert not writing.draft.exists()
    using = _archive(tmp_path, record=True)
    assert not using.recorded
    assert [f'"-XX:SharedArchiveFile={using.path}"'] == using.options()


def test_jvm_that_wrote_nothing_leaves_nothing(tmp_path: Path) -> None:
    """A JVM that could not write its archive does no harm."""
    writing = _archive(tmp_path, record=True)
    writing.options()
    writing.keep()
    assert [] == _archive(tmp_path).options()


def test_drafts_of_the_dead_go(tmp_path: Path) -> None:
    """What a driver that was killed as it wrote has left goes; what another one writes stays."""
    archive = _archive(tmp_path, record=True)
    archive.options()
    ended = subprocess.Popen(["true"])
    ended.wait()
    left, written = (archive.path.with_suffix(f".{pid}") for pid in (ended.pid, os.getppid()))
    for draft in (left, written):
        draft.write_text("half")
    archive.keep()
    assert [written] == list(archive.path.parent.iterdir())


@pytest.mark.parametrize("used_again", [False, True])
def test_archives_used_last_stay(tmp_path: Path, used_again: bool) -> None:
    """Only a few archives are kept: those that were used last."""
    written = []
    for number in range(KEPT + 1):
        archive = _archive(tmp_path, java=f"17.0.{number}", record=True)
        archive.options()
        archive.draft.write_text("classes")
        os.utime(archive.draft, (number, number))
        if used_again and number == KEPT:
            _archive(tmp_path, java="17.0.0").options()
        archive.keep()
        written.append(archive.path)
    gone = {written[1 if used_again else 0]}
    assert set(written) - gone == set((tmp_path / "classes").iterdir())
