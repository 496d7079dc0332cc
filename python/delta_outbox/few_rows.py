"""Few rows: to make what computes or writes them fast takes longer than to do so.

Local sessions of ours begin as for few rows, until somebody who expects many says so (decision
0028); that of `outbox serve` does not. One that computes as for many still writes few rows as few.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW: Final = 5_000
SHUFFLE_PARTS: Final = "spark.sql.shuffle.partitions"
USUAL_PARTS: Final = "4"
_MODE: Final = "spark.sql.codegen.factoryMode"
_INTERPRETED: Final = "NO_CODEGEN"
_ADAPTIVE: Final = "spark.sql.adaptive.enabled"
_LEAST_PARTS: Final = "spark.sql.files.minPartitionNum"

FEW_ROWS: Final = {
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
"""The settings of a session that begins as for few rows."""


def expect_many_rows(spark: SparkSession) -> None:
    """Let a session that computes as for few rows do so as for many; others stay.

    Args:
        spark: a session of our own.
    """
    # All of them: within `interpreted`, a session of any kind has the mode.
    if all(spark.conf.get(name, None) == value for name, value in FEW_ROWS.items()):
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
    usual = spark.conf.get(_MODE) if rows <= FEW else None
    # Where it is so already, by another thread maybe, that one will put back what is usual.
    if usual in (None, _INTERPRETED):
        yield
        return
    spark.conf.set(_MODE, _INTERPRETED)
    try:
        yield
    finally:
        spark.conf.set(_MODE, str(usual))
