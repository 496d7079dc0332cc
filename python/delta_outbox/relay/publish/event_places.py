"""Finds where in the event log the rows of deliveries lie, and how large their payloads are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.instants import FIRST_INSTANT, LAST_INSTANT
from delta_outbox.core.literals import text_literal
from delta_outbox.core.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_RANGES: Final = 16  # of created_at, when payloads are looked up


def rows_of_events(deliveries: pa.Table) -> str:
    """Return a condition that reads few files: ranges of created_at, and within them of ordinal or,
    where there are none, of event_id, which then decides on the order.

    One range over an old retry and the news of today would read all days between.

    Args:
        deliveries: columns of `claims.DELIVERIES`, at least one.
    """
    at = deliveries["created_at"].cast(pa.int64()).to_numpy()
    order = np.argsort(at, kind="stable")
    gaps = np.diff(at[order])
    wide = np.argsort(gaps, kind="stable")[::-1][: MAX_RANGES - 1]
    cuts = np.sort(wide[gaps[wide] > 0]) + 1
    ranges = []
    for part in np.split(order, cuts):
        condition = _between(int(at[part].min()), int(at[part].max()))
        its = deliveries.select(["ordinal", "event_id"]).take(pa.array(part))
        if its["ordinal"].null_count:
            ids = pc.min_max(its["event_id"]).as_py()
            first, last = text_literal(ids["min"]), text_literal(ids["max"])
            condition += f" and event_id between {first} and {last}"
        else:
            numbers = its["ordinal"].to_numpy()
            condition += f" and ordinal between {int(numbers.min())} and {int(numbers.max())}"
        ranges.append(f"({condition})")
    return " or ".join(ranges)


def _between(low: int, high: int) -> str:
    """Return a condition on created_at: at the end of what an outbox knows, a row of a log of
    format 1 may lie beyond what its delivery says.
    """
    first, last = f"timestamp_micros({low})", f"timestamp_micros({high})"
    conditions = []
    if low > FIRST_INSTANT:
        conditions.append(f"created_at >= {first} and created_date >= date({first})")
    if high < LAST_INSTANT:
        conditions.append(f"created_at <= {last} and created_date <= date({last})")
    return " and ".join(conditions) or "true"


def with_sizes(spark: SparkSession, tables: Tables, deliveries: pa.Table) -> pa.Table:
    """Return deliveries with the sizes of their payloads: where a row of the log does not say it,
    as in a log of format 1, the payload is looked at.

    Args:
        spark: the session to read with.
        tables: the names of the relations.
        deliveries: columns of `claims.DELIVERIES`, in any order, which is kept.
    """
    given = deliveries["payload_bytes"]
    if not given.null_count:
        return deliveries
    from pyspark.sql import functions as sf

    asked = deliveries.filter(given.is_null())
    ids = pa.table({"id": asked["event_id"].unique()})
    found = (
        spark.sql(
            "select event_id, octet_length(payload) as size "
            f"from {tables.events} where {rows_of_events(asked)}"
        )
        .join(sf.broadcast(spark.createDataFrame(ids)), sf.expr("event_id = id"))
        .groupBy("id")
        .agg(sf.max("size").alias("size"))
        .toArrow()
    )
    rows = pc.index_in(deliveries["event_id"], value_set=found["id"].combine_chunks())
    sizes = found["size"].combine_chunks().take(rows)
    index = deliveries.schema.get_field_index("payload_bytes")
    return deliveries.set_column(
        index, deliveries.schema.field(index), pc.coalesce(given, sizes.cast(given.type))
    )
