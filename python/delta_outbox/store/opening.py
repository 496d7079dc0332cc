"""What opening an outbox is made of: the logs that are created or checked, and the SQL."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from delta_outbox.core.errors import FormatTooNew, FormatTooOld, NoOutboxHere
from delta_outbox.core.tables import FORMAT_PROPERTY, FORMAT_VERSION, LOGS, PROJECTION, Tables
from delta_outbox.delta.durability import sync_folder
from delta_outbox.delta.storage_places import LOCAL, Place, places_of
from delta_outbox.runtime.dbt import (
    CREATE,
    MIGRATE,
    check_result,
    compile_sql,
    run_dbt,
)
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.log_folder import configuration_of
from delta_outbox.runtime.session import spark_here
from delta_outbox.runtime.statements import INLINE, Statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

MADE: Final = (*LOGS, PROJECTION, "delivery_policies", "policy_rows", "invariant_violations")
"""The tables that dbt makes."""

_OF_COMMIT: Final = re.compile(r"\d{20}\.(?:json|checkpoint)")


def create_outbox(
    spark: SparkSession, home: Home, tables: Tables, *, single_driver: bool = False
) -> None:
    """Create what is missing: the logs, the projection and the views; bring logs that are there to
    the present format, with the constraints that all their rows keep. What the logs hold stays.

    Args:
        spark: the session that dbt uses; the one of this process.
        home: takes dbt's files.
        tables: the names of the relations.
        single_driver: the operator has promised that one driver alone writes.

    Raises:
        DbtFailed: dbt ended with errors.
        FormatTooNew: a newer release wrote the logs.
        StoragePrecondition: the logs lie where two drivers can both win a commit.
    """
    _drop_unmade(spark, tables)
    with contextlib.suppress(NoOutboxHere):
        try:
            check_logs(spark, tables)
        except FormatTooOld as error:
            logger.info("migrating", extra={"from": error.args[0]})
        check_result(run_dbt(MIGRATE, home=home, schema=tables.schema))
    promise = {"single_driver": True} if single_driver else {}
    check_result(run_dbt(CREATE, home=home, schema=tables.schema, variables=promise))
    sync_folder(home.root, what=home.root)


def _drop_unmade(spark: SparkSession, tables: Tables) -> None:
    """Drop tables that the catalog has and of which not even the first commit is there, because the
    power was lost while they were made: nobody would make them again.
    """
    if spark_here(spark) is None or not spark.catalog.databaseExists(tables.schema):
        return
    for place in places_of(spark, schema=tables.schema, names=MADE).values():
        log = place.path / "_delta_log"
        if place.scheme != LOCAL or not log.is_dir():  # a path that was misread would look as empty
            continue
        if not any(_OF_COMMIT.match(file.name) for file in log.iterdir()):
            logger.warning("unmade_table_dropped", extra={"table": place.table})
            spark.sql(f"drop table {place.table}")


def load_statements(home: Home, tables: Tables) -> Statements:
    """Return the SQL that dbt compiles for us, from the home where it is kept.

    Args:
        home: keeps what was compiled.
        tables: the names of the relations.
    """
    return Statements.parse(compile_sql(INLINE, home=home, schema=tables.schema))


def check_logs(spark: SparkSession, tables: Tables) -> None:
    """Refuse logs that are missing or of another format.

    Args:
        spark: the session.
        tables: the names of the relations.

    Raises:
        NoOutboxHere: a log is missing.
        FormatTooNew: a log's format is newer than this release knows.
        FormatTooOld: a log's format is older than this release writes.
    """
    if not spark.catalog.databaseExists(tables.schema):
        raise NoOutboxHere(where=f"schema {tables.schema}")
    places = places_of(spark, schema=tables.schema, names=LOGS)
    for name in LOGS:
        if name not in places:
            raise NoOutboxHere(where=f"table {tables[name]}")
        found = _properties(spark, places[name]).get(FORMAT_PROPERTY, "")
        if found == str(FORMAT_VERSION):
            continue
        if found.isdigit() and int(found) < FORMAT_VERSION:
            raise FormatTooOld(table=tables[name], found=found, needed=FORMAT_VERSION)
        raise FormatTooNew(table=tables[name], found=found or "none", supported=FORMAT_VERSION)


def _properties(spark: SparkSession, place: Place) -> Mapping[str, str]:
    """Return the properties of a table, from its newest commits where they are on this machine: to
    ask a cold Spark for those of all logs takes seconds.
    """
    if spark_here(spark) is not None and place.scheme == LOCAL:
        found = configuration_of(place.path / "_delta_log")
        if found is not None:
            return found
    rows = spark.sql(f"show tblproperties {place.table}").collect()
    return {row["key"]: row["value"] for row in rows}
