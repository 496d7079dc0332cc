"""What the numbered writer of derived events keeps of a range, and which transitions it follows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.railway.workflow import graph
from tests.unit.workflow_engine.derived_log import NOW, DerivedLog, plan

from delta_outbox.delta.numbered_writes import NumberedWrite
from delta_outbox.lifecycle.states import OUTCOME_REASONS, REASONS
from delta_outbox.operations.maintenance.file_retention import oldest_positions
from delta_outbox.workflow_engine.derivation.events import StartEvent
from delta_outbox.workflow_engine.derivation.follow_ups import KnownInstance, admit, derive
from delta_outbox.workflow_engine.derivation.item_events import DueMark
from delta_outbox.workflow_engine.derived_events import MOST_UNWRITTEN, is_far, new_plan, rows_begin
from delta_outbox.workflow_engine.range_reader import is_ending
from delta_outbox.workflow_engine.task_reader import is_made_by
from delta_outbox.workflow_engine.write_range import Span, WriteRange


def read(after: int, to: int, at: datetime = NOW) -> WriteRange:
    """Return a range of events, and as many transitions."""
    span = Span(after=after, to=to)
    told = DueMark(at=at)
    return WriteRange(events=span, transitions=span, workflows=1, seen=90, at=at, told=told)


def written(number: int, planned: dict[str, Any], at: datetime = NOW) -> NumberedWrite:
    """Return a plan as the log has it."""
    return NumberedWrite(number=number, plan=planned, planned_at=at)


def parcel(event_id: str) -> StartEvent:
    """Return the event that a parcel is ready."""
    return StartEvent(
        event_id=event_id,
        event_type="parcel.ready",
        payload=b'{"parcel_id":"p-1","grams":20}',
        since=NOW,
        arrival=1,
    )


@pytest.mark.parametrize(("starts", "position"), [([parcel("e-1")], 4), ([], 9)])
def test_maintenance_keeps_what_rows_are_made_of(starts: list[StartEvent], position: int) -> None:
    """Until the next plan is there, files are kept from the beginning of a range that has rows."""
    made = new_plan(read(4, 9), DerivedLog(plan(1, graph())).follows(starts))
    row = {"writer": "derived_events", "plan": made, "planned_at": NOW}
    found = oldest_positions([row], now=NOW)
    assert (position, position) == (found["events"], found["transitions"])


@pytest.mark.parametrize(
    ("arrival", "at", "expected"),
    [
        (91, NOW, True),
        (95, NOW, True),
        (90, NOW, False),  # it was there when the plan was made
        (96, NOW, False),  # it came after the next plan was made
        (91, NOW + timedelta(seconds=1), False),
        (99, NOW + timedelta(days=1), False),  # a plan without rows
        (91, None, False),
    ],
)
def test_a_row_is_told_by_its_plan(arrival: int, at: datetime | None, expected: bool) -> None:
    """A numbered write has made what was appended at its instant, after what its plan had seen, and
    before the next plan was made.
    """
    log = DerivedLog(plan(1, graph()))
    first = written(7, new_plan(read(4, 9), log.follows([parcel("e-1")])))
    later = replace(read(9, 12, at=NOW + timedelta(days=1)), seen=95)
    second = written(8, new_plan(later, log.follows()), at=later.at)
    assert expected == is_made_by([first, second], arrival, at)
    assert is_made_by([first], 96, NOW)  # as long as there is no next plan


def test_what_was_read_for_nothing_is_written_down_now_and_then() -> None:
    """A plan without rows is worth it after many commits, and after a day."""
    last = written(1, new_plan(read(0, 4), DerivedLog(plan(1, graph())).follows()))
    half = MOST_UNWRITTEN // 2
    assert is_far(None, read(0, 1))
    assert not is_far(last, read(10, 4 + half - 1))
    assert is_far(last, read(10, 4 + half))
    assert is_far(last, read(4, 5, at=NOW + timedelta(days=1)))


def test_rows_are_told_from_those_of_a_lost_plan() -> None:
    """Plans of one number have rows under different commit tags if they differ at all."""
    log = DerivedLog(plan(1, graph()))
    plans = [new_plan(read(4, to), log.follows([parcel("e-1")])) for to in (9, 9, 10)]
    same, again, other = (rows_begin(written(3, one)) for one in plans)
    assert same == again
    assert same != other


def test_a_start_of_a_purged_instance_names_no_event() -> None:
    """Where nobody can say any more which event has begun an instance, the second start says so."""
    log = DerivedLog(plan(1, graph()))
    derived = derive([parcel("e-2")], [], log.plans, 1)
    known = KnownInstance(begun_by=None, rows=1)
    (ignored,) = admit(derived, {"workflow:shipping/p-1": known}, ()).ignored
    assert "The purged event has begun this instance." == ignored.message


def test_what_ends_a_task_is_told_by_its_transition() -> None:
    """PUBLISHED with an outcome ends a task, and DEAD by an operator does, in its first lifecycle;
    what is delivered, DEAD otherwise or tried again does not.
    """
    pairs = [(pair[1], reason) for pair, reasons in REASONS.items() for reason in reasons]
    table = pa.table(
        {
            "to_state": [str(state) for state, _ in pairs] * 2,
            "reason": [str(reason) for _, reason in pairs] * 2,
            "lifecycle": [lifecycle for lifecycle in (0, 1) for _ in pairs],
        }
    )
    ends = is_ending(table).to_pylist()
    first, later = ends[: len(pairs)], ends[len(pairs) :]
    assert not any(later)
    expected = {("PUBLISHED", reason) for reason in OUTCOME_REASONS} | {("DEAD", "operator")}
    assert expected == {pair for pair, ends in zip(pairs, first, strict=True) if ends}
