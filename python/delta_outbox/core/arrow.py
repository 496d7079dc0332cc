"""Helpers for Arrow columns: masks, sizes, and texts that are no UTF-8."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.instants import FIRST_INSTANT, LAST_INSTANT

_INSTANT: Final = pa.timestamp("us", tz="UTC")

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


def mask_of(values: Any) -> Mask:
    """Return booleans of Arrow as numpy's; null counts as false."""
    return np.asarray(pc.fill_null(values, False)).astype(np.bool_)


def rows_where(values: Any) -> Numbers:
    """List the rows in which a mask, of numpy or of Arrow, is true."""
    return np.flatnonzero(values if isinstance(values, np.ndarray) else mask_of(values))


def shared_texts(column: pa.Array) -> list[str | None]:
    """Return the texts of a column that has few different ones; equal ones are one object.

    Args:
        column: of strings; bytes that are not UTF-8 become halves of surrogate pairs, which no text
            in UTF-8 can hold (PEP 383).
    """
    encoded = column.dictionary_encode()
    try:
        values = encoded.dictionary.to_pylist()
    except UnicodeDecodeError:
        read = encoded.dictionary.cast(pa.large_binary()).to_pylist()
        values = [value.decode("utf-8", "surrogateescape") for value in read]
    texts = np.array([*values, None], dtype=object)
    codes = encoded.indices.fill_null(len(texts) - 1).to_numpy()
    shared: list[str | None] = texts[codes].tolist()
    return shared


def kinds_of(*columns: Numbers) -> tuple[Numbers, Numbers]:
    """Number the different rows of some columns.

    Args:
        columns: at least one, of the same length.

    Returns:
        The number of each row, and the first row of each number.
    """
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if len(column) and not np.all(column == column[0]):
            values, each = np.unique(column, return_inverse=True)
            codes = np.unique(codes * len(values) + each, return_inverse=True)[1]
    return codes, np.unique(codes, return_index=True)[1]


def is_one_of(column: pa.ChunkedArray, texts: Iterable[str]) -> pa.ChunkedArray:
    """Say of each text of a column whether it is one of some; null is none.

    Args:
        column: of texts, encoded as a dictionary or not.
        texts: any number.
    """
    return pc.is_in(column.cast(pa.string()), value_set=pa.array(sorted(texts), pa.string()))


def sizes_of(column: pa.Array) -> Numbers:
    """Return the sizes in bytes; a null has none."""
    return np.asarray(pc.fill_null(pc.binary_length(column), 0)).astype(np.int64)


def days_of(instants: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the days of instants, which are UTC: without a zone Arrow looks up none."""
    return instants.cast(pa.timestamp("us")).cast(pa.date32())


def out_of_range(instants: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Say of each instant whether an outbox does not know it; false for null.

    Args:
        instants: in microseconds.
    """
    numbers = instants.cast(pa.int64())
    outside = pc.or_(pc.less(numbers, FIRST_INSTANT), pc.greater(numbers, LAST_INSTANT))
    return pc.fill_null(outside, False)


def nearest(instants: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return instants, those that an outbox does not know as its first or last one.

    Args:
        instants: in microseconds, UTC.
    """
    numbers = instants.cast(pa.int64())
    later = pc.if_else(pc.less(numbers, FIRST_INSTANT), FIRST_INSTANT, numbers)
    return pc.if_else(pc.greater(later, LAST_INSTANT), LAST_INSTANT, later).cast(_INSTANT)


def with_nearest(rows: pa.Table) -> pa.Table:
    """Return rows that Python can hold: with the nearest instants in place of those that an outbox
    does not know.

    Args:
        rows: of a log that may be older than the constraint on its instants.
    """
    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(place, field.name, nearest(rows[field.name]))
    return rows


def known(instants: pa.ChunkedArray, otherwise: pa.ChunkedArray | pa.Scalar) -> pa.ChunkedArray:
    """Return instants, others in the place of those that an outbox does not know.

    Args:
        instants: in microseconds, UTC.
        otherwise: of the same type.
    """
    return pc.if_else(out_of_range(instants), otherwise, instants)


def invalid_utf8(column: pa.Array) -> Mask:
    """Tell which texts are not UTF-8: Spark and Arrow let other bytes pass as text."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        values = column.cast(pa.large_binary()).to_pylist()
        return np.array([not _decodes(value) for value in values], dtype=np.bool_)
    return np.zeros(len(column), dtype=np.bool_)


def without(column: pa.Array, bad: Mask, instead: str | None = None) -> pa.Array:
    """Take out what the text functions of Arrow must not see."""
    if not bad.any():
        return column
    return pc.if_else(pa.array(bad), pa.scalar(instead, column.type), column)


def _decodes(value: bytes | None) -> bool:
    try:
        (value or b"").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
