"""What each kill did: the claims that it left open, what came twice, and how long it took.

In flight is what the dead process left under a claim. A kill is recovered from when the first of
that has been delivered again under a later claim; it is over when all of it has.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scripts.soak.evidence import Copy, Evidence, Kill, Step
from scripts.soak.oracle import by_event

# How the claims end that a dead process leaves behind, by what was killed.
LEFT_AS = {
    "relay": {"lease_expired"},
    "jvm": {"lease_expired"},
    "worker": {"crashed"},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """An event under a claim, from its begin to its end.

    Args:
        event_id: the event.
        claim_id: the claim.
        relay_id: who claimed.
        began, ended: when.
        reason: of the end.
    """

    event_id: str
    claim_id: str
    relay_id: str
    began: float
    ended: float
    reason: str


@dataclass(frozen=True, kw_only=True)
class Damage:
    """What a kill did.

    Args:
        kill: the kill.
        in_flight: events that it left under a claim.
        duplicates: copies of those beyond the first, sent because of it.
        recovery: seconds from the kill to the first of them delivered under a later claim; None
            if nothing was in flight, or the soak was stopped before.
        over: seconds from the kill until that held for all of them; None likewise.
        others: seconds from the kill to the next message of an event that was not in flight; None
            if there is none before the soak was stopped.
    """

    kill: Kill
    in_flight: int = 0
    duplicates: int = 0
    recovery: float | None = None
    over: float | None = None
    others: float | None = None


def damages(evidence: Evidence) -> list[Damage]:
    """Return what each kill did.

    Args:
        evidence: of a soak.
    """
    claims = {name: claims_of(history) for name, history in by_event(evidence.steps).items()}
    relays = {step.claim_id: step.relay_id for step in evidence.steps if step.after == "CLAIMED"}
    copies = _by_event(evidence.copies)
    in_flight: dict[int, set[str]] = defaultdict(set)
    duplicates: dict[int, int] = defaultdict(int)
    again: dict[int, list[float | None]] = defaultdict(list)
    for name, own in claims.items():
        causes = [cause_of(claim, evidence.kills, relays) for claim in own]
        sent = sorted(copies.get(name, ()), key=lambda copy: copy.at)
        for number, cause in enumerate(causes):
            if cause is not None:
                in_flight[cause.number].add(name)
                again[cause.number].append(_sent_since(own[number + 1 :], sent, cause))
        for copy in sent[1:]:
            before = [cause for cause in causes[: _claim_at(own, copy)] if cause is not None]
            if before:
                duplicates[before[-1].number] += 1
    in_time = sorted(evidence.copies, key=lambda copy: copy.at)
    return [
        Damage(
            kill=kill,
            in_flight=len(in_flight[kill.number]),
            duplicates=duplicates[kill.number],
            recovery=_first(again[kill.number]),
            over=_last(again[kill.number]),
            others=_next_of_others(in_time, _claimed_at(kill.at, claims), kill),
        )
        for kill in evidence.kills
    ]


def claims_of(history: Sequence[Step]) -> list[Claim]:
    """Return the claims of an event that have ended, in order.

    Args:
        history: its steps.
    """
    found = []
    began: Step | None = None
    for step in history:
        if step.after == "CLAIMED":
            began = step
        elif began is not None:
            found.append(
                Claim(
                    event_id=step.event_id,
                    claim_id=began.claim_id,
                    relay_id=began.relay_id,
                    began=began.at,
                    ended=step.at,
                    reason=step.reason,
                )
            )
            began = None
    return found


def cause_of(claim: Claim, kills: Sequence[Kill], relays: dict[str, str]) -> Kill | None:
    """Return the kill that left a claim open, None if no kill did.

    Args:
        claim: the claim.
        kills: in order of time.
        relays: who made each claim.
    """
    if not any(claim.reason in reasons for reasons in LEFT_AS.values()):
        return None
    for kill in kills:
        if kill.at >= claim.ended:
            return None
        hit = kill.at >= claim.began and claim.reason in LEFT_AS[kill.kind]
        # Nothing outlives its JVM; a relay's death leaves the claims of that relay only.
        if hit and (kill.kind != "relay" or relays.get(kill.claim_id) == claim.relay_id):
            return kill
    return None


def _sent_since(later: Sequence[Claim], sent: Sequence[Copy], kill: Kill) -> float | None:
    """Return the seconds from a kill to the first copy under a later claim, while the soak ran."""
    for claim in later:
        for copy in sent:
            if copy.at >= claim.began:
                stopped = kill.until is not None and copy.at > kill.until
                return None if stopped else copy.at - kill.at
    return None


def _claimed_at(at: float, claims: Mapping[str, Sequence[Claim]]) -> set[str]:
    """Return the events that were claimed at an instant."""
    return {name for name, own in claims.items() if any(c.began <= at < c.ended for c in own)}


def _next_of_others(in_time: Sequence[Copy], in_flight: set[str], kill: Kill) -> float | None:
    """Return the seconds from a kill to the next copy of what was not in flight, while the soak
    ran.
    """
    for copy in in_time[bisect_right(in_time, kill.at, key=lambda copy: copy.at) :]:
        if copy.event_id not in in_flight:
            stopped = kill.until is not None and copy.at > kill.until
            return None if stopped else copy.at - kill.at
    return None


def _claim_at(claims: Sequence[Claim], copy: Copy) -> int:
    """Return the place of the claim under which a copy was sent."""
    return max(0, bisect_right([claim.began for claim in claims], copy.at) - 1)


def _by_event(copies: Iterable[Copy]) -> dict[str, list[Copy]]:
    found: dict[str, list[Copy]] = defaultdict(list)
    for copy in copies:
        found[copy.event_id].append(copy)
    return found


def _first(seconds: Sequence[float | None]) -> float | None:
    return min((value for value in seconds if value is not None), default=None)


def _last(seconds: Sequence[float | None]) -> float | None:
    known = [value for value in seconds if value is not None]
    return max(known) if known and len(known) == len(seconds) else None
