"""Keeps what a consumer on Delta has taken in, by event id and lifecycle (docs/consumers.md).

`insert_new` is for an effect that is the rows themselves: effect and memory are one commit.
`Inbox` is for any other effect: it remembers what was done, after it was done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, ClassVar, Final

from delta_outbox.core.errors import OutboxError
from delta_outbox.delta.durability import sync_table
from delta_outbox.publishers.protocol import EVENT_ID_HEADER, LIFECYCLE_HEADER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

IDENTITY: Final = ("event_id", "lifecycle")
HORIZON_DAYS: Final = 7


class NoIdentity(OutboxError):
    """A row cannot be told from its copies: give each event_id, lifecycle and sent_at."""

    code: ClassVar[str] = "NO_IDENTITY"
    remedy = "Leave out what did not come through the outbox before you ask for what is new."


def with_identity(messages: DataFrame) -> DataFrame:
    """Add `event_id`, `lifecycle` and `sent_at` to what Spark reads from Kafka.

    Args:
        messages: of the source `kafka` with the option `includeHeaders`; a message without our
            headers has no identity.
    """
    from pyspark.sql import functions as sf

    def header(name: str) -> Column:
        found = sf.filter("headers", lambda one: one["key"] == name)
        return sf.try_element_at(found, sf.lit(1))["value"].cast("string")

    return messages.withColumns(
        {
            "event_id": header(EVENT_ID_HEADER),
            "lifecycle": header(LIFECYCLE_HEADER).cast("int"),
            "sent_at": sf.col("timestamp"),
        }
    )


def insert_new(events: DataFrame, *, into: str, horizon_days: int = HORIZON_DAYS) -> None:
    """Insert the events that a Delta table does not hold, each once, in one commit.

    The table is its own inbox: it has all columns of the events, and `sent_date date`, by which it
    is partitioned. Of two writers at once one fails with a conflict and is run again.

    Args:
        events: with `event_id`, `lifecycle`, `sent_at` and whatever else the table is to hold.
        into: name of the table.
        horizon_days: how far apart copies of an event may have been sent.

    Raises:
        NoIdentity: a row lacks one of the three.
    """
    from pyspark.sql import functions as sf

    window = _window(events, horizon_days)
    if window is None:
        return
    new = events.withColumn("sent_date", sf.to_date("sent_at")).dropDuplicates(list(IDENTITY))
    names = [f"`{name}`" for name in new.columns]
    events.sparkSession.sql(
        f"merge into {into} as held using {{new}} as new "
        f"on {window.condition('held.sent_date')} "
        "and held.event_id = new.event_id and held.lifecycle = new.lifecycle "
        f"when not matched then insert ({', '.join(names)}) "
        f"values ({', '.join(f'new.{name}' for name in names)})",
        new=new,
    )
    sync_table(events.sparkSession, into)


@dataclass(frozen=True, kw_only=True)
class Inbox:
    """The deliveries that one consumer is done with: a Delta table of their identities.

    Args:
        table: its name; each consumer has a table of its own.
        horizon_days: how far apart copies of an event may have been sent.
    """

    table: str
    horizon_days: int = HORIZON_DAYS

    def create(self, spark: SparkSession) -> None:
        """Create the table if it is not there."""
        spark.sql(
            f"create table if not exists {self.table} (event_id string not null, "
            "lifecycle int not null, sent_at timestamp not null, sent_date date not null) "
            "using delta partitioned by (sent_date)"
        )

    def process(self, events: DataFrame, effect: Callable[[DataFrame], object]) -> int:
        """Hand the events that are new to an effect, then record them; return how many there were.

        A crash between the two repeats the effect with the same events, so it must be one that
        does no harm the second time.

        Args:
            events: with `event_id`, `lifecycle` and `sent_at`.
            effect: called once with the new events, not at all if there are none.

        Raises:
            NoIdentity: a row lacks one of the three.
        """
        # Effect and record see the same rows, whatever the source and the inbox do meanwhile.
        new = self.unseen(events).localCheckpoint()
        count = new.count()
        if count:
            effect(new)
            # A power cut must not take the effect and leave the word that it was done.
            sync_table(events.sparkSession, self.table)
            self.record(new)
        return count

    def unseen(self, events: DataFrame) -> DataFrame:
        """Return one row of each delivery that is not recorded.

        Args:
            events: with `event_id`, `lifecycle` and `sent_at`.

        Raises:
            NoIdentity: a row lacks one of the three.
        """
        window = _window(events, self.horizon_days)
        if window is None:
            return events.limit(0)
        seen = events.sparkSession.table(self.table).where(window.condition("sent_date"))
        firsts = events.dropDuplicates(list(IDENTITY))
        return firsts.join(seen.select(*IDENTITY), list(IDENTITY), "left_anti")

    def record(self, events: DataFrame) -> None:
        """Record deliveries; to record one again changes nothing.

        Args:
            events: with `event_id`, `lifecycle` and `sent_at`.
        """
        from pyspark.sql import functions as sf

        events.select(
            "event_id",
            sf.col("lifecycle").cast("int").alias("lifecycle"),
            "sent_at",
            sf.to_date("sent_at").alias("sent_date"),
        ).coalesce(1).write.format("delta").mode("append").saveAsTable(self.table)
        sync_table(events.sparkSession, self.table)


@dataclass(frozen=True, kw_only=True)
class _Window:
    """The days in which copies of a batch may have been sent."""

    first: date
    last: date

    def condition(self, column: str) -> str:
        """Return the condition by which other days are not read."""
        return f"{column} between date'{self.first}' and date'{self.last}'"


def _window(events: DataFrame, horizon_days: int) -> _Window | None:
    """Return the days around a batch, None if it is empty."""
    from pyspark.sql import functions as sf

    lacks = sf.col("event_id").isNull() | sf.col("lifecycle").isNull() | sf.col("sent_at").isNull()
    [found] = events.select(
        sf.count(sf.lit(1)).alias("rows"),
        sf.count_if(lacks).alias("lacking"),
        sf.min(sf.to_date("sent_at")).alias("first"),
        sf.max(sf.to_date("sent_at")).alias("last"),
    ).collect()
    if found["lacking"]:
        raise NoIdentity(
            f"inbox: every row must have event_id, lifecycle and sent_at. "
            f"Got: {found['lacking']} of {found['rows']} without."
        )
    if not found["rows"]:
        return None
    # One day more: a session in another time zone dates the same instant a day off.
    reach = timedelta(days=horizon_days + 1)
    return _Window(first=found["first"] - reach, last=found["last"] + reach)
