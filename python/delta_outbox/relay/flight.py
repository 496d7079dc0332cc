"""Claims in flight: each kind is published beside the other, one claim of a kind at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from delta_outbox.claims import Claim
from delta_outbox.lifecycle import EndOfClaim
from delta_outbox.relay.schedule import Kind

Publish = Callable[["Held"], list[EndOfClaim]]


@dataclass(kw_only=True)
class Held:
    """A claim that is ours.

    Args:
        kind: what it is made of; None if it is taken only to be ended.
        claim: the claim, read back from the log.
        scopes: the order scope of each delivery, None where it neither waits nor blocks.
        until: monotonic seconds after which nothing of it may be sent.
    """

    kind: Kind | None
    claim: Claim
    scopes: list[str | None]
    until: float = float("-inf")


class Flight:
    """What is being published.

    Args:
        publish: publishes a claim and answers for each delivery; called on another thread.
    """

    def __init__(self, publish: Publish) -> None:
        """Start no thread yet."""
        self._publish = publish
        self._pool = ThreadPoolExecutor(len(Kind), thread_name_prefix="publish")
        self._flying: dict[Kind, tuple[Held, Future[list[EndOfClaim]]]] = {}

    def __len__(self) -> int:
        return len(self._flying)

    def __contains__(self, kind: Kind | None) -> bool:
        return kind in self._flying

    def start(self, held: Held) -> None:
        """Begin to publish a claim; nothing of its kind may be in flight.

        Args:
            held: the claim.
        """
        assert held.kind is not None
        assert held.kind not in self._flying
        self._flying[held.kind] = held, self._pool.submit(self._publish, held)

    def held(self) -> list[Held]:
        """Return the claims in flight."""
        return [held for held, _ in self._flying.values()]

    def landed(self) -> Iterator[tuple[Held, list[EndOfClaim]]]:
        """Yield the claims that have been published since the last call, and what became of them.

        Raises:
            Exception: what the publishing raised.
        """
        for kind, (held, future) in list(self._flying.items()):
            if future.done():
                del self._flying[kind]
                yield held, future.result()

    def wait(self, seconds: float) -> None:
        """Wait until a claim has landed.

        Args:
            seconds: at most.
        """
        wait([future for _, future in self._flying.values()], seconds, FIRST_COMPLETED)

    def close(self) -> None:
        """End the threads, once everything has landed."""
        self._pool.shutdown()
