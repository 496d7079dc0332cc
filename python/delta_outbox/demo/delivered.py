"""What arrived at the destination, read back without help from the relay or its log."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import KafkaException, Message

from delta_outbox.core.errors import OutboxError
from delta_outbox.demo.kafka_reader import consume_all
from delta_outbox.publishers.protocol import EVENT_ID_HEADER, EVENT_TYPE_HEADER, LIFECYCLE_HEADER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AT_ONCE: Final = 10_000  # messages
_LINES: Final = (
    "event_id string, event_type string, key string, headers map<string, string>, "
    "payload string, lifecycle int"
)
_MESSAGES: Final = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_type", pa.string()),
        ("key", pa.string()),
        ("traceparent", pa.string()),
        ("payload", pa.string()),
        ("lifecycle", pa.int32()),
        ("stream", pa.int32()),
        ("shard", pa.int32()),
        ("position", pa.int64()),
    ]
)


class ConsumerFailed(OutboxError):
    """The consumer that checks the delivery could not read everything."""

    code: ClassVar[str] = "CONSUMER_FAILED"
    remedy = "Run the demo again: nothing is delivered twice by that, and it checks again."


def delivered_lines(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the lines that a `jsonl` destination holds.

    Besides what a line says there is its place: `stream` and `shard` (one folder is one of each)
    and `position`, by which they can be ordered. A slice of a claim writes a file of its own and
    closes it before a later event of any of its keys is sent, so for the events of a key the time
    of a file's last change orders the files.

    Args:
        spark: the session.
        folder: the `path` of the destination.
    """
    found = [(file.stat().st_mtime_ns, file.name) for file in folder.rglob("*.jsonl")]
    files = spark.createDataFrame(
        [(name, number) for number, (_, name) in enumerate(sorted(found))],
        "file_name string, number long",
    )
    lines = (
        spark.read.schema(_LINES)
        .option("pathGlobFilter", "*.jsonl")
        .option("recursiveFileLookup", "true")
        .json(str(folder))
        .selectExpr(
            *("event_id", "event_type", "key", "headers['traceparent'] as traceparent"),
            *("payload", "lifecycle", "0 as stream", "0 as shard"),
            "_metadata.file_name",
            # Spark cuts large files into blocks and counts lines across those that it reads at
            # once, so the count stays below the size of a block.
            "_metadata.file_block_start + (monotonically_increasing_id() & 4294967295) as line",
        )
    )
    return lines.join(files.hint("broadcast"), "file_name").selectExpr(
        *("event_id", "event_type", "key", "traceparent", "payload", "lifecycle"),
        *("stream", "shard", "shiftleft(number, 40) + line as position"),
    )


def delivered_messages(
    spark: SparkSession, bootstrap: str, topics: Sequence[str], *, scratch: Path
) -> DataFrame:
    """Consume Kafka topics from their beginning to their end of now, with a consumer of our own.

    `stream` is the topic's number, `shard` the partition and `position` the offset: Kafka keeps
    order within a partition only, so that is where the events of a key can be compared.

    Args:
        spark: the session.
        bootstrap: the broker's address.
        topics: which topics.
        scratch: a folder of ours for what is read; an older one is replaced.

    Raises:
        ConsumerFailed: the broker stopped to answer.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    with pq.ParquetWriter(scratch / "messages.parquet", _MESSAGES) as writer:
        for number, topic in enumerate(topics):
            rows = (_row(message, number) for message in _messages(bootstrap, topic))
            while batch := list(itertools.islice(rows, _AT_ONCE)):
                writer.write_table(pa.Table.from_pylist(batch, schema=_MESSAGES))
    return spark.read.parquet(str(scratch))


def _messages(bootstrap: str, topic: str) -> Iterator[Message]:
    try:
        yield from consume_all(bootstrap, topic)
    except (KafkaException, TimeoutError) as error:
        cause = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise ConsumerFailed(f"Kafka at {bootstrap}, topic {topic}: {cause}") from error


def _row(message: Message, stream: int) -> dict[str, object]:
    given = cast("Sequence[tuple[str, bytes | None]]", message.headers() or ())
    headers = {name: _text(value) for name, value in given}
    lifecycle = headers.get(LIFECYCLE_HEADER)
    return {
        "event_id": headers.get(EVENT_ID_HEADER),
        "event_type": headers.get(EVENT_TYPE_HEADER),
        "key": _text(message.key()),
        "traceparent": headers.get("traceparent"),
        "payload": _text(message.value()),
        "lifecycle": None if lifecycle is None else int(lifecycle),
        "stream": stream,
        "shard": message.partition(),
        "position": message.offset(),
    }


def _text(value: bytes | str | None) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
