"""The newest commit of a table, by its files where they are ours to read, else by Delta."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import pytest

from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.runtime.session import end_own_session, own_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest


@pytest.fixture
def table(spark: SparkSession, outbox_schema: str) -> str:
    """Return an empty table."""
    spark.sql(f"create schema {outbox_schema}")
    return _created(spark, f"{outbox_schema}.a_log")


@pytest.fixture
def other(spark: SparkSession) -> Iterator[SparkSession]:
    """Return another session, as another writer has it."""
    session = own_session(spark)
    yield session
    end_own_session(session)


def _created(spark: SparkSession, table: str) -> str:
    spark.sql(f"create table {table} (n int) using delta")
    return table


def _append(spark: SparkSession, table: str, tag: str) -> None:
    rows = spark.createDataFrame([(1,)], "n int").write.format("delta").mode("append")
    rows.option("userMetadata", tag).saveAsTable(table)


def test_files_and_delta_tell_the_same(spark: SparkSession, other: SparkSession, table: str):
    """Whoever commits, and however often: the newest commit is what Delta says it is."""
    history = CommitHistory(spark)
    for writer, count, version, tag in (
        (spark, 1, 1, "mark/0"),
        (other, 1, 2, "mark/0"),
        (other, 3, 5, "mark/2"),
        (spark, 0, 5, "mark/2"),
    ):
        for number in range(count):
            _append(writer, table, f"mark/{number}")
        newest, told = history.newest(table), next(history.commits(table))
        assert newest is not None
        assert (told.version, told.operation, told.tag) == (
            newest.version,
            newest.operation,
            newest.tag,
        )
        assert (version, tag) == (newest.version, newest.tag)


def test_a_table_made_anew_is_another_one(spark: SparkSession, table: str) -> None:
    """After a drop the known commit is gone; a new table of that name is read as it is."""
    history = CommitHistory(spark)
    _append(spark, table, "first")
    before = history.newest(table)
    spark.sql(f"drop table {table}")
    _created(spark, table)
    created = history.newest(table)
    _append(spark, table, "second")
    after = history.newest(table)
    assert before is not None
    assert created is not None
    assert after is not None
    assert (1, "first", 0, None, 1, "second") == (
        before.version,
        before.tag,
        created.version,
        created.tag,
        after.version,
        after.tag,
    )
    assert before != after


@pytest.mark.local
def test_a_log_is_found_wherever_it_lies(spark: SparkSession, table: str, tmp_path: Path) -> None:
    """Behind checkpoints, and in a folder of any name, the newest commit is found without a job."""
    elsewhere = f"{table}_elsewhere"
    location = (tmp_path / "a b%20c#d").as_uri()
    spark.sql(f"create table {elsewhere} (n int) using delta location '{location}'")
    spark.sql(f"alter table {elsewhere} set tblproperties (delta.checkpointInterval = 3)")
    for number in range(5):
        _append(spark, elsewhere, f"mark/{number}")
    before = _jobs(spark)
    newest = [CommitHistory(spark).newest(name) for name in (elsewhere, table)]
    assert before == _jobs(spark)
    assert [(6, "mark/4"), (0, None)] == [(one.version, one.tag) for one in newest if one]
    next(CommitHistory(spark).commits(table))
    assert before < _jobs(spark)  # as Delta is asked


def _jobs(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def test_removed_commits_are_asked_of_delta(spark: SparkSession, table: str) -> None:
    """When Delta has cleaned up beyond the commit that is known, it is asked again."""
    history = CommitHistory(spark)
    known = history.newest(table)
    spark.sql(f"alter table {table} set tblproperties (delta.checkpointInterval = 1)")
    _append(spark, table, "last")
    location = spark.sql(f"describe detail {table}").collect()[0]["location"]
    log = Path(urlparse(location).path) / "_delta_log"
    for version in (0, 1):
        (log / f"{version:020}.json").unlink()
    newest = history.newest(table)
    assert known is not None
    assert newest is not None
    assert (0, 2, "last") == (known.version, newest.version, newest.tag)
