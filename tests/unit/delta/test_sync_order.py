"""Each append of ours comes after a sync of what it was decided by, and is synced itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from delta_outbox.core.clock import SystemClock
from delta_outbox.core.tables import Tables
from delta_outbox.delta import log_writer
from delta_outbox.delta.files.file_appends import FileAppends
from delta_outbox.operations import command_log

SPARK: Any = object()


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what is done from now on, in order."""
    done: list[str] = []
    for module in (log_writer, command_log):
        monkeypatch.setattr(module, "sync_outbox", lambda _, schema: done.append(f"sync {schema}"))
    return done


def _append(steps: list[str], *, fails: bool = False) -> int | None:
    def append(*_: object, **__: object) -> bool:
        steps.append("append")
        if fails:
            raise ConnectionError("the answer was lost")
        return True

    def version_of(*_: object) -> int:
        steps.append("find")
        return 7

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FileAppends, "append", append)
        patched.setattr(log_writer, "_version_of", version_of)
        writer = log_writer.LogWriter(SPARK, app_id="outbox/0/0", committed="transitions.committed")
        return writer.append("ours.outbox_transitions", pa.table({}), 1)


@pytest.mark.parametrize("fails", [False, True])
def test_a_numbered_append_stands_between_two_syncs(steps: list[str], fails: bool) -> None:
    """All that an append may have been decided by is synced before it is put, and the append before
    it is believed; also if its answer was lost and it is found all the same.
    """
    assert 7 == _append(steps, fails=fails)
    assert ["sync ours", "append", "find", "sync ours"] == steps


def test_a_command_stands_between_two_syncs(
    steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a command names is synced before it is appended, and the command before it is told."""

    def append(_: object, log: str, rows: pa.Table, *, tag: str) -> None:
        steps.append(f"{log} {rows['kind'].to_pylist()} {rows['requested_at'].null_count}")

    monkeypatch.setattr(command_log, "append_rows", append)
    outbox: Any = SimpleNamespace(spark=SPARK, tables=Tables(schema="ours"), clock=SystemClock({}))
    command_log.append_commands(outbox, [{"kind": "pause"}])
    assert ["sync ours", "ours.outbox_commands ['pause'] 0", "sync ours"] == steps
