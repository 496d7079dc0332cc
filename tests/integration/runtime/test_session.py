"""The local session: its settings, its silence, and that nothing lies outside the home."""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from tests.integration.sockets import listening

from delta_outbox.core.errors import BadSettings, OutboxError
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.jvm import process_of
from delta_outbox.runtime.query_mode import interpreted, use_large_query_mode
from delta_outbox.runtime.session import check_session, local_session
from delta_outbox.runtime.spark_settings import REQUIRED

pytestmark = pytest.mark.local

NOON = dt.datetime(2026, 1, 2, 12, 0, 0, 1, tzinfo=dt.UTC)


def test_required_settings_are_in_force(spark: SparkSession):
    """A session of ours is in UTC and repeats neither stages nor, by speculation, tasks."""
    check_session(spark)
    assert REQUIRED == {name: spark.conf.get(name) for name in REQUIRED}


def test_other_time_zone_is_refused(spark: SparkSession):
    """A session that somebody has moved to another time zone is refused."""
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        with pytest.raises(BadSettings, match="timestamps are UTC instants"):
            check_session(spark)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_session_begins_in_small_query_mode(spark: SparkSession):
    """Whoever expects many has them computed as Spark does by default; what a session of somebody
    else has been set to stays.
    """
    names = ["codegen.factoryMode", "adaptive.enabled", "shuffle.partitions"]
    names.append("files.minPartitionNum")
    own, other = spark.newSession(), spark.newSession()

    def settings(session: SparkSession) -> list[str | None]:
        return [session.conf.get(f"spark.sql.{name}", None) for name in names]

    assert ["NO_CODEGEN", "false", "2", "1"] == settings(own)
    for _ in range(2):
        use_large_query_mode(own)
        assert ["FALLBACK", "true", "4", None] == settings(own)
    other.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    use_large_query_mode(other)
    assert ["CODEGEN_ONLY", "false", "2", "1"] == settings(other)
    assert ["NO_CODEGEN", "false", "2", "1"] == settings(spark)
    other.conf.set("spark.sql.shuffle.partitions", "200")
    with interpreted(other, 1):  # as another thread may write there meanwhile
        use_large_query_mode(other)
        assert ["NO_CODEGEN", "false", "200", "1"] == settings(other)
    assert ["CODEGEN_ONLY", "false", "200", "1"] == settings(other)


def test_delta_tables_survive_in_the_catalog(spark: SparkSession, home: Home, outbox_schema: str):
    """Tables are Delta tables below the home's warehouse, found by name."""
    spark.sql(f"create schema {outbox_schema}")
    spark.sql(f"create table {outbox_schema}.t (id int) using delta")
    spark.sql(f"insert into {outbox_schema}.t values (1), (2)")
    assert 2 == spark.table(f"{outbox_schema}.t").count()
    assert (home.warehouse / f"{outbox_schema}.db" / "t" / "_delta_log").is_dir()


def test_arrow_tables_pass_unchanged(spark: SparkSession):
    """Nulls, bytes, maps and UTC instants go to the workers and back without a change."""
    table = pa.table(
        {
            "id": pa.array(["a", None, ""]),
            "payload": pa.array([b"\x00\xff", None, b""]),
            "headers": pa.array([[("k", "v")], None, []], pa.map_(pa.string(), pa.string())),
            "at": pa.array([NOON, None, NOON], pa.timestamp("us", "UTC")),
        }
    )

    def same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    frame = spark.createDataFrame(table)
    returned = frame.mapInArrow(same, frame.schema).toArrow()
    assert table.to_pylist() == returned.to_pylist()


def test_workers_run_our_interpreter(spark: SparkSession):
    """Python workers use the virtual environment of the driver, so they have its packages."""

    def where(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    found = spark.range(1, numPartitions=1).mapInArrow(where, "python string").toArrow()
    assert [sys.executable] == found["python"].to_pylist()


def test_lock_is_shared_with_the_jvm(spark: SparkSession, home: Home):
    """The lock file names the driver and its JVM, which both hold it."""
    assert SparkContext._gateway is not None
    holder = home.lock.holder()
    assert holder is not None
    assert (os.getpid(), process_of(SparkContext._gateway).pid) == (holder.pid, holder.jvm_pid)


def test_second_session_in_a_process_is_refused(spark: SparkSession, tmp_path: Path):
    """A process has one local session; a second one is refused and leaves no lock behind."""
    other = Home(root=tmp_path / "other").create()
    with pytest.raises(OutboxError, match="has a SparkSession already"):
        local_session(other)
    assert not other.lock.held


def test_nothing_listens_beyond_this_machine(spark: SparkSession):
    """Every socket on which the session, its JVM and its workers listen is on loopback."""
    assert SparkContext._gateway is not None
    assert 4 == spark.range(4).mapInArrow(lambda batches: batches, "id bigint").count()
    found = listening(psutil.Process(process_of(SparkContext._gateway).pid), psutil.Process())
    assert found
    assert set(found) <= {"127.0.0.1", "::1"}


def test_logs_lie_in_the_home(spark: SparkSession, home: Home):
    """Spark's and Derby's logs are files of the home."""
    names = {path.name for path in home.logs.iterdir()}
    assert {"spark.log", "jvm.log", "derby.log"} <= names


def test_temporary_files_lie_in_the_home(spark: SparkSession, home: Home):
    """The JVM's temporary folder is the home's, so nothing is left behind in /tmp."""
    assert SparkContext._jvm is not None
    assert str(home.scratch) == SparkContext._jvm.java.lang.System.getProperty("java.io.tmpdir")
