"""What one numbered write of derived events is made of."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.delta.numbered_writes import NumberedWrite
from delta_outbox.workflow_engine import write_range
from delta_outbox.workflow_engine.derivation.item_events import DueItem, DueMark
from delta_outbox.workflow_engine.write_range import News, Span, WriteRange

WHOLE = Span(after=10, to=14)

found = st.lists(
    st.builds(
        News,
        version=st.integers(11, 14),
        event_id=st.sampled_from(["a", "b", "é", "\U0001f600"]),
        size=st.integers(0, 5),
    ),
    max_size=20,
).map(sorted)


def test_a_range_comes_back_from_its_plan() -> None:
    """Whoever finds the plan reads the same range."""
    read = WriteRange(
        events=Span(after=10, to=14, behind="a", through="é"),
        transitions=Span(after=3, to=9),
        workflows=2,
        seen=20,
        at=datetime(2026, 11, 27, 12, 0, 0, 123_456, tzinfo=UTC),
        told=DueMark(at=datetime(2026, 11, 27, 11, 59, 0, 654_321, tzinfo=UTC), through="é"),
        due=(
            DueItem(task_id="é", arrival=3, expires_at=datetime(2026, 12, 1, tzinfo=UTC)),
            DueItem(task_id="b", arrival=4, assigned_to="ann"),
        ),
        former=(1,),
        all_transitions=True,
    )
    plan = json.loads(json.dumps({"range": read.as_plan()}))
    assert read == WriteRange.of(NumberedWrite(number=1, plan=plan, planned_at=read.at))


def test_what_did_not_fit_came_under_the_former_plans() -> None:
    """As long as there is a rest of what was there, it may have come before the newest plan."""
    at = datetime(2026, 11, 27, 12, tzinfo=UTC)
    span = Span(after=1, to=4)
    read = WriteRange(
        events=span,
        transitions=span,
        workflows=3,
        seen=9,
        at=at,
        told=DueMark(at=at),
        former=(1, 2),
    )
    rest = replace(read, events=Span(after=4, to=9), former=())
    assert (1, 3, 3) == (
        read.in_force_since,
        rest.in_force_since,
        replace(read, former=()).in_force_since,
    )


def test_a_plan_that_says_nothing_of_due_items_has_told_all_of_its_time() -> None:
    """So an outbox from before items told that they are due tells nothing of the past."""
    span = {"after": 1, "to": 2, "behind": None, "through": None}
    plan = {"events": span, "transitions": span, "workflows": 2, "seen": {"events": 2, "purged": 1}}
    at = datetime(2026, 11, 27, 12, tzinfo=UTC)
    read = WriteRange.of(NumberedWrite(number=1, plan={"range": plan}, planned_at=at))
    assert ((), DueMark(at=at)) == (read.due, read.told)


@given(found)
def test_spans_hold_all_news_once(news: list[News]) -> None:
    """Spans that follow each other hold each of the news once, all copies of an id in a commit
    together, and no more of them or of their bytes than they may besides these.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_range, "MOST_NEWS", 3)
        patch.setattr(write_range, "MOST_BYTES", 7)
        held: list[News] = []
        rest = WHOLE
        for _ in range(len(news) + 1):
            left = [one for one in news if rest.holds(one.version, one.event_id)]
            part = rest.cut_to(left)
            taken = [one for one in left if part.holds(one.version, one.event_id)]
            last = [(one.version, one.event_id) for one in taken[-1:]]
            others = [one for one in taken if (one.version, one.event_id) not in last]
            assert len(others) < 3
            assert not others or sum(one.size for one in taken[: len(others) + 1]) <= 7
            assert all(part.after < one.version <= part.last for one in taken)
            held += taken
            if part == rest:
                break
            assert taken
            rest = part.next(14)
    assert news == held


def test_news_may_be_larger_than_a_write() -> None:
    """What is alone larger than all of a write may be is a write of its own."""
    large = [News(version=11, event_id=name, size=write_range.MOST_BYTES + 1) for name in "ab"]
    part = WHOLE.cut_to(large)
    assert Span(after=10, to=10, through="a") == part
    assert [True, False] == [part.holds(one.version, one.event_id) for one in large]
