"""Appends commands to their log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_outbox.failpoints import reach
from delta_outbox.storage import writing_to
from delta_outbox.synced import sync_outbox

if TYPE_CHECKING:
    from delta_outbox.outbox import Outbox


def append_command(outbox: Outbox, statement: str) -> None:
    """Append commands; before that, what they name is on the disk, and afterwards they are.

    Args:
        outbox: where to append.
        statement: an INSERT into the command log.

    Raises:
        DiskFull: there is no room; nothing was appended.
        NotWritable: the right to write is missing; nothing was appended.
        NotSynced: the disk did not take it; it may be there or not.
    """
    schema = outbox.tables.schema
    sync_outbox(outbox.spark, schema)
    reach("command.before")
    with writing_to(outbox.tables.commands):
        outbox.spark.sql(statement)
    sync_outbox(outbox.spark, schema)
    reach("command.after")
