"""The logs of the lanes without Spark: what was decided in an epoch never goes into the next."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pyarrow as pa
import pytest

from delta_outbox.core.clock import SystemClock
from delta_outbox.core.errors import LaneClosed
from delta_outbox.core.tables import Tables
from delta_outbox.delta.numbered_writes import NumberedWrite
from delta_outbox.delta.spark_appends import CHECKPOINT
from delta_outbox.store import lane_logs
from delta_outbox.store.epochs import FIRST, begun_plan, closing_plan, read_epoch
from delta_outbox.store.lane_logs import LaneLogs
from delta_outbox.store.transition_log import TransitionLog

WHO: dict[str, Any] = {"actor": "ann", "reason": "growth"}
ROWS = pa.table({"event_id": [f"e-{n}" for n in range(40)], "ordering_key": pa.nulls(40)})


@dataclass
class Lanes:
    """The plans of the lanes, what was appended (epoch, lane and rows), and who made a commit."""

    plans: list[dict[str, Any]] = field(default_factory=list)
    appended: list[tuple[int, int, int]] = field(default_factory=list)
    writers: dict[int, set[str]] = field(default_factory=dict)

    def last(self) -> Iterator[NumberedWrite]:
        """Yield the last plan."""
        if self.plans:
            at = datetime(2026, 1, 1, tzinfo=UTC)
            yield NumberedWrite(number=len(self.plans), plan=self.plans[-1], planned_at=at)

    def have_news(self) -> bool:
        """Say that there may be."""
        return True

    def change(self, lanes: int) -> None:
        """Begin a new epoch."""
        now = read_epoch(next(self.last(), None))
        closing = closing_plan(now, lanes=lanes, **WHO)
        self.plans += [closing, begun_plan(closing)]


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> Lanes:
    """Return lanes to which logs append without Spark, and lose once their epoch has ended."""
    found = Lanes()

    def append(log: TransitionLog, rows: pa.Table) -> None:
        if log.epoch != read_epoch(next(found.last(), None)).number:
            log._is_ending(log.epoch)
            raise LaneClosed(writer=log.app_id, number=1, lane=log.lane)
        found.appended.append((log.epoch, log.lane, rows.num_rows))

    class History:
        def __init__(self, _: object) -> None: ...

        def writers(self, _: str, version: int) -> set[str]:
            return found.writers[version]

    monkeypatch.setattr(lane_logs, "CommitHistory", History)
    monkeypatch.setattr(TransitionLog, "append", append)
    return found


def logs_of(lanes: Lanes) -> LaneLogs:
    """Return the logs as one relay sees them."""
    logs = LaneLogs(cast("Any", None), Tables(), relay_id="r", clock=SystemClock())
    logs.plans = cast("Any", lanes)
    return logs


def test_each_part_goes_to_its_lane(lanes: Lanes) -> None:
    """Rows of several lanes are one append each."""
    lanes.change(3)
    logs_of(lanes).append_endings(ROWS)
    assert [(1, 0), (1, 1), (1, 2)] == sorted(one[:2] for one in lanes.appended)
    assert 40 == sum(count for *_, count in lanes.appended)


def test_endings_of_an_ended_epoch_are_void_in_all_lanes(lanes: Lanes) -> None:
    """Where the first of several parts loses to the end of the epoch, the others do as well: no
    part is appended in the new one, in which its claim is not.
    """
    lanes.change(3)
    logs = logs_of(lanes)
    assert 3 == logs.epoch.lanes
    lanes.change(5)
    logs.append_endings(ROWS)
    assert [] == lanes.appended
    assert (2, 5) == (logs.epoch.number, logs.epoch.lanes)


def test_what_an_epoch_ended_under_is_decided_anew(lanes: Lanes) -> None:
    """Rows that lose to the end of an epoch are decided again, and go on the lanes of the next."""
    logs = logs_of(lanes)
    assert FIRST == logs.epoch
    lanes.change(2)
    assert 10 == logs.append_until_won(ROWS, lambda: ROWS.slice(0, 10))
    assert {1} == {epoch for epoch, *_ in lanes.appended}
    assert {0, 1} == {lane for _, lane, _ in lanes.appended}


def test_logs_of_an_ended_epoch_know_it(lanes: Lanes) -> None:
    """Whoever holds the log of a lane, as a claim in flight does, finds every ending void there."""
    logs = logs_of(lanes)
    old = logs.of(ROWS)
    lanes.change(2)
    assert logs.read()
    assert old.is_over
    assert [0] == [rows.num_rows for rows in old.without_void([(0, ROWS)])]
    assert logs.of(ROWS) is not old


def test_what_is_committed_without_rows_is_no_doubt(lanes: Lanes) -> None:
    """Of what was committed, our own appends, those of others to their lanes and the commits that
    make a checkpoint say nothing of our lanes; whatever else there is may have.
    """
    lanes.change(3)
    logs = logs_of(lanes)
    lanes.writers = {1: {"outbox/1/1"}, 2: {CHECKPOINT}, 3: {"outbox/1/1", "outbox/1/0"}, 4: set()}

    def has_all(after: int, to: int) -> bool:
        return logs.has_all(after=after, to=to, lanes={0, 2})

    assert has_all(0, 2)
    assert not has_all(2, 3)
    assert not has_all(3, 4)


def test_what_others_have_appended_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endings of claims that others have ended are void; for all endings of an append the log is
    read once, of their claims alone, and not at all where nobody else has appended.
    """
    others = {5: "c5", 8: "c8"}  # positions at which claims have ended
    asked: list[tuple[int, set[str]]] = []

    def endings(*claims: str) -> pa.Table:
        rows = [
            {"event_id": one, "arrival": 1, "destination": "bank", "lifecycle": 0, "claim_id": one}
            for one in claims
        ]
        return pa.Table.from_pylist([{**row, "from_state": "CLAIMED"} for row in rows])

    def rows_after(_: TransitionLog, sequence: int, *, of: Collection[str]) -> pa.Table:
        asked.append((sequence, {*of}))
        later = {at: one for at, one in others.items() if at > sequence and one in of}
        rows = endings("none", *later.values())
        return rows.append_column("sequence", pa.array([sequence + 1, *later]))

    monkeypatch.setattr(TransitionLog, "rows_after", rows_after)
    log = TransitionLog(cast("Any", None), Tables(), relay_id="r")

    def live(**claims: int) -> list[str]:
        found = log.without_void([(at, endings(one)) for one, at in claims.items()])
        return [one for part in found for one in part["claim_id"].to_pylist()]

    log.move(6)
    assert ["c6"] == live(c6=6)
    assert [] == asked
    assert ["c4", "c6"] == live(c4=4, c5=3, c6=6)
    assert [(3, {"c4", "c5"})] == asked
    log.move(9)
    assert ["c7", "c4", "c9"] == live(c8=7, c7=7, c4=4, c9=9)
    assert [(4, {"c8", "c7", "c4"})] == asked[1:]
