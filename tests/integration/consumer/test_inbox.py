"""A Delta consumer takes every delivery in once: what it keeps, and what it does besides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import delta_consumer
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from delta_outbox.consumer.inbox import Inbox, NoIdentity, insert_new, with_identity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
COLUMNS = "event_id string, lifecycle int, sent_at timestamp, n int"

Given = tuple[str | None, int | None, float, int]


@pytest.fixture
def schema(spark: SparkSession, outbox_schema: str) -> str:
    """Return a schema for the consumer's tables."""
    spark.sql(f"create schema {outbox_schema}")
    return outbox_schema


def events(spark: SparkSession, *given: Given) -> DataFrame:
    """Return (event_id, lifecycle, days after the first, n)."""
    rows = [(one, life, NOW + timedelta(days=days), n) for one, life, days, n in given]
    return spark.createDataFrame(rows, COLUMNS)


def kept(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    """Return (event_id, lifecycle, n) of a table in order."""
    return sorted(
        tuple(row) for row in spark.table(table).select("event_id", "lifecycle", "n").collect()
    )


def files_of(spark: SparkSession, table: str, day: str) -> list[Path]:
    """Return the data files of a day."""
    [detail] = spark.sql(f"describe detail {table}").collect()
    return list(Path(detail["location"].removeprefix("file:")).glob(f"sent_date={day}/*.parquet"))


def test_a_table_takes_each_delivery_once(spark: SparkSession, schema: str) -> None:
    """Copies within a batch and of earlier batches are not inserted, a replay is; and however old
    the table, only days within the horizon are read.
    """
    table = f"{schema}.kept"
    spark.sql(
        f"create table {table} ({COLUMNS}, sent_date date) using delta partitioned by (sent_date)"
    )
    insert_new(events(spark, ("old", 0, -100, 0), ("a", 0, 0, 1), ("a", 0, 0, 1)), into=table)
    first = [("a", 0, 1), ("old", 0, 0)]
    assert first == kept(spark, table)
    for file in (old := files_of(spark, table, "2025-11-30")):
        file.rename(file.with_suffix(".away"))
    assert old
    late = events(spark, ("a", 0, 6, 2), ("b", 0, 6, 3), ("a", 1, 6, 4), ("b", 0, 6.1, 3))
    insert_new(late, into=table)
    insert_new(late, into=table)
    insert_new(late.limit(0), into=table)
    for file in old:
        file.with_suffix(".away").rename(file)
    assert sorted([*first, ("b", 0, 3), ("a", 1, 4)]) == kept(spark, table)


@pytest.mark.rest
def test_an_inbox_hands_each_delivery_on_once(spark: SparkSession, schema: str) -> None:
    """An effect gets what is new, once; what it failed on is handed to it again; where nothing is
    new it is not called; and only days within the horizon are read.
    """
    inbox = Inbox(table=f"{schema}.inbox", horizon_days=7)
    inbox.create(spark)
    inbox.create(spark)
    calls: list[list[tuple[Any, ...]]] = []

    def effect(new: DataFrame) -> None:
        calls.append(sorted((row["event_id"], row["lifecycle"]) for row in new.collect()))
        if len(calls) == 1:
            raise OSError("the effect has failed")

    batch = events(spark, ("a", 0, 0, 1), ("a", 0, 0, 1), ("old", 0, -100, 1))
    with pytest.raises(OSError, match="the effect has failed"):
        inbox.process(batch, effect)
    assert [2, 0] == [inbox.process(batch, effect) for _ in range(2)]
    assert [[("a", 0), ("old", 0)]] * 2 == calls
    for file in (old := files_of(spark, inbox.table, "2025-11-30")):
        file.unlink()
    assert old
    late = events(spark, ("a", 0, 7, 1), ("a", 1, 7, 1), ("c", 0, 7, 1))
    assert [2, 0] == [inbox.process(late, effect) for _ in range(2)]
    assert [("a", 1), ("c", 0)] == calls[2]
    assert 0 == inbox.process(late.limit(0), effect)
    assert 3 == len(calls)


@pytest.mark.parametrize("row", [(None, 0, 0, 1), ("a", None, 0, 1)])
def test_what_has_no_identity_is_refused(spark: SparkSession, schema: str, row: Given) -> None:
    """A row that cannot be told from others is neither taken in nor dropped without a word."""
    inbox = Inbox(table=f"{schema}.inbox")
    batch = events(spark, row, ("b", 0, 0, 1))
    with pytest.raises(NoIdentity, match="Got: 1 of 2 without"):
        inbox.process(batch, DataFrame.collect)
    with pytest.raises(NoIdentity, match="Got: 1 of 2 without"):
        insert_new(batch, into=f"{schema}.nowhere")


@pytest.mark.rest
def test_identity_is_read_from_headers_of_kafka(spark: SparkSession) -> None:
    """What Spark reads from Kafka gets event id, lifecycle and time; what came by another way has
    none.
    """
    ours = [("outbox-event-id", b"a"), ("x", None), ("outbox-lifecycle", b"2")]
    messages = spark.createDataFrame(
        [(b"1", NOW, ours), (b"2", NOW, [("x", b"y")]), (b"3", NOW, None)],
        "value binary, timestamp timestamp, headers array<struct<key: string, value: binary>>",
    )
    found = with_identity(messages).orderBy("value").select("event_id", "lifecycle", "sent_at")
    assert [("a", 2), (None, None), (None, None)] == [tuple(row)[:2] for row in found.collect()]
    assert 3 == found.where("sent_at = timestamp'2026-03-10 12:00:00Z'").count()


@pytest.fixture
def shop(spark: SparkSession) -> Iterator[None]:
    """Drop what the example makes."""
    yield
    spark.sql("drop schema if exists shop cascade")


@pytest.mark.rest
@pytest.mark.local
def test_the_example_books_every_payment_once(
    spark: SparkSession, shop: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example of a Delta consumer, ended between effect and record and with events delivered
    again, keeps and books every payment once, and a replay as one of its own.
    """
    folder = tmp_path / "delivered"
    folder.mkdir()

    def deliver(name: str, *payments: tuple[str, int, str, int]) -> None:
        lines = [
            {
                "event_id": one,
                "lifecycle": life,
                "key": who,
                "payload": json.dumps({"cents": cents}),
            }
            for one, life, who, cents in payments
        ]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text)

    def take_in() -> None:
        query = delta_consumer.start(spark, str(folder), str(tmp_path / "checkpoints"))
        query.awaitTermination()

    def crash(*_: object) -> None:
        raise RuntimeError("ended before it was recorded")

    deliver("1", ("p-1", 0, "ada", 100), ("p-2", 0, "bob", 20), ("p-1", 0, "ada", 100))
    with monkeypatch.context() as patched:
        patched.setattr(Inbox, "record", crash)
        with pytest.raises(StreamingQueryException, match="ended before it was recorded"):
            take_in()
    assert 2 == spark.table("shop.movements").count()
    take_in()
    deliver("2", ("p-2", 0, "bob", 20), ("p-3", 0, "ada", 5), ("p-1", 1, "ada", 100))
    take_in()
    sums = "select customer, sum(cents) as cents from shop.{} group by customer order by customer"
    expected = [("ada", 205), ("bob", 20)]
    for table in ("payments", "movements"):
        assert expected == [tuple(row) for row in spark.sql(sums.format(table)).collect()]
    assert 4 == spark.table("shop.payments").count()
