"""A session behind a Spark Connect server keeps the same promises as a local one."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from delta_outbox.core.errors import BadSettings
from delta_outbox.runtime.session import (
    check_session,
    end_own_session,
    kept,
    own_session,
    remote_session,
)
from delta_outbox.runtime.spark_settings import REQUIRED

pytestmark = pytest.mark.rest


def test_required_settings_are_in_force(spark: SparkSession):
    """The server's settings are checked through the connection."""
    check_session(spark)
    assert REQUIRED == {name: spark.conf.get(name) for name in REQUIRED}


def test_other_time_zone_is_refused(spark: SparkSession):
    """A remote session that somebody has moved to another time zone is refused."""
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        with pytest.raises(BadSettings, match="timestamps are UTC instants"):
            check_session(spark)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_arrow_tables_pass_unchanged(spark: SparkSession):
    """Nulls, bytes and maps go to the workers and back without a change."""
    table = pa.table(
        {
            "id": pa.array(["a", None, ""]),
            "payload": pa.array([b"\x00\xff", None, b""]),
            "headers": pa.array([[("k", "v")], None, []], pa.map_(pa.string(), pa.string())),
        }
    )

    def same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    frame = spark.createDataFrame(table)
    assert table.to_pylist() == frame.mapInArrow(same, frame.schema).toArrow().to_pylist()


def test_dbt_works_through_the_server(
    dbt: Callable[..., Any], spark: SparkSession, outbox_schema: str
):
    """With SPARK_REMOTE set, dbt in this process uses the same server."""
    dbt("run-operation", "create_logs")
    tables = {row.tableName for row in spark.sql(f"show tables in {outbox_schema}").collect()}
    assert "outbox_events" in tables


def test_a_query_is_analysed_when_its_rows_are_asked_for(spark: SparkSession):
    """Not once before, in a session of ours; whatever is no query happens at once."""
    own = own_session(spark)
    try:
        asked = own.sql("select number + 1 as more from lazily_known")
        with pytest.raises(AnalysisException, match="lazily_known"):
            asked.toArrow()
        asked = own.sql("select number + 1 as more from lazily_known")
        own.sql("create temporary view lazily_known as select 1 as number")
        assert [{"more": 2}] == asked.toArrow().to_pylist()
        with pytest.raises(AnalysisException, match="lazily_known"):
            own.sql("create temporary view lazily_known as select 2 as number")
        given = own.sql("select number from lazily_known where number = :at", {"at": 1})
        assert [{"number": 1}] == given.toArrow().to_pylist()
    finally:
        end_own_session(own)


def test_rows_are_kept_whatever_session_is_active(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    """Rows that the server keeps are found by who asked for them, on a thread without a session as
    beside the session of somebody else.
    """
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    monkeypatch.setattr(RemoteSession, "_default_session", None)
    with ThreadPoolExecutor(1) as thread:
        for _ in range(2):
            own = own_session(spark)
            rows = thread.submit(lambda one: kept(one.range(3)).collect(), own).result()
            assert [0, 1, 2] == [row["id"] for row in rows]
            assert None is thread.submit(RemoteSession.getActiveSession).result()
            end_own_session(own)
    assert 2 == kept(own_session(spark).range(2)).count()


def test_the_end_of_a_session_ends_no_thread_of_others(spark: SparkSession, remote_url: str):
    """Neither a session that is closed nor one that is merely collected, whenever that happens."""
    from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator

    assert 1 == spark.range(1).count()
    threads = ExecutePlanResponseReattachableIterator._release_thread_pool_instance
    assert threads is not None
    ended, forgotten, other = own_session(spark), own_session(spark), remote_session(remote_url)
    assert [1, 1, 1] == [one.range(1).count() for one in (ended, forgotten, other)]
    end_own_session(ended)
    seen = [weakref.ref(one) for one in (ended, forgotten, other)]
    del ended, forgotten, other
    gc.collect()
    assert [None, None, None] == [one() for one in seen]
    assert threads is ExecutePlanResponseReattachableIterator._release_thread_pool_instance
    assert 1 == spark.range(1).count()
