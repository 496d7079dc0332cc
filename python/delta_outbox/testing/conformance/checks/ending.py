"""Checks of how a claim ends, and of what stays for ever."""

from __future__ import annotations

from delta_outbox.lifecycle.states import State
from delta_outbox.testing.conformance.adapter import Capability
from delta_outbox.testing.conformance.checks.life import DONE, DUE, LIFE, RETRIED, Life
from delta_outbox.testing.conformance.checks.steps import check_steps
from delta_outbox.testing.demands import broken, holds, same

_TERMINAL = ("PUBLISHED", "DEAD")


@LIFE.check(Capability.HISTORY)
def only_listed_transitions_happen(seen: Life) -> None:
    """Every step on record is one of the six, and each begins where the last one ended."""
    for name, state in check_steps(seen.history).items():
        same(seen.final[name].state, state, f"the state of {name!r} and its last step")


@LIFE.check()
def an_ended_claim_cannot_be_ended_again(seen: Life) -> None:
    """Nothing that a worker says after its claim has ended changes an event."""
    for name, record in seen.published.items():
        same(record, seen.late[name], f"event {name!r} after late answers")


@LIFE.check()
def success_makes_it_published(seen: Life) -> None:
    """What the publisher has delivered is PUBLISHED."""
    for name in DONE:
        same("PUBLISHED", seen.ended[name].state, f"state of {name!r} after its delivery")


@LIFE.check()
def published_at_is_the_time_of_the_success(seen: Life) -> None:
    """The field published_at lies between the beginning and the end of the call."""
    for name in DONE:
        at = seen.ended[name].published_at
        if at is None:
            broken(f"published_at of {name!r} is not set")
        holds(
            seen.end_began <= at <= seen.end_ended,
            f"published_at of {name!r} is {at}, it was delivered at {seen.end_began}",
        )


@LIFE.check()
def published_at_never_changes(seen: Life) -> None:
    """Once set, published_at stays, whatever is said later."""
    for name in DONE:
        at = seen.ended[name].published_at
        for look in (seen.reopened, seen.published, seen.late, seen.final):
            same(at, look[name].published_at, f"published_at of {name!r}")


@LIFE.check()
def only_success_makes_it_published(seen: Life) -> None:
    """Failed, unknown, rejected and not sent are no acknowledgement."""
    for name in (*RETRIED, "rejected"):
        holds(
            seen.ended[name].state != "PUBLISHED",
            f"{name!r} is PUBLISHED without the publisher having said so",
        )


@LIFE.check()
def an_unanswered_event_is_sent_again(seen: Life) -> None:
    """Sent, and the worker stops without an answer: not PUBLISHED, and delivered later."""
    same("PENDING", seen.ended["unknown"].state, "state after an attempt without an answer")
    holds("unknown" in seen.again, "an event without an answer is not tried again")


@LIFE.check()
def a_failed_event_is_retried(seen: Life) -> None:
    """Failed is PENDING, and after its pause it is taken again."""
    for name in ("failed", "unknown"):
        same("PENDING", seen.ended[name].state, f"state of {name!r} after the first attempt")
        holds(name in seen.again, f"{name!r} is not tried again")


@LIFE.check()
def a_failure_is_kept_as_last_error(seen: Life) -> None:
    """The field last_error says what the publisher said."""
    for name, words in (("failed", "boom"), ("rejected", "too strange")):
        error = seen.ended[name].last_error
        holds(words in (error or ""), f"last_error of {name!r} is {error!r}")


@LIFE.check()
def a_failure_is_followed_by_a_pause(seen: Life) -> None:
    """The field available_at moves into the future, and until then nothing is retrieved."""
    at = seen.ended["failed"].available_at
    holds(at is not None and at > seen.end_began, f"available_at after a failure is {at}")
    holds("failed" not in seen.left, "a failed event is eligible without a pause")


@LIFE.check()
def what_was_not_sent_is_eligible_at_once(seen: Life) -> None:
    """An event that its worker releases unsent waits for nothing."""
    same("PENDING", seen.ended["released"].state, "state of an event that was released")
    holds("released" in seen.left, "an event that was released is not eligible")


@LIFE.check()
def a_bad_event_does_not_stop_its_neighbours(seen: Life) -> None:
    """Beside events that fail or are rejected, the others of the claim are delivered."""
    same("PUBLISHED", seen.ended["neighbour"].state, "state of an event beside a bad one")


@LIFE.check()
def a_termination_condition_makes_it_dead(seen: Life) -> None:
    """An event that can never be delivered as it is ends in DEAD."""
    same("DEAD", seen.ended["rejected"].state, "state of a rejected event")


@LIFE.check()
def a_terminal_state_is_left_by_no_time(seen: Life) -> None:
    """PUBLISHED and DEAD stay, through restarts, reaping and a day."""
    for name in (*DONE, "rejected"):
        for look in (seen.reopened, seen.reclaimed, seen.published, seen.late, seen.final):
            same(seen.ended[name].state, look[name].state, f"state of {name!r} later")


@LIFE.check()
def a_dead_event_is_not_retried(seen: Life) -> None:
    """Nothing takes a DEAD event, and its attempts stay."""
    holds("rejected" not in seen.again, "a DEAD event was claimed")
    same(
        seen.ended["rejected"].attempts,
        seen.final["rejected"].attempts,
        "attempts of a DEAD event a day later",
    )


@LIFE.check()
def terminal_events_are_not_eligible(seen: Life) -> None:
    """Retrieval never gives what is PUBLISHED or DEAD."""
    for found in (seen.left, seen.terminal, seen.due):
        wrong = set(found) & {*DONE, "rejected"}
        holds(not wrong, f"terminal and retrieved: {sorted(wrong)}")


@LIFE.check()
def terminal_events_can_be_inspected(seen: Life) -> None:
    """In the end every event can still be read, with its content."""
    missing = set(seen.appended) - set(seen.final)
    holds(not missing, f"cannot be read any more: {sorted(missing)}")
    for name, record in seen.final.items():
        same(seen.appended[name].payload, record.payload, f"payload of {name!r} in the end")


@LIFE.check()
def attempts_count_before_the_attempt(seen: Life) -> None:
    """While the first attempt is made attempts is 1, during the second 2."""
    for name in DUE:
        same(0, seen.appended[name].attempts, f"attempts of {name!r} before its first claim")
        same(1, seen.claimed[name].attempts, f"attempts of {name!r} in its first claim")
    for name in RETRIED:
        same(2, seen.reclaimed[name].attempts, f"attempts of {name!r} in its second claim")


@LIFE.check()
def attempts_are_one_more_after_a_failed_attempt(seen: Life) -> None:
    """After CLAIMED to PENDING, attempts is one more than before the claim."""
    for name in RETRIED:
        before = seen.appended[name].attempts
        same(before + 1, seen.ended[name].attempts, f"attempts of {name!r} after one attempt")


@LIFE.check()
def attempts_never_go_down(seen: Life) -> None:
    """From look to look, attempts grows or stays."""
    for before, after in zip(seen.looks, seen.looks[1:], strict=False):
        for name, record in after.items():
            least = before[name].attempts if name in before else 0
            holds(record.attempts >= least, f"attempts of {name!r} went down from {least}")


@LIFE.check()
def a_retry_belongs_to_the_same_lifecycle(seen: Life) -> None:
    """A retry needs no operator and goes on counting."""
    same(2, seen.published["failed"].attempts, "attempts of an event that was retried once")
    same("PUBLISHED", seen.published["failed"].state, "state of an event that was retried once")


@LIFE.check()
def every_event_ends(seen: Life) -> None:
    """In the end each event is there once, and PUBLISHED or DEAD."""
    same(sorted([*DUE, "scheduled"]), sorted(seen.final), "the events in the end")
    for name, record in seen.final.items():
        holds(record.state in _TERMINAL, f"{name!r} is {record.state} in the end")


@LIFE.check()
def states_are_the_four(seen: Life) -> None:
    """No look shows any other state."""
    known = {str(state) for state in State}
    for look in seen.looks:
        for name, record in look.items():
            holds(record.state in known, f"state of {name!r} is {record.state!r}")


@LIFE.check()
def what_is_persisted_survives_a_restart(seen: Life) -> None:
    """After a restart every event is as it was."""
    for name, record in seen.ended.items():
        holds(name in seen.reopened, f"{name!r} is gone after a restart")
        same(record, seen.reopened[name], f"event {name!r} after a restart")
