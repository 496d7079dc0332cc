"""Writes of few rows: to make what writes them fast takes longer than to write them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW: Final = 5_000
_MODE: Final = "spark.sql.codegen.factoryMode"
_INTERPRETED: Final = "NO_CODEGEN"


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
