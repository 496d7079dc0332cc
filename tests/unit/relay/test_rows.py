"""The rows of a slice: read by columns, they are the events that reading row by row would give."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, astuple, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.relay.test_slice import INPUT

from delta_outbox.publishers.protocol import Event, header_fault
from delta_outbox.relay.publish.rows import events_of, rows_of

AT = datetime(2026, 1, 1, tzinfo=UTC)
SOME_TEXT = st.none() | st.sampled_from(["", "a", "b", "\u00e9"])
ROW = st.fixed_dictionaries(
    {
        "destination": st.sampled_from(["d", "e"]),
        "scope": SOME_TEXT,
        "event_id": st.text(max_size=2),
        "event_type": st.sampled_from(["x", "y"]),
        "key": SOME_TEXT,
        "ordering_key": SOME_TEXT,
        "partition_key": SOME_TEXT,
        "headers": st.none()
        | st.dictionaries(
            st.sampled_from(["a", "b", "c\n"]),
            st.none() | st.text(alphabet="x\r\0\u010a", max_size=2),
        ).map(lambda given: list(given.items())),
        "payload": st.binary(max_size=2),
        "created_at": st.sampled_from([AT, AT + timedelta(microseconds=1)]),
        "attempt": st.integers(1, 3),
        "lifecycle": st.integers(0, 2),
        "route": st.sampled_from(["x", "y"]),
        "format": st.none() | st.just("raw"),
    }
)


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Return rows as Spark hands them over, which may be a part of a larger batch."""
    full = [{**row, "position": position} for position, row in enumerate(rows)]
    return pa.RecordBatch.from_pylist(full, schema=INPUT)


@given(rows=st.lists(ROW, max_size=6), start=st.integers(0, 2))
def test_columns_give_the_events_of_the_rows(rows: list[dict[str, Any]], start: int) -> None:
    """Whatever a batch holds, and wherever it begins, each row is its own event."""
    read = rows_of(batch_of(rows).slice(start), claim_id="c")
    rows = rows[start:]
    names = [field.name for field in fields(Event)]
    expected = [
        Event(
            **{name: value for name, value in row.items() if name in names}
            | {"headers": None if row["headers"] is None else dict(row["headers"])},
            claim_id="c",
        )
        for row in rows
    ]
    assert expected == read.events
    assert [event.event_id for event in expected] == read.event_ids
    assert list(range(start, start + len(rows))) == read.positions
    for name, column in (
        ("destination", read.destinations),
        ("scope", read.scopes),
        ("format", read.formats),
    ):
        assert [row[name] for row in rows] == list(column)


@given(rows=st.lists(ROW, max_size=4))
def test_what_is_plain_needs_no_look_at_each_event(rows: list[dict[str, Any]]) -> None:
    """Where no header could break its line, and nothing is to be a CloudEvent, a batch says so."""
    read = rows_of(batch_of(rows), claim_id="c")
    is_broken = any(header_fault(event.headers) for event in read.events)
    assert read.are_plain == (not is_broken and not any(row["format"] for row in rows))


def test_no_event_shares_its_headers() -> None:
    """Whoever changes the headers of an event changes those of no other."""
    row = {
        **dict.fromkeys(INPUT.names),
        "headers": [("a", "b")],
        "payload": b"",
        "created_at": AT,
    }
    one, two = rows_of(batch_of([row, row]), claim_id="c").events
    assert one.headers == two.headers
    assert one.headers is not two.headers


def test_an_event_made_by_columns_is_an_event() -> None:
    """It is equal to one made by itself, hashes and pickles alike, and stays as it is."""
    named = Event(
        event_id="e",
        event_type="x",
        key="k",
        ordering_key="k",
        partition_key="p",
        payload=b"p",
        created_at=AT,
        attempt=2,
        lifecycle=1,
        claim_id="c",
        route="r",
    )
    columns: list[list[object]] = [[value] for value in astuple(named)]
    (made,) = events_of(*columns)
    assert type(made) is Event
    assert named == made
    assert hash(named) == hash(made)
    assert made == pickle.loads(pickle.dumps(made))
    assert repr(named) == repr(made)
    assert "e:1" == made.delivery_id
    assert "z" == replace(made, key="z").key
    with pytest.raises(FrozenInstanceError):
        made.key = "z"  # type: ignore[misc]


def test_columns_of_different_lengths_make_no_event() -> None:
    """A column that is too short is an error, never a guess."""
    columns: list[list[str | None]] = [["e", "f"]]
    columns += [[None] for _ in fields(Event)[1:]]
    with pytest.raises(ValueError, match="argument"):
        events_of(*columns)
