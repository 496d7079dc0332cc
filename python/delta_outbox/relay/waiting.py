"""Keeps open deliveries that only this relay decides about, until they may be planned. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.lifecycle.claims import DELIVERIES, in_order
from delta_outbox.lifecycle.states import State

AT_ONCE: Final = datetime.min.replace(tzinfo=UTC)

ScopesOf = Callable[[pa.Table], pa.StringArray]


class Waiting:
    """What is open, in no claim, and not planned: it was requeued, or is not due."""

    def __init__(self) -> None:
        self._rows = DELIVERIES.empty_table()
        self.due_at: datetime | None = None
        """When the first of them may be due, or something planned go on; None if there is none."""

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def add(self, deliveries: pa.Table) -> None:
        """Add deliveries.

        Args:
            deliveries: columns of `claims.DELIVERIES`, and of `event_files.LOCATED` where it is
                known where they lie.
        """
        if not deliveries.num_rows:
            return
        self._rows = joined(self._rows, deliveries)
        available_at = deliveries["available_at"]
        first = AT_ONCE if available_at.null_count else pc.min(available_at).as_py()
        self.due_at = first if self.due_at is None else min(self.due_at, first)

    def let_go(self) -> None:
        """Note that what is planned and has to wait behind something else may go on at once."""
        self.due_at = AT_ONCE

    def clear(self) -> None:
        """Forget everything: the log is asked again."""
        self._rows, self.due_at = DELIVERIES.empty_table(), None

    def take(
        self, more: pa.Table, scopes_of: ScopesOf, *, now: datetime
    ) -> tuple[pa.Table, pa.StringArray]:
        """Take what may be planned, and keep the rest.

        What is due may be, unless something of its order scope that is not due comes before it.

        Args:
            more: further deliveries that are open and in no claim.
            scopes_of: gives the order scope of each delivery.
            now: the current instant.

        Returns:
            What may be planned, in order, and its order scopes.
        """
        table = in_order(joined(self._rows, more))
        scopes = scopes_of(table)
        waits = pc.fill_null(pc.greater(table["available_at"], now), False)
        self.clear()
        if not pc.any(waits).as_py():
            return table, scopes
        self.due_at = pc.min(table["available_at"].filter(waits)).as_py()
        may = pa.array(_goes_first(scopes, waits.to_numpy()))
        self._rows = table.filter(pc.invert(may))
        return table.filter(may), scopes.filter(may)


def joined(*tables: pa.Table) -> pa.Table:
    """Return the rows of tables of deliveries, of which some may know more columns.

    Args:
        tables: at least one.
    """
    given = [table for table in tables if table.num_rows] or [*tables[:1]]
    if len(given) == 1:
        return given[0]
    return pa.concat_tables(given, promote_options="default").unify_dictionaries()


def _goes_first(scopes: pa.StringArray, waits: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Say of each delivery whether neither it nor an earlier one of its order scope waits."""
    encoded = scopes.dictionary_encode()
    has_scope = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
    code = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    first = np.full(max(1, len(encoded.dictionary)), len(scopes), dtype=np.int64)
    holding = np.flatnonzero(waits & has_scope)
    np.minimum.at(first, code[holding], holding)
    blocked = has_scope & (np.arange(len(scopes)) > first[code])
    goes: npt.NDArray[np.bool_] = ~(waits | blocked)
    return goes


def requeued(deliveries: pa.Table, endings: pa.Table) -> pa.Table:
    """Return the deliveries of a claim that are open again, as they are after it.

    Args:
        deliveries: of the claim, as they were before it.
        endings: as `claims.ending_rows` makes them, one per delivery.
    """
    is_open = pc.equal(endings["to_state"], State.PENDING)
    if not pc.any(is_open).as_py():
        return deliveries.slice(0, 0)
    table, endings = deliveries.filter(is_open), endings.filter(is_open)
    after = {
        "attempts": endings["attempt"],
        "publish_attempts": endings["publish_attempts"],
        "crashes": endings["crashes"],
        "suspect": endings["suspect"],
        "available_at": endings["available_at"],
    }
    for name, column in after.items():
        field = DELIVERIES.field(name)
        index = table.schema.get_field_index(name)
        table = table.set_column(index, field, column.cast(field.type))
    return table
