"""The rules for candidate events: types, ids, types of event, sizes, times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_outbox.core.settings import MAX_ID_BYTES, AppendSettings
from delta_outbox.producer.candidates import COLUMNS, complete
from delta_outbox.producer.rejection import BATCH, Rejection
from delta_outbox.producer.validation import (
    AVAILABLE_AT_AHEAD,
    CREATED_AT_AHEAD,
    EARLIEST_CREATED_AT,
    MAX_KEY_BYTES,
    Validated,
    validate,
)

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def rows_of(*rows: dict[str, Any]) -> pa.Table:
    """Make a batch; what a row leaves out is filled with something valid."""
    full = [
        {"event_id": f"e{place}", "event_type": "order.created", "payload": b"{}"} | row
        for place, row in enumerate(rows)
    ]
    names = [name for name in COLUMNS if any(name in row for row in full)]
    return pa.table(
        {name: pa.array([row.get(name) for row in full], COLUMNS[name]) for name in names}
    )


def check(table: pa.Table, **settings: Any) -> Validated:
    """Validate with the shipped settings, or others."""
    return validate(table, settings=AppendSettings(**settings), now=NOW)


def broken(table: pa.Table, **settings: Any) -> list[tuple[int, str, str]]:
    """Say which rule is broken in which line and field."""
    found = check(table, **settings).rejections
    return [(rejection.line, rejection.field, rejection.rule) for rejection in found]


def test_valid_batch_passes() -> None:
    """A batch in which every column is given and right passes unchanged."""
    table = rows_of(
        {
            "created_at": NOW,
            "ordering_key": "k\x1f1",
            "partition_key": "p",
            "headers": [("traceparent", f"00-{'a' * 32}-{'b' * 16}-01"), ("empty", "")],
            "metadata": [("note", "two\nlines")],
            "available_at": NOW,
            "ordinal": 7,
        }
    )
    found = check(table)
    assert () == found.rejections
    assert table.equals(found.given)


def test_empty_batch_passes() -> None:
    """A batch without rows is fine."""
    found = check(rows_of({}).slice(0, 0))
    assert ((), 0, 0) == (found.rejections, found.given.num_rows, found.repeated)


@pytest.mark.parametrize("name", ["event_id", "event_type", "payload"])
def test_required_column_is_never_null(name: str) -> None:
    """An event without id, type or payload is rejected in its line."""
    assert [(2, name, "required")] == broken(rows_of({}, {name: None}))


@pytest.mark.parametrize("name", ["event_id", "event_type", "payload"])
def test_required_column_must_be_there(name: str) -> None:
    """A batch without a required column is rejected as a whole, and its rows are still checked."""
    table = rows_of({"ordering_key": ""}).drop_columns([name])
    assert [(BATCH, name, "required"), (1, "ordering_key", "not_empty")] == broken(table)


@pytest.mark.parametrize(
    ("event_id", "rule"),
    [
        ("", "not_empty"),
        ("x" * (MAX_ID_BYTES + 1), "max_bytes"),
        ("é" * (MAX_ID_BYTES // 2) + "x", "max_bytes"),
        ("a\nb", "no_control_characters"),
        ("a\x7f", "no_control_characters"),
        ("a\x85", "no_control_characters"),
        ("workflow:shipping/p-1", "reserved"),
    ],
)
def test_bad_event_id_is_rejected(event_id: str, rule: str) -> None:
    """An id is not empty, not too long, safe to print, and none that a workflow may need."""
    assert [(1, "event_id", rule)] == broken(rows_of({"event_id": event_id}))


def test_longest_event_id_passes() -> None:
    """An id may be as long as the limit, in bytes."""
    assert [] == broken(rows_of({"event_id": "é" * (MAX_ID_BYTES // 2)}))


@pytest.mark.parametrize("event_type", ["order.created", "Order/Created:v2", "a", "9_x-y"])
def test_usual_event_types_pass(event_type: str) -> None:
    """The shipped pattern takes what people use."""
    assert [] == broken(rows_of({"event_type": event_type}))


@pytest.mark.parametrize("event_type", ["", "a b", ".a", "a\n", "é", "x" * 256, "a*", "{a}"])
def test_unusual_event_types_are_rejected(event_type: str) -> None:
    """The whole type must match the pattern, line ends included."""
    assert [(1, "event_type", "event_type_pattern")] == broken(rows_of({"event_type": event_type}))


def test_types_of_tasks_are_rejected() -> None:
    """Nobody can append what looks like a task of a workflow."""
    assert [(2, "event_type", "reserved")] == broken(
        rows_of({"event_type": "workflow"}, {"event_type": "workflow:shipping/pack"})
    )


def test_event_type_pattern_is_a_setting() -> None:
    """Another pattern takes the place of the shipped one, and the message shows it."""
    found = check(rows_of({"event_type": "b"}, {"event_type": "a"}), event_type_pattern="a+")
    assert ["must match a+. Got: 'b'."] == [rejection.message for rejection in found.rejections]


@pytest.mark.parametrize("name", ["ordering_key", "partition_key"])
def test_keys_are_absent_or_not_empty(name: str) -> None:
    """An empty key would put all events that have it in one queue; null means no key."""
    table = rows_of({name: None}, {name: ""}, {name: "k" * MAX_KEY_BYTES}, {name: "k" * 1025})
    assert [(2, name, "not_empty"), (4, name, "max_bytes")] == broken(table)


def test_payload_may_be_as_large_as_the_limit() -> None:
    """The limit itself passes, one byte more does not, and nothing at all is a payload."""
    table = rows_of({"payload": b"1234"}, {"payload": b"12345"}, {"payload": b""})
    found = check(table, max_payload_bytes=4).rejections
    assert (
        Rejection(
            line=2,
            field="payload",
            rule="max_payload_bytes",
            message="must have at most 4 bytes. Got: 5.",
        ),
    ) == found


def test_shipped_payload_limit() -> None:
    """900 KiB pass as shipped."""
    table = rows_of({"payload": b"x" * 921_600}, {"payload": b"x" * 921_601})
    assert [(2, "payload", "max_payload_bytes")] == broken(table)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("created_at", EARLIEST_CREATED_AT, NOW + CREATED_AT_AHEAD),
        ("available_at", datetime(1970, 1, 1, tzinfo=UTC), NOW + AVAILABLE_AT_AHEAD),
    ],
)
def test_times_are_plausible(name: str, low: datetime, high: datetime) -> None:
    """The bounds themselves pass; a microsecond beyond is rejected."""
    times = [low, high, low - MICROSECOND, high + MICROSECOND, None]
    table = rows_of(*({name: instant} for instant in times))
    assert [(3, name, "plausible_time"), (4, name, "plausible_time")] == broken(table)


def test_time_beyond_the_calendar_is_rejected_with_a_message() -> None:
    """Milliseconds taken for seconds give a year that Python cannot show; we can."""
    table = rows_of({"created_at": NOW})
    far = pa.array([1_700_000_000_000 * 1_000_000], pa.int64()).cast(COLUMNS["created_at"])
    found = check(table.set_column(3, "created_at", far)).rejections
    assert ["plausible_time"] == [rejection.rule for rejection in found]
    assert "Got: 55840-11-08T22:13:20.000000Z." in found[0].message


def test_bytes_that_are_not_utf8_are_rejected() -> None:
    """Text columns may hold other bytes (Spark casts without looking); none gets in."""
    bad = pa.array([b"good", b"\xff\xfe"]).cast(pa.string(), safe=False)
    table = rows_of({}, {"event_id": "e1"})
    for name in ("event_id", "event_type"):
        place = table.column_names.index(name)
        assert (2, name, "utf8") in broken(table.set_column(place, name, bad))
    assert [(2, "ordering_key", "utf8")] == broken(table.append_column("ordering_key", bad))


def test_all_broken_rules_are_reported_by_line() -> None:
    """One bad row hides no other; the report is sorted by line."""
    table = rows_of(
        {"event_id": "", "event_type": "a b", "ordering_key": ""},
        {},
        {"payload": None},
        {"created_at": datetime(1999, 1, 1, tzinfo=UTC)},
    )
    assert [
        (1, "event_id", "not_empty"),
        (1, "event_type", "event_type_pattern"),
        (1, "ordering_key", "not_empty"),
        (3, "payload", "required"),
        (4, "created_at", "plausible_time"),
    ] == broken(table)


def test_lines_are_those_of_the_caller_in_every_part() -> None:
    """Rejections carry the caller's line numbers, also when the table comes in many parts."""
    bad = {"event_id": "", "payload": b"1"}
    table = pa.concat_tables([rows_of({}), rows_of({"event_id": "x"}, bad), rows_of(bad)])
    lines = np.array([10, 20, 30, 40])
    found = validate(table, settings=AppendSettings(), now=NOW, lines=lines)
    assert [30, 40] == [rejection.line for rejection in found.rejections]


def test_unknown_columns_are_rejected() -> None:
    """A column that the log does not have, or sets by itself, is refused by name."""
    table = rows_of({}).append_column("colour", pa.array(["red"]))
    table = table.append_column("appended_at", pa.array([NOW]))
    found = check(table).rejections
    assert [(BATCH, "appended_at"), (BATCH, "colour")] == [(r.line, r.field) for r in found]
    assert "set by the log itself" in found[0].message


def test_column_given_twice_is_rejected() -> None:
    """Two columns of one name cannot both be meant."""
    table = rows_of({})
    table = table.append_column("event_id", table["event_id"])
    assert [(BATCH, "event_id", "known_column")] == broken(table)


@pytest.mark.parametrize(
    ("name", "values", "came"),
    [
        ("event_id", pa.array([1]), "int64"),
        ("payload", pa.array(["{}"]), "string"),
        ("created_at", pa.array([datetime(2026, 11, 20)]), "timestamp[us]"),  # noqa: DTZ001 - the point
        ("created_at", pa.array(["2026-11-20T00:00:00Z"]), "string"),
        ("created_at", pa.array([2**62], pa.timestamp("s", "UTC")), "timestamp[s, tz=UTC]"),
        ("headers", pa.array([{"a": "b"}]), "struct<a: string>"),
        (
            "metadata",
            pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
            "map<string, int64>",
        ),
        ("ordinal", pa.array([1.0]), "double"),
        ("ordinal", pa.array([2**63], pa.uint64()), "uint64"),
    ],
)
def test_wrong_types_are_rejected_with_what_came(name: str, values: pa.Array, came: str) -> None:
    """A column of another type is refused; the message names the type that came."""
    table = rows_of({})
    others = table.drop_columns([name]) if name in table.column_names else table
    found = check(others.append_column(name, values)).rejections
    assert [(BATCH, name, "type")] == [(r.line, r.field, r.rule) for r in found]
    assert found[0].message.endswith(f"Got: {came}.")


def test_kindred_types_are_taken() -> None:
    """Large, dictionary-encoded and coarser or finer forms of a type become the log's type."""
    headers = pa.map_(pa.large_string(), pa.large_string())
    table = pa.table(
        {
            "event_id": pa.array(["a"], pa.large_string()),
            "event_type": pa.array(["t"]).dictionary_encode(),
            "payload": pa.array([b"12"], pa.binary(2)),
            "created_at": pa.array([NOW], pa.timestamp("ns", "Europe/Berlin")),
            "headers": pa.array([[("a", "b")]], headers),
            "metadata": pa.nulls(1),
            "available_at": pa.array([NOW], pa.timestamp("s", "UTC")),
            "ordinal": pa.array([1], pa.int32()),
        }
    )
    found = check(table)
    assert () == found.rejections
    assert [COLUMNS[name] for name in table.column_names] == found.given.schema.types
    assert [NOW] == found.given["created_at"].to_pylist()


def test_complete_fills_in_what_is_left_out() -> None:
    """The log's columns are all there afterwards: created_at is now, as appended_at is, and ordinal
    the given order.
    """
    created_at = NOW - timedelta(days=1)
    found = complete(check(rows_of({"created_at": created_at}, {})).given, now=NOW)
    assert [*COLUMNS, "appended_at"] == found.column_names
    assert [NOW, NOW] == found["appended_at"].to_pylist()
    assert [created_at, NOW] == found["created_at"].to_pylist()
    assert [0, 1] == found["ordinal"].to_pylist()
    assert [None, None] == found["headers"].to_pylist()


def test_complete_keeps_a_given_order() -> None:
    """Ordinals that a producer gives stay as they are, nulls included."""
    found = complete(rows_of({"ordinal": 5}, {"ordinal": None}), now=NOW)
    assert [5, None] == found["ordinal"].to_pylist()
