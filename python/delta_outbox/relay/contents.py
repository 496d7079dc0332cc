"""The contents of a claim where every worker can read the files of the event log itself.

The driver writes down what each slice is to send and where it lies; a worker reads payloads and
headers from there. Through Spark the same rows are joined, written between stages and converted
twice: half of the CPU time of a drain (decision 0024).
"""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_outbox.event_files import FILE, ROW, UnreadableFile, as_instants, open_file
from delta_outbox.relay.rows import INSTANTS

ROWS_AT_ONCE: Final = 10_000  # handed to a publisher in one call, as Spark does by default
_FREE_BYTES: Final = 128 * 2**20  # that may be read for any claim
_FACTOR: Final = 4  # above that: of what the claim holds

_PATHS: Final = b"files"  # in the metadata of a schema: the path of each number
# The instants as they stand there: those of a delivery are ones that an outbox knows.
_CONTENT: Final = ("event_id", "payload", "headers", *INSTANTS)
_OF_DELIVERY: Final = ("event_type", "ordering_key", "partition_key", FILE, ROW)

Numbers = npt.NDArray[np.int64]


def is_readable(deliveries: pa.Table) -> bool:
    """Say whether the files of deliveries are known, and hold little else than them.

    A file is read by its row groups. A small claim of events that lie scattered in large files, as
    when a batch is a small part of one commit, is cheaper to read by Spark, which reads pages.

    Args:
        deliveries: of a claim.
    """
    if FILE not in deliveries.column_names or deliveries[FILE].null_count:
        return False
    read = wanted = 0.0
    try:
        for path, rows in _by_file(deliveries):
            groups = _groups(path)
            touched, counts = np.unique(groups.of(rows), return_counts=True)
            read += float(groups.bytes[touched].sum())
            wanted += float((groups.bytes[touched] * counts / groups.rows[touched]).sum())
    except UnreadableFile:
        return False
    return read <= max(_FREE_BYTES, _FACTOR * wanted)


@contextlib.contextmanager
def written_slices(
    placed: pa.Table, deliveries: pa.Table, *, slices: int, folder: Path | None
) -> Iterator[str]:
    """Write down what each slice is to send, for a block; give the path.

    Args:
        placed: columns of `placing.PLACED`.
        deliveries: the claim's, with the columns of `event_files.PLACED`.
        slices: how many.
        folder: where to write; that of temporary files if None.
    """
    of_delivery = deliveries.select(_OF_DELIVERY).take(placed["place"])
    table = placed.drop_columns(["at_arrival"]).rename_columns({"id": "event_id"})
    for name in _OF_DELIVERY:
        table = table.append_column(name, of_delivery[name])
    paths, numbers = _numbered(table[FILE])
    table = table.set_column(table.schema.get_field_index(FILE), FILE, numbers)
    table = table.replace_schema_metadata({_PATHS: json.dumps(paths)})
    with tempfile.TemporaryDirectory(prefix="claim-", dir=folder) as made:
        path = Path(made) / "slices.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            for number in range(slices):
                # A slice of which nothing is sent still has its place in the file.
                part = table.filter(pc.equal(table["slice"], number))
                writer.write_batch(_as_batch(part))
        yield str(path)


def read_slice(path: str, number: int) -> pa.RecordBatch:
    """Return what a slice is to send, in order.

    Args:
        path: as `written_slices` gave it.
        number: of the slice.
    """
    with pa.OSFile(path, "rb") as file:
        return pa.ipc.open_file(file).get_batch(number)


def with_contents(
    rows: pa.RecordBatch, *, traced: bool, at_once: int = ROWS_AT_ONCE
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a slice with payloads and headers, as `publish_slice` takes them.

    All files are opened before the first rows are given out.

    Args:
        rows: as `read_slice` returns them.
        traced: whether `metadata` is wanted as well.
        at_once: rows, at most.

    Raises:
        UnreadableFile: a file is gone or holds something else.
    """
    paths = json.loads((rows.schema.metadata or {})[_PATHS])
    of_file, of_row = rows[FILE].to_numpy().astype(np.int64), rows[ROW].to_numpy()
    with _Reader(paths, (*_CONTENT, *(("metadata",) if traced else ()))) as reader:
        reader.expect(of_file, of_row, at_once)
        table = pa.Table.from_batches([rows.drop_columns([FILE, ROW, "slice"])])
        for first in range(0, len(rows), at_once):
            part = slice(first, first + at_once)
            content = reader.read(of_file[part], of_row[part])
            chunk = table.slice(first, at_once)
            if not content["event_id"].equals(chunk["event_id"].combine_chunks()):
                raise UnreadableFile("the rows of a file are not those that were planned")
            for name in content.schema.names[1:]:
                chunk = chunk.append_column(name, content[name])
            yield _as_batch(chunk)


@dataclass(frozen=True, kw_only=True)
class _Groups:
    """The row groups of a file: how many rows and bytes each has, and where it ends."""

    rows: Numbers
    bytes: Numbers
    ends: Numbers

    def of(self, rows: Numbers) -> Numbers:
        """Return the group of each row."""
        if len(rows) and rows.max() >= self.ends[-1]:
            raise UnreadableFile("a file has fewer rows than were planned")
        return np.searchsorted(self.ends, rows, side="right").astype(np.int64)


def _groups_of(metadata: pq.FileMetaData) -> _Groups:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows = np.array([group.num_rows for group in groups], np.int64)
    return _Groups(
        rows=rows,
        bytes=np.array([group.total_byte_size for group in groups], np.int64),
        ends=np.cumsum(rows) if len(rows) else np.zeros(1, np.int64),
    )


@functools.lru_cache(maxsize=1000)
def _groups(path: str) -> _Groups:
    with open_file(path) as file:
        return _groups_of(file.metadata)


def _by_file(deliveries: pa.Table) -> Iterable[tuple[str, Numbers]]:
    paths, numbers = _numbered(deliveries[FILE])
    of_file, rows = numbers.to_numpy(), deliveries[ROW].to_numpy()
    for number in np.unique(of_file).tolist():
        yield paths[number], rows[of_file == number]


def _numbered(files: pa.ChunkedArray) -> tuple[list[str], pa.ChunkedArray]:
    """Return the paths of files, and of each row the number of its path."""
    files = files.unify_dictionaries()
    paths = files.chunk(0).dictionary.to_pylist() if files.num_chunks else []
    return paths, pa.chunked_array([chunk.indices for chunk in files.chunks], pa.int32())


class _Reader:
    """Reads rows from files, each row group once, and keeps it no longer than it is wanted."""

    def __init__(self, paths: Sequence[str], columns: Sequence[str]) -> None:
        self._paths = paths
        self._columns = list(columns)
        self._open: dict[int, pq.ParquetFile] = {}
        self._of_file: dict[int, _Groups] = {}
        self._read: dict[tuple[int, int], pa.Table] = {}
        self._wanted: dict[tuple[int, int], int] = {}  # in how many parts

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()

    def expect(self, files: Numbers, rows: Numbers, at_once: int) -> None:
        """Open all files, and count what is wanted of each."""
        for file in np.unique(files).tolist():
            self._open[file] = open_file(self._paths[file])
            self._of_file[file] = _groups_of(self._open[file].metadata)
        for first in range(0, len(files), at_once):
            for key in self._keys(files[first : first + at_once], rows[first : first + at_once]):
                self._wanted[key] = self._wanted.get(key, 0) + 1

    def _keys(self, files: Numbers, rows: Numbers) -> list[tuple[int, int]]:
        return [
            (file, group)
            for file in np.unique(files).tolist()
            for group in np.unique(self._of_file[file].of(rows[files == file])).tolist()
        ]

    def read(self, files: Numbers, rows: Numbers) -> pa.RecordBatch:
        """Return rows, in the order in which they are asked for."""
        places = np.empty(len(files), np.int64)
        tables, start = [], 0
        for file, group in self._keys(files, rows):
            table = self._group(file, group)
            first = int(self._of_file[file].ends[group]) - table.num_rows
            its = (files == file) & (rows >= first) & (rows < first + table.num_rows)
            places[its] = rows[its] - first + start
            start += table.num_rows
            tables.append(table)
        return _as_batch(pa.concat_tables(tables).take(pa.array(places)))

    def _group(self, file: int, group: int) -> pa.Table:
        key = file, group
        table = self._read.get(key)
        if table is None:
            try:
                table = self._open[file].read_row_group(
                    group, columns=self._columns, use_threads=False
                )
                table = as_instants(table.select(self._columns))
            except (OSError, KeyError, pa.ArrowException) as error:
                raise UnreadableFile(self._paths[file]) from error
            self._read[key] = table
        self._wanted[key] -= 1
        if not self._wanted[key]:
            del self._read[key]
        return table


def _as_batch(table: pa.Table) -> pa.RecordBatch:
    columns = [
        column.combine_chunks() if column.num_chunks else pa.array([], column.type)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)
