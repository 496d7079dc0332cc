"""Workers that plan and claim as a relay does and are told what became of it, and what must be true
of all that they have appended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from delta_outbox.api import Outbox
from delta_outbox.core.clock import Clock
from delta_outbox.lifecycle.claims import (
    ending_rows,
    left_after,
    results_without_sending,
)
from delta_outbox.lifecycle.endings import EndOfClaim
from delta_outbox.relay.claim.chooser import Chooser
from delta_outbox.relay.claim.decided import Decided
from delta_outbox.relay.claim.flight import Flight, Held
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.plan.planning import Planning
from delta_outbox.store.heartbeat import Heartbeat
from delta_outbox.store.unknown_results import PublishResult


class SharedTime:
    """The clock of one of several workers: once it is read, the others may go on meanwhile.

    Args:
        time: what all of them go by.
        meanwhile: lets the others go on, or not.
    """

    def __init__(self, time: Clock, meanwhile: Callable[[], None]) -> None:
        self._time = time
        self._meanwhile = meanwhile
        self._thread = threading.get_ident()

    def now(self) -> datetime:
        """Return the current instant."""
        read = self._time.now()
        self._pass()
        return read

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        read = self._time.monotonic()
        self._pass()
        return read

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self._time.sleep(seconds)

    def _pass(self) -> None:
        if threading.get_ident() == self._thread:  # not while the views are refreshed beside it
            self._meanwhile()


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a worker knew when it chose a claim.

    Args:
        since: when it began to choose; the claim was made then or later.
        is_sent: it is to be sent; else it is taken to be ended.
        killed: the events that it had to know as killed.
    """

    since: datetime
    is_sent: bool
    killed: frozenset[str]


class Planner:
    """A relay without its publishers.

    Args:
        outbox: its store.
        batch_size: deliveries per claim.
        killed: the events for which a kill is on record, at any time.
        choices: takes what it knew, by the claim.
    """

    def __init__(
        self,
        outbox: Outbox,
        *,
        batch_size: int,
        killed: set[str],
        choices: dict[str, Choice],
    ) -> None:
        self._outbox = outbox
        self._killed = killed
        self._choices = choices
        self._known_killed = frozenset[str]()
        heart = Heartbeat(
            outbox.spark, outbox.tables, relay_id=outbox.worker_id, clock=outbox.clock
        )
        isolation = Isolation(outbox)
        self.planning = Planning(outbox, heart, batch_size=batch_size, isolation=isolation)
        self._batch_size = batch_size
        self._flight = Flight(lambda _: [], outbox.clock)
        self._chooser = Chooser(
            outbox, self._flight, isolation, claims=2, batch_size=batch_size, limit=None
        )
        self._decided = Decided(self.planning.forget, lambda _: None)
        self._answers: dict[str, Future[Sequence[PublishResult]]] = {}
        outbox.policies()
        self.planning.start()

    @property
    def in_flight(self) -> list[Held]:
        """Return the claims that are being sent."""
        return self._flight.held()

    def step(self) -> bool:
        """Do what a relay does next; say whether that was to claim or to end something."""
        claims = self._choose()
        if claims or self._decided:
            self._append(claims)
            return True
        killed = frozenset(self._killed)
        self._outbox.policies()
        self.planning.poll(
            alive={held.claim.claim_id for held in self._flight.held()},
            takes_over=True,
        )
        self._known_killed = killed
        return False

    def claim(self) -> None:
        """Go on until something is being sent."""
        for _ in range(20):
            if self.in_flight:
                return
            self.step()
        raise AssertionError("it claims nothing")

    def answer(self, held: Held, results: Sequence[EndOfClaim]) -> None:
        """Say what became of a claim in flight; that goes on record with the next step.

        Args:
            held: the claim.
            results: one per delivery.
        """
        self._answers.pop(held.claim.claim_id).set_result(results)
        for done, found in self._flight.completed():
            self._end(*done.ended(found))

    def _choose(self) -> list[Held]:
        since, chosen = self._outbox.clock.now(), list[Held]()
        window = self.planning.select()
        ends = self.planning.take_ends(self._batch_size)
        if ends.num_rows:
            chosen.append(self._chooser.held(None, self._outbox.new_claim(ends)))
        if window is not None:
            self._chooser.choose(window, chosen, once=False)
        for held in chosen:
            self._choices[held.claim.claim_id] = Choice(
                since=since, is_sent=held.kind is not None, killed=self._known_killed
            )
        return chosen

    def _append(self, claims: Sequence[Held]) -> None:
        for log in dict.fromkeys((*self._decided.lanes, *(held.log for held in claims))):
            begun = [held for held in claims if held.log is log]
            if self._decided.append(log, [held.claim for held in begun]):
                self._begin(begun, log.sequence)

    def _begin(self, claims: Sequence[Held], sequence: int) -> None:
        for held in claims:
            held.sequence = sequence
            if held.kind is None:
                self._end(held, results_without_sending(held.claim))
            else:
                answer = Future[Sequence[PublishResult]]()
                self._answers[held.claim.claim_id] = answer
                self._flight.follow(held, answer)

    def _end(self, held: Held, results: Sequence[EndOfClaim]) -> None:
        endings = self._outbox.decide(held.claim, results)
        rows = ending_rows(held.claim, endings, now=self._outbox.clock.now())
        self._decided.add(held.log, rows, claimed=held.sequence)
        policies = self._outbox.policies_in_force
        self.planning.requeue(
            held.claim.claim_id, left_after(held.claim.deliveries, rows, policies)
        )


@dataclass(frozen=True, kw_only=True)
class Told:
    """An event as its producer has told it.

    Args:
        event_id: its id.
        event_type: its type.
        key: its ordering key.
        available_at: when it may be taken first, and where its age counts from; None: at once, and
            it has none.
    """

    event_id: str
    event_type: str
    key: str | None
    available_at: datetime | None


class Judge:
    """Judges a transition log by the rules of delivery, said anew.

    Args:
        told: the events, in the order of the log.
        choices: what those that claimed knew, by the claim.
        holds: the types that hold their key once they are DEAD.
        ages: the types that grow too old, and after how many seconds.
    """

    def __init__(
        self,
        told: Sequence[Told],
        choices: Mapping[str, Choice],
        *,
        holds: Set[str],
        ages: Mapping[str, float],
    ) -> None:
        self._told = {one.event_id: one for one in told}
        self._choices = choices
        self._holds = holds
        self._ages = ages
        self._before = {
            one.event_id: [
                other.event_id
                for other in told[:place]
                if one.key is not None and other.key == one.key
            ]
            for place, one in enumerate(told)
        }
        self.last: dict[str, dict[str, Any]] = {}  # the last transition of each event

    def judge(self, transitions: Iterable[dict[str, Any]]) -> None:
        """Demand that each transition follows from those before it.

        Args:
            transitions: of one lane, in its order.
        """
        for _, rows in groupby(transitions, key=lambda row: row["sequence"]):
            given = list(rows)
            for row in given:
                if row["from_state"] == "CLAIMED":
                    self._ends(row)
            claims = [row for row in given if row["from_state"] == "PENDING"]
            for row in claims:
                self._claims(row, {one["event_id"]: one["claim_id"] for one in claims})
            self.last |= {row["event_id"]: row for row in claims}

    def state(self, event_id: str) -> str:
        """Return the state of an event."""
        return self.last[event_id]["to_state"] if event_id in self.last else "PENDING"

    def _ends(self, row: dict[str, Any]) -> None:
        claim = self.last[row["event_id"]]
        assert ("CLAIMED", claim["claim_id"]) == (claim["to_state"], row["claim_id"]), row
        if row["relay_id"] != claim["relay_id"]:
            assert row["occurred_at"] >= claim["lease_expires_at"], ("ended early", claim, row)
        self.last[row["event_id"]] = row

    def _claims(self, row: dict[str, Any], beside: Mapping[str, str]) -> None:
        event, choice = self._told[row["event_id"]], self._choices[row["claim_id"]]
        before, at = self.last.get(event.event_id), row["occurred_at"]
        assert "PENDING" == self.state(event.event_id), ("claimed twice", before, row)
        due = before["available_at"] if before else event.available_at
        assert due is None or due <= at, ("claimed before it is due", before, row)
        if not choice.is_sent:
            assert event.event_id in choice.killed or self._is_old(event, at), ("ended", row)
            return
        assert event.event_id not in choice.killed, ("claimed although it is killed", row)
        assert not self._is_old(event, choice.since), ("claimed although it is too old", row)
        for earlier in self._before[event.event_id]:
            if beside.get(earlier) != row["claim_id"]:
                found = self.last.get(earlier)
                assert self._lets_pass(earlier, choice, at), ("overtakes", earlier, found, row)

    def _lets_pass(self, event_id: str, choice: Choice, at: datetime) -> bool:
        """Say whether what comes after an event of its key may be sent."""
        event, row, state = self._told[event_id], self.last.get(event_id), self.state(event_id)
        holds, is_killed = event.event_type in self._holds, event_id in choice.killed
        if row is not None and state == "DEAD":
            return is_killed or row["reason"] == "operator" or not holds
        if state == "PENDING":
            due = row["available_at"] if row else event.available_at
            is_due = due is None or due <= at
            return is_killed or (is_due and self._is_old(event, at) and not holds)
        return state == "PUBLISHED"

    def _is_old(self, event: Told, at: datetime) -> bool:
        age = self._ages.get(event.event_type)
        if age is None or event.available_at is None:
            return False
        return at - event.available_at >= timedelta(seconds=age)
