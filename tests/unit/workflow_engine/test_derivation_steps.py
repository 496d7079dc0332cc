"""What a step of the writer of derived events asks, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from tests.unit.workflow_engine.derived_log import NOW
from tests.unit.workflow_engine.test_derived_events import read, written

from delta_outbox.testing.conformance.clock import ManualClock
from delta_outbox.workflow_engine import derived_events
from delta_outbox.workflow_engine.derivation.follow_ups import Derived
from delta_outbox.workflow_engine.derivation.item_events import DUE_EVERY, DueItem, DueMark, due_by
from delta_outbox.workflow_engine.derived_events import DerivedEvents, new_plan
from delta_outbox.workflow_engine.write_range import Span

START = due_by(NOW)
LAST = read(3, 5, START)
CHECK = DueItem(task_id="check-1", arrival=4)


class Asked:
    """Stands for the items, and notes what is asked.

    Args:
        found: that are due and open.
    """

    def __init__(self, found: Sequence[DueItem] = ()) -> None:
        self.found = found
        self.marks: list[tuple[datetime, datetime]] = []  # how far they were told, and up to when
        self.forgotten: list[str] = []

    def after(
        self, mark: DueMark, written: DueMark, *, now: datetime, **_: Any
    ) -> tuple[DueMark, Sequence[DueItem]]:
        """Return what was found."""
        self.marks.append((mark.at, now))
        return max(DueMark(at=now), mark, key=lambda one: one.key), self.found

    def forget(self, ended: Any) -> None:
        """Note what has ended."""
        self.forgotten += ended


class Steps(DerivedEvents):
    """A writer whose event log has nothing new since its last plan.

    Args:
        clock: the time.
        due: the items.
        transitions: latest version of their log.
    """

    _heads: dict[str, int]

    def __init__(self, clock: ManualClock, due: Asked, *, transitions: int = 5) -> None:
        ended = SimpleNamespace(
            task=SimpleNamespace(task_id="check-9", key="workflow:x/9", created_at=START),
            plans=frozenset(),
            position=(0, 0, 1),
            at=START,
        )
        named: dict[str, Any] = {
            "_tables": SimpleNamespace(transitions="t", events="e"),
            "_heads": {"t": transitions, "e": 5},
            "_clock": clock,
            "_due": due,
            "_passed": None,
            "_link": None,
            "_begun": {0: START},
            "_versions": SimpleNamespace(
                becoming_due=lambda _: ["workflow:shipping/check"],
                starting=lambda *_: [],
                of=lambda _: {},
            ),
            "_newest": SimpleNamespace(of=lambda _: written(1, {})),
            "_known": SimpleNamespace(known=lambda *_: ({}, set())),
            "_reader": SimpleNamespace(
                new_starts=lambda span, _: (span, ()),
                new_endings=lambda span, _: (span, ()),
                starts=lambda *_: (),
                ended=lambda _: [ended],
                due=lambda _: {},
            ),
        }
        self.__dict__.update(named)

    def _head(self, table: str) -> int:
        return int(self._heads[table])

    def look(self) -> Any:
        """Return what is read next."""
        return self._next(written(1, new_plan(LAST, Derived())), written(1, {}))


def test_items_that_are_over_are_asked_about_once() -> None:
    """What was due and found to be over is not asked about again, also where nothing else is new:
    each look begins where the last one has ended.
    """
    due = Asked()
    clock = ManualClock(START)
    writer = Steps(clock, due)
    for _ in range(3):
        clock.sleep(DUE_EVERY.total_seconds())
        assert writer.look() is None
        assert writer.look() is None
    instants = [START + number * DUE_EVERY for number in range(4)]
    expected = [pair for before, now in pairwise(instants) for pair in [(before, now), (now, now)]]
    assert expected == due.marks


@pytest.mark.parametrize("later", [0.0, 9.9])
def test_items_are_asked_about_together(later: float) -> None:
    """Between two multiples of `DUE_EVERY` nothing more is due, and a plan that has told all up to
    the last one has told all: no step follows at once.
    """
    due = Asked([CHECK])
    clock = ManualClock(START + DUE_EVERY)
    clock.sleep(later)
    found, is_all, has_news = Steps(clock, due).look()
    assert [(START, START + DUE_EVERY)] == due.marks
    assert (True, True, (CHECK,)) == (is_all, has_news, found.due)
    assert START + DUE_EVERY == found.told.at


@pytest.mark.parametrize(
    ("transitions", "part", "expected"),
    [
        (5, Span(after=5, to=5), True),
        (9, Span(after=5, to=9), True),
        (9, Span(after=5, to=7), False),  # the next commit has too many rows to be read with these
        (9, Span(after=5, to=6, through="a"), False),
    ],
)
def test_a_plan_says_whether_all_transitions_were_read(
    transitions: int, part: Span, expected: bool
) -> None:
    """Only up to such a plan do invariants ask what follows: what is not read yet is followed by
    nothing yet.
    """
    writer = Steps(ManualClock(START + DUE_EVERY), Asked([CHECK]), transitions=transitions)
    writer._reader.new_endings = lambda *_: (part, ())  # type: ignore[method-assign]
    found, is_all, _ = writer.look()
    assert (expected, expected) == (found.all_transitions, is_all)
    assert expected == new_plan(found, Derived())["range"]["all_transitions"]


def test_what_has_ended_is_forgotten() -> None:
    """Items whose endings are followed are not asked about when they would be due."""
    due = Asked()
    with patch.object(derived_events, "derive", return_value=Derived()):
        assert Derived() == Steps(ManualClock(START), due)._derive(LAST)
    assert ["check-9"] == due.forgotten
