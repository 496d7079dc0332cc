"""The query mode of a session: how Spark computes few rows, and how it computes many.

In small-query mode Spark uses one task and generates no Java, because both take longer than a few
rows do. Our local sessions begin in it, until somebody who expects many rows turns to large-query
mode (decision 0028); that of `outbox serve` begins in large-query mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_QUERY_ROWS: Final = 5_000
SHUFFLE_PARTS: Final = "spark.sql.shuffle.partitions"
USUAL_PARTS: Final = "4"
_MODE: Final = "spark.sql.codegen.factoryMode"
_INTERPRETED: Final = "NO_CODEGEN"
_ADAPTIVE: Final = "spark.sql.adaptive.enabled"
_LEAST_PARTS: Final = "spark.sql.files.minPartitionNum"

SMALL_QUERY_MODE: Final = {
    # What is asked of a few rows is soonest answered by one task, and as it was planned first: most
    # of the work is Delta's own queries about its log (measured: 10 % less CPU time of an append).
    _LEAST_PARTS: "1",
    _ADAPTIVE: "false",
    # Spark writes Java for every projection of every task, which takes longer than to apply it to a
    # few rows (measured: 23 s of CPU time instead of 37 for a drain of 40 events). What reads many
    # rows is compiled as ever (spark.sql.codegen.wholeStage).
    _MODE: _INTERPRETED,
    SHUFFLE_PARTS: "2",
}
"""The settings of small-query mode."""


def use_small_query_mode(spark: SparkSession) -> None:
    """Turn a session to small-query mode.

    Args:
        spark: a session of our own.
    """
    for name, value in SMALL_QUERY_MODE.items():
        spark.conf.set(name, value)


def use_large_query_mode(spark: SparkSession) -> None:
    """Turn a session that is in small-query mode to large-query mode; others stay as they are.

    Args:
        spark: a session of our own.
    """
    # All of them: within `interpreted`, a session of any kind has the mode.
    if all(spark.conf.get(name, None) == value for name, value in SMALL_QUERY_MODE.items()):
        spark.conf.unset(_LEAST_PARTS)
        spark.conf.set(_ADAPTIVE, "true")  # Spark's default, as is the next
        spark.conf.set(_MODE, "FALLBACK")
        spark.conf.set(SHUFFLE_PARTS, USUAL_PARTS)


@contextmanager
def interpreted(spark: SparkSession, rows: int) -> Iterator[None]:
    """Let tasks interpret projections within the block, if there are few rows (decision 0011).

    Most of the work is then Delta's own, which reads a few hundred rows of many fields; Spark would
    write Java for them in each task.

    Args:
        spark: the session that writes; what its other threads ask meanwhile is at worst slower.
        rows: that are written.
    """
    usual = spark.conf.get(_MODE) if rows <= SMALL_QUERY_ROWS else None
    # Where it is so already, by another thread maybe, that one will put back what is usual.
    if usual in (None, _INTERPRETED):
        yield
        return
    spark.conf.set(_MODE, _INTERPRETED)
    try:
        yield
    finally:
        spark.conf.set(_MODE, str(usual))
