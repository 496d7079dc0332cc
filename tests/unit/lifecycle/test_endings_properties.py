"""The lifecycle under every sequence of results: what holds whatever happens."""

from __future__ import annotations

import unicodedata
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.lifecycle.endings import (
    MAX_RETRY_AFTER,
    Attempted,
    Counters,
    Crashed,
    Ending,
    EndOfClaim,
    Expired,
    Killed,
    LeaseExpired,
    counters_at_claim,
    decide_ending,
    suspect_claim_limit,
)
from delta_outbox.lifecycle.policy import DeliveryPolicy
from delta_outbox.lifecycle.states import OUTCOME_REASONS, REASONS, Reason, State
from delta_outbox.publishers import Delivered, Failed, NotSent, Rejected, Unknown

NOW = datetime(2026, 11, 21, tzinfo=UTC)
TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | TEXT | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
RESULTS: dict[type, st.SearchStrategy[EndOfClaim]] = {
    Delivered: st.builds(Delivered, receipt=JSON, outcome=st.none() | TEXT, outcome_data=JSON),
    Failed: st.builds(Failed, error=TEXT, retry_after=st.none() | st.floats()),
    Rejected: st.builds(Rejected, error=TEXT),
    Unknown: st.builds(Unknown, error=st.none() | TEXT),
    NotSent: st.builds(NotSent),
    Crashed: st.builds(Crashed, error=TEXT),
    LeaseExpired: st.builds(LeaseExpired),
    Expired: st.builds(Expired),
    Killed: st.builds(Killed, actor=TEXT, reason=TEXT, command_id=TEXT),
}
ATTEMPTED = st.builds(
    Attempted,
    reason=st.sampled_from([Reason.FAILED, Reason.UNKNOWN, Reason.RELEASED]),
    wait=st.floats(0, 1e6),
    is_last=st.booleans(),
    error=st.none() | TEXT,
) | st.builds(Attempted, reason=st.sampled_from(sorted(OUTCOME_REASONS)), outcome=TEXT)
ANY_RESULT = st.one_of(*RESULTS.values())
COUNT = st.integers(0, 20)
COUNTERS = st.builds(
    Counters, attempt=st.integers(1, 99), publish_attempts=COUNT, crashes=COUNT, suspect=COUNT
)
POLICIES = st.builds(
    DeliveryPolicy,
    event_type=st.just("*"),
    max_attempts=st.integers(1, 20),
    max_crashes=st.integers(1, 20),
    expires_after_seconds=st.none() | st.floats(0.001, 1e9),
)
STARTED = st.datetimes(timezones=st.just(UTC))
JITTER = st.floats(0, 1, exclude_max=True)
CLAIM_SIZE = st.sampled_from([1, 2, 10_000])


@st.composite
def _endings(draw: st.DrawFn) -> tuple[EndOfClaim, Counters, int, DeliveryPolicy, Ending]:
    result, counters = draw(ANY_RESULT), draw(COUNTERS)
    claim_size, policy = draw(CLAIM_SIZE), draw(POLICIES)
    ending = decide_ending(
        counters=counters,
        result=result,
        claim_size=claim_size,
        policy=policy,
        now=NOW,
        started_at=draw(STARTED),
        jitter=draw(JITTER),
    )
    return result, counters, claim_size, policy, ending


ENDINGS = _endings()


def test_every_result_is_tried_here() -> None:
    """No kind of result escapes these properties."""
    assert {*get_args(EndOfClaim)} - {Attempted} == set(RESULTS)


@given(ENDINGS)
def test_every_ending_is_legal(
    case: tuple[EndOfClaim, Counters, int, DeliveryPolicy, Ending],
) -> None:
    """Whatever happens, the claim ends by a legal transition with a reason that it may have."""
    *_, ending = case
    assert ending.reason in REASONS[State.CLAIMED, ending.to_state]
    assert ending.to_state is not State.PUBLISHED or ending.reason not in OUTCOME_REASONS


@given(ENDINGS)
def test_published_if_and_only_if_delivered(
    case: tuple[EndOfClaim, Counters, int, DeliveryPolicy, Ending],
) -> None:
    """Nothing but an acknowledgement makes an event PUBLISHED, and every one does."""
    result, *_, ending = case
    assert isinstance(result, Delivered) == (ending.to_state is State.PUBLISHED)


@given(ENDINGS)
def test_counters_never_go_down_and_the_attempt_stands(
    case: tuple[EndOfClaim, Counters, int, DeliveryPolicy, Ending],
) -> None:
    """An ending leaves the attempt's number alone, and adds at most one to each budget."""
    _, before, _, _, ending = case
    after = ending.counters
    assert before.attempt == after.attempt
    assert after.publish_attempts - before.publish_attempts in (0, 1)
    assert after.crashes - before.crashes in (0, 1)
    assert after.suspect in (0, before.suspect + 1)


@given(ENDINGS)
def test_budgets_count_only_what_they_are_for(
    case: tuple[EndOfClaim, Counters, int, DeliveryPolicy, Ending],
) -> None:
    """Failed and unknown cost an attempt, a crash alone costs a crash, nothing else costs."""
    result, before, claim_size, _, ending = case
    answered = isinstance(result, Failed | Unknown)
    crashed = isinstance(result, Crashed | LeaseExpired)
    assert answered == (ending.counters.publish_attempts > before.publish_attempts)
    assert (crashed and claim_size == 1) == (ending.counters.crashes > before.crashes)
    assert crashed == (ending.counters.suspect > 0)


@given(ENDINGS)
def test_only_a_spent_budget_exhausts(
    case: tuple[EndOfClaim, Counters, int, DeliveryPolicy, Ending],
) -> None:
    """DEAD by exhaustion means that this very ending reached a limit of the policy."""
    result, _, claim_size, policy, ending = case
    answered = isinstance(result, Failed | Unknown)
    alone = isinstance(result, Crashed | LeaseExpired) and claim_size == 1
    spent = (answered and ending.counters.publish_attempts >= policy.max_attempts) or (
        alone and ending.counters.crashes >= policy.max_crashes
    )
    assert spent == (ending.reason is Reason.EXHAUSTED)


@given(ENDINGS)
def test_only_what_waits_has_a_next_time(
    case: tuple[EndOfClaim, Counters, int, DeliveryPolicy, Ending],
) -> None:
    """A next time stands only on the way back to PENDING, never in the past, never far off."""
    *_, ending = case
    if ending.available_at is not None:
        assert ending.to_state is State.PENDING
        assert NOW <= ending.available_at <= NOW + timedelta(seconds=MAX_RETRY_AFTER)


@given(ENDINGS)
def test_an_error_is_always_fit_to_be_stored_and_shown(
    case: tuple[EndOfClaim, Counters, int, DeliveryPolicy, Ending],
) -> None:
    """Whatever a destination answers, the error is one short line that no terminal obeys."""
    *_, ending = case
    if ending.error is not None:
        # Code points that no Unicode version has assigned yet (Cn) command no terminal.
        categories = {unicodedata.category(char) for char in ending.error}
        assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}
        assert len(ending.error) <= 1000


@given(st.lists(st.tuples(ANY_RESULT, CLAIM_SIZE), max_size=60), POLICIES, JITTER)
def test_a_lifecycle_ends_within_its_budgets(
    story: list[tuple[EndOfClaim, int]], policy: DeliveryPolicy, jitter: float
) -> None:
    """Over a whole lifecycle attempts count claims, and no budget is ever exceeded."""
    counters = Counters()
    for claims, (result, claim_size) in enumerate(story, start=1):
        counters = counters_at_claim(counters)
        ending = decide_ending(
            counters=counters,
            result=result,
            claim_size=claim_size,
            policy=policy,
            now=NOW,
            started_at=NOW,
            jitter=jitter,
        )
        counters = ending.counters
        assert claims == counters.attempt
        assert min(astuple(counters)) >= 0
        assert counters.publish_attempts <= policy.max_attempts
        assert counters.crashes <= policy.max_crashes
        if ending.to_state is not State.PENDING:
            break


@given(st.integers(1, 100_000), st.integers(0, 40))
def test_a_suspect_is_soon_alone(batch_size: int, suspect: int) -> None:
    """A claim of suspects never grows, holds at least one, and one alone after log2 crashes."""
    limit = suspect_claim_limit(batch_size=batch_size, suspect=suspect)
    assert 1 <= suspect_claim_limit(batch_size=batch_size, suspect=suspect + 1) <= limit
    assert limit <= batch_size
    assert suspect_claim_limit(batch_size=batch_size, suspect=batch_size.bit_length()) == 1


@given(ATTEMPTED, COUNTERS, POLICIES, STARTED)
def test_a_task_ends_as_its_algorithm_says(
    result: Attempted, counters: Counters, policy: DeliveryPolicy, started_at: datetime
) -> None:
    """It is PUBLISHED with an outcome or PENDING again, and no budget and no age makes it DEAD."""
    ending = decide_ending(
        counters=counters,
        result=result,
        claim_size=1,
        policy=policy,
        now=NOW,
        started_at=started_at,
        jitter=0.0,
    )
    is_over = result.reason in OUTCOME_REASONS
    assert (State.PUBLISHED if is_over else State.PENDING) == ending.to_state
    assert ending.reason in REASONS[State.CLAIMED, ending.to_state]
    assert result.outcome == ending.outcome
    assert (ending.available_at is not None) == bool(result.wait and not is_over)
    assert (ending.receipt is not None) == result.is_last
    assert 0 == ending.counters.suspect
