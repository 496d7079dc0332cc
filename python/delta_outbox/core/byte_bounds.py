"""Bounds how many bytes of events are held in memory at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

AT_ONCE: Final = 16 * 1024**2  # bytes: read from a file, or handed to a publisher, at once
ROWS_AT_ONCE: Final = 10_000  # as Spark has by default

Sizes = npt.NDArray[np.int64]


def told_sizes(payload_bytes: pa.ChunkedArray | pa.Array, *, unknown: int) -> Sizes:
    """Return the sizes of payloads in bytes.

    Args:
        payload_bytes: of each, null where it is not known.
        unknown: what counts for those.
    """
    filled = pc.fill_null(payload_bytes.cast(pa.int64()), unknown)
    sizes: Sizes = np.maximum(np.asarray(filled), 0)
    return sizes


def fitting(sizes: Sizes, most: int) -> int:
    """Return how many of the first fit into some bytes; one always does.

    Args:
        sizes: in bytes, in order.
        most: bytes.
    """
    return max(1, int(np.searchsorted(np.cumsum(sizes), most, side="right")))


def parts_of(
    sizes: Sizes, *, most: int = AT_ONCE, rows: int = ROWS_AT_ONCE
) -> Iterator[tuple[int, int]]:
    """Yield the first and the end of parts that follow each other; none has more bytes than it may,
    unless it is one event.

    Args:
        sizes: in bytes, in order.
        most: bytes of a part.
        rows: of a part, at most.
    """
    first = 0
    while first < len(sizes):
        end = first + fitting(sizes[first : first + rows], most)
        yield first, end
        first = end


def halved(batch: pa.RecordBatch, *, most: int = AT_ONCE) -> Iterator[pa.RecordBatch]:
    """Yield a batch in parts that hold no more than some bytes of all its columns, or one row.

    Args:
        batch: whose payloads fit; its headers may be large as well.
        most: bytes of a part.
    """
    if len(batch) <= 1 or batch.nbytes <= most:
        yield batch
        return
    middle = len(batch) // 2
    yield from halved(batch.slice(0, middle), most=most)
    yield from halved(batch.slice(middle), most=most)
