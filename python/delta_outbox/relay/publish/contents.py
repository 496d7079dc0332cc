"""Reads the contents of a claim where every worker can read the files of the event log.

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_outbox.core.byte_bounds import AT_ONCE, ROWS_AT_ONCE, halved, parts_of, told_sizes
from delta_outbox.delta.files.event_files import FILE, ROW, UnreadableFile, as_instants, open_file
from delta_outbox.delta.files.payload_files import PAYLOAD_BYTES, read_parts
from delta_outbox.relay.publish.rows import INSTANTS

_FREE_BYTES: Final = 128 * 2**20  # that may be read for any claim
_FREE_ROWS: Final = 20_000  # likewise, however large: Spark copies large payloads no faster
_FACTOR: Final = 4  # above that: of what the claim holds

_PATHS: Final = b"files"  # in the metadata of a schema: the path of each number
# The instants as they stand there: those of a delivery are ones that an outbox knows.
_CONTENT: Final = ("event_id", "payload", "headers", *INSTANTS)
_OF_DELIVERY: Final = ("event_type", "ordering_key", "partition_key", PAYLOAD_BYTES, FILE, ROW)

Numbers = npt.NDArray[np.int64]


def is_readable(
    deliveries: pa.Table, *, free_bytes: int = _FREE_BYTES, free_rows: int = _FREE_ROWS
) -> bool:
    """Say whether the files of deliveries are known, and hold little else than them.

    A file is read by its row groups. A small claim of events that lie scattered among many others,
    as when a batch is a small part of one commit, is cheaper to read by Spark, which reads pages.

    Args:
        deliveries: of a claim.
        free_bytes: that may be read for any claim.
        free_rows: likewise, however large they are.
    """
    if FILE not in deliveries.column_names or deliveries[FILE].null_count:
        return False
    read = wanted = 0.0
    rows_read = 0
    try:
        for path, rows in _by_file(deliveries):
            groups = _groups(path)
            touched, counts = np.unique(groups.of(rows), return_counts=True)
            read += float(groups.bytes[touched].sum())
            rows_read += int(groups.rows[touched].sum())
            wanted += float((groups.bytes[touched] * counts / groups.rows[touched]).sum())
    except UnreadableFile:
        return False
    return rows_read <= free_rows or read <= max(free_bytes, _FACTOR * wanted)


@contextlib.contextmanager
def written_slices(
    routed: pa.Table, deliveries: pa.Table, *, slices: int, folder: Path | None
) -> Iterator[str]:
    """Write down what each slice is to send, for a block; give the path.

    Args:
        routed: columns of `routing.ROUTED`.
        deliveries: the claim's, with the columns of `event_files.LOCATED`.
        slices: how many.
        folder: where to write; that of temporary files if None.
    """
    of_delivery = deliveries.select(_OF_DELIVERY).take(routed["position"])
    table = routed.drop_columns(["at_arrival"]).rename_columns({"id": "event_id"})
    for name in _OF_DELIVERY:
        table = table.append_column(name, of_delivery[name])
    paths, numbers = _numbered(table[FILE])
    table = table.set_column(table.schema.get_field_index(FILE), FILE, numbers)
    table = table.replace_schema_metadata({_PATHS: json.dumps(paths)})
    with tempfile.TemporaryDirectory(prefix="claim-", dir=folder) as made:
        path = Path(made) / "slices.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            for number in range(slices):
                # A slice of which nothing is sent still has its part in the file.
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
    rows: pa.RecordBatch,
    *,
    traced: bool,
    at_once: int = ROWS_AT_ONCE,
    bytes_at_once: int = AT_ONCE,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a slice with payloads and headers, as `publish_slice` takes them.

    All files have been opened once before the first rows are given out.

    Args:
        rows: as `read_slice` returns them.
        traced: whether `metadata` is wanted as well.
        at_once: rows, at most.
        bytes_at_once: of them; one row may have more.

    Raises:
        UnreadableFile: a file is gone or holds something else.
    """
    paths = json.loads((rows.schema.metadata or {})[_PATHS])
    of_file, of_row = rows[FILE].to_numpy().astype(np.int64), rows[ROW].to_numpy()
    sizes = told_sizes(rows[PAYLOAD_BYTES], unknown=bytes_at_once)
    columns = (*_CONTENT, *(("metadata",) if traced else ()))
    reader = _Reader(paths, columns, of_file, of_row)
    table = pa.Table.from_batches([rows.drop_columns([FILE, ROW, PAYLOAD_BYTES, "slice"])])
    for first, end in parts_of(sizes, most=bytes_at_once, rows=at_once):
        content = reader.read(first, end)
        chunk = table.slice(first, end - first)
        if not content["event_id"].equals(chunk["event_id"]):
            raise UnreadableFile("the rows of a file are not those that were planned")
        for name in content.column_names[1:]:
            chunk = chunk.append_column(name, content[name])
        batch = _as_batch(chunk)
        del content, chunk
        yield from halved(batch, most=bytes_at_once)
        del batch


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


@dataclass(kw_only=True)
class _Group:
    """A row group, read once, when the first of its rows is wanted, and as far as the last of them;
    those that are wanted later are kept. What is half read would hold its pages: up to 100 payloads
    each.

    Args:
        parts: its rows, in order.
        next_row: the number of the next of them in the file.
        rows: the numbers of those that are wanted, ascending.
        positions: where each of these comes in the slice.
        kept: what was read and is wanted: the positions, and the rows.
    """

    parts: Iterator[pa.RecordBatch]
    next_row: int
    rows: Numbers
    positions: Numbers
    kept: list[tuple[Numbers, pa.Table]] = field(default_factory=list)

    def take(self, first: int, end: int) -> Iterator[tuple[Numbers, pa.Table]]:
        """Yield those from one position in the slice to another, in any order."""
        wanted = (self.positions >= first) & (self.positions < end)
        if not wanted.any():
            return
        while self.next_row <= self.rows[-1]:
            self._read()
        self.parts = iter(())
        kept, self.kept = self.kept, []
        for positions, rows in kept:
            now = (positions >= first) & (positions < end)
            if now.any():
                yield positions[now], rows if now.all() else rows.filter(pa.array(now))
            if not now.all():
                later = ~now
                self.kept.append(
                    (positions[later], rows.filter(pa.array(later)) if now.any() else rows)
                )

    def _read(self) -> None:
        part = next(self.parts, None)
        if part is None:
            raise UnreadableFile("a file has fewer rows than were planned")
        start, self.next_row = self.next_row, self.next_row + len(part)
        first, end = np.searchsorted(self.rows, [start, self.next_row])
        if first == end:
            return
        table = pa.Table.from_batches([part])
        wanted = self.rows[first:end] - start
        # One row goes to several destinations, maybe; and what nobody wants need not be held.
        if not np.array_equal(wanted, np.arange(len(part))):
            table = table.take(pa.array(wanted))
        self.kept.append((self.positions[first:end], as_instants(table)))


class _Reader:
    """Reads the rows of a slice from files, in parts of both: of what it reads, it holds what the
    slice is still to send.
    """

    def __init__(
        self, paths: Sequence[str], columns: Sequence[str], files: Numbers, rows: Numbers
    ) -> None:
        self._columns = list(columns)
        self._groups: list[_Group] = []
        for number in np.unique(files).tolist():
            its = np.flatnonzero(files == number)
            with open_file(paths[number]) as file:
                self._add(file.metadata, rows[its], its, paths[number])

    def read(self, first: int, end: int) -> pa.Table:
        """Return the rows from one position in the slice to another, in order."""
        found = [one for group in self._groups for one in group.take(first, end)]
        table = pa.concat_tables([rows for _, rows in found])
        positions = np.concatenate([positions for positions, _ in found])
        if np.all(np.diff(positions) > 0):
            return table
        return table.take(pa.array(np.argsort(positions)))

    def _add(self, metadata: pq.FileMetaData, rows: Numbers, positions: Numbers, path: str) -> None:
        groups = _groups_of(metadata)
        order = np.argsort(rows, kind="stable")
        rows, positions = rows[order], positions[order]
        of_row = groups.of(rows)
        for group in np.unique(of_row).tolist():
            its = of_row == group
            self._groups.append(
                _Group(
                    parts=self._parts(path, group),
                    next_row=int(groups.ends[group] - groups.rows[group]),
                    rows=rows[its],
                    positions=positions[its],
                )
            )

    def _parts(self, path: str, group: int) -> Iterator[pa.RecordBatch]:
        try:
            # Opened for itself: a file keeps the last pages that were read of it.
            with open_file(path, in_parts=True) as file:
                for part in read_parts(file, group, self._columns):
                    yield part.select(self._columns)
        except (OSError, KeyError, pa.ArrowException) as error:
            raise UnreadableFile(path) from error


def _as_batch(table: pa.Table) -> pa.RecordBatch:
    columns = [
        column.combine_chunks() if column.num_chunks else pa.array([], column.type)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)
