"""The heartbeat of a relay, and who else is alive."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from delta_outbox import __version__
from delta_outbox.clock import Clock
from delta_outbox.instants import instant_literal
from delta_outbox.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

BEAT_SECONDS: Final = 10.0
ALIVE_SECONDS: Final = 30.0  # without a beat a relay no longer counts as alive


class Heartbeat:
    """Says that a relay is alive. Ownership of a lane is advice; the expected sequence is the rule.

    Args:
        spark: the session.
        tables: the names of the relations.
        relay_id: whose heart.
        clock: the time.
    """

    def __init__(self, spark: SparkSession, tables: Tables, *, relay_id: str, clock: Clock) -> None:
        """Beat only when told."""
        self._spark = spark
        self._tables = tables
        self._relay_id = relay_id
        self._clock = clock
        self._last = float("-inf")

    def beat(self, kind: str = "alive") -> bool:
        """Append a beat, at most one in `BEAT_SECONDS` unless it starts or stops.

        Args:
            kind: started, alive or stopped.

        Returns:
            Whether a beat was due.
        """
        if kind == "alive" and self._clock.monotonic() - self._last < BEAT_SECONDS:
            return False
        at = instant_literal(self._clock.now())
        self._spark.sql(
            f"insert into {self._tables.relays} (relay_id, kind, lanes, at, version) "
            f"values ('{self._relay_id}', '{kind}', array(0), {at}, '{__version__}')"
        )
        self._last = self._clock.monotonic()
        return True

    def earlier(self) -> list[str]:
        """Return the other relays that are alive and began before this one.

        The start of each is read from the table, so all relays see the same order.
        """
        now = self._clock.now()
        living = living_relays(self._spark, self._tables, now=now)
        mine = (living.get(self._relay_id, now), self._relay_id)
        return [relay_id for relay_id, began in living.items() if (began, relay_id) < mine]


def living_relays(spark: SparkSession, tables: Tables, *, now: datetime) -> dict[str, datetime]:
    """Return the relays that are alive, and when each was first heard of.

    Args:
        spark: the session.
        tables: the names of the relations.
        now: the current instant.
    """
    since = now - timedelta(seconds=ALIVE_SECONDS)
    rows = spark.sql(
        "select relay_id, min(at) as first, max(at) as last, max_by(kind, at) as kind "
        f"from {tables.relays} where beat_date >= date'{since.date()}' group by relay_id"
    ).toArrow()
    return {
        row["relay_id"]: row["first"]
        for row in rows.to_pylist()
        if row["kind"] != "stopped" and row["last"] >= since
    }
