"""The circuit breaker: when it opens, what it lets pass, when it closes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.relay.destinations.breaker import Breaker, BreakerState


def breaker(failures: int | None = 3) -> Breaker:
    """Return a breaker that stays open for ten seconds."""
    return Breaker(failures=failures, seconds=10)


def opened(at: float = 0) -> Breaker:
    """Return one that has opened."""
    one = breaker()
    assert one.completed([False] * 3, error="refused", now=at)
    return one


def test_failures_in_a_row_open_it() -> None:
    """An answer in between starts the count anew, over several claims as well."""
    one = breaker()
    assert not one.completed([False, False, True, False], error="x", now=0)
    assert (BreakerState.CLOSED, None) == (one.state(0), one.room(0))
    assert one.completed([False, False], error="refused", now=0)
    assert (BreakerState.OPEN, 0, "refused") == (one.state(0), one.room(0), one.error)
    assert 10 == one.wait(0)


def test_one_probe_at_a_time() -> None:
    """Once its time is over, one delivery may go, and no other until it is known what became of
    it.
    """
    one = opened()
    assert (0, BreakerState.OPEN) == (one.room(9.9), one.state(9.9))
    assert (1, BreakerState.HALF_OPEN) == (one.room(10), one.state(10))
    one.started()
    assert 0 == one.room(10)
    assert one.completed([False], error="still", now=11)
    assert (BreakerState.OPEN, 10, 1) == (one.state(11), one.wait(11), one.failed_probes)
    one.started()
    assert one.completed([True], error="", now=21)
    assert (BreakerState.CLOSED, None, 0) == (one.state(21), one.room(21), one.failed_probes)


def test_a_probe_without_a_verdict_has_failed() -> None:
    """A worker that crashed over the probe tells nothing good: the next one waits as well."""
    one = opened()
    one.started()
    assert one.completed([], error="", now=10)
    assert (BreakerState.OPEN, 0) == (one.state(10), one.room(19))


def test_a_probe_that_asked_nothing_says_nothing() -> None:
    """A task that expired before it was sent is no verdict: the next one may be the probe."""
    one = opened()
    one.started()
    assert 0 == one.room(10)
    one.not_asked()
    assert (BreakerState.HALF_OPEN, 1, 0) == (one.state(10), one.room(10), one.failed_probes)


def test_what_was_sent_before_it_opened_changes_nothing() -> None:
    """A claim that completes while it is open neither closes it nor keeps it open for longer."""
    one = opened()
    assert not one.completed([True], error="", now=5)
    assert not one.completed([False], error="x", now=6)
    assert 4 == one.wait(6)


def test_without_a_limit_it_never_opens() -> None:
    """It only counts."""
    one = breaker(None)
    assert not one.completed([False] * 1000, error="x", now=0)
    assert (False, 1000, None) == (one.opens, one.in_a_row, one.room(0))


def test_it_opens_at_once_when_the_destination_is_known_to_be_away() -> None:
    """A destination that takes no connection is not tried."""
    one = breaker()
    one.trip("no connection", now=0)
    assert (BreakerState.OPEN, "no connection", 1) == (one.state(0), one.error, one.failed_probes)


def test_what_another_relay_left_open_is_open() -> None:
    """For the rest of its time, and never longer than its own settings say."""
    for seconds, wait in ((4, 4), (4000, 10), (-5, 0)):
        one = breaker()
        one.reopen("x", now=100, seconds=seconds)
        assert wait == one.wait(100)
        assert (BreakerState.HALF_OPEN if wait == 0 else BreakerState.OPEN) == one.state(100)


@given(st.lists(st.tuples(st.floats(0, 12), st.lists(st.booleans(), max_size=4)), max_size=40))
def test_it_is_open_for_its_time_after_the_last_failure(
    steps: list[tuple[float, list[bool]]],
) -> None:
    """While it is open nothing may go; whatever happens, after its time something may again."""
    one, now = breaker(), 0.0
    for seconds, answers in steps:
        now += seconds
        room = one.room(now)
        sent = answers if room is None else answers[:room]
        assert room in (None, 0, 1)
        if sent:
            one.started()
            one.completed(sent, error="" if all(sent) else "x", now=now)
            in_a_row = 0 if any(sent) and sent[-1] else one.in_a_row
            assert in_a_row == one.in_a_row
    assert one.room(now + 10) != 0
