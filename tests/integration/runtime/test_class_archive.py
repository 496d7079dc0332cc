"""The archive of classes with a real JVM: written by one, used by the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_outbox.runtime.class_archive import ClassArchive
from delta_outbox.runtime.java import find_java
from delta_outbox.runtime.jvm import end_jvm, start_jvm

pytestmark = [pytest.mark.local, pytest.mark.rest]


def _run_jvm(archive: ClassArchive, log: Path, *more: str) -> tuple[list[str], bool]:
    """Start a JVM and end it; return its options and whether it ended by itself."""
    options = " ".join([*archive.options(), *more])
    gateway = start_jvm({"spark.driver.extraJavaOptions": options}, log=log)
    bean = gateway.jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    given = list(bean.getInputArguments())
    archive.write(gateway)
    return given, end_jvm(gateway)


def test_archive_that_one_jvm_writes_serves_the_next(tmp_path: Path) -> None:
    """The first start writes an archive, the next one uses it and nothing is written again; a
    path with a space does no harm.
    """

    def archive() -> ClassArchive:
        return ClassArchive.of(
            java=find_java().version, jars=(), cache=tmp_path / "a cache", record=True
        )

    first = archive()
    assert first.recorded
    _, ended = _run_jvm(first, tmp_path / "first.log")
    assert ended, (tmp_path / "first.log").read_text()
    second = archive()
    assert (first.path, False) == (second.path, second.recorded)
    # With share:on a JVM does not start at all if the archive does not fit.
    given, ended = _run_jvm(second, tmp_path / "second.log", "-Xshare:on")
    assert f"-XX:SharedArchiveFile={second.path}" in given
    assert ended
    assert "cds" not in (tmp_path / "second.log").read_text()
    assert [second.path] == list(second.path.parent.iterdir())
