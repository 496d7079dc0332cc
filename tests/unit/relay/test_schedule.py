"""What a claim is made of: prefixes of each order scope, one kind, never more than asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.lifecycle.claims import DELIVERIES
from delta_outbox.lifecycle.order_scopes import scope_of, scopes_of
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.relay.schedule import Kind, Schedule

Row = tuple[str | None, int, int]  # scope, publish_attempts, suspect


def schedule(
    *rows: Row,
    batch_size: int = 8,
    lanes: list[int] | None = None,
    sizes: Sequence[int | None] = (),
    batch_bytes: int | None = None,
) -> Schedule:
    """Return a schedule of deliveries `0`, `1`, ... in this order; their sizes are unknown."""
    count = len(rows)
    columns: dict[str, Any] = {
        "event_id": [str(number) for number in range(count)],
        "arrival": list(range(count)),
        "event_type": ["x"] * count,
        "destination": [""] * count,
        "publish_attempts": [row[1] for row in rows],
        "suspect": [row[2] for row in rows],
        "payload_bytes": list(sizes) or [None] * count,
    }
    given = {name: columns.get(name, [None] * count) for name in DELIVERIES.names}
    table = pa.table(given, schema=DELIVERIES)
    scopes = pa.array([r[0] for r in rows], pa.string())
    return Schedule(table, scopes, batch_size=batch_size, batch_bytes=batch_bytes, lanes=lanes)


def taken(table: pa.Table) -> list[int]:
    """Return the numbers of the deliveries of a claim."""
    return [int(name) for name in table["event_id"].to_pylist()]


def test_a_limit_cuts_a_prefix() -> None:
    """Claims follow each other in order and none is larger than asked."""
    plan = schedule(("k", 0, 0), (None, 0, 0), ("k", 0, 0))
    assert [0, 1] == taken(plan.take(Kind.FIRST_ATTEMPT, 2))
    assert [2] == taken(plan.take(Kind.FIRST_ATTEMPT, 2))
    assert [] == taken(plan.take(Kind.FIRST_ATTEMPT, 2))


def test_bytes_cut_a_prefix() -> None:
    """A claim ends before the event with which its payloads would have too many bytes, whatever the
    number of its events; one that is larger by itself goes alone.
    """
    plan = schedule(*[(None, 0, 0)] * 7, sizes=[3, 3, 3, 11, 0, 10, 1], batch_bytes=10)
    found = [taken(plan.take(Kind.FIRST_ATTEMPT, 8)) for _ in range(5)]
    assert [[0, 1, 2], [3], [4, 5], [6], []] == found


def test_an_unknown_size_counts_as_a_whole_claim() -> None:
    """An event of which nobody knows how large it is shares a claim with nothing but empty ones."""
    plan = schedule(*[(None, 0, 0)] * 4, sizes=[1, None, 0, None], batch_bytes=10)
    found = [taken(plan.take(Kind.FIRST_ATTEMPT, 8)) for _ in range(4)]
    assert [[0], [1, 2], [3], []] == found


def test_a_claim_is_of_one_lane() -> None:
    """Where there are several lanes, that of what comes first has its turn; a lane whose first
    has to wait keeps none of the others waiting.
    """
    rows: list[Row] = [("a", 1, 0), ("a", 0, 0), ("b", 0, 0), (None, 0, 0), ("b", 0, 0)]
    plan = schedule(*rows, lanes=[0, 0, 1, 2, 1])
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
    plan = schedule(*rows)
    assert [0, 2, 3, 4, 6, 7] == taken(plan.take(Kind.FIRST_ATTEMPT, 6, share=2))
    assert [1, 5, 9] == taken(plan.take(Kind.FIRST_ATTEMPT, 6, blocked=["a", "c"], share=1))[:3]
    assert [0, 1, 2, 3] == taken(schedule(*rows[:4]).take(Kind.FIRST_ATTEMPT, 4, share=2))
    large = schedule(*rows[:4], sizes=[5, 5, 5, 5], batch_bytes=10)
    assert [0, 2] == taken(large.take(Kind.FIRST_ATTEMPT, 4, share=2))


def test_first_attempts_wait_for_a_retry_before_them() -> None:
    """Of a scope whose first event failed before, a claim of new ones takes nothing."""
    plan = schedule(("k", 1, 0), ("k", 0, 0), ("other", 0, 0))
    assert [2] == taken(plan.take(Kind.FIRST_ATTEMPT, 9))
    assert [0] == taken(plan.take(Kind.RETRY, 9))
    assert [] == taken(plan.take(Kind.FIRST_ATTEMPT, 9, blocked=["k"]))
    assert [1] == taken(plan.take(Kind.FIRST_ATTEMPT, 9))


def test_a_failure_blocks_its_scope() -> None:
    """After a failure nothing more of the scope is taken, and it no longer counts as left."""
    plan = schedule(("k", 0, 0), ("k", 0, 0), (None, 0, 0))
    assert [0] == taken(plan.take(Kind.FIRST_ATTEMPT, 1))
    assert plan.block(["k", None, "never seen"])
    assert 1 == len(plan)
    assert [2] == taken(plan.take(Kind.FIRST_ATTEMPT, 9))
    assert not schedule((None, 0, 0)).block([None, "never seen"])


def test_who_blocks_a_scope_learns_whether_something_is_left() -> None:
    """What was taken of it does not count."""
    plan = schedule(("k", 0, 0), ("other", 0, 0))
    plan.take(Kind.FIRST_ATTEMPT, 1)
    assert (False, True) == (plan.block(["k"]), plan.block(["k", "other"]))


def test_suspects_are_claimed_among_themselves_in_ever_smaller_claims() -> None:
    """A claim of suspects holds one degree only, and half as many for each degree more."""
    plan = schedule(*[(None, 0, 1)] * 6, (None, 0, 3), (None, 1, 0), (None, 0, 3), batch_size=8)
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
    plan = schedule(*rows, batch_size=4, sizes=sizes[: len(rows)], batch_bytes=batch_bytes)
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
