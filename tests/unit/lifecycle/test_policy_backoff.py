"""Back-off: exponential, capped, jittered, and never a surprise for large numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.lifecycle.policy import DeliveryPolicy, backoff_seconds

JITTER = st.floats(0, 1, exclude_max=True)
POLICIES = st.builds(
    lambda initial, extra, multiplier, jitter: DeliveryPolicy(
        event_type="*",
        backoff_initial_seconds=initial,
        backoff_max_seconds=initial + extra,
        backoff_multiplier=multiplier,
        backoff_jitter=jitter,
    ),
    st.floats(0, 86_400),
    st.floats(0, 2_000_000),
    st.floats(1, 100),
    st.floats(0, 1),
)


def test_the_shipped_policy_doubles_up_to_five_minutes() -> None:
    """Without luck the waits are 1, 2, 4 ... 256 and then 300 seconds."""
    policy = DeliveryPolicy(event_type="*")
    expected = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert expected == [backoff_seconds(policy, failures, 0) for failures in range(1, 12)]


def test_jitter_shortens_by_its_share() -> None:
    """With a jitter of 0.2 a wait of 4 seconds becomes one between 3.2 and 4."""
    policy = DeliveryPolicy(event_type="*")
    assert backoff_seconds(policy, 3, 0.5) == pytest.approx(3.6)
    assert backoff_seconds(policy, 3, 0.999_999) == pytest.approx(3.2, abs=1e-5)


@given(POLICIES, st.integers(1, 10**12), JITTER)
def test_a_wait_stays_within_its_bounds(
    policy: DeliveryPolicy, failures: int, jitter: float
) -> None:
    """No number of failures makes a wait negative, longer than the cap, or an overflow."""
    wait = backoff_seconds(policy, failures, jitter)
    low = policy.backoff_initial_seconds * (1 - policy.backoff_jitter)
    assert low * (1 - 1e-9) <= wait <= policy.backoff_max_seconds


@given(POLICIES, st.integers(1, 5_000), st.integers(0, 5_000), JITTER)
def test_more_failures_never_wait_less(
    policy: DeliveryPolicy, failures: int, more: int, jitter: float
) -> None:
    """With the same luck, a further failure waits at least as long."""
    fewer = backoff_seconds(policy, failures, jitter)
    assert fewer <= backoff_seconds(policy, failures + more, jitter)


@given(POLICIES, st.integers(1, 100), JITTER, JITTER)
def test_more_jitter_never_waits_longer(
    policy: DeliveryPolicy, failures: int, first: float, second: float
) -> None:
    """Jitter only shortens, so the cap is a promise."""
    low, high = sorted((first, second))
    assert backoff_seconds(policy, failures, high) <= backoff_seconds(policy, failures, low)


def test_no_initial_wait_is_no_wait_ever() -> None:
    """A back-off that starts with 0 stays 0 also where its power overflows."""
    policy = DeliveryPolicy(event_type="*", backoff_initial_seconds=0)
    assert backoff_seconds(policy, 10**9, 0.5) == 0


@pytest.mark.parametrize(("failures", "jitter"), [(0, 0.0), (-1, 0.0), (1, 1.0), (1, -0.1)])
def test_arguments_out_of_range_are_refused(failures: int, jitter: float) -> None:
    """A call that makes no sense is an error, not a wait."""
    with pytest.raises(ValueError, match=r"backoff_seconds: `(failures|jitter)` must be"):
        backoff_seconds(DeliveryPolicy(event_type="*"), failures, jitter)
