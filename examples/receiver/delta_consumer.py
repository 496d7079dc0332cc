"""Take delivered events into Delta tables, each once, however often they arrive."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from delta_outbox.consumer import Inbox, insert_new

INBOX = Inbox(table="shop.payments_inbox", horizon_days=7)
# Of the query: its checkpoint is named so. A new checkpoint counts batches from 0 again, and what
# Delta has seen of a writer it passes over without a word: a new checkpoint needs a new name.
WRITER = "payments-1"


def create(spark: SparkSession) -> None:
    """Create what is missing."""
    spark.sql("create schema if not exists shop")
    spark.sql(
        "create table if not exists shop.payments (event_id string, lifecycle int, "
        "customer string, cents bigint, sent_at timestamp, sent_date date) "
        "using delta partitioned by (sent_date)"
    )
    spark.sql(
        "create table if not exists shop.movements (customer string, cents bigint) using delta"
    )
    INBOX.create(spark)


def arrivals(spark: SparkSession, folder: str) -> DataFrame:
    """Read what a destination of the type jsonl was given, as it comes."""
    lines = "event_id string, lifecycle int, key string, payload string"
    read = spark.readStream.schema(lines).option("recursiveFileLookup", True).json(folder)
    return read.select(
        "event_id",
        "lifecycle",
        sf.col("key").alias("customer"),
        sf.get_json_object("payload", "$.cents").cast("bigint").alias("cents"),
        # Of Kafka: delta_outbox.consumer.with_identity(messages) instead.
        sf.col("_metadata.file_modification_time").alias("sent_at"),
    )


def take_in(batch: DataFrame, batch_id: int) -> None:
    """Keep the payments, and what each customer has paid."""
    insert_new(batch, into="shop.payments", horizon_days=7)
    INBOX.process(batch, lambda new: book(new, batch_id))


def book(new: DataFrame, batch_id: int) -> None:
    """Append a sum per customer; the second time Delta passes over it, by writer and batch."""
    sums = new.groupBy("customer").agg(sf.sum("cents").alias("cents"))
    writer = sums.write.format("delta").mode("append")
    writer.option("txnAppId", WRITER).option("txnVersion", batch_id).saveAsTable("shop.movements")


def start(spark: SparkSession, folder: str, checkpoints: str) -> StreamingQuery:
    """Take in what is there, batch by batch, and end."""
    create(spark)
    return (
        arrivals(spark, folder)
        .writeStream.foreachBatch(take_in)
        .option("checkpointLocation", f"{checkpoints}/{WRITER}")
        .trigger(availableNow=True)
        .start()
    )
