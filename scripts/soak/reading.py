"""Reading the evidence: the files that Delta's commits name, and the topic by its own client.

Neither the product nor Spark stands between a promise and the truth.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from scripts.soak.evidence import Appended, Copy, Step

QUIET_LIMIT = 60.0  # seconds without a message that the topic holds
AT_ONCE = 5000

_STEP = (
    "event_id",
    "sequence",
    "from_state",
    "to_state",
    "reason",
    "claim_id",
    "relay_id",
    "attempt",
    "occurred_at",
)


class NotAppendOnly(Exception):
    """A log was not only appended to."""


class Log:
    """The files of a Delta table that is only appended to, each read once.

    Args:
        table: its folder.
        columns: what to read.
    """

    def __init__(self, table: Path, columns: Sequence[str]) -> None:
        self._table = table
        self._columns = list(columns)
        self._next = 0

    def news(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the rows of the commits since the last call, each with its commit. Files that a
        commit only writes anew, without changing data, hold no news.

        Raises:
            NotAppendOnly: a commit removes something.
        """
        while (commit := self._table / "_delta_log" / f"{self._next:020}.json").is_file():
            for action in map(json.loads, commit.read_text(encoding="utf-8").splitlines()):
                if "remove" in action and action["remove"]["dataChange"]:
                    raise NotAppendOnly(f"{self._table.name}: commit {self._next} removes rows")
                if "add" in action and action["add"]["dataChange"]:
                    file = pq.ParquetFile(self._table / action["add"]["path"])
                    for row in in_utc(file.read(columns=self._columns)).to_pylist():
                        yield self._next, row
            self._next += 1


def in_utc(rows: pa.Table) -> pa.Table:
    """Return rows with all instants in UTC: a file of Spark's does not name the time zone.

    Args:
        rows: of a file.
    """
    instant = pa.timestamp("us", tz="UTC")
    fields = [
        field.with_type(instant) if pa.types.is_timestamp(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields), safe=False)


def event_log(warehouse: Path) -> Log:
    """Return the event log.

    Args:
        warehouse: the folder of the database.
    """
    return Log(warehouse / "outbox_events", ("event_id", "ordering_key", "ordinal"))


def transition_log(warehouse: Path) -> Log:
    """Return the transition log.

    Args:
        warehouse: the folder of the database.
    """
    return Log(warehouse / "outbox_transitions", _STEP)


def read_appended(warehouse: Path) -> list[Appended]:
    """Return the event log in its order.

    Args:
        warehouse: the folder of the database.
    """
    rows = (
        Appended(
            event_id=row["event_id"], key=row["ordering_key"], position=(commit, row["ordinal"])
        )
        for commit, row in event_log(warehouse).news()
    )
    return sorted(rows, key=lambda row: row.position)


def read_steps(warehouse: Path) -> list[Step]:
    """Return the transition log in order of its appends.

    Args:
        warehouse: the folder of the database.
    """
    rows = (
        Step(
            event_id=row["event_id"],
            sequence=row["sequence"],
            before=row["from_state"],
            after=row["to_state"],
            reason=row["reason"],
            claim_id=row["claim_id"] or "",
            relay_id=row["relay_id"] or "",
            attempt=row["attempt"],
            at=row["occurred_at"].timestamp(),
        )
        for _, row in transition_log(warehouse).news()
    )
    return sorted(rows, key=lambda row: row.sequence)


def read_copies(bootstrap: str, topic: str) -> list[Copy]:
    """Return every message that a topic holds now, in order within each partition.

    Args:
        bootstrap: the address of the broker.
        topic: its name.

    Raises:
        KafkaException: the broker refuses.
        TimeoutError: messages that the topic holds do not arrive.
    """
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "soak", "enable.auto.commit": False}
    )
    try:
        partitions = consumer.list_topics(topic, timeout=QUIET_LIMIT).topics[topic].partitions
        marks = {
            number: consumer.get_watermark_offsets(
                TopicPartition(topic, number), timeout=QUIET_LIMIT
            )
            for number in partitions
        }
        consumer.assign([TopicPartition(topic, n, low) for n, (low, _) in marks.items()])
        missing = sum(high - low for low, high in marks.values())
        copies: list[Copy] = []
        progress = time.monotonic()
        while len(copies) < missing:
            messages = consumer.consume(AT_ONCE, timeout=1.0)
            if messages:
                progress = time.monotonic()
            elif time.monotonic() - progress > QUIET_LIMIT:
                raise TimeoutError(f"{topic}: {missing - len(copies)} messages do not arrive")
            copies += map(_copy, messages)
    finally:
        consumer.close()
    return sorted(copies, key=lambda copy: (copy.partition, copy.offset))


def _copy(message: Message) -> Copy:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    headers = dict(message.headers() or [])
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return Copy(
        event_id=_text(headers["outbox-event-id"]),
        key=_text(message.key()),
        payload=_text(message.value()),
        partition=partition,
        offset=offset,
        at=message.timestamp()[1] / 1000,
    )


def _text(value: str | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
