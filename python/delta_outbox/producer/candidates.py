"""The columns that a producer may give for an event, their types, and what is filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.producer.rejection import BATCH, Rejection, shown

_MAP: Final = pa.map_(pa.string(), pa.string())
_INSTANT: Final = pa.timestamp("us", tz="UTC")

COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "event_id": pa.string(),
    "event_type": pa.string(),
    "payload": pa.binary(),
    "created_at": _INSTANT,
    "ordering_key": pa.string(),
    "partition_key": pa.string(),
    "headers": _MAP,
    "metadata": _MAP,
    "available_at": _INSTANT,
    "ordinal": pa.int64(),
}
REQUIRED: Final = ("event_id", "event_type", "payload")
# A null in these is a value not given: the log fills it in.
DEFAULTED: Final = frozenset({"created_at", "ordinal"})
_OURS: Final = frozenset({"appended_at", "created_date"})


def normalise(table: pa.Table) -> tuple[pa.Table, list[Rejection]]:
    """Bring the given columns to the types of the log, in the order of the log.

    Returns:
        The columns that could be brought to their type, and a rejection for every other one,
        for every unknown one, and for every required one that is missing.
    """
    rejections = [
        _refused(name, "known_column", unknown_column(name))
        for name in dict.fromkeys(table.column_names)
        if name not in COLUMNS
    ]
    columns: dict[str, pa.ChunkedArray] = {}
    for name, target in COLUMNS.items():
        places = table.schema.get_all_field_indices(name)
        if len(places) > 1:
            rejections.append(_refused(name, "known_column", f"`{name}` is given more than once."))
        elif places:
            found = _cast(table.column(places[0]), target)
            if found is None:
                came = table.schema.field(places[0]).type
                rejections.append(_refused(name, "type", f"`{name}` {_EXPECTED[target]} {came}."))
            else:
                columns[name] = found
        elif name in REQUIRED:
            rejections.append(_refused(name, "required", f"the column `{name}` is missing."))
    return pa.table(columns), sorted(rejections)


def complete(given: pa.Table, *, now: datetime) -> pa.Table:
    """Fill in what the producer left out, so that all columns of the log are there that the log
    does not make of others.

    Args:
        given: rows as `normalise` returns them.
        now: becomes `appended_at`, and `created_at` where none was given.
    """
    rows = given.num_rows
    columns = {
        name: given[name] if name in given.column_names else pa.nulls(rows, target)
        for name, target in COLUMNS.items()
    }
    columns["created_at"] = pc.fill_null(columns["created_at"], pa.scalar(now, _INSTANT))
    if columns["ordinal"].null_count == rows:
        columns["ordinal"] = pa.array(range(rows), pa.int64())  # the order as given
    columns["appended_at"] = pa.repeat(pa.scalar(now, _INSTANT), rows)
    return pa.table(columns)


def _refused(name: str, rule: str, message: str) -> Rejection:
    return Rejection(line=BATCH, field=name, rule=rule, message=message)


def unknown_column(name: str) -> str:
    """Say why a column is refused."""
    if name in _OURS:
        return f"`{name}` is set by the log itself; leave it out."
    return f"{shown(name)} is not a column of the log. Known: {', '.join(COLUMNS)}."


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _is_map(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) and _is_text(kind.key_type) and _is_text(kind.item_type)


def _is_instant(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


_ACCEPTS: Final[Mapping[pa.DataType, Callable[[pa.DataType], bool]]] = {
    pa.string(): _is_text,
    pa.binary(): _is_bytes,
    _MAP: _is_map,
    _INSTANT: _is_instant,
    pa.int64(): pa.types.is_integer,
}
_EXPECTED: Final[Mapping[pa.DataType, str]] = {
    pa.string(): "must be text. Got:",
    pa.binary(): "must be binary (in SQL: cast(... as binary)). Got:",
    _MAP: "must be a map from text to text. Got:",
    _INSTANT: "must be a timestamp with a time zone, within the range of microseconds. Got:",
    pa.int64(): "must be a whole number of at most 64 bits. Got:",
}


def _cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray | None:
    """Bring a column to its type; None if its type does not fit.

    Instants finer than microseconds lose the rest, as everywhere in the log.
    """
    if not pa.types.is_null(column.type) and not _ACCEPTS[target](column.type):
        return None
    try:
        return column.cast(options=pc.CastOptions(target, allow_time_truncate=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
