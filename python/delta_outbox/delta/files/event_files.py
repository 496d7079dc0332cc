"""Reads rows by Arrow from the data files of a log, and where the rows of events lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_outbox.core.arrow import known, nearest
from delta_outbox.delta.added_files import AddedFile
from delta_outbox.delta.files.payload_files import PAYLOAD_BYTES, payload_lengths
from delta_outbox.lifecycle.claims import DELIVERIES

VERSION: Final = "_commit_version"
"""The column with the commit that has added a row, as the change feed has it."""
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
OF_EVENTS: Final = (*NARROW, PAYLOAD_BYTES, VERSION, FILE, ROW)
"""What `first_states` is told of events."""

PARTITIONS: Final = {
    **dict.fromkeys(("created_date", "occurred_date", "requested_date"), pa.date32()),
    "lane": pa.int32(),
}
"""The types of partition columns; the others are text."""
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


def read_files(files: Sequence[AddedFile], columns: Sequence[str]) -> pa.Table:
    """Return some columns of data files, in the order of the files.

    Args:
        files: of a log.
        columns: their names; `VERSION`, `FILE` and `ROW` among them, if wanted.

    Raises:
        UnreadableFile: one of them is gone, or does not hold the columns of the log.
    """
    paths = pa.array([str(file.path) for file in files], pa.string())
    parts = []
    for number, file in enumerate(files):
        part = read_columns(file, [name for name in columns if name != FILE])
        if FILE in columns:
            numbers = pa.repeat(pa.scalar(number, pa.int32()), file.rows)
            part = part.append_column(FILE, pa.DictionaryArray.from_arrays(numbers, paths))
        parts.append(part.select(list(columns)))
    return pa.concat_tables(parts)


def read_columns(file: AddedFile, columns: Sequence[str]) -> pa.Table:
    """Return some columns of a data file.

    Args:
        file: of a log.
        columns: their names, `VERSION` and `ROW` among them, if wanted; the result has them in this
            order.

    Raises:
        UnreadableFile: it is gone, does not hold these columns or as many rows, or holds instants
            that are Spark's to read.
    """
    told = {VERSION, ROW, *file.partition}
    try:
        with open_file(str(file.path)) as opened:
            table = as_instants(opened.read(columns=[n for n in columns if n not in told]))
            if opened.metadata.num_rows != file.rows:
                raise UnreadableFile(str(file.path))
        given = dict(zip(table.column_names, table.columns, strict=True))
        for name in {*columns} - {*given}:
            given[name] = _told(file, name)
        table = pa.table([given[name] for name in columns], names=list(columns))
    except (OSError, KeyError, pa.ArrowException) as error:
        raise UnreadableFile(str(file.path)) from error
    if any(may_be_rebased(one) for one in table.columns if pa.types.is_timestamp(one.type)):
        raise UnreadableFile(str(file.path))
    return table


def _told(file: AddedFile, name: str) -> pa.Array:
    """Return a column that a file does not hold."""
    if name == VERSION:
        return pa.repeat(pa.scalar(file.version, pa.int64()), file.rows)
    if name == ROW:
        return pa.array(np.arange(file.rows))
    if name == PAYLOAD_BYTES:
        return pa.nulls(file.rows, pa.int32())
    value = pa.scalar(file.partition[name], pa.string())
    return pa.repeat(value.cast(PARTITIONS.get(name, pa.string())), file.rows)


def may_be_rebased(instants: pa.ChunkedArray) -> bool:
    """Say whether one of them is older than 1970: Spark may write these in a calendar of its own,
    and then it alone knows which.

    Args:
        instants: any number.
    """
    return bool((pc.min(instants.cast(pa.int64())).as_py() or 0) < 0)


# twin: macros/projection/fold/first_state.sql::first_state
def first_states(rows: pa.Table) -> pa.Table:
    """Return the deliveries of events that nothing has happened to.

    Args:
        rows: `OF_EVENTS`, in any order, which is kept.

    Returns:
        Columns of `LOCATED`.
    """
    created = nearest(rows["created_at"])
    instants = {
        "created_at": created,
        "appended_at": known(pc.coalesce(rows["appended_at"], rows["created_at"]), created),
        "available_at": known(rows["available_at"], pa.scalar(None, _INSTANT)),
    }
    constant = {
        **dict.fromkeys(("ambiguous", "blocks"), False),
        "destination": "",
        **dict.fromkeys(("lifecycle", "attempts", "publish_attempts"), 0),
        **dict.fromkeys(("crashes", "suspect"), 0),
    }
    columns = []
    for field in LOCATED:
        if field.name in constant:
            columns.append(pa.repeat(pa.scalar(constant[field.name], field.type), rows.num_rows))
        elif field.name == "arrival":
            columns.append(rows[VERSION].cast(field.type))
        elif field.name == "started_at":
            columns.append(_later(instants["appended_at"], instants["available_at"]))
        elif field.name == PAYLOAD_BYTES:
            columns.append(_sizes(rows).cast(field.type))
        elif field.name in instants:
            columns.append(instants[field.name])
        elif field.name in rows.column_names:
            columns.append(rows[field.name].cast(field.type))
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.Table.from_arrays(columns, schema=LOCATED)


def _sizes(rows: pa.Table) -> pa.ChunkedArray:
    """Return the sizes of payloads, looked up where the log does not tell and the files are here;
    null where they are not.
    """
    sizes = rows[PAYLOAD_BYTES]
    unknown = pc.and_(sizes.is_null(), rows[FILE].is_valid())
    if not pc.any(unknown).as_py():
        return sizes
    found = np.array(sizes.fill_null(-1), np.int64)
    paths, of_row = rows[FILE].cast(pa.string()), np.array(rows[ROW].fill_null(-1))
    for path in pc.unique(paths.filter(unknown)).to_pylist():
        its = np.flatnonzero(pc.and_(unknown, pc.equal(paths, path)))
        try:
            with open_file(path, in_parts=True) as opened:
                found[its] = payload_lengths(opened).to_numpy()[of_row[its]]
        except (UnreadableFile, OSError, KeyError, pa.ArrowException):
            continue
    return pa.chunked_array([pa.array(found, mask=found < 0)])


def with_locations(deliveries: pa.Table, files: Mapping[int, Sequence[AddedFile]]) -> pa.Table:
    """Return deliveries with where their events lie; null where a commit does not tell, or has
    several rows of an id.

    Args:
        deliveries: columns of `claims.DELIVERIES`, in any order, which is kept.
        files: of the event log, by their commits.

    Returns:
        All that was given, with the last columns of `LOCATED`.

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
    located = deliveries.append_column(LOCATED.field(FILE), files_of_rows)
    return located.append_column(LOCATED.field(ROW), pa.array(of_row, pa.int64(), mask=unknown))


def _later(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the later of two instants, that of the first where the second is null."""
    is_later = pc.fill_null(pc.greater(other, one), False)
    return pc.if_else(is_later, other, one)
