"""The folder of a Delta log, read as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from delta_outbox.runtime.log_folder import configuration_of


def commit(folder: Path, version: int, *, metadata: dict[str, str] | None = None) -> None:
    """Write a commit, of rows or of properties."""
    actions: list[dict[str, object]] = [{"commitInfo": {"operation": "WRITE"}}]
    if metadata is not None:
        actions.append({"metaData": {"configuration": metadata}})
    file = folder / f"{version:020}.json"
    file.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def checksum(folder: Path, version: int, text: str) -> None:
    """Write the checksum file of a commit."""
    (folder / f"{version:020}.crc").write_text(text)


def test_properties_are_those_of_the_newest_commit(tmp_path: Path) -> None:
    """The properties of a table are what its newest commit about them says, or the newest checksum
    file, whichever is later.
    """
    told = {
        version: json.dumps({"metadata": {"configuration": {"a": version}}}) for version in "79"
    }
    commit(tmp_path, 5, metadata={"a": "5"})
    commit(tmp_path, 6)
    assert {"a": "5"} == configuration_of(tmp_path)
    commit(tmp_path, 7)
    checksum(tmp_path, 7, told["7"])
    commit(tmp_path, 8)
    assert {"a": "7"} == configuration_of(tmp_path)
    commit(tmp_path, 9, metadata={})
    assert {} == configuration_of(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "{}", '{"metadata": {}}'])
def test_properties_that_no_file_tells(tmp_path: Path, text: str) -> None:
    """Where neither a commit nor a checksum file tells them, nothing is guessed."""
    assert configuration_of(tmp_path) is None
    commit(tmp_path, 6)
    checksum(tmp_path, 6, text)
    assert configuration_of(tmp_path) is None
