"""Appends commands to their log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_outbox.core.failpoints import reach
from delta_outbox.delta.durability import sync_outbox
from delta_outbox.delta.storage_errors import writing_to

if TYPE_CHECKING:
    from delta_outbox.store.store import Store


def append_command(outbox: Store, statement: str) -> None:
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
