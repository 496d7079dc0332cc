"""Makes DataFrames of Arrow tables, empty ones included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows as a DataFrame.

    Args:
        spark: the session.
        rows: any number. Through Spark Connect, a table without rows says nothing of its columns.
    """
    if rows.num_rows:
        return spark.createDataFrame(rows)
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame([], from_arrow_schema(rows.schema))
