"""Our own commits, found again: an append is believed only after that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITS_LOOKED_AT: Final = 200  # of other writers and of maintenance, since our own


def is_committed(spark: SparkSession, table: str, mark: str) -> bool:
    """Say whether a commit that carries a mark is among the latest ones; its rows are all or none.

    Reading the last commit costs much less than reading rows.

    Args:
        spark: the session.
        table: the log.
        mark: the commit's userMetadata, unique to it.
    """
    for limit in (1, COMMITS_LOOKED_AT):
        commits = spark.sql(f"describe history {table} limit {limit}").collect()
        if any(commit["userMetadata"] == mark for commit in commits):
            return True
    return False
