"""Items that become due, whoever writes what follows, with clocks that differ, and restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.workflow_engine.derived_log import NOW

from delta_outbox.workflow_engine import due_items
from delta_outbox.workflow_engine.derivation.item_events import (
    DUE_EVERY,
    DueItem,
    DueMark,
    due_by,
)
from delta_outbox.workflow_engine.due_items import DueItems, Waiting

MINUTE = timedelta(minutes=1)
ITEM = "workflow:shipping/check"


@dataclass
class Log:
    """The event log, and the marks of its plans; a commit has the items of one write.

    Args:
        items: by commit: when each is due, its identifier, its arrival.
        over: identifiers of items that have ended.
        marks: of the plans.
        told: how often each item was told to be due.
    """

    items: list[list[Waiting]] = field(default_factory=lambda: [[]])
    over: set[str] = field(default_factory=set)
    marks: list[DueMark] = field(default_factory=lambda: [DueMark(at=NOW)])
    told: Counter[str] = field(default_factory=Counter)

    @property
    def all(self) -> list[Waiting]:
        """Return all items, in the order in which they become due."""
        return sorted(one for commit in self.items for one in commit)


class Known(DueItems):
    """The items of a log, without Spark."""

    def __init__(self, log: Log) -> None:
        outbox: Any = SimpleNamespace(spark=None)
        tasks: Any = SimpleNamespace(read=self._tasks_at)
        with patch.object(due_items, "LogReader"):
            super().__init__(outbox, tasks=tasks)
        self._log = log

    def _tasks_at(self, places: Collection[Any], *, version: int) -> dict[Any, Any]:
        assert all(arrival <= version for _, arrival in places)
        due = {(one[1], one[2]): one[0] for one in self._log.all}
        return {place: SimpleNamespace(due_at=due[place]) for place in places}

    def _added(
        self, after: int, version: int, types: Collection[str]
    ) -> Sequence[tuple[str, int]] | None:
        commits = self._log.items[after + 1 : version + 1]
        return [(one[1], one[2]) for commit in commits for one in commit]

    def _open_behind(self, written: DueMark, version: int) -> Sequence[Waiting]:
        found = [
            one
            for one in self._log.all
            if one[2] <= version
            and one[1] not in self._log.over
            and not written.passes(one[0], one[1])
        ]
        return found[: due_items.MOST_HELD + 1]

    def _open(self, found: Sequence[Waiting]) -> Sequence[DueItem]:
        return [
            DueItem(task_id=task_id, arrival=arrival)
            for _, task_id, arrival in found
            if task_id not in self._log.over
        ]


class Writer:
    """A process that writes what follows.

    Args:
        log: that it writes.
        late: how far its clock is behind.
    """

    def __init__(self, log: Log, late: timedelta) -> None:
        self._log, self._late = log, late
        self._known = Known(log)
        self._number, self._passed = 0, DueMark(at=NOW)

    def forget(self, task_id: str) -> None:
        """Learn that an item has ended."""
        self._known.forget([task_id])

    def step(self, now: datetime, opens: Sequence[datetime], *, loses: bool) -> bool:
        """Take a step; say whether there is more to tell at once.

        Args:
            now: the moment.
            opens: when the items are due that this write opens.
            loses: it goes by the plan that it knows, and reads what was written since; so another
                process is faster, and what it has found is not written.
        """
        log, now = self._log, now - self._late
        seen = len(log.items) - 1
        if loses:
            last = log.marks[max(0, self._number - 1)]
            self._known.after(self._passed, last, now=now, types=[ITEM], seen=seen)
            return True
        if self._number < len(log.marks):  # a plan that somebody else has made
            self._number, self._passed = len(log.marks), log.marks[-1]
        mark, due = self._known.after(self._passed, log.marks[-1], now=now, types=[ITEM], seen=seen)
        assert log.marks[-1].key <= mark.key
        is_all = mark.has_passed(now)
        if not due and not opens and is_all:
            self._passed = mark
            return False
        arrival = len(log.items)
        new = [(at, f"{arrival}-{number}", arrival) for number, at in enumerate(opens)]
        log.told.update(one.task_id for one in due)
        log.told.update(task_id for at, task_id, _ in new if mark.passes(at, task_id))
        log.items.append(new)
        log.marks.append(mark)
        self._number, self._passed = len(log.marks), mark
        return not is_all


spans = st.integers(-3, 6).map(lambda count: count * MINUTE)
moves = st.tuples(
    st.sampled_from(["step", "step", "lose", "restart", "end"]),
    st.integers(0, 1),  # who
    st.integers(0, 2).map(lambda count: count * MINUTE),  # that have passed since
    st.lists(spans, max_size=4),  # when what it opens is due
)


# The first process has come further than the second one has when that opens an item.
@example(
    played=[
        ("step", 0, 2 * MINUTE, []),
        ("step", 1, 0 * MINUTE, [-1 * MINUTE]),
        *[("lose", 0, 0 * MINUTE, [])] * 2,
    ],
    late=2,
    held=9,
)
# More items are open than the process that begins anew holds in memory.
@example(
    played=[("step", 0, 0 * MINUTE, [3 * MINUTE] * 4), ("restart", 0, 0 * MINUTE, [])],
    late=0,
    held=2,
)
@given(played=st.lists(moves, max_size=25), late=st.integers(0, 2), held=st.integers(2, 9))
def test_every_item_is_told_once(played: list[Any], late: int, held: int) -> None:
    """Whoever writes, however their clocks differ, whatever they have read when others were faster
    or they began anew: an item that is open when it is due is told to be, once.
    """
    log, now = Log(), NOW
    lates = (timedelta(0), late * MINUTE)
    with patch.object(due_items, "MOST_HELD", held), patch.object(due_items, "MOST_NEWS", 2):
        writers = [Writer(log, one) for one in lates]
        for what, who, passed, opens in played:
            now += passed
            if what == "restart":
                writers[who] = Writer(log, lates[who])
            elif what == "end" and log.all:
                _, ended, _ = log.all[who % len(log.all)]
                log.over.add(ended)
                writers[who].forget(ended)  # the other one finds out when it asks
            else:
                writers[who].step(now, [now + one for one in opens], loses=what == "lose")
        now += 30 * MINUTE
        while writers[0].step(now, [], loses=False):
            assert len(log.marks) < 500
    assert set(log.told.values()) <= {1}
    assert {one[1] for one in log.all} - log.over <= set(log.told)


def test_nothing_is_asked_before_an_item_is_due() -> None:
    """Of items that are due later, or that have been told of, nobody asks whether they are open;
    without types of items that become due nothing is read at all.
    """
    log = Log(items=[[(NOW + MINUTE, "a", 0)]])
    known = Known(log)
    mark = DueMark(at=NOW)
    with (
        patch.object(known, "_open_behind", wraps=known._open_behind) as read,
        patch.object(known, "_open", wraps=known._open) as asked,
    ):
        nothing = known.after(mark, mark, now=NOW + 2 * MINUTE, types=[], seen=0)
        assert (DueMark(at=NOW + 2 * MINUTE), ()) == nothing
        assert not read.called
        for second in range(3):
            now = NOW + timedelta(seconds=second)
            assert [] == known.after(mark, mark, now=now, types=[ITEM], seen=0)[1]
        assert {()} == {tuple(call.args[0]) for call in asked.call_args_list}
        mark, due = known.after(mark, mark, now=NOW + MINUTE, types=[ITEM], seen=0)
        assert ["a"] == [one.task_id for one in due]
        assert [] == known.after(mark, mark, now=NOW + MINUTE, types=[ITEM], seen=0)[1]
        assert 1 == read.call_count


def test_nothing_is_asked_of_what_has_ended() -> None:
    """Of an item whose ending was followed nobody asks whether it is open."""
    log = Log(items=[[(NOW + MINUTE, "a", 0), (NOW + MINUTE, "b", 0)]])
    known = Known(log)
    mark = DueMark(at=NOW)
    known.after(mark, mark, now=NOW, types=[ITEM], seen=0)
    known.forget(["a", "start-of-another"])
    with patch.object(known, "_open", wraps=known._open) as asked:
        known.after(mark, mark, now=NOW + MINUTE, types=[ITEM], seen=0)
    assert [["b"]] == [[one[1] for one in call.args[0]] for call in asked.call_args_list]


@given(seconds=st.floats(0, 86_400), zone=st.sampled_from([0, 90]))
def test_items_are_told_at_whole_multiples(seconds: float, zone: int) -> None:
    """No item is told before it is due, and none later than `DUE_EVERY`; at whole multiples, so
    that all processes tell at the same instants.
    """
    at = (NOW + timedelta(seconds=seconds)).astimezone(timezone(timedelta(minutes=zone)))
    by = due_by(at)
    assert by <= at < by + DUE_EVERY
    assert 0 == by.timestamp() % DUE_EVERY.total_seconds()


def test_a_clock_that_is_behind_takes_no_mark_back() -> None:
    """Who is behind others tells of nothing that they have passed."""
    log = Log(items=[[(NOW - MINUTE, "a", 0)]])
    mark = DueMark(at=NOW, through="a")
    found, due = Known(log).after(mark, mark, now=NOW - 2 * MINUTE, types=[ITEM], seen=0)
    assert (mark, []) == (found, [*due])
