"""What Python and the dbt project both say about the tables, held against each other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pyarrow as pa
import pytest

from delta_outbox.core.errors import WrongUsage
from delta_outbox.core.tables import BEATS, COMMANDS, TRANSITIONS, Tables
from delta_outbox.lifecycle.states import REASONS, State
from delta_outbox.store.lanes import lane_of

MACROS = Path(__file__).resolve().parents[3] / "macros"
SQL_TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<int>": pa.list_(pa.int32()),
}


def returned(macro: str) -> object:
    """Return the literal that a macro returns."""
    text = (MACROS / "lifecycle" / macro).read_text()
    found = re.search(r"return\((.*)\) }}", text, re.DOTALL)
    assert found is not None
    return ast.literal_eval(found[1].strip())


@pytest.mark.parametrize(
    ("log", "schema", "partition"),
    [
        ("transitions", TRANSITIONS, "occurred_date"),
        ("commands", COMMANDS, "requested_date"),
        ("relays", BEATS, "beat_date"),
    ],
)
def test_rows_have_the_columns_of_the_ddl(log: str, schema: pa.Schema, partition: str):
    """A row that Python writes has the columns of the table, in its order and types."""
    text = (MACROS / "storage" / f"ddl_{log}.sql").read_text()
    columns = re.findall(
        r"^ {8}(\w+) (array<int>|int|bigint|string|timestamp|date)(?!\w)(.*)$", text, re.MULTILINE
    )
    given = [(name, SQL_TYPES[kind]) for name, kind, rest in columns if "generated" not in rest]
    assert list(zip(schema.names, schema.types, strict=True)) == given
    assert partition in {name for name, _, rest in columns if "generated" in rest}


def test_legal_transitions_are_the_same_in_sql():
    """The CHECK constraint of the log and the pure core know the same transitions and reasons."""
    given = returned("legal_transitions.sql")
    assert isinstance(given, list)
    assert {(str(a), str(b)): {str(r) for r in reasons} for (a, b), reasons in REASONS.items()} == {
        (a, b): set(reasons) for a, b, reasons in given
    }
    assert 6 == len(given)


def test_states_are_the_same_in_sql():
    """The four states have one name each, in Python and in SQL."""
    assert [str(state) for state in State] == returned("states.sql")


@pytest.mark.parametrize(
    ("key", "event_id", "lanes", "lane"),
    [
        ("order-1", "e", 1, 0),
        ("order-1", "e", 16, 15),
        (None, "order-1", 16, 15),
        ("", "e", 1024, 0),
        ("Zürich ✈", "e", 1024, 304),
    ],
)
def test_lanes_never_change(key: str | None, event_id: str, lanes: int, lane: int):
    """An event's lane is the CRC-32 of its key, else of its id: these values are for ever."""
    assert lane == lane_of(ordering_key=key, event_id=event_id, lanes=lanes)


@pytest.mark.parametrize("schema", ["", "a.b", "a b", "1a", "a;drop", "ä", "a" * 129])
def test_schema_is_a_plain_name(schema: str):
    """A schema's name goes into SQL as it is, so only plain identifiers pass."""
    with pytest.raises(WrongUsage, match="letters, digits and underscores"):
        Tables(schema=schema)
