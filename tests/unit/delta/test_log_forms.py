"""Every log that files are written to is as the writer knows it, down to each rule of its DDL."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.macro_namespace import Macros

from delta_outbox.core.tables import BEATS, COMMANDS, TRANSITIONS
from delta_outbox.delta.files.event_files import PARTITIONS
from delta_outbox.delta.files.log_state import TableForm, form_of
from delta_outbox.delta.files.row_checks import broken
from delta_outbox.delta.numbered_writes import ROW
from delta_outbox.producer.candidates import COLUMNS

MACROS = Macros("storage", "lifecycle", "projection/fold")
COLUMN = re.compile(r"^ {8}(\w+) (map<.*?>|array<\w+>|\w+)(.*?),?$", re.MULTILINE)
GENERATED = re.compile(r"generated always as \((.*)\)(?: comment|$)")
PROPERTY = re.compile(r"'([\w.]+)' = \"([^\"]*)\"")
TYPES = {"int": "integer", "bigint": "long"}
OTHER_TYPES = {
    **{
        f"array<{name}>": {
            "type": "array",
            "elementType": TYPES.get(name, name),
            "containsNull": True,
        }
        for name in ("int", "string")
    },
    "map<string, string>": {
        "type": "map",
        "keyType": "string",
        "valueType": "string",
        "valueContainsNull": True,
    },
}
SUPPORTED = "delta.feature."
BY_FILES = ("events", "transitions", "commands", "progress", "relays", "state")


def described(log: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metadata and the protocol of a log, as Delta makes them of our DDL."""
    text = getattr(MACROS, f"ddl_{log}")(log)
    columns, _, properties = text.partition("tblproperties")
    fields = []
    for name, kind, more in COLUMN.findall(columns):
        generated = GENERATED.search(more)
        metadata = {"delta.generationExpression": generated[1]} if generated else {}
        if " default " in more:
            metadata["CURRENT_DEFAULT"] = "?"
        fields.append(
            {
                "name": name,
                "type": TYPES.get(kind, kind) if kind.isalpha() else OTHER_TYPES[kind],
                "nullable": "not null" not in more,
                "metadata": metadata,
            }
        )
    given = dict(PROPERTY.findall(properties))
    features = {name.removeprefix(SUPPORTED) for name in given if name.startswith(SUPPORTED)}
    settings = {name: value for name, value in given.items() if not name.startswith(SUPPORTED)}
    of_settings = {
        "changeDataFeed": settings.get("delta.enableChangeDataFeed") == "true",
        "rowTracking": settings.get("delta.enableRowTracking") == "true",
        "checkConstraints": any(name.startswith("delta.constraints.") for name in settings),
        "generatedColumns": any(field["metadata"] for field in fields),
    }
    features |= {name for name, is_there in of_settings.items() if is_there}
    partitions = re.search(r"partitioned by \((.*)\)", columns)
    described_ = {
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": partitions[1].split(", ") if partitions else [],
        "configuration": settings,
    }
    protocol = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": sorted(features | {"appendOnly", "invariants"}),
    }
    return described_, protocol


@pytest.mark.parametrize("log", BY_FILES)
def test_each_rule_of_a_log_that_files_are_written_to_is_known(log: str) -> None:
    """A column, a constraint, a property or a partition that our DDL has is known to the writer;
    else each append would go through Spark, and nobody would be told.
    """
    metadata, protocol = described(log)
    form = form_of(metadata, protocol)
    assert isinstance(form, TableForm), form
    settings = metadata["configuration"]
    checks = {n.removeprefix("delta.constraints.") for n in settings if "constraints" in n}
    assert checks == form.conditions.keys()
    assert int(settings["delta.checkpointInterval"]) == form.checkpoint_interval
    assert form.sizes == ({"payload_bytes": "payload"} if log == "events" else {})
    written: Mapping[str, list[str]] = {
        "events": [*COLUMNS, "appended_at"],
        "transitions": TRANSITIONS.names,
        "commands": COMMANDS.names,
        "progress": ROW.names,
        "relays": BEATS.names,
        "state": MACROS.state_columns(),
    }
    assert set(written[log]) == set(form.columns.names)


def test_the_record_of_purges_is_sparks_to_write() -> None:
    """It has no partitions."""
    assert "no partitions" == form_of(*described("purged"))


@pytest.mark.parametrize("log", ["events", "transitions", "commands"])
def test_the_partitions_of_logs_that_files_are_read_of_have_their_types(log: str) -> None:
    """What a commit says of a partition column becomes a value of the type that the DDL says."""
    metadata, _ = described(log)
    kinds = {f["name"]: f["type"] for f in json.loads(metadata["schemaString"])["fields"]}
    spelled = {"integer": "int32", "date": "date32[day]"}
    expected = {name: spelled[kinds[name]] for name in metadata["partitionColumns"]}
    assert expected == {name: str(PARTITIONS[name]) for name in metadata["partitionColumns"]}


def test_text_that_is_none_is_sparks_to_refuse() -> None:
    """Bytes that are no UTF-8 break a rule, whichever text they are in."""
    ids = pa.array([b"fine", b"caf\xe9"]).view(pa.string())
    assert "text" == broken(pa.table({"event_id": ids}), {})
    assert broken(pa.table({"event_id": ids.slice(0, 1)}), {}) is None
