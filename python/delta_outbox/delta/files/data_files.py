"""Writes the data files of a table by Arrow, with the statistics that Delta keeps of each."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_outbox.core.arrow import days_of, kinds_of
from delta_outbox.core.byte_bounds import AT_ONCE
from delta_outbox.delta.files.log_state import TableForm

_LONGEST: Final = 64  # characters of a text that is kept as the least or greatest of a file
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - written with a Z below
_MILLISECOND: Final = timedelta(milliseconds=1)
# Spark knows more years than Python, and so does not need to be told of them.
_FIRST: Final = (datetime.min - _EPOCH) // _MILLISECOND  # noqa: DTZ901
_LAST: Final = (datetime.max - _EPOCH) // _MILLISECOND  # noqa: DTZ901
# Columns of which nearly each row has another value: a dictionary of them is thrown away again.
_UNIQUE: Final = frozenset({"event_id", "payload", "receipt", "plan"})
_ROWS_PER_FILE: Final = 200_000


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A data file that no commit names yet.

    Args:
        path: where it is.
        name: relative to the table, as a commit names it.
        partition: its partition values.
        rows: how many it has.
        size: bytes.
        statistics: as Delta keeps them, JSON.
    """

    path: Path
    name: str
    partition: Mapping[str, str]
    rows: int
    size: int
    statistics: str


def write_files(table: Path, rows: pa.Table, form: TableForm) -> Iterator[DataFile]:
    """Write rows, in their order, a file or several for each partition that they are of.

    Args:
        table: its folder.
        rows: the columns of the form.
        form: of the table.
    """
    dated = rows
    for name, instant in form.dates.items():
        dated = dated.append_column(name, days_of(rows[instant]))
    for name, source in form.sizes.items():
        dated = dated.append_column(name, pc.binary_length(rows[source]))
    names = list(form.partitioned_by)
    kept = [field.name for field in form.columns if field.name not in names]
    # The partition columns as well, as Delta writes them: whoever reads a file finds them.
    dated = dated.select([*kept, *form.sizes, *names])
    for part in _parts(dated, names):
        partition = {name: str(part[name][0].as_py()) for name in names}
        for first in range(0, part.num_rows, _ROWS_PER_FILE):
            yield _write(table, part.slice(first, _ROWS_PER_FILE), form, partition)


def _parts(rows: pa.Table, names: Collection[str]) -> Iterator[pa.Table]:
    """Yield the rows of each partition."""
    columns = (rows[name].combine_chunks().dictionary_encode().indices for name in names)
    partition, _ = kinds_of(*(column.to_numpy() for column in columns))
    order = np.argsort(partition, kind="stable")
    cuts = np.flatnonzero(np.diff(partition[order])) + 1
    if not cuts.size:
        if rows.num_rows:
            yield rows
        return
    for places in np.split(order, cuts):
        yield rows.take(pa.array(places))


def _write(table: Path, rows: pa.Table, form: TableForm, partition: Mapping[str, str]) -> DataFile:
    folders = "/".join(f"{name}={value}" for name, value in partition.items())
    name = f"{folders}/part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    path = table / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = pa.table(rows.columns, names=rows.column_names)  # none required, as Spark writes them
    try:
        pq.write_table(
            rows,
            path,
            compression="snappy",
            row_group_size=max(1, AT_ONCE * rows.num_rows // max(AT_ONCE, rows.nbytes)),
            use_dictionary=[name for name in rows.column_names if name not in _UNIQUE],
            store_schema=False,
        )
        return DataFile(
            path=path,
            name=name,
            partition=partition,
            rows=rows.num_rows,
            size=path.stat().st_size,
            statistics=json.dumps(
                _statistics(rows, form.statistics - partition.keys()),
                separators=(",", ":"),
                ensure_ascii=False,
            ),
        )
    except BaseException:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise


def _statistics(rows: pa.Table, names: Collection[str]) -> Mapping[str, Any]:
    """Return what Delta keeps of a file: the number of rows, and where the columns lie."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for field in rows.schema:
        column = rows[field.name]
        if field.name not in names:
            continue
        nulls[field.name] = column.null_count
        if column.null_count == rows.num_rows or not _has_bounds(field.type):
            continue
        found = pc.min_max(column)
        low: Any
        high: Any
        if pa.types.is_timestamp(field.type):
            # Delta keeps milliseconds.
            ends = found["min"].value // 1000, -(-found["max"].value // 1000)
            if not _FIRST <= ends[0] <= ends[1] <= _LAST:
                continue
            low, high = map(_instant, ends)
        else:
            low, high = found["min"].as_py(), found["max"].as_py()
        if isinstance(low, str) and max(len(low), len(high)) > _LONGEST:
            continue
        least[field.name], greatest[field.name] = low, high
    return {
        "numRecords": rows.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }


def _has_bounds(kind: pa.DataType) -> bool:
    """Say whether Delta keeps the least and the greatest of a type."""
    types = pa.types
    return not (types.is_nested(kind) or types.is_binary(kind) or types.is_boolean(kind))


def _instant(milliseconds: int) -> str:
    at = _EPOCH + timedelta(milliseconds=milliseconds)
    return f"{at.isoformat(timespec='milliseconds')}Z"
