"""Claims in flight: each kind is published beside the other, one claim of a kind at a time, and
where destinations are kept apart, one of each.

A claim of new deliveries that takes long, because one of them is slow to fail, is overtaken: one
more may fly beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final

from delta_outbox.claims import Claim
from delta_outbox.clock import Clock
from delta_outbox.relay.schedule import Kind
from delta_outbox.settling import Outcome

Publish = Callable[["Held"], Sequence[Outcome]]

SLOW_SECONDS: Final = 10.0  # a claim of new deliveries that flies longer may be overtaken
MAX_THREADS: Final = 256  # claims at once; one needs a thread that does nothing but wait


@dataclass(kw_only=True)
class Held:
    """A claim that is ours.

    Args:
        kind: what it is made of; None if it is taken only to be ended.
        claim: the claim, read back from the log.
        scopes: the order scope of each delivery, None where it neither waits nor blocks.
        until: monotonic seconds after which nothing of it may be sent.
        sequence: the position of the log at which it was made.
        to: its destinations, joined by `|`, where they are kept apart; empty where they are not.
        tasks: publishing tasks that it may have; 0 for the usual number.
        is_put_back: taken only to be told apart from its other destinations, and not sent.
    """

    kind: Kind | None
    claim: Claim
    scopes: list[str | None]
    until: float = float("-inf")
    sequence: int = 0
    to: str = ""
    tasks: int = 0
    is_put_back: bool = False


@dataclass(frozen=True, kw_only=True)
class _Flying:
    held: Held
    since: float  # monotonic seconds
    answer: Future[Sequence[Outcome]]


class Flight:
    """What is being published.

    Args:
        publish: publishes a claim and answers for each delivery; called on another thread.
        clock: the time.
    """

    def __init__(self, publish: Publish, clock: Clock) -> None:
        """Start no thread yet."""
        self._publish = publish
        self._clock = clock
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="publish")
        self._flying: list[_Flying] = []

    def __len__(self) -> int:
        return len(self._flying)

    def __contains__(self, kind: Kind | None) -> bool:
        return any(one.held.kind is kind for one in self._flying)

    def admits(self, kind: Kind, *, to: str = "") -> bool:
        """Say whether a claim of a kind may start.

        Args:
            kind: what it is made of.
            to: its destinations, where they are kept apart.
        """
        same = [one for one in self._flying if one.held.kind is kind and one.held.to == to]
        if not same:
            return True
        slow = self._clock.monotonic() - same[0].since >= SLOW_SECONDS
        return kind is Kind.NEW and len(same) == 1 and slow

    def start(self, held: Held) -> None:
        """Begin to publish a claim.

        Args:
            held: the claim, of a kind that is admitted.
        """
        assert held.kind is not None
        assert self.admits(held.kind, to=held.to)
        answer = self._pool.submit(self._publish, held)
        self._flying.append(_Flying(held=held, since=self._clock.monotonic(), answer=answer))

    def held(self) -> list[Held]:
        """Return the claims in flight."""
        return [one.held for one in self._flying]

    def age(self) -> float:
        """Return the seconds for which the oldest claim has been in flight; 0 if there is none."""
        now = self._clock.monotonic()
        return max((now - one.since for one in self._flying), default=0.0)

    def landed(self) -> Iterator[tuple[Held, Sequence[Outcome]]]:
        """Yield the claims that have been published since the last call, and what became of them.

        Raises:
            Exception: what the publishing raised.
        """
        for one in list(self._flying):
            if one.answer.done():
                self._flying.remove(one)
                yield one.held, one.answer.result()

    def wait(self, seconds: float) -> None:
        """Wait until a claim has landed.

        Args:
            seconds: at most.
        """
        wait([one.answer for one in self._flying], seconds, FIRST_COMPLETED)

    def close(self) -> None:
        """End the threads, once everything has landed."""
        self._pool.shutdown()
