"""When tasks expire that are no items, after operators have extended them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from unittest import mock

import pyarrow as pa
import pytest
from tests.unit.workflow_engine.derived_log import open_task

from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.core.tables import Tables
from delta_outbox.railway.routing import Place
from delta_outbox.testing.conformance.clock import ManualClock
from delta_outbox.workflow_engine.deadlines import Deadlines

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
CALL = ("call-1", 7)
TASK = open_task(
    workflow="calls",
    place=Place(task="call", visits={"call": 1}),
    task_id="call-1",
    created_at=NOW,
    expires_at=NOW + HOUR,
)


class CommandLog:
    """A command log whose rows are given to one follower.

    Args:
        deadlines: the follower.
    """

    def __init__(self, deadlines: Deadlines, monkeypatch: pytest.MonkeyPatch) -> None:
        self._version = 0
        self._new: list[dict[str, object]] = []
        monkeypatch.setattr(deadlines, "_history", mock.Mock(newest=self._newest))
        monkeypatch.setattr(deadlines, "_reader", mock.Mock(added=self._added))
        monkeypatch.setattr(deadlines, "_read", lambda version: None)

    def extend(
        self, until: datetime | str, *, kind: str = "extend", destination: str = "bank"
    ) -> None:
        """Append an extension of the call."""
        self._version += 1
        text = until if isinstance(until, str) else json.dumps({"until": until.isoformat()})
        event_id, arrival = CALL
        self._new.append(
            {
                "kind": kind,
                "event_id": event_id,
                "arrival": arrival,
                "destination": destination,
                "arguments": text,
            }
        )

    def _newest(self, table: str) -> object:
        return SimpleNamespace(version=self._version)

    def _added(self, *_: object, **__: object) -> object:
        rows, self._new = pa.Table.from_pylist(self._new), []
        return SimpleNamespace(rows=rows)


def ends(deadlines: Deadlines) -> datetime | None:
    """Return when the call expires."""
    return deadlines.in_force({CALL: TASK})[CALL].expires_at


def test_a_task_expires_by_its_latest_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the event and of all extensions, the latest end counts, in whatever order they came; what
    is about an item, of another kind or unreadable does not.
    """
    clock = ManualClock(NOW)
    deadlines = Deadlines(mock.Mock(), Tables(), clock=clock)
    log = CommandLog(deadlines, monkeypatch)
    assert NOW + HOUR == ends(deadlines)
    log.extend(NOW + 3 * HOUR)
    log.extend(NOW + 2 * HOUR)
    assert NOW + 3 * HOUR == ends(deadlines)
    for ignored in (NOW + 9 * HOUR, "no JSON", "[]", '{"until": "2027-01-01"}'):
        log.extend(ignored, **({} if isinstance(ignored, str) else {"destination": TO_DO}))
    log.extend(NOW + 9 * HOUR, kind="kill")
    assert NOW + 3 * HOUR == ends(deadlines)
    log.extend(NOW + timedelta(minutes=1))
    assert NOW + 3 * HOUR == ends(deadlines)
    other = {("call-1", 8): TASK, ("call-2", 7): TASK}
    assert other == deadlines.in_force(other)


def test_a_task_that_never_expires_is_left_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """An extension gives no end to what has none."""
    deadlines = Deadlines(mock.Mock(), Tables(), clock=ManualClock(NOW))
    log = CommandLog(deadlines, monkeypatch)
    deadlines.in_force({CALL: TASK})
    log.extend(NOW + 3 * HOUR)
    found = deadlines.in_force({CALL: replace(TASK, expires_at=None)})
    assert found[CALL].expires_at is None
