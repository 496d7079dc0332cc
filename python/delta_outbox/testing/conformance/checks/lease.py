"""Workers that go away: claims end by their lease, and late answers count for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from delta_outbox.lifecycle.results import Delivered, Failed, Rejected
from delta_outbox.testing.conformance.adapter import Capability, NewEvent
from delta_outbox.testing.conformance.check import Scenario
from delta_outbox.testing.conformance.checks.steps import check_steps
from delta_outbox.testing.conformance.stage import Look, Stage
from delta_outbox.testing.demands import holds, same

POISON: Final = "poison"
CALM: Final = ("calm-1", "calm-2")
ALL: Final = (POISON, *CALM)


@dataclass(frozen=True, kw_only=True)
class Lease:
    """What was seen.

    Args:
        halfway: half of the lease is over, and somebody has reaped.
        expired: the lease of the first claim is over.
        eligible: after that.
        second: taken by a relay of the same name.
        stale: the first worker has answered, after the second claim.
        expired_twice: the lease of the second claim is over, too.
        third: taken by relays of other names.
        done: those have answered.
        late: the first and the second worker have answered once more.
        alone: looks after each claim of the poison alone that its worker did not survive.
        max_crashes: how many of them the store promises to bear.
        final: the last look.
        history: steps by event; empty without a history.
    """

    halfway: Look
    expired: Look
    eligible: tuple[str, ...]
    second: tuple[str, ...]
    stale: Look
    expired_twice: Look
    third: tuple[str, ...]
    done: Look
    late: Look
    alone: tuple[Look, ...]
    max_crashes: int
    final: Look
    history: Mapping[str, tuple[tuple[str, str], ...]]


def play(stage: Stage) -> Lease:
    """Let workers die.

    Args:
        stage: where.
    """
    stage.append(*(NewEvent(event_id=name) for name in ALL))
    first = stage.take("relay-1", *ALL)
    stage.store.advance(stage.terms.lease_seconds / 2)
    stage.store.reap()
    halfway = stage.look()
    stage.crash()
    expired, eligible = stage.look(), stage.retrieve()
    # Another process under the same name: what the first one still says must not count.
    second = stage.take("relay-1", *ALL)
    stage.end(first, otherwise=Delivered())
    stale = stage.look()
    stage.crash()
    expired_twice = stage.look()
    poisoned = stage.claim("relay-2", 1)
    calm = stage.take("relay-3", *CALM)
    stage.end(calm, {"calm-2": Failed(error="refused")})
    done = stage.look()
    stage.end(second, otherwise=Rejected(error="late"))
    stage.end(first, otherwise=Delivered())
    late = stage.look()
    alone: list[Look] = []
    for _ in range(stage.terms.max_crashes or 0):
        stage.crash()
        alone.append(stage.look(*poisoned.names))
        poisoned = stage.claim("relay-2", 1)
        if POISON not in poisoned.names:
            stage.end(poisoned)
    stage.end(poisoned)
    stage.store.advance(stage.terms.backoff_seconds)
    stage.end(stage.take("relay-1", "calm-2"))
    return Lease(
        halfway=halfway,
        expired=expired,
        eligible=eligible,
        second=second.names,
        stale=stale,
        expired_twice=expired_twice,
        third=calm.names,
        done=done,
        late=late,
        alone=tuple(alone),
        max_crashes=stage.terms.max_crashes or 0,
        final=stage.look(),
        history=stage.history(),
    )


LEASE: Final = Scenario("lease", play, Capability.LEASES)


@LEASE.check()
def a_claim_lasts_as_long_as_its_lease(seen: Lease) -> None:
    """Half way through its lease a claim stands, whoever reaps."""
    for name in ALL:
        same("CLAIMED", seen.halfway[name].state, f"state of {name!r} within its lease")


@LEASE.check()
def an_expired_claim_makes_it_eligible_again(seen: Lease) -> None:
    """When the lease is over the event is PENDING and retrieved."""
    for name in ALL:
        same("PENDING", seen.expired[name].state, f"state of {name!r} after its lease")
        holds(name in seen.eligible, f"{name!r} is not eligible after its lease")


@LEASE.check()
def an_expired_claim_waits_for_nothing(seen: Lease) -> None:
    """After its lease an event is eligible at once, without a pause."""
    missing = set(ALL) - set(seen.eligible)
    holds(not missing, f"not eligible at once after their lease: {sorted(missing)}")


@LEASE.check()
def the_same_relay_may_claim_it_again(seen: Lease) -> None:
    """After its lease a relay of the same name gets the event."""
    missing = set(ALL) - set(seen.second)
    holds(not missing, f"the same relay does not get {sorted(missing)}")


@LEASE.check()
def another_relay_may_claim_it(seen: Lease) -> None:
    """After its lease another relay gets the event, and delivers it."""
    missing = set(CALM) - set(seen.third)
    holds(not missing, f"another relay does not get {sorted(missing)}")
    same("PUBLISHED", seen.done["calm-1"].state, "state after the other relay has delivered it")


@LEASE.check()
def an_expired_claim_counts_as_an_attempt(seen: Lease) -> None:
    """The attempt whose lease ran out is counted."""
    for name in ALL:
        same(1, seen.expired[name].attempts, f"attempts of {name!r} after one expired claim")
        same(2, seen.expired_twice[name].attempts, f"attempts of {name!r} after two of them")


@LEASE.check()
def an_expired_claim_is_an_error(seen: Lease) -> None:
    """The field last_error says that something went wrong."""
    for name in ALL:
        holds(seen.expired[name].last_error, f"last_error of {name!r} is empty after its lease")


@LEASE.check()
def an_expired_claim_leaves_no_trace_of_its_owner(seen: Lease) -> None:
    """After its lease claimed_at and claimed_by are null."""
    for name in ALL:
        record = seen.expired[name]
        same((None, None), (record.claimed_at, record.claimed_by), f"owner of {name!r}")


@LEASE.check()
def a_stale_success_counts_for_nothing(seen: Lease) -> None:
    """What the first worker says after its lease does not touch the claim of the second one.

    Both have the same name, so a name is no proof.
    """
    for name in ALL:
        record = seen.stale[name]
        same("CLAIMED", record.state, f"state of {name!r} after the answer of an expired claim")
        same(None, record.published_at, f"published_at of {name!r}")


@LEASE.check()
def a_late_answer_changes_nothing(seen: Lease) -> None:
    """What expired workers say changes neither a delivered nor a failed nor a claimed event."""
    for name in ALL:
        same(seen.done[name], seen.late[name], f"{name!r} after answers of expired claims")


@LEASE.check()
def a_crash_loses_nothing(seen: Lease) -> None:
    """Workers that died before or after sending cost no event: all are delivered, or DEAD by
    their own fault.
    """
    same(sorted(ALL), sorted(seen.final), "the events in the end")
    for name in CALM:
        same("PUBLISHED", seen.final[name].state, f"state of {name!r} in the end")
    holds(
        seen.final[POISON].state in ("PUBLISHED", "DEAD"),
        f"the event that kills its worker is {seen.final[POISON].state} in the end",
    )


@LEASE.check()
def it_may_be_sent_more_than_once(seen: Lease) -> None:
    """An event that a dead worker may have sent is sent again, and ends PUBLISHED once."""
    holds("calm-1" in seen.second, "an event that may have been sent was not taken again")
    same("PUBLISHED", seen.final["calm-1"].state, "state of an event that was sent twice")
    same(3, seen.final["calm-1"].attempts, "its attempts")


@LEASE.check(Capability.CRASH_BUDGET)
def a_batch_does_not_die_of_its_worker(seen: Lease) -> None:
    """Two batches lost with their workers make no event DEAD: nobody knows whose fault it was."""
    for look in (seen.expired, seen.expired_twice):
        for name in ALL:
            holds(look[name].state != "DEAD", f"{name!r} is DEAD because of its batch")


@LEASE.check(Capability.CRASH_BUDGET)
def what_kills_its_worker_every_time_dies(seen: Lease) -> None:
    """Alone in its claim, an event that takes its worker down max_crashes times is DEAD."""
    states = [look[POISON].state if POISON in look else "not claimed" for look in seen.alone]
    expected = ["PENDING"] * (seen.max_crashes - 1) + ["DEAD"]
    same(expected, states, "states of the event after each claim alone")


@LEASE.check(Capability.HISTORY)
def transitions_stay_legal_when_workers_die(seen: Lease) -> None:
    """On record, every step of every event is one of the six, each from where it stood."""
    check_steps(seen.history)
