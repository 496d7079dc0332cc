"""Whether partitions have files, told by the log of a table as a query tells it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.partition_files import have_files

TABLE = "t_partition_files.things"


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """Return a table with a checkpoint after every third commit."""
    spark.sql("create schema if not exists t_partition_files")
    spark.sql(
        f"create table {TABLE} (name string, state string) using delta partitioned by (state) "
        "tblproperties ('delta.checkpointInterval' = '3')"
    )
    yield TABLE
    spark.sql("drop schema t_partition_files cascade")


@pytest.mark.local  # reads the files of a log
def test_a_log_tells_what_a_query_tells(spark: SparkSession, table: str) -> None:
    """At every version since the last checkpoint, for every partition; earlier, the log does not
    tell.
    """
    history = CommitHistory(spark)
    for step in (
        "insert into {} values ('a', 'open'), ('b', 'over')",
        "insert into {} values ('c', 'open')",
        "update {} set name = 'd' where name = 'c'",
        "delete from {} where state = 'open'",
        "insert into {} values ('e', null)",
        "alter table {} set tblproperties ('delta.enableDeletionVectors' = 'true')",
        "insert into {} values ('f', 'open'), ('g', 'open')",
        "delete from {} where name = 'f'",
        "restore {} to version as of 4",
        "insert into {} values ('h', 'open')",
    ):
        spark.sql(step.format(table))
        newest = history.newest(table)
        assert newest is not None
        version = newest.version
        for states in (("open",), ("over",), ("open", "over"), ("none",)):
            condition = " or ".join(f"state = '{state}'" for state in states)
            rows = spark.sql(f"select 1 from {table} where {condition}")
            told = have_files(spark, table, version=version, column="state", values=states)
            assert (not rows.isEmpty()) is told, (step, states)
    assert have_files(spark, table, version=1, column="state", values=("open",)) is None
    assert have_files(spark, table, version=version, column="kind", values=("x",)) is None
