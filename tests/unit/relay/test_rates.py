"""Token buckets: no more than the rate and its burst, and never for ever nothing."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.relay.destinations.rates import BURST_SECONDS, Bucket, KeyBuckets

RATES = st.floats(0.01, 1000)
STEPS = st.lists(st.tuples(st.floats(0, 10), st.integers(0, 50)), max_size=30)


def test_a_bucket_is_full_at_first_and_fills_at_its_rate() -> None:
    """A second's worth may leave at once, then as many as come in."""
    bucket = Bucket(4, now=0)
    assert 4 == bucket.available(0)
    bucket.take(4, 0)
    assert (0, 0.25) == (bucket.available(0), bucket.wait(0))
    assert (2, 0.0) == (bucket.available(0.5), bucket.wait(0.5))
    assert 4 == bucket.available(100)


def test_a_slow_rate_lets_one_pass_from_time_to_time() -> None:
    """Below one event a second one leaves at once, and the next when its time has come."""
    bucket = Bucket(0.1, now=0)
    assert 1 == bucket.available(0)
    bucket.take(1, 0)
    assert 0 == bucket.available(9)
    assert 1 == bucket.available(10)


@given(rate=RATES, steps=STEPS)
def test_no_more_leaves_than_the_rate_allows(rate: float, steps: list[tuple[float, int]]) -> None:
    """However it is asked, at most the burst and what has come in since has left."""
    bucket, now, left = Bucket(rate, now=0), 0.0, 0
    for seconds, wanted in steps:
        now += seconds
        count = min(wanted, bucket.available(now))
        bucket.take(count, now)
        left += count
        assert left <= max(1.0, rate * BURST_SECONDS) + rate * now + 1e-6


@given(rate=RATES, steps=STEPS)
def test_waiting_as_told_lets_one_pass(rate: float, steps: list[tuple[float, int]]) -> None:
    """After the wait that it names, one event may leave."""
    bucket, now = Bucket(rate, now=0), 0.0
    for seconds, wanted in steps:
        now += seconds
        bucket.take(min(wanted, bucket.available(now)), now)
    assert 1 <= bucket.available(now + bucket.wait(now) + 1e-6)


def test_a_bucket_of_another_rate_holds_no_more_than_fits() -> None:
    """What it holds stays when its rate changes, as far as there is room; at no rate it is empty,
    and stays so. It begins to fill at the new rate.
    """
    bucket = Bucket(4, now=0)
    bucket.fill_at(2, 0)
    assert 2 == bucket.available(0)
    bucket.fill_at(4, 0)
    assert (2, 3, 4) == tuple(bucket.available(now) for now in (0, 0.25, 9))
    bucket.fill_at(0, 9)
    assert (0, math.inf) == (bucket.available(99), bucket.wait(99))
    bucket.fill_at(4, 99)
    assert (0, 0.25, 1) == (bucket.available(99), bucket.wait(99), bucket.available(99.25))


@given(rate=RATES, steps=st.lists(st.tuples(st.floats(0, 10), st.integers(0, 50), RATES)))
def test_whatever_rates_it_has_no_more_leaves(
    rate: float, steps: list[tuple[float, int, float]]
) -> None:
    """However often the rate changes, at most the first burst and what has come in has left, but
    for the one event that a bucket of any rate has room for.
    """
    bucket, now, left, came = Bucket(rate, now=0), 0.0, 0, max(1.0, rate * BURST_SECONDS)
    for seconds, wanted, new in steps:
        now += seconds
        came += rate * seconds
        bucket.fill_at(rate := new, now)
        count = min(wanted, bucket.available(now))
        bucket.take(count, now)
        left += count
        assert left <= came + 1e-6


def test_each_key_has_a_bucket_of_its_own() -> None:
    """The first of each key pass, the others wait; what has no key passes."""
    keys = KeyBuckets(1)
    found = keys.allowed(["a", "b", "a", None, None], 0)
    assert [True, True, False, True, True] == found.tolist()
    keys.take(["a", None], 0)
    assert [False, True] == keys.allowed(["a", "b"], 0.5).tolist()
    assert 0.5 == keys.wait(0.5)
    assert [True, True] == keys.allowed(["a", "b"], 1).tolist()


def test_keys_that_are_not_in_use_are_forgotten() -> None:
    """Memory follows the keys of the last seconds, not all keys there ever were."""
    keys = KeyBuckets(2)
    for number in range(100):
        keys.take([f"key-{number}"], float(number))
    assert 1 == len(keys._buckets)
    assert 0.0 == keys.wait(100)
