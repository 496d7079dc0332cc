"""Answers questions about an outbox: counts, freshness, relays, listings.

Reads only what was committed and projected: refresh first. Everything here works on a classic
session and through Spark Connect. Values reach Spark as literals of the DataFrame API, never as
text; instants come back as ISO 8601 in UTC, ready for JSON.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from delta_outbox.core.globs import glob_to_regex
from delta_outbox.core.instants import micros
from delta_outbox.lifecycle.states import State
from delta_outbox.operations.inspection_filter import Filter
from delta_outbox.store.heartbeat import ALIVE_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_outbox.store.store import Store

LISTED: Final = (
    "event_id",
    "event_type",
    "ordering_key",
    "partition_key",
    "state",
    "attempts",
    "last_error",
    "created_at",
    "available_at",
    "claimed_at",
    "claimed_by",
    "published_at",
    "destination",
    "lifecycle",
    "publish_attempts",
    "crashes",
    "claim_id",
    "lease_expires_at",
    "appended_at",
    "changed_at",
    "reason",
    "outcome",
    "policy_version",
    "arrival",
)
"""The columns of a delivery that may be shown to anybody: neither payload nor headers."""

SELF_TOLD: Final = ("batch_size", "batch_bytes", "workflows_problem")
"""What a relay takes at once, and why tasks wait or go on by former workflows."""

_ISO: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"


def counts(outbox: Store) -> dict[str, int]:
    """Return the number of deliveries in each state."""
    return counts_and_age(outbox)[0]


def counts_and_age(outbox: Store) -> tuple[dict[str, int], float | None]:
    """Return the number of deliveries in each state, and the age of the oldest waiting event in
    seconds, from its created_at; None if none waits.

    What is published, all of the past, is what the others leave: Delta knows from its log how many
    rows a table has, but not (as of version 4) how many a partition has.
    """
    table = outbox.tables.state
    at = f"{table} version as of {outbox.projection.latest_version(table)}"
    published = State.PUBLISHED.value
    rows = outbox.spark.sql(
        "select state, count(*) as deliveries, unix_micros(min(created_at)) as oldest "
        f"from {at} where state <> '{published}' group by state "
        f"union all select '', count(*), null from {at}"
    ).collect()
    found = {row["state"]: int(row["deliveries"]) for row in rows}
    everything = found.pop("")
    found[published] = everything - sum(found.values())
    oldest = next((row["oldest"] for row in rows if row["state"] == State.PENDING.value), None)
    age = None if oldest is None else max(0.0, outbox.clock.now().timestamp() - int(oldest) / 1e6)
    return {state.value: found.get(state.value, 0) for state in State}, age


def open_items(outbox: Store) -> int:
    """Return how many items of workflows wait for somebody."""
    from delta_outbox.lifecycle.claims import OPEN_ITEM

    rows = outbox.spark.sql(
        f"select count(*) as items from {outbox.tables.state} where {OPEN_ITEM}"
    ).collect()
    return int(rows[0]["items"])


def freshness(outbox: Store) -> dict[str, object] | None:
    """Return how far the projection has seen the logs, and since when; None before its start."""
    rows = rows_of(outbox.spark.table(outbox.tables["outbox_freshness"]))
    return rows[0] if rows else None


def destinations(outbox: Store) -> list[dict[str, object]]:
    """Return the destinations: paused or not, how their breakers stand, what limits they have."""
    limits = {name: asdict(one.limits) for name, one in outbox.settings.publishers.items()}
    shown = rows_of(outbox.spark.table(outbox.tables["outbox_destinations"]))
    shown.sort(key=lambda row: str(row["destination"]))
    return [row | {"limits": limits.get(str(row["destination"]))} for row in shown]


def relays_alive(outbox: Store) -> list[dict[str, object]]:
    """Return the relays whose last word is not their end and at most `ALIVE_SECONDS` old.

    What they say of themselves (`SELF_TOLD`) is null where they work elsewhere.
    """
    from pyspark.sql import functions as F  # noqa: N812

    since = outbox.clock.now() - timedelta(seconds=ALIVE_SECONDS)
    beats = outbox.spark.table(outbox.tables.relays).where(
        # The date only saves reading old partitions.
        (F.col("beat_date") >= F.to_date(instant(since))) & (F.col("at") >= instant(since))
    )
    found = rows_of(
        beats.select("relay_id", "kind", "lanes", F.col("at").alias("last_beat_at"), "version")
    )
    # Of two words at the same instant the end is the last.
    found.sort(key=lambda row: (str(row["last_beat_at"]), row["kind"] == "stopped"))
    last = {str(row["relay_id"]): row for row in found}
    presence = outbox.presence()
    alive = [
        {name: value for name, value in row.items() if name != "kind"}
        for _, row in sorted(last.items())
        if row["kind"] != "stopped"
    ]
    for row in alive:
        says = presence.words_of(str(row["relay_id"]))
        row |= {name: says.get(name) for name in SELF_TOLD}
    return alive


def list_deliveries(outbox: Store, filter_: Filter) -> tuple[list[dict[str, object]], bool]:
    """Return the deliveries that a filter selects, and whether there are more than its limit.

    Args:
        outbox: where to look.
        filter_: what to select, how to sort, how many at most.
    """
    selected = outbox.spark.table(outbox.tables.state)
    for condition in _conditions(filter_):
        selected = selected.where(condition)
    order = _order(filter_, outbox.statements.texts["position"])
    rows = rows_of(selected.orderBy(*order).limit(filter_.limit + 1).select(*LISTED))
    return rows[: filter_.limit], len(rows) > filter_.limit


def _conditions(filter_: Filter) -> list[Column]:
    from pyspark.sql import functions as F  # noqa: N812

    conditions = []
    if filter_.states:
        conditions.append(F.col("state").isin([state.value for state in filter_.states]))
    if filter_.event_type is not None:
        conditions.append(F.col("event_type").rlike(glob_to_regex(filter_.event_type)))
    if filter_.ordering_key is not None:
        conditions.append(F.col("ordering_key") == F.lit(filter_.ordering_key))
    if filter_.since is not None:
        conditions.append(F.col("created_at") >= instant(filter_.since))
    if filter_.until is not None:
        conditions.append(F.col("created_at") < instant(filter_.until))
    if filter_.min_attempts:
        conditions.append(F.col("attempts") >= F.lit(filter_.min_attempts))
    return conditions


def _order(filter_: Filter, position: str) -> list[Column]:
    from pyspark.sql import functions as F  # noqa: N812

    column = F.col(filter_.sort.column)
    first = column.desc_nulls_last() if filter_.sort.descending else column.asc_nulls_last()
    # What is equal comes in the order of the log; the last one makes the order total.
    return [first, F.expr(position), F.col("destination")]


def instant(value: datetime) -> Column:
    """Return an aware instant as a literal, independent of every session's time zone.

    Args:
        value: the instant.
    """
    from pyspark.sql import functions as F  # noqa: N812

    return F.timestamp_micros(F.lit(micros(value)))


def rows_of(frame: DataFrame) -> list[dict[str, object]]:
    """Collect a few rows; instants and dates become text, as JSON shows them.

    Spark writes the text: Python's own datetime ends with the year 9999, and a plain SQL
    producer can go beyond.
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import DateType, TimestampType

    columns = []
    for field in frame.schema.fields:
        column = F.col(field.name)
        if isinstance(field.dataType, TimestampType):
            column = F.date_format(column, _ISO)
        elif isinstance(field.dataType, DateType):
            column = column.cast("string")
        columns.append(column.alias(field.name))
    return [row.asDict(recursive=True) for row in frame.select(*columns).collect()]
