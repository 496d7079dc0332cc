"""Reads payloads and headers from the data files of the event log, in parts bounded by bytes.

A row group has 128 MB on the disk, as a rule, and any number of them once it is unpacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_outbox.core.byte_bounds import AT_ONCE, ROWS_AT_ONCE

PAYLOAD_BYTES: Final = "payload_bytes"  # which files of format 1 do not have: null there
_PAYLOAD: Final = "payload"
_ROWS_UNKNOWN: Final = 256  # of a file that does not say how large its payloads are
_DICTIONARY: Final = 1024**2  # bytes: the values that a file holds once are no larger (Parquet)


def read_parts(
    file: pq.ParquetFile, group: int, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a row group in order, few enough at a time.

    Args:
        file: of the event log.
        group: number of the row group.
        columns: their names.

    Raises:
        ArrowException, OSError: it cannot be read.
    """
    yield from file.iter_batches(
        batch_size=_rows_at_once(file, group),
        row_groups=[group],
        columns=list(columns),
        use_threads=False,
    )


def payload_lengths(file: pq.ParquetFile) -> pa.Array:
    """Return the size of each payload of a file that does not say it.

    Args:
        file: of the event log.

    Raises:
        ArrowException, OSError: it cannot be read.
    """
    found = [
        pc.binary_length(part[_PAYLOAD])
        for group in range(file.num_row_groups)
        for part in read_parts(file, group, [_PAYLOAD])
    ]
    return pa.concat_arrays(found).cast(pa.int32()) if found else pa.array([], pa.int32())


def _rows_at_once(file: pq.ParquetFile, group: int) -> int:
    """Return how many rows of a row group have no more than `AT_ONCE` bytes."""
    described = file.metadata.row_group(group)
    average = described.total_byte_size // max(1, described.num_rows)
    sizes = None
    if PAYLOAD_BYTES in file.schema_arrow.names:
        table = file.read_row_group(group, columns=[PAYLOAD_BYTES], use_threads=False)
        sizes = table[PAYLOAD_BYTES]
    if sizes is not None and not sizes.null_count:
        # The average is for what else a row holds.
        largest, most = average + (pc.max(sizes).as_py() or 0), ROWS_AT_ONCE
    else:
        largest, most = max(average, _held_once(described)), _ROWS_UNKNOWN
    rows: int = max(1, min(most, AT_ONCE // max(1, largest)))
    return rows


def _held_once(described: pq.RowGroupMetaData) -> int:
    """Return how large a payload may be that a row group holds once and repeats; 0 if none is."""
    for number in range(described.num_columns):
        column = described.column(number)
        if column.path_in_schema == _PAYLOAD and any("DICTIONARY" in e for e in column.encodings):
            size: int = column.total_uncompressed_size
            return min(_DICTIONARY, size)
    return 0
