"""Reads events by Arrow from the data files of their log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_outbox.core.arrow import known, nearest
from delta_outbox.delta.files.added_files import AddedFile
from delta_outbox.delta.files.payload_files import PAYLOAD_BYTES, payload_lengths
from delta_outbox.lifecycle.claims import DELIVERIES

FILE: Final = "file"
ROW: Final = "row"
LOCATED: Final = pa.schema(
    [
        *DELIVERIES,
        (FILE, pa.dictionary(pa.int32(), pa.string())),
        (ROW, pa.int64()),
    ]
)
"""Deliveries of events that nothing has happened to, and where each event lies: the file and the
number of its row there, from 0."""

_INSTANT: Final = pa.timestamp("us", tz="UTC")
NARROW: Final = (
    *("event_id", "event_type", "ordering_key", "partition_key"),
    *("created_at", "appended_at", "available_at", "ordinal"),
)
"""The columns of an event but for its content."""

_BUFFER: Final = 2**20  # bytes of a column that are read at once


class UnreadableFile(Exception):
    """A file that is gone, or that does not hold the columns of the log: Spark is to be asked."""


def open_file(path: str, *, in_parts: bool = False) -> pq.ParquetFile:
    """Open a data file, instants in microseconds whichever way Spark wrote them.

    Args:
        path: of the file.
        in_parts: read little of a column at once, and map nothing of the file into memory.

    Raises:
        UnreadableFile: it is gone, or no Parquet.
    """
    try:
        return pq.ParquetFile(
            path,
            coerce_int96_timestamp_unit="us",
            memory_map=not in_parts,
            buffer_size=_BUFFER if in_parts else 0,
        )
    except (OSError, pa.ArrowException) as error:
        raise UnreadableFile(path) from error


def as_instants(table: pa.Table) -> pa.Table:
    """Return columns as the log has them: an instant without a zone is one of UTC, and whether a
    column may be null is for the log to say, not for one of its files.

    Args:
        table: of columns as a file holds them.
    """
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_timestamp(field.type):
            column = column.cast(pa.timestamp("us", tz=field.type.tz)).cast(_INSTANT)
        columns.append(column)
    return pa.table(columns, names=table.column_names)


# twin: macros/projection/fold/first_state.sql::first_state
def arrived(files: Sequence[AddedFile]) -> pa.Table:
    """Return the deliveries of events that were appended, in the order of their files.

    Args:
        files: of the event log.

    Returns:
        Columns of `LOCATED`.

    Raises:
        UnreadableFile: one of them is gone, or does not hold the columns of the log.
    """
    parts = [_of_file(number, file) for number, file in enumerate(files)]
    paths = pa.array([str(file.path) for file in files], pa.string())
    table = pa.concat_tables(parts) if parts else _NUMBERED.empty_table()
    columns = [
        pa.chunked_array(
            [pa.DictionaryArray.from_arrays(chunk, paths) for chunk in table[FILE].chunks],
            LOCATED.field(FILE).type,
        )
        if name == FILE
        else table[name]
        for name in LOCATED.names
    ]
    return pa.Table.from_arrays(columns, schema=LOCATED)


def with_locations(deliveries: pa.Table, files: Mapping[int, Sequence[AddedFile]]) -> pa.Table:
    """Return deliveries with where their events lie; null where a commit does not tell, or has
    several rows of an id.

    Args:
        deliveries: columns of `claims.DELIVERIES`, in any order, which is kept.
        files: of the event log, by their commits.

    Returns:
        Columns of `LOCATED`.

    Raises:
        UnreadableFile: one of the files is gone, or does not hold the columns of the log.
    """
    paths = [str(file.path) for of_commit in files.values() for file in of_commit]
    number = {path: place for place, path in enumerate(paths)}
    arrival = deliveries["arrival"].to_numpy()
    of_file = np.full(deliveries.num_rows, -1, np.int32)
    of_row = np.full(deliveries.num_rows, -1, np.int64)
    is_clear = ~np.asarray(deliveries["ambiguous"])
    for version, of_commit in files.items():
        its = np.flatnonzero((arrival == version) & is_clear)
        asked = deliveries["event_id"].take(pa.array(its)).combine_chunks().dictionary_encode()
        # What is asked for is hashed, not what the files hold, which may be ten times as much.
        file_of_id = np.full(len(asked.dictionary), -1, np.int32)
        row_of_id = np.full(len(asked.dictionary), -1, np.int64)
        for file in of_commit:
            held = read_columns(file, ("event_id",))["event_id"]
            places = pc.index_in(held, value_set=asked.dictionary)
            known_ids = places.drop_null().to_numpy()
            file_of_id[known_ids] = number[str(file.path)]
            row_of_id[known_ids] = np.flatnonzero(np.asarray(places.is_valid()))
        of_id = asked.indices.to_numpy()
        of_file[its], of_row[its] = file_of_id[of_id], row_of_id[of_id]
    unknown = of_row < 0
    files_of_rows = pa.DictionaryArray.from_arrays(
        pa.array(of_file, pa.int32(), mask=unknown), pa.array(paths, pa.string())
    )
    located = deliveries.select(DELIVERIES.names).append_column(LOCATED.field(FILE), files_of_rows)
    return located.append_column(LOCATED.field(ROW), pa.array(of_row, pa.int64(), mask=unknown))


_NUMBERED: Final = LOCATED.set(LOCATED.get_field_index(FILE), pa.field(FILE, pa.int32()))


def _of_file(number: int, file: AddedFile) -> pa.Table:
    given = read_columns(file, (*NARROW, PAYLOAD_BYTES))
    count = file.rows
    sizes = given[PAYLOAD_BYTES]
    if sizes.null_count:
        sizes = pc.coalesce(sizes, _lengths(file))
    created = nearest(given["created_at"])
    instants = {
        "created_at": created,
        "appended_at": known(pc.coalesce(given["appended_at"], given["created_at"]), created),
        "available_at": known(given["available_at"], pa.scalar(None, _INSTANT)),
    }
    constant = {
        "arrival": file.version,
        "ambiguous": False,
        "destination": "",
        **dict.fromkeys(("lifecycle", "attempts", "publish_attempts"), 0),
        **dict.fromkeys(("crashes", "suspect"), 0),
        FILE: number,
    }
    columns = []
    for field in _NUMBERED:
        if field.name in constant:
            columns.append(pa.repeat(pa.scalar(constant[field.name], field.type), count))
        elif field.name == "started_at":
            columns.append(_later(instants["appended_at"], instants["available_at"]))
        elif field.name == ROW:
            columns.append(pa.array(np.arange(count)))
        elif field.name == PAYLOAD_BYTES:
            columns.append(sizes.cast(field.type))
        elif field.name in instants:
            columns.append(instants[field.name])
        elif field.name in NARROW:
            columns.append(given[field.name].cast(field.type))
        else:
            columns.append(pa.nulls(count, field.type))
    return pa.Table.from_arrays(columns, schema=_NUMBERED)


def _lengths(file: AddedFile) -> pa.Array:
    try:
        with open_file(str(file.path), in_parts=True) as opened:
            return payload_lengths(opened)
    except (OSError, KeyError, pa.ArrowException) as error:
        raise UnreadableFile(str(file.path)) from error


def read_columns(file: AddedFile, columns: Sequence[str]) -> pa.Table:
    """Return some columns of a data file.

    Args:
        file: of a log.
        columns: their names; the result has them in this order.

    Raises:
        UnreadableFile: it is gone, or does not hold these columns or as many rows.
    """
    try:
        with open_file(str(file.path)) as opened:
            table = as_instants(opened.read(columns=list(columns)))
        if PAYLOAD_BYTES in columns and PAYLOAD_BYTES not in table.column_names:
            table = table.append_column(PAYLOAD_BYTES, pa.nulls(file.rows, pa.int32()))
        table = table.select(list(columns))
    except (OSError, KeyError, pa.ArrowException) as error:
        raise UnreadableFile(str(file.path)) from error
    if table.num_rows != file.rows:
        raise UnreadableFile(str(file.path))
    return table


def may_be_rebased(instants: pa.ChunkedArray) -> bool:
    """Say whether one of them is older than 1970: Spark may write these in a calendar of its own,
    and then it alone knows which.

    Args:
        instants: at least one.
    """
    return bool(pc.min(instants.cast(pa.int64())).as_py() < 0)


def _later(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the later of two instants, that of the first where the second is null."""
    is_later = pc.fill_null(pc.greater(other, one), False)
    return pc.if_else(is_later, other, one)
