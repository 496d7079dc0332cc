"""Appends through Spark, in few files."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from delta_outbox.core.byte_bounds import AT_ONCE
from delta_outbox.delta.frames import frame_of
from delta_outbox.runtime.home import HOME_SETTING, Home
from delta_outbox.runtime.query_mode import interpreted
from delta_outbox.runtime.session import spark_here

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHECKPOINT: Final = "outbox/checkpoint"
"""Writer id and tag of the commits without rows with which Spark makes a checkpoint."""
_ROWS_PER_FILE: Final = 200_000
_LARGE: Final = 64 * 1024**2  # bytes that Spark may hold at once


def append_by_spark(
    spark: SparkSession,
    log: str,
    rows: pa.Table | DataFrame,
    *,
    tag: str,
    numbered: tuple[str, int] | None = None,
) -> None:
    """Append rows through Spark. Under a number, a commit is made even of none.

    Args:
        spark: the session to write with.
        log: its full name.
        rows: all columns that a writer gives.
        tag: what the commit says of itself (`userMetadata`).
        numbered: the writer id and the number under which Delta takes it once.
    """
    with _framed(spark, rows) as frame:
        writer = frame.write.format("delta").mode("append").option("userMetadata", tag)
        if numbered is not None:
            app_id, number = numbered
            writer = writer.option("txnAppId", app_id).option("txnVersion", number)
        writer.saveAsTable(log)


@contextlib.contextmanager
def _framed(spark: SparkSession, rows: pa.Table | DataFrame) -> Iterator[DataFrame]:
    """Give rows as a DataFrame for a block, to be written in few files: few of them in small-query
    mode, large ones by way of a file, where Spark can read it, for otherwise it holds all of them
    in memory.
    """
    if not isinstance(rows, pa.Table):
        yield rows
        return
    files = max(1, rows.num_rows // _ROWS_PER_FILE)
    with interpreted(spark, rows.num_rows):
        if rows.nbytes <= _LARGE or spark_here(spark) is None:
            yield frame_of(spark, rows).coalesce(files)
            return
        home = spark.conf.get(HOME_SETTING, None)
        folder = Home(root=Path(home)).scratch if home else None  # emptied when a Spark starts
        with tempfile.TemporaryDirectory(prefix="outbox-append-", dir=folder) as made:
            path = str(Path(made) / "rows.parquet")
            at_once = max(1, AT_ONCE * rows.num_rows // rows.nbytes)
            pq.write_table(rows, path, row_group_size=at_once, use_dictionary=False)
            yield spark.read.parquet(path).coalesce(files)
