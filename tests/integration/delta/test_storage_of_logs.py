"""Where the logs of an outbox lie, as the catalog says, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from delta_outbox.api import Outbox
from delta_outbox.core.errors import StoragePrecondition
from delta_outbox.core.tables import LOGS, Tables
from delta_outbox.delta.storage_places import check_storage, places_of
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.statements import Statements

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult

pytestmark = pytest.mark.local


def test_a_log_with_a_location_of_its_own_is_found(
    spark: SparkSession, home: Home, outbox_schema: str, tmp_path: Path
):
    """Logs in the warehouse of the home are taken for that home alone; one log elsewhere, by its
    own location or that of its schema, is refused.
    """
    tables, names = Tables(schema=outbox_schema), (*LOGS, "outbox_state")
    spark.sql(f"create schema {outbox_schema}")
    for name in names:
        spark.sql(f"create table {tables[name]} (id int) using delta")
    places = check_storage(spark, schema=outbox_schema, home=home, single_driver=False)
    assert places_of(spark, schema=outbox_schema, names=names) == places
    assert set(names) == set(places)
    with pytest.raises(StoragePrecondition, match="not of this home"):
        check_storage(spark, schema=outbox_schema, home=None, single_driver=True)
    spark.sql(f"drop table {tables['outbox_relays']}")
    elsewhere = tmp_path / "else where"
    relays = f"create table {tables['outbox_relays']} (id int) using delta location"
    spark.sql(f"{relays} '{elsewhere}'")
    with pytest.raises(StoragePrecondition, match="outbox_relays"):
        check_storage(spark, schema=outbox_schema, home=home, single_driver=False)


def test_a_schema_with_a_location_of_its_own_is_refused(
    spark: SparkSession, home: Home, outbox_schema: str, tmp_path: Path
):
    """A schema that lies elsewhere takes its logs with it."""
    tables = Tables(schema=outbox_schema)
    spark.sql(f"create schema {outbox_schema} location '{tmp_path / 'db'}'")
    for name in LOGS:
        spark.sql(f"create table {tables[name]} (id int) using delta")
    with pytest.raises(StoragePrecondition):
        check_storage(spark, schema=outbox_schema, home=home, single_driver=False)
    with pytest.raises(StoragePrecondition, match="must lie in the warehouse of this home, "):
        Outbox(spark, tables=tables, statements=Statements(texts={}), home=home)


@pytest.mark.rest
def test_dbt_refuses_it_too(
    spark: SparkSession,
    home: Home,
    outbox_schema: str,
    tmp_path: Path,
    dbt: Callable[..., dbtRunnerResult],
):
    """A dbt takes logs in the warehouse of the home that its Spark was started for, new and there
    already; it makes none elsewhere, and writes to none.
    """
    dbt("run-operation", "create_logs")
    dbt("run-operation", "create_logs")
    spark.sql(f"drop schema {outbox_schema} cascade")
    spark.sql(f"create schema {outbox_schema} location '{tmp_path / 'db'}'")
    for _ in range(2):
        with pytest.raises(StoragePrecondition, match="must lie in the warehouse") as caught:
            dbt("run-operation", "create_logs")
        assert str(home.warehouse) in str(caught.value)
        assert "outbox serve" in str(caught.value)
    with pytest.raises(StoragePrecondition, match="must lie in the warehouse"):
        dbt("run", "--select", "outbox_state")
