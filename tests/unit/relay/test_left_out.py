"""What the window leaves out because it has to wait."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.relay.test_window import NOW, eligible, left, rows_of, taken

from delta_outbox.core.hashing import numbers_of
from delta_outbox.lifecycle.order_scopes import scopes_of
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.relay.plan.left_out import LeftOut
from delta_outbox.relay.plan.timing import Timing
from delta_outbox.relay.plan.window import Window
from delta_outbox.testing.conformance.clock import ManualClock

ALL: Final = 99
NOBODY: Final = frozenset[str]()
POLICIES: Final = PolicySet.parse(
    [
        {"event_type": "aging", "destination": "a", "expires_after_seconds": 100},
        {
            "event_type": "held",
            "destination": "a",
            "expires_after_seconds": 100,
            "on_dead": "hold",
        },
        {"event_type": "loose", "destination": "a", "ordering": "none"},
        {"event_type": "each", "destination": "a|b", "order_scope": "destination"},
        {"event_type": "other", "destination": "b"},
        {"event_type": "*", "destination": "a"},
    ]
)


def window(rows: pa.Table, *, at: datetime = NOW, closed: frozenset[str] = NOBODY) -> Window:
    """Return a window of deliveries, selected at an instant."""
    made = Window(rows, POLICIES, batch_size=ALL)
    made.select(now=at, unavailable=closed)
    return made


def test_what_is_due_later_takes_no_place() -> None:
    """What is due in more than a minute is left out with what comes behind it, and is to be listed
    again when the first of it is due; a new event of its key is left out as well.
    """
    hour = NOW + timedelta(hours=1)
    rows = rows_of(
        [
            {"ordering_key": "k"},
            {"ordering_key": "k", "available_at": hour},
            {"ordering_key": "k"},
            {"available_at": hour + timedelta(hours=1)},
            {"ordering_key": "l", "available_at": NOW + timedelta(seconds=59)},
            {"ordering_key": "l"},
            {"ordering_key": "m"},
            {"ordering_key": "k"},
        ]
    )
    plan, left_out, timing = window(rows.slice(0, 5)), LeftOut(), Timing(ManualClock(NOW))
    left_out.cut(plan, room=ALL, closed=NOBODY, timing=timing)
    assert ([0, 4], 3600.0) == (left(plan), left_out.again_at)
    assert [4, 5, 6] == taken(left_out.none_behind(rows.slice(4), POLICIES, timing))


def test_what_waits_for_its_destination_stays_as_long_as_there_is_room() -> None:
    """A destination that is closed for a moment costs no listing; one with more than there is room
    for does not use it up, and is listed again once it is open.
    """
    rows = rows_of([{"event_type": "other", "ordering_key": str(n)} for n in range(5)])
    timing, closed = Timing(ManualClock(NOW)), frozenset({"b"})
    plan, left_out = window(rows, closed=closed), LeftOut()
    left_out.cut(plan, room=5, closed=closed, timing=timing)
    assert ([0, 1, 2, 3, 4], False) == (left(plan), left_out.is_any)
    left_out.cut(plan, room=4, closed=closed, timing=timing)
    assert ([], True, closed) == (left(plan), left_out.is_any, left_out.unavailable)


def test_what_is_due_soon_stays_as_long_as_there_is_room() -> None:
    """Where more than there is room for is due within the minute, the window keeps what is due."""
    soon = {"available_at": NOW + timedelta(seconds=30)}
    plan, left_out = window(rows_of([{}, soon, soon, soon])), LeftOut()
    left_out.cut(plan, room=2, closed=NOBODY, timing=Timing(ManualClock(NOW)))
    assert ([0], 30.0) == (left(plan), left_out.again_at)


def test_what_is_too_old_behind_what_waits_is_listed_when_it_is_due() -> None:
    """A retry that is too old before it is due, behind one that waits for longer, does not have the
    window listed again until it can be ended.
    """
    rows = rows_of(
        [
            {"ordering_key": "k", "available_at": NOW + timedelta(seconds=70)},
            {
                "event_type": "aging",
                "ordering_key": "k",
                "available_at": NOW + timedelta(seconds=50),
                "started_at": NOW - timedelta(seconds=150),
            },
        ]
    )
    plan, left_out = window(rows), LeftOut()
    left_out.cut(plan, room=ALL, closed=NOBODY, timing=Timing(ManualClock(NOW)))
    assert ([], 50.0) == (left(plan), left_out.again_at)


@pytest.mark.parametrize(
    ("lease", "room", "stays"), [(30, ALL, [0, 1, 2]), (30, 0, [0]), (90, ALL, [])]
)
def test_what_others_may_lose_within_a_minute_stays(
    lease: int, room: int, stays: list[int]
) -> None:
    """What others have claimed stays if its lease is over within a minute, with what comes behind
    it as long as there is room; nothing of an order scope stays behind what is left out.
    """
    claimed = {"ordering_key": "k", "available_at": NOW + timedelta(seconds=lease), "blocks": True}
    plan, left_out = window(rows_of([claimed, {"ordering_key": "k"}, claimed])), LeftOut()
    left_out.cut(plan, room=room, closed=NOBODY, timing=Timing(ManualClock(NOW)))
    assert stays == left(plan)


def test_what_nobody_runs_here_takes_no_place() -> None:
    """Tasks of workflows that a relay does not run fill no window, and count as left open."""
    rows = rows_of([{"event_type": "workflow:w/run"}, {}])
    plan, left_out = window(rows), LeftOut()
    left_out.cut(plan, room=ALL, closed=NOBODY, timing=Timing(ManualClock(NOW)))
    assert ([1], True) == (left(plan), left_out.is_any)


SECONDS: Final = st.sampled_from([-150, -50, 0, 30, 50, 70, 120])
KINDS: Final = st.sampled_from(["x", "aging", "held", "loose", "other", "workflow:w/run"])
NEW: Final = st.fixed_dictionaries(
    {
        "event_type": KINDS,
        "ordering_key": st.sampled_from([None, "k", "l", "m"]),
        "available_at": st.none() | SECONDS.map(lambda s: NOW + timedelta(seconds=s)),
        "started_at": SECONDS.map(lambda s: NOW + timedelta(seconds=s)),
    }
)
OPEN: Final = st.tuples(
    NEW,
    st.fixed_dictionaries(
        {
            "kill_command_id": st.sampled_from([None, None, None, "c"]),
            "blocks": st.sampled_from([False, False, False, True]),
        }
    ),
).map(lambda parts: {**parts[0], **parts[1]})


@given(
    rows=st.lists(OPEN, max_size=8),
    arrivals=st.lists(st.tuples(NEW, st.integers(0, 150)), max_size=4),
    seconds=st.integers(0, 100),
    room=st.integers(0, 3),
    closed=st.sampled_from([NOBODY, frozenset({"b"})]),
)
def test_a_window_that_is_cut_selects_what_the_whole_one_does(
    rows: list[Mapping[str, Any]],
    arrivals: list[tuple[Mapping[str, Any], int]],
    seconds: int,
    room: int,
    closed: frozenset[str],
) -> None:
    """Whatever waits when a window is cut, and whatever comes then: until it is to be listed again,
    that is eligible, and to be ended, which is without the cut; and no more waits than there is
    room for. When the claims of others that it still holds come back, it offers nothing that the
    whole one does not, and what came back as that does.
    """
    table = rows_of([*rows, *(row for row, _ in arrivals)])
    clock, left_out = ManualClock(NOW), LeftOut()
    timing = Timing(clock)
    whole, cut = (window(table.slice(0, len(rows)), closed=closed) for _ in range(2))
    left_out.cut(cut, room=room, closed=closed, timing=timing)
    for number, came in enumerate([0, *sorted(came for _, came in arrivals)]):
        clock.sleep(came - clock.monotonic())
        if left_out.again_at <= came:
            return
        if number:
            new = table.slice(len(rows) + number - 1, 1)
            kept = left_out.none_behind(new, POLICIES, timing)
            if left_out.again_at <= came:  # it is too old already
                return
            whole = window(pa.concat_tables([whole.left(), new]), at=clock.now(), closed=closed)
            cut = window(pa.concat_tables([cut.left(), kept]), at=clock.now(), closed=closed)
            left_out.cut(cut, room=room, closed=closed, timing=timing)
        assert came < left_out.again_at  # or it would be listed again and again
        # What comes behind one that will be DEAD and hold its key is left out when it is.
        assert cut.has_ends or cut.waiting <= room
        for later in (0, seconds):
            if left_out.again_at > came + later:
                at = clock.now() + timedelta(seconds=later)
                assert _selected(whole, at, closed) == _selected(cut, at, closed)
        held = taken(cut.left().filter(cut.left()["blocks"]))
        again = [_given_back(one.left(), held) for one in (whole, cut)]
        of_whole, of_cut = ({*eligible(window(t, at=clock.now(), closed=closed))} for t in again)
        assert of_cut <= of_whole
        assert of_cut & {*held} == of_whole & {*held}
        scopes = scopes_of(table, POLICIES).to_pylist()
        assert not [
            (one, before)
            for one in of_cut
            for before in of_whole - of_cut
            if before < one and scopes[before] == scopes[one] is not None
        ]


def _given_back(deliveries: pa.Table, held: Collection[int]) -> pa.Table:
    """Return deliveries of which some, that only block, are open again and due."""
    back = {"blocks": False, "available_at": None}
    rows = [row | back if int(row["event_id"]) in held else row for row in deliveries.to_pylist()]
    return pa.Table.from_pylist(rows, deliveries.schema)


def _selected(plan: Window, at: datetime, closed: frozenset[str]) -> Sequence[list[int]]:
    """Return what is eligible of what a window holds, and what is to be ended."""
    again = window(plan.left(), at=at, closed=closed)
    return taken(again.take_ends(ALL)), eligible(again)


def test_order_scopes_are_known_by_their_numbers() -> None:
    """A scope within a destination is another one than that of the same key in another one."""
    rows = rows_of(
        [
            {"event_type": "each", "ordering_key": "k"},
            {"event_type": "other", "ordering_key": "k"},
            {"event_type": "loose", "ordering_key": "k"},
            {"event_type": "each", "ordering_key": "other"},
            {"ordering_key": None},
        ]
    )
    scopes = pa.chunked_array([scopes_of(rows.slice(0, 1), POLICIES)])
    left_out = LeftOut(np.unique(numbers_of(scopes)))
    assert [1, 2, 3, 4] == taken(left_out.none_behind(rows, POLICIES, Timing(ManualClock(NOW))))
