"""What opening an outbox is made of: the session, the logs that are created or checked, the SQL."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from delta_outbox.core.errors import FormatTooNew, FormatTooOld, NoOutboxHere
from delta_outbox.core.tables import FORMAT_PROPERTY, FORMAT_VERSION, LOGS, PROJECTION, Tables
from delta_outbox.delta.durability import sync_folder
from delta_outbox.delta.storage_places import LOCAL, places_of
from delta_outbox.runtime.dbt import (
    CREATE,
    MIGRATE,
    check_result,
    compile_sql,
    run_dbt,
)
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.served_home import find_served, remote_address
from delta_outbox.runtime.session import local_session, spark_here, stop_session, using_server
from delta_outbox.runtime.statements import INLINE, Statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

MADE: Final = (*LOGS, PROJECTION, "delivery_policies", "policy_rows", "invariant_violations")
"""The tables that dbt makes."""

_OF_COMMIT: Final = re.compile(r"\d{20}\.(?:json|checkpoint)")


@contextlib.contextmanager
def opened_spark(
    home: Home, *, short_lived: bool, record_classes: bool, debug: bool
) -> Iterator[SparkSession]:
    """Open the session that works on the outbox of a home: the one that SPARK_REMOTE names, else
    that of the server of this home, else a local one that takes the home for itself.

    Args:
        home: the home.
        short_lived: start fast and compute slower.
        record_classes: leave behind what makes later starts of Spark faster.
        debug: show what Spark prints, on standard error.

    Raises:
        HomeInUse: another process works in this home and does not serve it.
        ServerUnreachable: the server does not answer.
        TornCommit: the newest commit of a log is not whole.
    """
    served = find_served(home)
    address = remote_address(served)
    if address is not None:
        with using_server(address, is_here=served is not None and served.url == address) as spark:
            yield spark
        return
    spark = local_session(home, short_lived=short_lived, record_classes=record_classes, debug=debug)
    try:
        yield spark
    finally:
        stop_session()
        home.lock.release()


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
    shown = spark.sql(f"show tables in {tables.schema}").collect()
    existing = {row["tableName"] for row in shown}
    for name in LOGS:
        if name not in existing:
            raise NoOutboxHere(where=f"table {tables[name]}")
        properties = {
            row["key"]: row["value"]
            for row in spark.sql(f"show tblproperties {tables[name]}").collect()
        }
        found = properties.get(FORMAT_PROPERTY, "")
        if found == str(FORMAT_VERSION):
            continue
        if found.isdigit() and int(found) < FORMAT_VERSION:
            raise FormatTooOld(table=tables[name], found=found, needed=FORMAT_VERSION)
        raise FormatTooNew(table=tables[name], found=found or "none", supported=FORMAT_VERSION)
