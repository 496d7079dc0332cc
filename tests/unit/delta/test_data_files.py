"""Data files that Arrow writes, and what a commit says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from delta_outbox.delta.files.data_files import write_files
from delta_outbox.delta.files.log_state import TableForm

ROWS = pa.table(
    {
        "day": pa.array(["a", "a", "b"]),
        "name": pa.array(["x", "z", None]),
        "number": pa.array([3, None, 1], pa.int64()),
        "payload": pa.array([b"\xff", b"", None]),
        "flag": pa.array([True, False, True]),
        "headers": pa.array([[("k", "v")], [], None], pa.map_(pa.string(), pa.string())),
    }
)


FORM = TableForm(
    columns=ROWS.schema,
    dates={},
    sizes={},
    partitioned_by=("day",),
    conditions={},
    statistics=frozenset(ROWS.column_names),
    checkpoint_interval=10,
    has_row_ids=False,
)


def test_statistics_are_of_the_types_that_delta_keeps_them_of(tmp_path: Path) -> None:
    """Of each column of a file the nulls are counted; the least and the greatest are those of what
    has an order in JSON, which bytes, truth values and lists of pairs have not.
    """
    first, second = write_files(tmp_path, ROWS, FORM)
    told = json.loads(first.statistics)
    assert {"name": "x", "number": 3} == told["minValues"]
    assert {"name": "z", "number": 3} == told["maxValues"]
    assert {"name": 0, "number": 1, "payload": 0, "flag": 0, "headers": 0} == told["nullCount"]
    told = json.loads(second.statistics)
    assert {"number": 1} == told["minValues"]
    assert {"name": 1, "number": 0, "payload": 1, "flag": 0, "headers": 1} == told["nullCount"]
