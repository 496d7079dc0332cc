"""From where a group of consumers goes on: behind all that is done, wherever that is in a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Message

Partition = tuple[str, int]
"""A topic, and the number of a partition of it."""

MOST_HELD: Final = 10_000  # messages
MOST_BYTES: Final = 64 * 1024**2  # of them


@dataclass(kw_only=True, eq=False)
class Held:
    """A message of which nobody has said what becomes of it.

    Args:
        message: as it came.
        try_at: `time.monotonic()` seconds at which it is judged next.
        early_seconds: for how long it was early, as far as the outbox could be asked.
        early_at: those at which it was found to be early the last time; None: never, or nobody
            could say so since.
        waits_for: identifier of the item that it is about, if that was not open, or the outbox not
            reached, when it was judged.
        is_unread: when it was judged, nobody could say what it is about.
    """

    message: Message
    try_at: float
    early_seconds: float = 0.0
    early_at: float | None = None
    waits_for: str | None = None
    is_unread: bool = False

    @property
    def size(self) -> int:
        """Return its bytes."""
        return len(self.message.value() or b"")

    @property
    def partition(self) -> Partition:
        """Return where it came from."""
        return self.message.topic() or "", self.message.partition() or 0


class Offsets:
    """The messages that are held, and how far each partition is done. What is done behind one that
    is held is judged again after a crash, and told the same then.
    """

    def __init__(self) -> None:
        self._held: dict[Partition, dict[int, Held]] = {}
        self._next: dict[Partition, int] = {}
        self._committed: dict[Partition, int] = {}

    def add(self, one: Held) -> None:
        """Hold a message."""
        offset = one.message.offset() or 0
        self._held.setdefault(one.partition, {})[offset] = one
        self._next[one.partition] = offset + 1

    def done(self, one: Held) -> None:
        """Let go of a message: what it says is on record, or it is a dead letter."""
        self._held.get(one.partition, {}).pop(one.message.offset() or 0, None)

    def held(self) -> Iterator[Held]:
        """Yield what is held, in the order of each partition."""
        for messages in self._held.values():
            yield from messages.values()

    @property
    def is_full(self) -> bool:
        """Say whether no more should be read before something is done."""
        count = sum(map(len, self._held.values()))
        return count >= MOST_HELD or sum(one.size for one in self.held()) >= MOST_BYTES

    def to_commit(self) -> dict[Partition, int]:
        """Return where partitions go on, of those that got further since that was committed."""
        found = {
            partition: min(self._held.get(partition) or [after])
            for partition, after in self._next.items()
        }
        return {one: at for one, at in found.items() if self._committed.get(one) != at}

    def committed(self, offsets: dict[Partition, int]) -> None:
        """Remember what was committed."""
        self._committed |= offsets

    def forget(self, partitions: Iterable[Partition]) -> None:
        """Drop partitions: somebody else goes on from what is committed."""
        for one in partitions:
            for kept in (self._held, self._next, self._committed):
                kept.pop(one, None)
