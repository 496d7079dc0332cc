"""Claims in flight: each kind is published beside the other, one claim of a kind at a time, and
where destinations are isolated, one of each.

The next claim of first attempts is made while one is being published, and waits for it: it starts
as soon as the other has completed, without what follows a failure. A claim that takes long, because
one of its deliveries is slow to fail, is overtaken: one more may be in flight beside it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final

from delta_outbox.core.clock import Clock
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.lifecycle.results_by_column import Results
from delta_outbox.relay.schedule import Kind
from delta_outbox.store.transition_log import TransitionLog
from delta_outbox.store.unknown_results import PublishResult

Publish = Callable[["Held"], Sequence[PublishResult]]

SLOW_SECONDS: Final = 10.0  # a claim of first attempts that is in flight longer may be overtaken
MAX_THREADS: Final = 256  # claims at once; one needs a thread that does nothing but wait


@dataclass(kw_only=True)
class Held:
    """A claim of this relay.

    Args:
        kind: what it is made of; None if it is taken only to be ended.
        claim: the claim, read back from the log.
        scopes: the order scope of each delivery, None where it neither waits nor blocks.
        until: monotonic seconds after which nothing of it may be sent.
        log: the log of its lane.
        sequence: the position of the log at which it was made.
        to: its destinations, joined by `|`, where they are isolated; empty where they are not.
        tasks: publishing tasks that it may have; 0 for the usual number.
        is_released: taken only to be parted from its other destinations, and released unsent.
        waits: it may hold what follows a delivery in flight, so it starts after that has completed.
        blocked: order scopes of which nothing is sent: what comes first was not delivered.
    """

    kind: Kind | None
    claim: Claim
    log: TransitionLog | None = None
    scopes: list[str | None]
    until: float = float("-inf")
    sequence: int = 0
    to: str = ""
    tasks: int = 0
    is_released: bool = False
    waits: bool = False
    blocked: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class _InFlight:
    held: Held
    since: float  # monotonic seconds
    answer: Future[Sequence[PublishResult]]


class Flight:
    """What is being published, and what waits for that.

    Args:
        publish: publishes a claim and answers for each delivery; called on another thread.
        clock: the time.
    """

    def __init__(self, publish: Publish, clock: Clock) -> None:
        self._publish = publish
        self._clock = clock
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="publish")
        self._in_flight: list[_InFlight] = []
        self._waiting: Held | None = None
        self._took: float | None = None  # seconds, by the last claim of first attempts
        self._lock = threading.RLock()  # what waits is started by the thread that has completed

    def __len__(self) -> int:
        return len(self._in_flight)

    def __contains__(self, kind: Kind | None) -> bool:
        return any(one.held.kind is kind for one in self._in_flight)

    def admits(self, kind: Kind, *, to: str = "") -> bool:
        """Say whether a claim of a kind may start.

        Args:
            kind: what it is made of.
            to: its destinations, where they are isolated.
        """
        with self._lock:
            if kind is Kind.FIRST_ATTEMPT and self._waiting is not None and self._waiting.to == to:
                return False
            same = self._like(kind, to)
            if not same:
                return True
            return kind is Kind.FIRST_ATTEMPT and len(same) == 1 and self._is_slow(same[0])

    @property
    def being_published(self) -> int:
        """The number of claims that are being published at this moment."""
        with self._lock:
            return sum(not one.answer.done() for one in self._in_flight)

    def may_queue(self, *, within: float) -> bool:
        """Say whether a claim of first attempts may be made that waits for the one in flight.

        Args:
            within: seconds that the last one of its kind may have taken, for what waits uses up its
                lease; as long as none has completed, nobody knows.
        """
        with self._lock:
            is_fast = self._took is not None and self._took <= within
            return (
                is_fast and self._waiting is None and len(self._like(Kind.FIRST_ATTEMPT, "")) == 1
            )

    def start(self, held: Held) -> None:
        """Begin to publish a claim.

        Args:
            held: the claim, of a kind that is admitted.
        """
        assert held.kind is not None
        with self._lock:
            assert self.admits(held.kind, to=held.to)
            self._start(held)

    def queue(self, held: Held) -> None:
        """Begin to publish a claim as soon as the one in flight has completed.

        Of an order scope in which something was not delivered, nothing of it is sent.

        Args:
            held: a claim of first attempts, made when `may_queue` said so.
        """
        with self._lock:
            assert self._waiting is None
            self._waiting = held
            for one in self._in_flight:
                if one.answer.done():
                    held.blocked |= _undelivered(one)
            self._go_on()

    def overtake(self) -> None:
        """Start the claim that waits if the one in flight takes long, without what follows that."""
        with self._lock:
            held = self._waiting
            if held is None:
                return
            before = self._like(Kind.FIRST_ATTEMPT, held.to)
            if len(before) != 1 or not self._is_slow(before[0]):
                return
            held.blocked |= {scope for scope in before[0].held.scopes if scope is not None}
            self._waiting = None
            self._start(held)

    def withdraw(self) -> Held | None:
        """Return the claim that waits; it will not start."""
        with self._lock:
            held, self._waiting = self._waiting, None
            return held

    def held(self) -> list[Held]:
        """Return the claims in flight, and the one that waits."""
        with self._lock:
            waiting = [self._waiting] if self._waiting is not None else []
            return [*(one.held for one in self._in_flight), *waiting]

    def age(self) -> float:
        """Return the seconds for which the oldest claim has been in flight; 0 if there is none."""
        now = self._clock.monotonic()
        return max((now - one.since for one in self._in_flight), default=0.0)

    def completed(self) -> Iterator[tuple[Held, Sequence[PublishResult]]]:
        """Yield the claims that have been published since the last call, and what became of them.

        Raises:
            Exception: what the publishing raised.
        """
        for one in list(self._in_flight):
            if one.answer.done():
                with self._lock:
                    self._in_flight.remove(one)
                yield one.held, one.answer.result()

    def wait(self, seconds: float) -> None:
        """Wait until a claim has completed.

        Args:
            seconds: at most.
        """
        wait([one.answer for one in self._in_flight], seconds, FIRST_COMPLETED)

    def close(self) -> None:
        """End the threads, once everything has completed."""
        self._pool.shutdown()

    def _start(self, held: Held) -> None:
        one = _InFlight(
            held=held,
            since=self._clock.monotonic(),
            answer=self._pool.submit(self._publish, held),
        )
        self._in_flight.append(one)
        one.answer.add_done_callback(lambda _: self._complete(one))

    def _complete(self, one: _InFlight) -> None:
        with self._lock:
            if one.held.kind is Kind.FIRST_ATTEMPT:
                self._took = self._clock.monotonic() - one.since
            if self._waiting is not None:
                self._waiting.blocked |= _undelivered(one)
                self._go_on()

    def _go_on(self) -> None:
        """Start the claim that waits, if nothing of its kind is in flight any more."""
        held = self._waiting
        assert held is not None
        if all(one.answer.done() for one in self._like(Kind.FIRST_ATTEMPT, held.to)):
            self._waiting = None
            self._start(held)

    def _like(self, kind: Kind, to: str) -> list[_InFlight]:
        return [one for one in self._in_flight if one.held.kind is kind and one.held.to == to]

    def _is_slow(self, one: _InFlight) -> bool:
        return self._clock.monotonic() - one.since >= SLOW_SECONDS


def _undelivered(one: _InFlight) -> set[str]:
    """Return the order scopes of a completed claim in which nothing further may be sent."""
    scopes = one.held.scopes
    if one.answer.exception() is not None:
        return {scope for scope in scopes if scope is not None}
    undelivered = Results.of(one.answer.result()).undelivered
    return {scope for scope in map(scopes.__getitem__, undelivered) if scope is not None}
