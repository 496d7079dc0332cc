"""Checks of the first claim of an event, and of the fields that belong to a claim."""

from __future__ import annotations

from delta_outbox.testing.conformance.adapter import Capability
from delta_outbox.testing.conformance.checks.life import DONE, DUE, LIFE, RETRIED, Life
from delta_outbox.testing.demands import broken, holds, same


@LIFE.check()
def an_event_is_claimed_before_it_is_sent(seen: Life) -> None:
    """What a worker has taken is CLAIMED before it says what became of it."""
    for name in seen.taken:
        same("CLAIMED", seen.claimed[name].state, f"state of {name!r} while its worker sends it")


@LIFE.check()
def what_is_due_is_eligible_and_can_be_claimed(seen: Life) -> None:
    """Every event without a later time is retrieved, and a relay gets it."""
    missing = set(DUE) - set(seen.eligible)
    holds(not missing, f"due and not retrieved: {sorted(missing)}")
    missing = set(DUE) - set(seen.taken)
    holds(not missing, f"due and not claimed: {sorted(missing)}")


@LIFE.check()
def without_a_time_it_is_eligible_at_once(seen: Life) -> None:
    """An event without available_at is retrieved right after its append."""
    holds("delivered" in seen.eligible, "an event without available_at is not eligible")


@LIFE.check()
def claimed_at_is_the_time_of_the_claim(seen: Life) -> None:
    """The field claimed_at lies between the beginning and the end of the call."""
    for name in seen.taken:
        at = seen.claimed[name].claimed_at
        if at is None:
            broken(f"claimed_at of {name!r} is not set")
        holds(
            seen.claim_began <= at <= seen.claim_ended,
            f"claimed_at of {name!r} is {at}, the claim was made at {seen.claim_began}",
        )


@LIFE.check()
def claimed_by_names_the_relay(seen: Life) -> None:
    """The field claimed_by is the relay that claimed, also the second time."""
    for name in seen.taken:
        same("relay-1", seen.claimed[name].claimed_by, f"claimed_by of {name!r}")
    for name in seen.again:
        same("relay-2", seen.reclaimed[name].claimed_by, f"claimed_by of {name!r}")


@LIFE.check()
def nothing_is_claimed_before_its_time(seen: Life) -> None:
    """A scheduled event is neither retrieved nor claimed before available_at."""
    for found in (seen.eligible, seen.taken, seen.left, seen.again, seen.terminal):
        holds("scheduled" not in found, "an event was taken before its available_at")
    same("PENDING", seen.late["scheduled"].state, "state of a scheduled event")


@LIFE.check()
def a_scheduled_event_is_eligible_when_its_time_has_come(seen: Life) -> None:
    """At available_at the event is retrieved and delivered."""
    holds("scheduled" in seen.due, "an event is due and not eligible")
    same("PUBLISHED", seen.final["scheduled"].state, "state of the scheduled event in the end")


@LIFE.check()
def claimed_at_is_cleared_on_the_way_back(seen: Life) -> None:
    """Back in PENDING, claimed_at is null."""
    for name in RETRIED:
        same(None, seen.ended[name].claimed_at, f"claimed_at of {name!r} after its claim")


@LIFE.check()
def claimed_by_is_cleared_on_the_way_back(seen: Life) -> None:
    """Back in PENDING, claimed_by is null."""
    for name in RETRIED:
        same(None, seen.ended[name].claimed_by, f"claimed_by of {name!r} after its claim")


@LIFE.check()
def claimed_at_is_cleared_at_death(seen: Life) -> None:
    """In DEAD, claimed_at is null."""
    same(None, seen.ended["rejected"].claimed_at, "claimed_at of a DEAD event")


@LIFE.check()
def claimed_by_is_cleared_at_death(seen: Life) -> None:
    """In DEAD, claimed_by is null."""
    same(None, seen.ended["rejected"].claimed_by, "claimed_by of a DEAD event")


@LIFE.check()
def claimed_at_is_set_exactly_while_claimed(seen: Life) -> None:
    """In every look, claimed_at is set if and only if the state is CLAIMED."""
    for look in seen.looks:
        for name, record in look.items():
            same(
                record.state == "CLAIMED",
                record.claimed_at is not None,
                f"claimed_at of {name!r} is set in state {record.state}",
            )


@LIFE.check()
def published_at_is_set_exactly_while_published(seen: Life) -> None:
    """In every look, published_at is set if and only if the state is PUBLISHED."""
    for look in seen.looks:
        for name, record in look.items():
            same(
                record.state == "PUBLISHED",
                record.published_at is not None,
                f"published_at of {name!r} is set in state {record.state}",
            )


@LIFE.check()
def claimed_by_is_set_while_claimed(seen: Life) -> None:
    """In every look, a CLAIMED event says by whom."""
    for look in seen.looks:
        for name, record in look.items():
            if record.state == "CLAIMED":
                holds(record.claimed_by, f"claimed_by of {name!r} is not set in state CLAIMED")


@LIFE.check()
def a_step_is_whole(seen: Life) -> None:
    """No look shows an event of which only a part of a step has happened."""
    for look in seen.looks:
        for name, record in look.items():
            shown = (
                record.claimed_at is not None,
                record.claimed_by is not None,
                record.published_at is not None,
            )
            fields = "claimed_at, claimed_by, published_at set"
            expected = {
                "CLAIMED": (True, True, False),
                "PUBLISHED": (False, False, True),
            }.get(record.state, (False, False, False))
            same(expected, shown, f"{fields} for {name!r} in {record.state}")


@LIFE.check()
def several_relays_take_turns(seen: Life) -> None:
    """What one relay released, another one takes and delivers."""
    missing = set(RETRIED) - set(seen.again)
    holds(not missing, f"the second relay does not get {sorted(missing)}")
    for name in RETRIED:
        same("PUBLISHED", seen.published[name].state, f"state of {name!r} after the second relay")


@LIFE.check(Capability.HISTORY)
def the_claim_is_on_record(seen: Life) -> None:
    """On record, every event begins PENDING to CLAIMED, and what is PUBLISHED comes from there."""
    for name in DONE:
        steps = (("PENDING", "CLAIMED"), ("CLAIMED", "PUBLISHED"))
        same(steps, seen.history.get(name), f"steps of {name!r}")
