"""What is eligible of a window, and what a claim is made of: prefixes of each order scope, of one
kind, never more than asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.lifecycle.claims import DELIVERIES
from delta_outbox.lifecycle.order_scopes import scope_of, scopes_of
from delta_outbox.lifecycle.policy import PolicySet, task_policy
from delta_outbox.relay.plan.window import Kind, Window

Row = tuple[str | None, int, int]  # key, publish_attempts, suspect

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
STRICT = PolicySet.parse([{"event_type": "*"}])
POLICIES = PolicySet.parse(
    [
        {"event_type": "aging", "expires_after_seconds": 100},
        {"event_type": "both", "destination": "a|b"},
        {"event_type": "other", "destination": "b"},
        {"event_type": "*", "destination": "a"},
    ]
)
ZEROS = dict.fromkeys(("attempts", "publish_attempts", "crashes", "suspect", "lifecycle"), 0)


def rows_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return deliveries `0`, `1`, ... in this order, that have some columns."""
    full = [
        {
            **ZEROS,
            "event_id": str(number),
            "arrival": number,
            "event_type": "x",
            "destination": "",
            "started_at": NOW,
            "blocks": False,
            **row,
        }
        for number, row in enumerate(rows)
    ]
    return pa.Table.from_pylist(full, schema=DELIVERIES)


def window(
    *rows: Row,
    batch_size: int = 8,
    lanes: list[int] | None = None,
    sizes: Sequence[int | None] = (),
    batch_bytes: int | None = None,
) -> Window:
    """Return a window of deliveries that are due; their sizes are unknown."""
    table = rows_of(
        [
            {
                "ordering_key": key,
                "publish_attempts": failed,
                "suspect": suspect,
                "payload_bytes": size,
            }
            for (key, failed, suspect), size in zip_longest(rows, sizes)
        ]
    )
    made = Window(table, STRICT, batch_size=batch_size, batch_bytes=batch_bytes, lanes=lanes)
    made.select(now=NOW)
    return made


def left(made: Window) -> list[int]:
    """Return the numbers of the deliveries that are in a window."""
    return taken(made.left())


def eligible(made: Window) -> list[int]:
    """Return the numbers of the deliveries that are eligible, by taking all of them."""
    return sorted(number for kind in Kind for number in taken(made.take(kind, 99)))


def taken(table: pa.Table) -> list[int]:
    """Return the numbers of the deliveries of a claim."""
    return [int(name) for name in table["event_id"].to_pylist()]


def test_a_limit_cuts_a_prefix() -> None:
    """Claims follow each other in order and none is larger than asked."""
    plan = window(("k", 0, 0), (None, 0, 0), ("k", 0, 0))
    assert [0, 1] == taken(plan.take(Kind.FIRST_ATTEMPT, 2))
    assert [2] == taken(plan.take(Kind.FIRST_ATTEMPT, 2))
    assert [] == taken(plan.take(Kind.FIRST_ATTEMPT, 2))


def test_bytes_cut_a_prefix() -> None:
    """A claim ends before the event with which its payloads would have too many bytes, whatever the
    number of its events; one that is larger by itself goes alone.
    """
    plan = window(*[(None, 0, 0)] * 7, sizes=[3, 3, 3, 11, 0, 10, 1], batch_bytes=10)
    found = [taken(plan.take(Kind.FIRST_ATTEMPT, 8)) for _ in range(5)]
    assert [[0, 1, 2], [3], [4, 5], [6], []] == found


def test_an_unknown_size_counts_as_a_whole_claim() -> None:
    """An event of which nobody knows how large it is shares a claim with nothing but empty ones."""
    plan = window(*[(None, 0, 0)] * 4, sizes=[1, None, 0, None], batch_bytes=10)
    found = [taken(plan.take(Kind.FIRST_ATTEMPT, 8)) for _ in range(4)]
    assert [[0], [1, 2], [3], []] == found


def test_a_claim_is_of_one_lane() -> None:
    """Where there are several lanes, that of what comes first has its turn; a lane whose first
    has to wait keeps none of the others waiting.
    """
    rows: list[Row] = [("a", 1, 0), ("a", 0, 0), ("b", 0, 0), (None, 0, 0), ("b", 0, 0)]
    plan = window(*rows, lanes=[0, 0, 1, 2, 1])
    assert [2, 4] == taken(plan.take(Kind.FIRST_ATTEMPT, 9))
    assert [3] == taken(plan.take(Kind.FIRST_ATTEMPT, 9))
    assert [] == taken(plan.take(Kind.FIRST_ATTEMPT, 9))
    assert [0] == taken(plan.take(Kind.RETRY, 9))
    assert [1] == taken(plan.take(Kind.FIRST_ATTEMPT, 9))


def test_order_scopes_are_shared_where_one_claim_cannot_hold_all() -> None:
    """A claim that leaves something takes every second order scope, so that another one finds the
    others; what has none is for whoever comes first. One that leaves nothing takes all.
    """
    rows: list[Row] = [(key, 0, 0) for _ in range(3) for key in ("a", "b", None, "c")]
    plan = window(*rows)
    assert [0, 2, 3, 4, 6, 7] == taken(plan.take(Kind.FIRST_ATTEMPT, 6, share=2))
    assert [1, 5, 9] == taken(plan.take(Kind.FIRST_ATTEMPT, 6, blocked=["\x00a", "\x00c"]))[:3]
    assert [0, 1, 2, 3] == taken(window(*rows[:4]).take(Kind.FIRST_ATTEMPT, 4, share=2))
    large = window(*rows[:4], sizes=[5, 5, 5, 5], batch_bytes=10)
    assert [0, 2] == taken(large.take(Kind.FIRST_ATTEMPT, 4, share=2))


def test_first_attempts_wait_for_a_retry_before_them() -> None:
    """Of a scope whose first event failed before, a claim of new ones takes nothing."""
    plan = window(("k", 1, 0), ("k", 0, 0), ("other", 0, 0))
    assert [2] == taken(plan.take(Kind.FIRST_ATTEMPT, 9))
    assert [0] == taken(plan.take(Kind.RETRY, 9))
    assert [] == taken(plan.take(Kind.FIRST_ATTEMPT, 9, blocked=["\x00k"]))
    assert [1] == taken(plan.take(Kind.FIRST_ATTEMPT, 9))


def test_a_failure_blocks_its_scope() -> None:
    """After a failure nothing more of the scope is taken, and it no longer counts as eligible."""
    plan = window(("k", 0, 0), ("k", 0, 0), (None, 0, 0))
    assert [0] == taken(plan.take(Kind.FIRST_ATTEMPT, 1))
    plan.block(["\x00k", None, "never seen"])
    assert 1 == len(plan)
    assert plan.select(now=NOW + timedelta(days=1))
    assert [2] == taken(plan.take(Kind.FIRST_ATTEMPT, 9))
    assert [1] == left(plan)


def test_suspects_are_claimed_among_themselves_in_ever_smaller_claims() -> None:
    """A claim of suspects holds one degree only, and half as many for each degree more."""
    plan = window(*[(None, 0, 1)] * 6, (None, 0, 3), (None, 1, 0), (None, 0, 3), batch_size=8)
    assert [0, 1, 2, 3] == taken(plan.take(Kind.RETRY, 99))
    assert [4, 5] == taken(plan.take(Kind.RETRY, 99))
    assert [6] == taken(plan.take(Kind.RETRY, 99))
    assert [7] == taken(plan.take(Kind.RETRY, 99))
    assert [8] == taken(plan.take(Kind.RETRY, 99))


ROWS = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.integers(0, 1), st.integers(0, 2)),
    max_size=24,
)


@given(
    rows=ROWS,
    turns=st.lists(
        st.tuples(st.sampled_from(Kind), st.integers(1, 6), st.integers(1, 3)), max_size=9
    ),
    sizes=st.lists(st.none() | st.integers(0, 12), min_size=24, max_size=24),
    batch_bytes=st.none() | st.integers(1, 20),
)
def test_every_claim_is_a_prefix_of_each_scope(
    rows: list[Row],
    turns: list[tuple[Kind, int, int]],
    sizes: list[int | None],
    batch_bytes: int | None,
) -> None:
    """Whatever is taken in whatever turn: each delivery once, in order within its scope, within
    size and bytes, suspects within theirs; and in the end nothing is left.
    """
    plan = window(*rows, batch_size=4, sizes=sizes[: len(rows)], batch_bytes=batch_bytes)
    order: list[int] = []
    for kind, size, share in [*turns, *[(kind, 3, 1) for _ in rows for kind in Kind]]:
        claim = taken(plan.take(kind, size, share=share))
        suspects = {rows[number][2] for number in claim}
        assert len(claim) <= size
        if batch_bytes is not None and len(claim) > 1:
            held = [sizes[number] for number in claim]
            assert sum(batch_bytes if one is None else one for one in held) <= batch_bytes
        assert len(suspects) <= 1
        assert all(len(claim) <= -(-4 // (1 << suspect)) for suspect in suspects if suspect)
        order += claim
    assert list(range(len(rows))) == sorted(order)
    assert 0 == len(plan)
    for scope in ("a", "b", "c"):
        own = [number for number in order if rows[number][0] == scope]
        assert sorted(own) == own


def test_the_scopes_of_columns_are_those_of_rows() -> None:
    """Scopes computed by column equal those computed one by one."""
    policies = PolicySet.parse(
        [
            {"event_type": "loose", "ordering": "none"},
            {"event_type": "each", "destination": "a", "order_scope": "destination"},
            {"event_type": "many", "destination": "a|b", "order_scope": "destination"},
            {"event_type": "*"},
        ]
    )
    rows = [
        (kind, key, destination)
        for kind in ("loose", "each", "many", "x")
        for key in (None, "", "k")
        for destination in ("", "a", "b")
    ]
    table = pa.table(
        {
            "event_type": [row[0] for row in rows],
            "ordering_key": pa.array([row[1] for row in rows], pa.string()),
            "destination": [row[2] for row in rows],
        }
    )
    expected = [
        scope_of(policies.match(kind), ordering_key=key, destination=destination)
        for kind, key, destination in rows
    ]
    assert expected == scopes_of(table, policies).to_pylist()
    assert {None, "\x00", "\x00k", "a|b\x00", "a|b\x00k"} == set(expected)


def test_destinations_that_share_an_event_are_one_scope() -> None:
    """What waits for one of them keeps what comes behind it waiting at each: else a later event
    could pass one that goes to both.
    """
    policies = PolicySet.parse(
        [
            {"event_type": "both", "destination": "a|b", "order_scope": "destination"},
            {"event_type": "other", "destination": "c", "order_scope": "destination"},
            {"event_type": "*", "destination": "b", "order_scope": "destination"},
        ]
    )
    plan = Window(
        rows_of(
            [
                {"event_type": "both", "ordering_key": "k", "destination": "a", "blocks": True},
                {"event_type": "both", "ordering_key": "k"},
                {"event_type": "x", "ordering_key": "k"},
                {"event_type": "other", "ordering_key": "k"},
            ]
        ),
        policies,
        batch_size=8,
    )
    assert plan.select(now=NOW)
    assert [3] == eligible(plan)


def test_deliveries_of_one_event_do_not_wait_for_each_other() -> None:
    """One that backs off at a destination keeps the later events of its key waiting, and not the
    same event at another destination.
    """
    later = NOW + timedelta(seconds=1)
    rows: list[Mapping[str, Any]] = [
        {"event_id": "7", "ordering_key": "k", "destination": "a", "available_at": later},
        {"event_id": "7", "ordering_key": "k", "destination": "b"},
        {"event_id": "8", "ordering_key": "k"},
    ]
    for policies in (STRICT, POLICIES):
        plan = Window(rows_of(rows), policies, batch_size=8)
        assert plan.select(now=NOW)
        assert [7] == eligible(plan)
        assert plan.select(now=later)
        assert [7, 8] == eligible(plan)


def test_what_is_not_due_holds_its_key() -> None:
    """Until it is due, what comes behind it in its order scope waits as well; the window says when
    that will be, and holds on to all of it.
    """
    soon, later = NOW + timedelta(seconds=5), NOW + timedelta(seconds=9)
    plan = Window(
        rows_of(
            [
                {"ordering_key": "k", "available_at": later, "publish_attempts": 1},
                {"ordering_key": "k"},
                {"ordering_key": "l", "available_at": NOW},
                {"available_at": soon},
            ]
        ),
        STRICT,
        batch_size=8,
    )
    assert plan.select(now=NOW)
    assert (1, soon) == (len(plan), plan.next_change)
    assert [2] == eligible(plan)
    assert not plan.select(now=NOW + timedelta(seconds=1))
    assert plan.select(now=soon)
    assert later == plan.next_change
    assert [3] == eligible(plan)
    assert plan.select(now=later)
    assert [0] == taken(plan.take(Kind.RETRY, 9))
    assert not plan.is_over
    assert [1] == eligible(plan)
    assert plan.is_over


def test_what_only_blocks_is_never_taken() -> None:
    """What others have claimed, or what is DEAD and holds its key, keeps what comes behind it in
    its order scope, and nothing else; it does not count as open.
    """
    table = rows_of(
        [
            {"ordering_key": "k"},
            {"ordering_key": "k", "blocks": True},
            {"ordering_key": "k"},
            {"ordering_key": "l"},
        ]
    )
    plan = Window(table, STRICT, batch_size=8)
    assert plan.select(now=NOW)
    assert None is plan.next_change
    assert [0, 3] == eligible(plan)
    assert [1, 2] == left(plan)
    only = Window(table.slice(1, 1), STRICT, batch_size=8)
    assert (False, True) == (only.select(now=NOW), only.is_over)


def test_what_is_unavailable_holds_its_key() -> None:
    """What can go to no destination at the moment waits, and so does what comes behind it in its
    order scope, wherever that goes; what has one destination left is eligible.
    """
    table = rows_of(
        [
            {"event_type": "x", "ordering_key": "k"},
            {"event_type": "other", "ordering_key": "k"},
            {"event_type": "both", "ordering_key": "l"},
            {"event_type": "x", "destination": "b", "ordering_key": "m"},
        ]
    )
    plan = Window(table, POLICIES, batch_size=8)
    assert plan.select(now=NOW, unavailable={"a"})
    assert ["a|b", "b"] == plan.destinations()
    assert [2, 3] == eligible(plan)
    assert not plan.select(now=NOW, unavailable={"a"})
    assert plan.select(now=NOW)
    assert [0, 1] == eligible(plan)


def test_a_task_is_taken_by_who_runs_it_only() -> None:
    """A relay without workflows leaves tasks alone, also those that a third party was asked for
    already; what an operator has killed it ends.
    """
    rows = rows_of(
        [
            {"event_type": "workflow:w/run", "ordering_key": "k"},
            {"event_type": "workflow:w/run", "destination": "bank", "attempts": 1},
            {"event_type": "workflow:w/run", "kill_command_id": "c"},
            {"ordering_key": "k"},
        ]
    )
    own = task_policy("workflow:w/run", "bank", lease_seconds=60)
    found = []
    for policies in (STRICT, replace(STRICT, tasks=(own,))):
        made = Window(rows, policies, batch_size=8)
        made.select(now=NOW)
        found.append((eligible(made), taken(made.take_ends(8))))
    assert [([3], [2]), ([0, 1, 3], [2])] == found


def test_what_is_too_old_and_will_hold_its_key_holds_it_at_once() -> None:
    """Where a DEAD delivery holds its key, what comes behind one that is past its age waits as soon
    as it is, not only when that is on record; a killed one lets its key go.
    """
    policies = PolicySet.parse(
        [{"event_type": "x", "expires_after_seconds": 100, "on_dead": "hold"}, {"event_type": "*"}]
    )
    rows: list[Mapping[str, Any]] = [
        {"ordering_key": "k", "started_at": NOW - timedelta(seconds=100)},
        {"ordering_key": "k"},
        {"ordering_key": "l", "kill_command_id": "c"},
        {"ordering_key": "l"},
    ]
    plan = Window(rows_of(rows), policies, batch_size=8)
    assert plan.select(now=NOW)
    assert [3] == eligible(plan)
    assert [0, 2] == taken(plan.take_ends(9))


def test_what_is_killed_or_too_old_ends_unsent() -> None:
    """Once it is due, also behind what holds its key; what comes behind it is eligible."""
    killed = {"kill_command_id": "c", "ordering_key": "k"}
    plan = Window(
        rows_of(
            [
                killed,
                {**killed, "available_at": NOW + timedelta(hours=1)},
                {"event_type": "aging", "ordering_key": "k"},
                {"ordering_key": "k"},
                {"event_type": "aging", "ordering_key": "l", "blocks": True},
                {"event_type": "aging", "ordering_key": "l"},
                {"event_type": "aging", "available_at": NOW + timedelta(hours=1)},
            ]
        ),
        POLICIES,
        batch_size=8,
    )
    old = NOW + timedelta(seconds=100)
    assert plan.select(now=NOW)
    assert (old, True) == (plan.next_change, plan.has_ends)
    assert [0] == taken(plan.take_ends(9))
    assert plan.select(now=old)
    assert [2] == taken(plan.take_ends(1))
    assert [3] == eligible(plan)
    assert [5] == taken(plan.take_ends(9))
    assert (False, [1, 4, 6]) == (plan.has_ends, left(plan))


def expected_of(rows: Sequence[Mapping[str, Any]], at: datetime) -> tuple[list[int], list[int]]:
    """Say, row by row, what is eligible and what ends unsent: the rules of `held_by_order` and
    `endable` once more.
    """
    held: set[str | None] = set()
    may, ends = [], []
    for number, row in enumerate(rows):
        key = row["ordering_key"] if row["event_type"] != "loose" else None
        is_due = row["available_at"] is None or row["available_at"] <= at
        is_old = row["event_type"] == "aging" and at >= row["started_at"] + timedelta(seconds=100)
        if row["blocks"]:
            held.add(key)
        elif row["kill_command_id"] or is_old:
            if is_due:
                ends.append(number)
            elif not row["kill_command_id"]:
                held.add(key)
        elif not is_due:
            held.add(key)
        elif key is None or key not in held:
            may.append(number)
    return may, ends


SECONDS = st.sampled_from([-50, 0, 1, 60, 120])
STATES = st.fixed_dictionaries(
    {
        "event_type": st.sampled_from(["x", "aging", "loose"]),
        "ordering_key": st.sampled_from([None, "k", "l"]),
        "available_at": st.none() | SECONDS.map(lambda s: NOW + timedelta(seconds=s)),
        "started_at": SECONDS.map(lambda s: NOW + timedelta(seconds=s)),
        "kill_command_id": st.sampled_from([None, None, None, "c"]),
        "blocks": st.sampled_from([False, False, False, True]),
    }
)


@given(
    rows=st.lists(STATES, max_size=14),
    seconds=st.lists(st.integers(0, 300), min_size=1, max_size=5).map(sorted),
)
def test_what_is_selected_is_what_the_rules_say(
    rows: list[dict[str, Any]], seconds: list[int]
) -> None:
    """At any instant, asked for the first time or again, exactly that is eligible, and exactly that
    is to be ended unsent, which the rules say; and nothing changes before the window says so.
    """
    policies = PolicySet.parse(
        [
            {"event_type": "aging", "expires_after_seconds": 100},
            {"event_type": "loose", "ordering": "none"},
            {"event_type": "*"},
        ]
    )
    plan = Window(rows_of(rows), policies, batch_size=99)
    for at in (NOW + timedelta(seconds=number) for number in seconds):
        may, ends = expected_of(rows, at)
        assert bool(may) == plan.select(now=at)
        assert (len(may), bool(ends)) == (len(plan), plan.has_ends)
        change = plan.next_change
        assert change is None or change > at
        before = change - timedelta(microseconds=1) if change else at + timedelta(days=9)
        assert (may, ends) == expected_of(rows, before)
        fresh = Window(rows_of(rows), policies, batch_size=99)
        fresh.select(now=at)
        assert (ends, may) == (taken(fresh.take_ends(99)), eligible(fresh))
