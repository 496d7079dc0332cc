"""How a claim ends for each of its deliveries, and what makes a delivery a suspect.

Pure: (counters, result, policy, clock) -> ending; nothing else decides. The states and the legal
transitions between them stand in `states.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, assert_never

from delta_outbox.core.redaction import scrub
from delta_outbox.lifecycle.policy import DeliveryPolicy, backoff_seconds
from delta_outbox.lifecycle.results import (
    Delivered,
    Failed,
    NotSent,
    Rejected,
    Result,
    Unknown,
    to_json,
)
from delta_outbox.lifecycle.states import OUTCOME_REASONS, Reason, State

MAX_RETRY_AFTER: Final = 86_400.0  # seconds; a destination cannot park an event for longer
LAST_ATTEMPT: Final = '{"next":"last"}'
"""The receipt of an attempt of a task after which nobody acts any more: the next one finds out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Counters:
    """What is counted of a delivery within one lifecycle; all 0 before the first claim.

    Args:
        attempt: claims so far; the number of the current one (the field `attempts`).
        publish_attempts: attempts that the publisher answered failed or unknown.
        crashes: claims of this event alone that crashed or expired.
        suspect: claims in a row, of any size, that crashed or expired.
    """

    attempt: int = 0
    publish_attempts: int = 0
    crashes: int = 0
    suspect: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Crashed:
    """The worker went away without an answer for this event.

    Args:
        error: what is known of it, one sentence; made printable and capped here.
    """

    error: str = "crashed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", scrub(self.error))


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseExpired:
    """The claim outlived its lease and another relay ends it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expired:
    """The event was past its age when it was claimed: claimed only to be ended, never sent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Killed:
    """An operator asked for the end of the event: claimed only to be ended, never sent.

    Args:
        actor: who asked.
        reason: why, in their words.
        command_id: the command.
    """

    actor: str
    reason: str
    command_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempted:
    """An attempt of a workflow task has ended, as the algorithm of its category says.

    Args:
        reason: one of `OUTCOME_REASONS`: the task has ended. FAILED, UNKNOWN or RELEASED: another
            attempt is to be made.
        outcome: of a task that has ended.
        outcome_data: JSON text that belongs to the outcome.
        wait: seconds until another attempt may be made.
        is_last: whether that one is only to find out what has happened.
        error: what went wrong; made printable and capped here.
        is_verdict: whether a failure says something of the third party: it was asked, and had the
            time to answer.
    """

    reason: Reason
    outcome: str | None = None
    outcome_data: str | None = None
    wait: float = 0.0
    is_last: bool = False
    error: str | None = None
    is_verdict: bool = True

    def __post_init__(self) -> None:
        if self.error is not None:
            object.__setattr__(self, "error", scrub(self.error))


EndOfClaim = Result | Crashed | LeaseExpired | Expired | Killed | Attempted


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """The transition that ends a claim.

    Args:
        to_state: PENDING, PUBLISHED or DEAD.
        reason: one that `REASONS` allows from CLAIMED to that state.
        counters: as they are after it.
        available_at: when it may be claimed again; None: at once, or never.
        error: for `last_error`, scrubbed and capped; None leaves the last one.
        receipt: JSON text of what the destination said.
        outcome: outcome of a workflow task.
        outcome_data: JSON text that belongs to the outcome.
        actor: the operator who asked for it.
        command_id: the command that it applies.
    """

    to_state: State
    reason: Reason
    counters: Counters
    available_at: datetime | None = None
    error: str | None = None
    receipt: str | None = None
    outcome: str | None = None
    outcome_data: str | None = None
    actor: str | None = None
    command_id: str | None = None


def counters_at_claim(previous: Counters) -> Counters:
    """Return the counters of a new claim: the attempt gets its number before anything is sent.

    Both "incremented before each publish attempt" and "incremented on CLAIMED to PENDING" hold:
    after the claim has ended, however it ended, the event shows one attempt more than before it.

    Args:
        previous: of the delivery's last transition; `Counters()` in a new lifecycle.
    """
    return replace(previous, attempt=previous.attempt + 1)


def suspect_claim_limit(*, batch_size: int, suspect: int) -> int:
    """Return how many events a claim may hold whose events have this suspicion.

    The claim halves with every crash, so an event that kills its worker each time is alone, and
    alone to blame, after at most log2(batch_size) + 1 of them.

    Args:
        batch_size: the relay's, at least 1.
        suspect: claims in a row that crashed or expired.
    """
    return -(-batch_size // (1 << suspect))


def is_expired(policy: DeliveryPolicy, *, started_at: datetime, now: datetime) -> bool:
    """Say whether an event is too old to be delivered; at exactly its age it is.

    Args:
        policy: the policy of the event.
        started_at: the latest of arrival in the log, the producer's available_at, the last replay.
        now: the current instant.
    """
    limit = policy.expires_after_seconds
    return limit is not None and now - started_at >= timedelta(seconds=limit)


def delivered_ending(counters: Counters, result: Delivered) -> Ending:
    """Return how a claim ends that was delivered: PUBLISHED, whatever the policy.

    Args:
        counters: of the claim, as `counters_at_claim` made them.
        result: what the publisher said.
    """
    return Ending(
        to_state=State.PUBLISHED,
        reason=Reason.DELIVERED,
        counters=_calm(counters),
        receipt=_json(result.receipt),
        outcome=result.outcome,
        outcome_data=_json(result.outcome_data),
    )


def killed_text(actor: object, reason: object) -> str:
    """Return the error of what an operator has killed.

    Args:
        actor: who asked for it.
        reason: why.
    """
    return scrub(f"killed by {actor}: {reason}")


def decide_ending(
    *,
    counters: Counters,
    result: EndOfClaim,
    claim_size: int,
    policy: DeliveryPolicy,
    now: datetime,
    started_at: datetime,
    jitter: float,
) -> Ending:
    """Decide how a claim ends. Every result has an ending, and no event is forgotten.

    - Delivered: PUBLISHED.
    - Failed, Unknown: back to PENDING after a back-off, until `max_attempts` such answers.
    - Rejected: DEAD. It counts in no budget: trying again cannot help.
    - NotSent: back to PENDING at once, and in no budget. Never DEAD, not even by age: nothing was
      tried, and a waiting event that is too old is ended by a claim of its own (`Expired`).
    - Crashed, LeaseExpired: back to PENDING at once, but after a back-off if the event was alone in
      a claim that crashed. Only an event that was alone in its claim pays for it, until
      `max_crashes`; one of many becomes more suspect.
    - Killed: DEAD, on record with who asked for it.
    - An event past its age does not go back to PENDING after an attempt: it is DEAD.
    - Attempted: PUBLISHED with an outcome, or PENDING. A task counts its attempts for the record
      only: its author's back-off and its expiry end it.

    Args:
        counters: of the claim, as `counters_at_claim` made them.
        result: what the publisher said, or what happened instead.
        claim_size: events in the claim, at least 1.
        policy: the policy of the event.
        now: the current instant.
        started_at: the latest of arrival in the log, the producer's available_at, the last replay.
        jitter: a random number from 0 up to, not including, 1.
    """
    calm = _calm(counters)
    match result:
        case Delivered():
            return delivered_ending(counters, result)
        case NotSent():
            return Ending(to_state=State.PENDING, reason=Reason.RELEASED, counters=calm)
        case Rejected():
            return Ending(
                to_state=State.DEAD, reason=Reason.REJECTED, counters=calm, error=result.error
            )
        case Expired():
            return Ending(
                to_state=State.DEAD, reason=Reason.EXPIRED, counters=calm, error="expired"
            )
        case Killed():
            return Ending(
                to_state=State.DEAD,
                reason=Reason.OPERATOR,
                counters=calm,
                error=killed_text(result.actor, result.reason),
                actor=result.actor,
                command_id=result.command_id,
            )
        case Failed() | Unknown():
            failures = counters.publish_attempts + 1
            failed = isinstance(result, Failed)
            wait = backoff_seconds(policy, failures, jitter)
            if isinstance(result, Failed) and result.retry_after is not None:
                wait = max(wait, min(result.retry_after, MAX_RETRY_AFTER))
            return _retry(
                reason=Reason.FAILED if failed else Reason.UNKNOWN,
                counters=replace(calm, publish_attempts=failures),
                error=result.error or "unknown",
                available_at=now + timedelta(seconds=wait),
                exhausted=failures >= policy.max_attempts,
                expired=is_expired(policy, started_at=started_at, now=now),
            )
        case Crashed() | LeaseExpired():
            alone = claim_size == 1
            crashes = counters.crashes + alone
            crashed = isinstance(result, Crashed)
            # One that is alone may be to blame, and what is wrong here may pass; a lease has been
            # waited for already.
            pause = backoff_seconds(policy, crashes, jitter) if alone and crashed else None
            return _retry(
                reason=Reason.CRASHED if crashed else Reason.LEASE_EXPIRED,
                counters=replace(counters, crashes=crashes, suspect=counters.suspect + 1),
                error=result.error if isinstance(result, Crashed) else "lease_expired",
                available_at=None if pause is None else now + timedelta(seconds=pause),
                exhausted=alone and crashes >= policy.max_crashes,
                expired=is_expired(policy, started_at=started_at, now=now),
            )
        case Attempted():
            return _of_task(calm, result, now)
        case _:
            assert_never(result)


def _calm(counters: Counters) -> Counters:
    return replace(counters, suspect=0) if counters.suspect else counters


def _of_task(counters: Counters, result: Attempted, now: datetime) -> Ending:
    is_over = result.reason in OUTCOME_REASONS
    if result.reason in {Reason.FAILED, Reason.UNKNOWN}:
        counters = replace(counters, publish_attempts=counters.publish_attempts + 1)
    return Ending(
        to_state=State.PUBLISHED if is_over else State.PENDING,
        reason=result.reason,
        counters=counters,
        available_at=None if is_over or not result.wait else now + timedelta(seconds=result.wait),
        error=result.error,
        receipt=LAST_ATTEMPT if result.is_last else None,
        outcome=result.outcome,
        outcome_data=result.outcome_data,
    )


def _retry(
    *,
    reason: Reason,
    counters: Counters,
    error: str,
    available_at: datetime | None,
    exhausted: bool,
    expired: bool,
) -> Ending:
    """End the claim in PENDING, or in DEAD if a termination condition is met."""
    if exhausted or expired:
        final = Reason.EXHAUSTED if exhausted else Reason.EXPIRED
        return Ending(to_state=State.DEAD, reason=final, counters=counters, error=error)
    return Ending(
        to_state=State.PENDING,
        reason=reason,
        counters=counters,
        available_at=available_at,
        error=error,
    )


def _json(value: object) -> str | None:
    """Return JSON text. A value without one must not cost the record of a delivery."""
    try:
        return to_json(value)
    except (TypeError, ValueError):
        return to_json(f"not JSON: {type(value).__name__}")
