"""What the claims of a tail say, and how a backlog is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.lifecycle.claims import new_claim_id
from delta_outbox.projection.tail_claims import KIND, MOST_OVER, NOTHING, claims_of, read_claims
from delta_outbox.projection.tails import MOST_PARTS, parts_of


def claim(
    *,
    claimed: int = 0,
    ended: int = 0,
    set_free: int = 0,
    replays: bool = False,
    claim_id: str | None = "",
    to: tuple[str, str] = ("a", "a"),
    arrivals: tuple[int, int] = (1, 1),
) -> dict[str, object]:
    """Return what is counted of a claim."""
    return {
        "claim_id": new_claim_id() if claim_id == "" else claim_id,
        "replays": replays,
        "first": to[0],
        "last": to[1],
        "transitions": claimed + ended,
        "claimed": claimed,
        "set_free": set_free,
        "first_arrival": arrivals[0],
        "last_arrival": arrivals[1],
    }


def test_a_claim_is_over_once_all_its_endings_are_there():
    """One that has ended as a whole is left out; of one that is only claimed, or only ended, each
    delivery has one transition.
    """
    over = claim(claimed=3, ended=3)
    found = read_claims([over, claim(claimed=2), claim(ended=2)])
    assert ([over["claim_id"]], False) == (found.over, found.more_than_one)


def test_what_may_have_more_than_one_transition():
    """A claim that has ended in part; deliveries that are open again; a claim id of anybody else's
    making, which is put into no condition; more claims than a condition should name.
    """
    assert read_claims([claim(claimed=3, ended=2)]).more_than_one
    assert read_claims([claim(claimed=3, ended=3, set_free=1)]).more_than_one
    strange = read_claims([claim(claimed=1, ended=1, claim_id="x' or 'a' = 'a")])
    assert ([], True) == (strange.over, strange.more_than_one)
    many = read_claims([claim(claimed=1, ended=1) for _ in range(MOST_OVER + 1)])
    assert ([], True) == (many.over, many.more_than_one)


def test_replays_and_destinations_are_seen():
    """A replay leaves a terminal state; destinations differ within a claim or between two."""
    assert read_claims([claim(ended=1, replays=True, claim_id=None)]).replays
    assert not read_claims([claim(ended=1)]).replays
    assert read_claims([claim(ended=2, to=("a", "b"))]).several_destinations
    assert read_claims([claim(ended=1), claim(ended=1, to=("b", "b"))]).several_destinations
    assert not read_claims([claim(ended=1), claim(ended=1)]).several_destinations


def test_how_many_deliveries_there_are_and_of_which_events():
    """A claim that has ended as well counts once; the range spans all claims."""
    claims = [claim(claimed=3, ended=3, arrivals=(4, 5)), claim(claimed=2), claim(ended=4)]
    found = read_claims(claims)
    assert (9, (1, 5)) == (found.deliveries, found.arrivals)
    assert (0, NOTHING) == (read_claims([]).deliveries, read_claims([]).arrivals)


def test_groups_of_transitions_are_put_together_by_claim():
    """What is counted of transitions that are alike is counted of their claim."""

    def group(rows: int, arrivals: tuple[int, int], *kind: str | None) -> dict[str, object]:
        least, greatest = arrivals
        of_kind = dict(zip(KIND, kind, strict=True))
        return {**of_kind, "rows": rows, "least": least, "greatest": greatest}

    claim_id = new_claim_id()
    found = claims_of(
        [
            group(3, (4, 6), claim_id, "b", "CLAIMED", "claimed"),
            group(1, (2, 2), claim_id, "a", "PENDING", "failed"),
            group(2, (5, 6), claim_id, "b", "PUBLISHED", "delivered"),
            group(1, (9, 9), None, "a", "PENDING", "replayed"),
        ]
    )
    expected = claim(
        claimed=3, ended=3, set_free=1, claim_id=claim_id, to=("a", "b"), arrivals=(2, 6)
    )
    replay = claim(ended=1, set_free=1, replays=True, claim_id=None, to=("a", "a"), arrivals=(9, 9))
    assert [expected, replay] == found


@given(
    commits=st.lists(st.integers(0, 27), max_size=40),
    after=st.integers(-1, 5),
    size=st.integers(1, 30),
)
def test_parts_are_whole_commits(commits: list[int], after: int, size: int):
    """Together they are the range, each but the last holds enough, and there are not too many."""
    versions = range(after + 1, after + 1 + len(commits))
    counts = {version: rows for version, rows in zip(versions, commits, strict=True) if rows}
    to = after + len(commits)
    parts = parts_of(counts, after=after, to=to, size=size)
    total = sum(commits)
    assert bool(parts) == (total >= size)
    if parts:
        assert [after, *(end for _, end in parts)] == [*(begin for begin, _ in parts), to]
        held = [sum(counts.get(at, 0) for at in range(a + 1, b + 1)) for a, b in parts]
        assert total == sum(held)
        assert all(rows >= size for rows in held[:-1])
        assert len(parts) <= MOST_PARTS + 1
