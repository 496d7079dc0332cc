"""Appends commands to their log."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_outbox.core.failpoints import reach
from delta_outbox.core.tables import COMMANDS
from delta_outbox.delta.durability import sync_outbox
from delta_outbox.delta.log_writer import append_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_outbox.store.store import Store


def append_commands(outbox: Store, given: Sequence[Mapping[str, Any]] | DataFrame) -> None:
    """Append commands in one commit; before that, what they name is on the disk, and afterwards
    they are.

    Args:
        outbox: where to append.
        given: a row per command. A DataFrame has the columns of `COMMANDS`; in rows of Python, what
            is left out is NULL, and `requested_at` is now.

    Raises:
        DiskFull: there is no room; nothing was appended.
        NotWritable: the right to write is missing; nothing was appended.
        NotSynced: the disk did not take it; it may be there or not.
        ServerUnreachable: the server of the home has gone meanwhile; it may be there or not.
    """
    rows: pa.Table | DataFrame
    if isinstance(given, Sequence):
        now = outbox.clock.now()
        rows = pa.Table.from_pylist([{"requested_at": now, **row} for row in given], COMMANDS)
    else:
        rows = given
    schema = outbox.tables.schema
    sync_outbox(outbox.spark, schema)
    reach("command.before")
    append_rows(outbox.spark, outbox.tables.commands, rows, tag=f"command/{uuid.uuid4().hex}")
    sync_outbox(outbox.spark, schema)
    reach("command.after")
