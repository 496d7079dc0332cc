"""Claims in flight: each is published by itself, and none waits for another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Final, cast

import numpy as np
import pyarrow as pa

from delta_outbox.core.arrow import shared_texts
from delta_outbox.core.clock import Clock
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.lifecycle.endings import EndOfClaim
from delta_outbox.lifecycle.order_scopes import scopes_of
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.results_by_column import Results
from delta_outbox.relay.plan.window import Kind
from delta_outbox.store.transition_log import TransitionLog
from delta_outbox.store.unknown_results import PublishResult, Unresolved

Publish = Callable[["Held"], Sequence[PublishResult]]

MAX_THREADS: Final = 256  # claims at once; one needs a thread that does nothing but wait


@dataclass(kw_only=True)
class Held:
    """A claim of this relay.

    Args:
        kind: what it is made of; None if it is taken only to be ended.
        claim: the claim, read back from the log.
        until: monotonic seconds after which nothing of it may be sent.
        log: the log of its lane.
        sequence: the position of the log at which it was made.
        to: its destinations, joined by `|`.
        slices: in how many it is published; 0 for as many as this relay publishes at once.
        is_released: taken only to be parted from its other destinations, and released unsent.
        seconds: that its publishing lasted; None if it was not published by Spark.
        order_scopes: of what was claimed, None where a delivery neither waits nor blocks; they are
            in no other claim.
    """

    kind: Kind | None
    claim: Claim
    log: TransitionLog
    order_scopes: Set[str | None]
    until: float = float("-inf")
    sequence: int = 0
    to: str = ""
    slices: int = 0
    is_released: bool = False
    seconds: float | None = None

    def scopes_by(self, policies: PolicySet) -> Set[str | None]:
        """Return the order scopes by the names that some policies give them.

        Args:
            policies: others maybe than those of the claim.
        """
        if policies.version == self.claim.policy_version:
            return self.order_scopes
        return {*shared_texts(scopes_of(self.claim.deliveries, policies))}

    def ended(self, results: Sequence[PublishResult]) -> tuple[Held, Sequence[EndOfClaim]]:
        """Return the part that ends, and how each of its deliveries does; what cannot be resolved
        stays claimed.

        Args:
            results: one per delivery, in the claim's order.
        """
        found: Results[PublishResult] = Results.of(results)
        stays = [place for place, one in found.others.items() if isinstance(one, Unresolved)]
        ends = cast("Results[EndOfClaim]", found.without(stays) if stays else found)
        if not stays:
            return self, ends
        kept = np.ones(len(found), dtype=np.bool_)
        kept[stays] = False
        return replace(self, claim=self.claim.part(pa.array(kept))), ends


@dataclass(frozen=True, kw_only=True)
class _InFlight:
    held: Held
    since: float  # monotonic seconds
    answer: Future[Sequence[PublishResult]]


class Flight:
    """What is being published.

    Args:
        publish: publishes a claim and answers for each delivery; called on another thread.
        clock: the time.
    """

    def __init__(self, publish: Publish, clock: Clock) -> None:
        self._publish = publish
        self._clock = clock
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="publish")
        self._in_flight: list[_InFlight] = []

    def __len__(self) -> int:
        return len(self._in_flight)

    def start(self, held: Held) -> None:
        """Begin to publish a claim, on a thread of its own.

        Args:
            held: the claim; nothing of its order scopes is in flight.
        """
        self.follow(held, self._pool.submit(self._publish, held))

    def follow(self, held: Held, answer: Future[Sequence[PublishResult]]) -> None:
        """Take a claim into account that is under way.

        Args:
            held: the claim.
            answer: what will have become of it.
        """
        since = self._clock.monotonic()
        self._in_flight.append(_InFlight(held=held, since=since, answer=answer))

    def beside(self, work: Callable[[], object]) -> None:
        """Do something on a thread of its own.

        Args:
            work: its errors are not told here.
        """
        self._pool.submit(work)

    def held(self) -> list[Held]:
        """Return the claims in flight."""
        return [one.held for one in self._in_flight]

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
                self._in_flight.remove(one)
                yield one.held, one.answer.result()

    def wait(self, seconds: float) -> bool:
        """Wait until a claim has completed; say whether one has.

        Args:
            seconds: at most.
        """
        return bool(wait([one.answer for one in self._in_flight], seconds, FIRST_COMPLETED).done)

    def close(self) -> None:
        """End the threads, once everything has completed."""
        self._pool.shutdown()
