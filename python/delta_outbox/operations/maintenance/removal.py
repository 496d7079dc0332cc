"""Deletes rows with a marker that the invariants know, again when another writer wins."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from delta_outbox.core.errors import SequenceTaken
from delta_outbox.delta.delta_errors import is_conflict
from delta_outbox.delta.durability import sync_outbox
from delta_outbox.delta.log_writer import ATTEMPTS
from delta_outbox.delta.storage_errors import writing_to

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

# twin: macros/invariants/purge_marker.sql::purge_marker
MARKER: Final = "outbox/purge/"
"""How the user metadata of the commits begins."""

_USER_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
_APP_ID: Final = "spark.databricks.delta.write.txnAppId"
_VERSION: Final = "spark.databricks.delta.write.txnVersion"


def remove(
    spark: SparkSession,
    table: str,
    statement: str,
    *,
    tag: str,
    once: tuple[str, int] | None = None,
) -> int:
    """Run a DELETE, or a MERGE that only deletes, and return how many rows are gone.

    Args:
        spark: a session of its own: every commit of it carries the tag and the number meanwhile.
        table: its full name.
        statement: of our own making; the partitions that it names by literals are all that
            writers beside it can conflict over.
        tag: what follows `MARKER`.
        once: the writer id and the number under which Delta takes a MERGE, and skips it from then
            on: nothing is gone then.

    Raises:
        SequenceTaken: other writers were faster many times in a row.
        DiskFull: there is no room; nothing was deleted.
    """
    settings = {_USER_METADATA: MARKER + tag}
    if once is not None:
        settings |= {_APP_ID: once[0], _VERSION: str(once[1])}
    for _ in range(ATTEMPTS):
        try:
            for name, value in settings.items():
                spark.conf.set(name, value)
            with writing_to(table):
                row = spark.sql(statement).first()
        except Exception as error:
            if not is_conflict(error):
                raise
            continue
        finally:
            for name in settings:
                spark.conf.unset(name)
        sync_outbox(spark, table.rpartition(".")[0])
        count = 0 if row is None else max(0, int(row[0]))  # None: skipped
        logger.info("purged", extra={"table": table, "rows": count, "tag": tag})
        return count
    raise SequenceTaken(writer=MARKER + tag, number=ATTEMPTS)
