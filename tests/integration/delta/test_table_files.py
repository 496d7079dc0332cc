"""What is told by the log of a table of its files, as a query tells it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement
from typing import Any

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.table_files import few_rows, have_files, may_hold_between

TABLE = "t_table_files.things"


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """Return a table with a checkpoint after every third commit."""
    spark.sql("create schema if not exists t_table_files")
    spark.sql(
        f"create table {TABLE} (name string, state string) using delta partitioned by (state) "
        "tblproperties ('delta.checkpointInterval' = '3')"
    )
    yield TABLE
    spark.sql("drop schema t_table_files cascade")


def taken(spark: SparkSession, table: str, steps: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Take steps, and yield each with the version that it has made."""
    history = CommitHistory(spark)
    for step in steps:
        spark.sql(step.format(table))
        newest = history.newest(table)
        assert newest is not None
        yield step, newest.version


@pytest.mark.local  # reads the files of a log
def test_a_log_tells_what_a_query_tells(spark: SparkSession, table: str) -> None:
    """At every version since the last checkpoint, for every partition; earlier, the log does not
    tell.
    """
    steps = (
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
    )
    for step, version in taken(spark, table, steps):
        for states in (("open",), ("over",), ("open", "over"), ("none",)):
            condition = " or ".join(f"state = '{state}'" for state in states)
            rows = spark.sql(f"select 1 from {table} where {condition}")
            told = have_files(spark, table, version=version, column="state", values=states)
            assert (not rows.isEmpty()) is told, (step, states)
    assert have_files(spark, table, version=1, column="state", values=("open",)) is None
    assert have_files(spark, table, version=version, column="kind", values=("x",)) is None


@pytest.mark.local
def test_a_log_tells_the_rows_that_a_query_tells(spark: SparkSession, table: str) -> None:
    """At every version since the last checkpoint, for every partition; more rows than are asked
    for, an old version, deletion vectors and instants that only Spark can read are left to a query.
    """
    things = f"{table}_typed"
    spark.sql(
        f"create table {things} (name string not null, number int, at timestamp, state string not "
        "null) using delta partitioned by (state) "
        "tblproperties ('delta.checkpointInterval' = '3')"
    )
    steps = (
        "insert into {} values ('a', 1, timestamp'2026-11-30 12:00:00.000001Z', 'open')",
        "insert into {} values ('b', null, null, 'over'), ('c', 3, null, 'open')",
        "update {} set number = 4 where name = 'c'",
        "delete from {} where name = 'a'",
        "insert into {} values ('d', 5, null, 'open')",
        "optimize {}",
    )
    for step, version in taken(spark, things, steps):
        for states in (("open",), ("over",), ("open", "over"), ("none",)):
            told = few_rows(spark, things, version=version, column="state", values=states, most=10)
            there = spark.table(things).where(sf.col("state").isin(*states)).toArrow()
            assert told is not None, (step, states)
            assert there.schema.names == told.schema.names
            assert there.sort_by("name").to_pylist() == told.sort_by("name").to_pylist(), step

    def asked(version: int, most: int = 10) -> object:
        return few_rows(spark, things, version=version, column="state", values=("open",), most=most)

    assert (None, None) == (asked(version, most=1), asked(1))
    there = spark.sql(f"select * from {things} version as of {version} where state = 'open'")
    names = there.toArrow()["name"].to_pylist()
    spark.sql(f"insert into {things} values ('new', 7, null, 'open')")
    earlier = few_rows(spark, things, version=version, column="state", values=("open",), most=10)
    assert earlier is not None
    assert sorted(names) == sorted(earlier["name"].to_pylist())
    for column in ("name", "kind"):
        assert (
            few_rows(spark, things, version=version, column=column, values=("a",), most=9) is None
        )
    old = "insert into {} values ('e', 6, timestamp'1582-01-01 00:00:00Z', 'open')"
    vectors = "alter table {} set tblproperties ('delta.enableDeletionVectors' = 'true')"
    for step, version in taken(spark, things, (old, "delete from {} where name = 'e'", vectors)):
        assert (asked(version) is not None) is step.startswith("delete"), step


@pytest.mark.local
def test_a_log_tells_the_rows_of_a_number(spark: SparkSession, table: str) -> None:
    """As the table is now, whatever became of the commit that had added them. Files that cannot
    have the number do not count as rows.
    """
    numbers = f"{table}_numbered"
    spark.sql(
        f"create table {numbers} (number bigint, plan string, state string not null) using delta "
        "partitioned by (state) tblproperties ('delta.checkpointInterval' = '3')"
    )
    steps = (
        "insert into {} values (1, 'a', 'open'), (2, 'b', 'open'), (3, 'c', 'open')",
        "insert into {} values (2, 'c', 'open'), (2, 'd', 'over'), (null, 'e', 'open')",
        "insert into {} values (9007199254740993, 'f', 'open')",
        "delete from {} where plan = 'b'",
        "optimize {}",
        "restore {} to version as of 3",
        "insert into {} values (3, 'g', 'open')",
    )

    def told(number: int, version: int, most: int = 9) -> list[Any] | None:
        rows = few_rows(
            spark,
            numbers,
            version=version,
            column="state",
            values=("open",),
            most=most,
            number=("number", number),
        )
        if rows is None:
            return None
        return rows.filter(pc.equal(rows["number"], number)).sort_by("plan").to_pylist()

    for step, version in taken(spark, numbers, steps):
        for number in (0, 1, 2, 3, 9007199254740992, 9007199254740993):
            there = spark.table(numbers).where(f"state = 'open' and number = {number}").toArrow()
            assert there.sort_by("plan").to_pylist() == told(number, version), (step, number)
    assert [] == told(9007199254740992, version, most=2)
    assert told(3, version, most=0) is None


LONG = "long-" * 20
TEXTS = ("", "a", "b", "k1", "k2", "z", "\u00e9", "\uffff", "\U0001f600", LONG, f"{LONG}x")


@pytest.mark.local
def test_a_log_tells_between_which_texts_nothing_lies(spark: SparkSession, table: str) -> None:
    """False is said only where a query finds nothing; and it is said, also of a checkpoint and of
    texts that Delta shortens in its statistics.
    """
    ruled_out = 0
    steps = (
        "insert into {} values ('k1', 'open'), ('k2', 'open')",
        f"insert into {{}} values ('{LONG}m', 'open')",
        "insert into {} values ('\U0001f600', 'open'), ('\u00e9', 'over')",
        "delete from {} where name = 'k1'",
        "insert into {} values (null, 'open')",
    )
    for step, version in taken(spark, table, steps):
        names = [row["name"].encode() for row in spark.table(table).collect() if row["name"]]
        for first, last in combinations_with_replacement(sorted(TEXTS, key=str.encode), 2):
            is_there = any(first.encode() <= name <= last.encode() for name in names)
            told = may_hold_between(
                spark, table, version=version, column="name", first=first, last=last
            )
            assert told or (told is False and not is_there), (step, first, last)
            ruled_out += not told
    assert ruled_out > len(TEXTS)
    # A partition has no statistics, and an old version no files that are told.
    assert may_hold_between(spark, table, version=version, column="state", first="a", last="b")
    assert may_hold_between(spark, table, version=0, column="name", first="a", last="b") is None
