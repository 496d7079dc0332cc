"""The proof: what should have been delivered, from the flights table, against what was.

Nothing here looks at the outbox. The expected events are computed a second time, in another way
than in flights.py: the scheduled time comes from the local clock at the airport, not from the UTC
column, and a payload is compared by its values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from delta_outbox.demo.flights import DELAYED_FROM, TABLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EXPECTED: Final = f"""
with scheduled as (

    select
        *,
        to_utc_timestamp(
            make_timestamp(year, month, day, hour, minute, 0), 'America/New_York'
        ) as leaves_at
    from {TABLE}

),

told as (

    select
        *,
        explode(
            map_filter(
                map(
                    'cancelled', if(dep_time is null, leaves_at, null),
                    'delayed', if(
                        dep_delay >= {DELAYED_FROM},
                        timestampadd(minute, {DELAYED_FROM}, leaves_at),
                        null
                    ),
                    'departed', if(
                        dep_time is not null, timestampadd(minute, dep_delay, leaves_at), null
                    )
                ),
                (kind, at) -> at is not null
            )
        ) as (kind, at)
    from scheduled

),

named as (

    select
        *,
        format_string(
            'flight-%04d%02d%02d-%s%d-%s-%04d',
            year, month, day, carrier, flight, origin, hour * 100 + minute
        ) as flight_id
    from told

)

select
    flight_id || '-' || kind as event_id,
    'flight.' || kind as event_type,
    format_string('00-%s-%s-01', md5(flight_id), substr(sha1(flight_id), 1, 16)) as traceparent,
    carrier || flight as flight,
    tailnum as tail_number,
    origin,
    dest as destination,
    leaves_at as scheduled_departure,
    at as happened_at,
    if(kind = 'cancelled', null, dep_delay) as delay_minutes,
    distance as distance_miles
from named
"""

_PAYLOAD: Final = (
    "flight string, tail_number string, origin string, destination string, "
    "scheduled_departure timestamp, happened_at timestamp, delay_minutes int, distance_miles int"
)

# Other producers may use the same outbox: their events are none of our business.
_OURS: Final = "(event_id like 'flight-%' or event_type like 'flight.%')"

# A hash stands for the content: comparing eleven columns would carry them all through the join.
# The numbers between the columns tell a missing value from its neighbour's.
_CONTENT: Final = (
    "xxhash64(event_type, 1, {key}, 2, traceparent, 3, {payload}.flight, 4, {payload}.tail_number, "
    "5, {payload}.origin, 6, {payload}.destination, 7, {payload}.scheduled_departure, "
    "8, {payload}.happened_at, 9, {payload}.delay_minutes, 10, {payload}.distance_miles)"
)

_PROOF: Final = f"""
with expected_events as (
{_EXPECTED}
),

expected as (

    select
        event_id,
        tail_number as scope,
        happened_at,
        {_CONTENT.format(key="tail_number", payload="expected_events")} as content
    from expected_events

),

parsed as (

    select *, from_json(payload, '{_PAYLOAD}') as told
    from {{delivered}}
    where {_OURS}

),

delivered as (

    select
        event_id,
        lifecycle,
        stream,
        shard,
        position,
        {_CONTENT.format(key="key", payload="told")} as content
    from parsed

),

compared as (

    select
        coalesce(expected.event_id, delivered.event_id) as event_id,
        expected.event_id is not null as is_expected,
        delivered.event_id is not null as is_delivered,
        expected.content <> delivered.content as is_altered,
        expected.scope,
        expected.happened_at,
        delivered.lifecycle,
        delivered.stream,
        delivered.shard,
        delivered.position
    from expected
    full outer join delivered on expected.event_id = delivered.event_id

),

-- A consumer that leaves out what it has seen before gets each event at its first place.
events as (

    select
        event_id,
        scope,
        happened_at,
        is_expected,
        any(is_delivered) as is_delivered,
        count_if(is_delivered) as copies,
        bit_count(bit_or(shiftleft(1L, lifecycle))) as lifecycles,
        any(is_altered) as is_altered,
        min(stream) as stream,
        min(shard) as first_shard,
        max(shard) as last_shard,
        min(position) as position
    from compared
    group by event_id, scope, happened_at, is_expected

),

ordered as (

    select
        *,
        lag(struct(happened_at, event_id)) over places as previous,
        lag(first_shard, 1, first_shard) over places as previous_shard
    from events
    window places as (partition by scope, stream order by position)

)

select
    count_if(is_expected) as expected,
    sum(copies) as delivered,
    count_if(is_expected and not is_delivered) as missing,
    count_if(not is_expected) as unexpected,
    count_if(is_altered) as altered,
    sum(greatest(copies - lifecycles, 0)) as duplicates,
    count_if(
        is_expected and is_delivered and scope is not null
        and (
            previous > struct(happened_at, event_id)
            or first_shard <> previous_shard
            or first_shard <> last_shard
        )
    ) as out_of_order,
    count(distinct if(is_delivered, scope, null)) as scopes
from ordered
"""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What the comparison found, in events.

    Args:
        expected: that the flights table asks for.
        delivered: lines or messages about flights, every copy counted.
        missing: expected and not delivered.
        unexpected: delivered and not expected.
        altered: delivered with a type, key, trace or payload that the flight does not have.
        duplicates: copies beyond the first of an event and lifecycle; at-least-once allows them.
        out_of_order: that came after a later event of the same tail number.
        scopes: tail numbers whose order was compared.
        others: lines or messages that are not about flights, or torn by a crash.
    """

    expected: int
    delivered: int
    missing: int
    unexpected: int
    altered: int
    duplicates: int
    out_of_order: int
    scopes: int
    others: int

    @property
    def holds(self) -> bool:
        """Return whether every event arrived, as it is, in order, and nothing else did."""
        return not (self.missing or self.unexpected or self.altered or self.out_of_order)


def prove(spark: SparkSession, delivered: DataFrame) -> Proof:
    """Compare the flights table with what was delivered.

    Args:
        spark: the session in which `delivered` was read.
        delivered: as delivered.py returns it.
    """
    view = "outbox_demo_delivered"
    delivered.createOrReplaceTempView(view)
    row = spark.sql(_PROOF.replace("{delivered}", view)).first()
    others = spark.sql(f"select count_if(not coalesce({_OURS}, false)) as n from {view}").first()
    spark.catalog.dropTempView(view)
    assert row is not None
    assert others is not None
    found = {name: int(value or 0) for name, value in row.asDict().items()}
    return Proof(**found, others=int(others["n"]))
