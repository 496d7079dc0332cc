"""Claims hold what their destination takes in seconds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.relay.destinations.pace import CLAIM_SECONDS, LEAST, Pace

MOST = 50_000
DEADLINE = 30.0  # seconds


def claims(pace: Pace, per_second: float, count: int) -> list[tuple[int, int, float]]:
    """Return size, how many were sent, and seconds of claims for one destination."""
    found = []
    for _ in range(count):
        size = pace.room("a", MOST)
        seconds = 0.1 + min(DEADLINE, size / per_second)
        sent = min(size, int(DEADLINE * per_second))
        pace.took("a", size=size, sent=sent, seconds=seconds)
        found.append((size, sent, seconds))
    return found


def test_who_is_fast_has_whole_batches() -> None:
    """Nothing but the settings bounds what is sent in time; what is small says nothing."""
    pace = Pace()
    assert {MOST} == {size for size, _, _ in claims(pace, 20_000, 5)}
    pace.took("a", size=1, sent=1, seconds=1)
    assert MOST == pace.room("a", MOST)


@given(st.floats(1, 10_000 / CLAIM_SECONDS))
def test_who_is_slow_gets_no_more_than_it_takes(per_second: float) -> None:
    """After its first claim nothing is given back, and a claim lasts about as long as it is to."""
    first, *others = claims(Pace(), per_second, 20)
    assert first[0] == MOST
    for size, sent, seconds in others:
        assert sent == size or size == LEAST
        assert size == LEAST or seconds <= 2 * CLAIM_SECONDS + 0.3
        assert size >= min(LEAST, MOST)
    assert max(size for size, _, _ in others) >= min(MOST, per_second * CLAIM_SECONDS / 2)


def test_who_was_slow_is_soon_as_fast_as_it_was() -> None:
    """A destination that hung once has whole batches again after a few claims."""
    pace = Pace()
    pace.took("a", size=MOST, sent=0, seconds=DEADLINE)
    assert LEAST == pace.room("a", MOST)
    sizes = [size for size, _, _ in claims(pace, 20_000, 12)]
    assert MOST == sizes[-1]


def test_each_destination_has_its_own_pace() -> None:
    """A claim for several is as large as the slowest of them takes."""
    pace = Pace()
    pace.took("a", size=1000, sent=1000, seconds=10)
    assert (500, 500, MOST) == tuple(pace.room(to, MOST) for to in ("a", "a|b", "b"))
    pace.took("b|c", size=1000, sent=800, seconds=10)
    assert (MOST, 400) == (pace.room("b", MOST), pace.room("b|c", MOST))
