"""What everybody delivers: numbered messages whose every byte follows from their number.

Python and Spark SQL make the same ones, so that ten million need not pass through this process, and
whoever reads a destination can tell whether a message is what it should be.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAYLOAD_BYTES: Final = 512
KEYS: Final = 1000  # ordering keys that a stream goes round
TENANTS: Final = 10
_TEXTS: Final = 1024  # more of them than a compressor sees at once
_BEFORE: Final = '{"order": "'
_BETWEEN: Final = '", "text": "'
_AFTER: Final = '"}'
_DIGITS: Final = 12
_NOT_TEXT: Final = len(_BEFORE) + _DIGITS + len(_BETWEEN) + len(_AFTER)
_PART: Final = 128  # digits of a hash


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Messages of one type, which is also their topic.

    Args:
        name: the event type.
        count: how many.
        keys: ordering keys that they go round; those of one key are in order of their numbers.
        payload_bytes: of each payload, at least 128.
    """

    name: str
    count: int
    keys: int = KEYS
    payload_bytes: int = PAYLOAD_BYTES

    def __len__(self) -> int:
        return self.count

    def event_id(self, number: int) -> str:
        """Return the id of a message."""
        return f"{self.name}-{number:0{_DIGITS}d}"

    def number(self, event_id: str) -> int:
        """Return the number of a message.

        Args:
            event_id: its id.

        Raises:
            ValueError: it is none of this stream.
        """
        name, _, digits = event_id.rpartition("-")
        if name != self.name or len(digits) != _DIGITS or not 0 <= int(digits) < self.count:
            raise ValueError(f"{event_id!r} is none of the {self.count} of {self.name}")
        return int(digits)

    def key(self, number: int) -> str:
        """Return the ordering key of a message."""
        return f"{self.name}-key-{number % self.keys}"

    def payload(self, number: int) -> bytes:
        """Return the payload of a message."""
        text = _text(number % _TEXTS, self._text_bytes)
        return f"{_BEFORE}{number:0{_DIGITS}d}{_BETWEEN}{text}{_AFTER}".encode()

    def headers(self, number: int) -> dict[str, str]:
        """Return the two headers of a message."""
        return {"content-type": "application/json", "tenant": f"tenant-{number % TENANTS}"}

    def wire_headers(self, number: int) -> list[tuple[str, str | bytes | None]]:
        """Return the headers of a message in Kafka: what identifies it, and its own."""
        return [
            ("outbox-event-id", self.event_id(number).encode()),
            ("outbox-event-type", self.name.encode()),
            ("outbox-lifecycle", b"0"),
            *((name, value.encode()) for name, value in self.headers(number).items()),
        ]

    @property
    def _text_bytes(self) -> int:
        return self.payload_bytes - _NOT_TEXT

    def frame(
        self,
        spark: SparkSession,
        *,
        first: int = 0,
        count: int | None = None,
        created_at: datetime | None = None,
        available_at: datetime | None = None,
    ) -> DataFrame:
        """Return a range of messages as rows that a producer may append.

        Args:
            spark: the session.
            first: number of the first.
            count: how many; all from the first if left out.
            created_at: when they were created and appended; the log fills it in if left out.
            available_at: before which they are not due; at once if left out.
        """
        end = self.count if count is None else first + count
        number = f"lpad(cast(id as string), {_DIGITS}, '0')"
        parts = f"sequence(0, {_parts(self._text_bytes) - 1})"
        hashes = f"transform({parts}, part -> sha2(concat(id % {_TEXTS}, '-', part), 512))"
        text = f"substr(array_join({hashes}, ''), 1, {self._text_bytes})"
        payload = f"'{_BEFORE}', {number}, '{_BETWEEN}', {text}, '{_AFTER}'"
        tenant = f"concat('tenant-', id % {TENANTS})"
        columns = [
            f"concat('{self.name}-', {number}) as event_id",
            f"'{self.name}' as event_type",
            f"cast(concat({payload}) as binary) as payload",
            f"concat('{self.name}-key-', id % {self.keys}) as ordering_key",
            f"map('content-type', 'application/json', 'tenant', {tenant}) as headers",
            "id as ordinal",
        ]
        if created_at is not None:
            columns += [
                f"{_instant(created_at)} as {name}" for name in ("created_at", "appended_at")
            ]
        if available_at is not None:
            columns.append(f"{_instant(available_at)} as available_at")
        return spark.range(first, end, 1, 2).selectExpr(*columns)

    def arrow(self, *, first: int, count: int) -> pa.Table:
        """Return a range of messages as `Outbox.append` takes them.

        Args:
            first: number of the first.
            count: how many.
        """
        numbers = range(first, first + count)
        headers = [list(self.headers(n).items()) for n in numbers]
        return pa.table(
            {
                "event_id": [self.event_id(n) for n in numbers],
                "event_type": [self.name] * count,
                "payload": pa.array([self.payload(n) for n in numbers], pa.binary()),
                "ordering_key": [self.key(n) for n in numbers],
                "headers": pa.array(headers, pa.map_(pa.string(), pa.string())),
            }
        )


def shares(total: int, at_once: int) -> Iterator[tuple[int, int]]:
    """Yield (first, count) of the parts of so many.

    Args:
        total: how many there are.
        at_once: how many a part holds at most.
    """
    for first in range(0, total, at_once):
        yield first, min(at_once, total - first)


@functools.cache
def _text(slot: int, size: int) -> str:
    parts = (hashlib.sha512(f"{slot}-{n}".encode()).hexdigest() for n in range(_parts(size)))
    return "".join(parts)[:size]


def _parts(size: int) -> int:
    return -(-size // _PART)


def _instant(at: datetime) -> str:
    return f"timestamp'{at:%Y-%m-%d %H:%M:%S}'"
