"""Corrects the paths in the catalog of a home that was copied or moved.

The catalog keeps where each schema and each table lies as absolute paths. In a home that lies
elsewhere than it did they name the tables of the original, or none. So they are compared with
where the home is before Spark reads the first of them, and rewritten, all or none, in the
database that holds them; Hive's own `metatool -updateLocation` does the same.
"""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.core.errors import OutboxError
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

logger = logging.getLogger(__name__)

_SCHEME: Final = "file:"
_FOLDER: Final = "select DB_LOCATION_URI from DBS where NAME = 'default'"
# Where a schema and a table lie, and where Spark finds the data of a table.
_PLACES: Final = (
    ("DBS", "DB_LOCATION_URI", "1 = 1"),
    ("SDS", "LOCATION", "1 = 1"),
    ("SERDE_PARAMS", "PARAM_VALUE", "PARAM_KEY = 'path'"),
)
# What Derby says of a catalog whose creation was interrupted: no schema, no table.
_NOT_THERE_YET: Final = ("42Y07", "42X05")
_WRITTEN_LAST: Final = "service.properties"


class CatalogUnreadable(OutboxError):
    """The catalog of a home cannot be read: restore the home whole, from a back-up."""

    code = "CATALOG_UNREADABLE"
    remedy = (
        "Read logs/derby.log in the home. A home that was copied while something worked in it may "
        "be torn: copy it again while nothing runs, or restore the last back-up "
        "(docs/operating.md)."
    )


def follow_home(gateway: JavaGateway, home: Home) -> None:
    """Let the catalog of a home name the tables of this home, wherever the home was before.

    Args:
        gateway: to a JVM of this process in which no Spark has started; the caller holds the lock
            of the home.
        home: the home.

    Raises:
        CatalogUnreadable: the database of the catalog cannot be opened.
    """
    from py4j.protocol import Py4JJavaError

    remove_unfinished(home)
    if not home.metastore.is_dir():
        return
    jvm: Any = gateway.jvm
    try:
        driver = jvm.org.apache.derby.jdbc.EmbeddedDriver()
        url = f"jdbc:derby:;databaseName={home.metastore}"
        connection = driver.connect(url, jvm.java.util.Properties())
        try:
            _follow(connection, home)
        finally:
            connection.close()
    except Py4JJavaError as error:
        java: Any = error.java_exception
        state = getattr(java, "getSQLState", lambda: None)()
        if state not in _NOT_THERE_YET:
            message = f"The catalog of {home.root} cannot be read: {java.getMessage()}"
            # Not `from error`: to print it later would ask the JVM again.
            raise CatalogUnreadable(message) from None


def remove_unfinished(home: Home) -> None:
    """Remove a catalog whose creation was interrupted, so that it is made again.

    Derby opens no database without this file, which it writes last, and makes none where a folder
    is. Where there are tables the catalog was finished once: what is missing is for a back-up.

    Args:
        home: the home; the caller holds its lock.
    """
    if (
        home.metastore.is_dir()
        and not (home.metastore / _WRITTEN_LAST).exists()
        and not any(home.warehouse.iterdir())
    ):
        shutil.rmtree(home.metastore)


def _follow(connection: Any, home: Home) -> None:
    statement = connection.createStatement()
    found = statement.executeQuery(_FOLDER)
    before = str(found.getString(1)) if found.next() else None
    found.close()
    now = f"{_SCHEME}{home.warehouse}"
    if before is None or before == now:
        return
    connection.setAutoCommit(False)
    for table, column, rows in _PLACES:
        # Of `/a/b` not `/a/bc`: what follows must begin a name below it.
        update = connection.prepareStatement(
            f"update {table} set {column} = cast(? as varchar(4000)) || substr({column}, ?) "
            f"where {rows} and (substr({column}, 1, ?) = ? or {column} = ?)"
        )
        update.setString(1, now)
        update.setInt(2, _length(before) + 1)
        update.setInt(3, _length(before) + 1)
        update.setString(4, f"{before}/")
        update.setString(5, before)
        update.executeUpdate()
        update.close()
    connection.commit()
    logger.warning(
        "home_was_elsewhere",
        extra={"before": before.removeprefix(_SCHEME), "home": str(home.root)},
    )


def _length(text: str) -> int:
    """Return the length of a text as Java counts it."""
    return len(text.encode("utf-16-le")) // 2
