"""What a writer knows of a table without Spark, from the files of its log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_outbox.delta.files import log_state
from delta_outbox.delta.files.log_state import LogState, TableForm, followed, note_commit, state_of
from delta_outbox.delta.files.row_checks import broken

PROTOCOL = {
    "minReaderVersion": 1,
    "minWriterVersion": 7,
    "writerFeatures": ["appendOnly", "invariants", "checkConstraints", "rowTracking"],
}
CHECK = "number >= 1 and length(writer) > 0"


def _field(name: str, kind: str, **more: Any) -> Mapping[str, Any]:
    return {"name": name, "type": kind, "nullable": False, "metadata": {}, **more}


def _metadata(**more: Any) -> dict[str, Any]:
    fields = [
        _field("writer", "string"),
        _field("number", "long"),
        _field("at", "timestamp"),
        _field("until", "timestamp", nullable=True),
        _field("day", "date", metadata={"delta.generationExpression": "cast(at as date)"}),
    ]
    return {
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["writer", "day"],
        "configuration": {
            "delta.checkpointInterval": "50",
            "delta.constraints.number_valid": CHECK,
            "delta.dataSkippingStatsColumns": "number",
        },
        **more,
    }


def _row_ids(last: int) -> Mapping[str, Any]:
    told = json.dumps({"domainName": "delta.rowTracking", "rowIdHighWaterMark": last})
    return {"domain": "delta.rowTracking", "configuration": told, "removed": False}


def _checksum(folder: Path, version: int, **more: Any) -> None:
    told = {
        "setTransactions": [{"appId": "a", "version": 3}],
        "domainMetadata": [_row_ids(6)],
        "metadata": _metadata(),
        "protocol": PROTOCOL,
        **more,
    }
    kept = {name: value for name, value in told.items() if value is not None}
    (folder / f"{version:020}.crc").write_text(json.dumps(kept), encoding="utf-8")


def _commit(folder: Path, version: int, *actions: Mapping[str, Any]) -> None:
    lines = "".join(f"{json.dumps(action)}\n" for action in ({"commitInfo": {}}, *actions))
    (folder / f"{version:020}.json").write_text(lines, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a log of two commits, of which the first has a checksum file."""
    _commit(tmp_path, 0)
    _checksum(tmp_path, 0)
    _commit(tmp_path, 1, {"txn": {"appId": "b", "version": 1}}, {"domainMetadata": _row_ids(9)})
    return tmp_path


def _known(folder: Path, newest: int = 1) -> LogState:
    state = state_of(folder, newest)
    assert state is not None
    return state


def test_commits_are_read_from_the_last_checksum_on(folder: Path) -> None:
    """What the checksum file tells counts until a commit says something else."""
    state = _known(folder)
    assert 1 == state.version
    assert {"a": 3, "b": 1} == state.numbers
    assert 9 == state.last_row_id
    _commit(folder, 2, {"txn": {"appId": "a", "version": 4}})
    later = followed(folder, state)
    assert later is not None
    assert (2, 4, 9) == (later.version, later.numbers["a"], later.last_row_id)
    assert later == _known(folder)


def test_the_first_row_has_the_id_0(tmp_path: Path) -> None:
    """A table that has given out one id has given out 0, whoever tells it."""
    _commit(tmp_path, 0)
    _checksum(tmp_path, 0, domainMetadata=[])
    assert _known(tmp_path, 0).last_row_id == -1
    _commit(tmp_path, 1, {"domainMetadata": _row_ids(0)})
    assert _known(tmp_path, 1).last_row_id == 0
    _checksum(tmp_path, 1, domainMetadata=[{"domain": "other"}, _row_ids(0)])
    assert _known(tmp_path, 1).last_row_id == 0


def test_the_form_is_that_of_the_table(folder: Path) -> None:
    """Columns, partitions, dates, rules and intervals are those of the table."""
    form = _known(folder).form
    assert isinstance(form, TableForm)
    assert ["writer", "number", "at", "until"] == form.columns.names
    assert [False, False, False, True] == [field.nullable for field in form.columns]
    assert (["writer", "day"], {"day": "at"}) == (form.partitioned_by, form.dates)
    assert 50 == form.checkpoint_interval
    assert {"number"} == form.statistics
    assert form.has_row_ids
    for number, writer, name in ((1, "w", None), (0, "w", "number_valid"), (1, "", "number_valid")):
        rows = pa.table({"number": [1, number], "writer": ["w", writer]})
        assert name == broken(rows, form.conditions)
    assert "number_valid" == broken(
        pa.table({"number": pa.array([None], pa.int64()), "writer": ["w"]}), form.conditions
    )


def test_a_table_without_features_has_a_form(tmp_path: Path) -> None:
    """As the projection is: of the first protocol, parted by a column that writers give."""
    fields = [_field("state", "string"), _field("ambiguous", "boolean")]
    _commit(tmp_path, 0)
    _checksum(
        tmp_path,
        0,
        protocol={"minReaderVersion": 1, "minWriterVersion": 2},
        metadata=_metadata(
            schemaString=json.dumps({"fields": fields}),
            partitionColumns=["state"],
            configuration={},
        ),
    )
    form = _known(tmp_path, 0).form
    assert isinstance(form, TableForm)
    assert (["state"], {}, False) == (form.partitioned_by, form.dates, form.has_row_ids)
    assert [pa.string(), pa.bool_()] == form.columns.types


def _schema(*fields: Mapping[str, Any]) -> dict[str, Any]:
    return _metadata(schemaString=json.dumps({"fields": fields}), partitionColumns=["writer"])


def _set(**settings: str) -> dict[str, Any]:
    return _metadata(configuration=_metadata()["configuration"] | settings)


WRITER = _field("writer", "string")


@pytest.mark.parametrize(
    ("why", "more"),
    [
        ("protocol (3, 7)", {"protocol": {**PROTOCOL, "minReaderVersion": 3}}),
        ("protocol (1, 6)", {"protocol": {"minReaderVersion": 1, "minWriterVersion": 6}}),
        (
            "features ['inCommitTimestamp']",
            {"protocol": {**PROTOCOL, "writerFeatures": ["inCommitTimestamp", "appendOnly"]}},
        ),
        (
            "property delta.constraints.other",
            {"metadata": _set(**{"delta.constraints.other": "number > 7"})},
        ),
        ("property delta.appendOnly", {"metadata": _set(**{"delta.appendOnly": "true"})}),
        ("property owner", {"metadata": _set(owner="me")}),
        (
            "property delta.autoOptimize.autoCompact",
            {"metadata": _set(**{"delta.autoOptimize.autoCompact": "legacy"})},
        ),
        (
            "property delta.autoOptimize.optimizeWrite",
            {"metadata": _set(**{"delta.autoOptimize.optimizeWrite": "true"})},
        ),
        (
            "property delta.dataSkippingStatsColumns",
            {"metadata": _set(**{"delta.dataSkippingStatsColumns": "number,other"})},
        ),
        (
            "property delta.checkpointInterval",
            {"metadata": _set(**{"delta.checkpointInterval": "0"})},
        ),
        ("generated column day", {"metadata": _metadata(partitionColumns=["writer"])}),
        ("no partitions", {"metadata": _metadata(partitionColumns=[])}),
        ("column n", {"metadata": _schema(WRITER, _field("n", "decimal(3,1)"))}),
        (
            "column n",
            {"metadata": _schema(WRITER, _field("n", "long", metadata={"delta.invariants": "x"}))},
        ),
        ("partition writer", {"metadata": _schema(_field("writer", "string", nullable=True))}),
        ("partition writer", {"metadata": _schema(_field("writer", "timestamp"))}),
    ],
)
def test_what_is_not_known_here_is_left_to_spark(
    tmp_path: Path, why: str, more: Mapping[str, Any]
) -> None:
    """A feature, a property, a rule or a column that is in no list leaves the table to Spark."""
    _commit(tmp_path, 0)
    _checksum(tmp_path, 0, **more)
    assert why == _known(tmp_path, 0).form


@pytest.mark.parametrize(("version", "is_readable"), [(1, True), (2, False), (3, False)])
def test_files_are_read_where_readers_need_to_know_nothing_more(
    folder: Path, version: int, is_readable: bool
) -> None:
    """What a table asks of its readers beyond the first version of Delta's protocol is Spark's to
    do, from the commit on that says so.
    """
    assert _known(folder).is_readable
    _commit(folder, 2, {"protocol": {"minReaderVersion": version, "minWriterVersion": 7}})
    assert is_readable == _known(folder).is_readable


@pytest.mark.parametrize("missing", ["setTransactions", "domainMetadata", "metadata", "protocol"])
def test_a_checksum_file_need_not_tell(tmp_path: Path, missing: str) -> None:
    """Delta may leave parts of it out; then nothing is known."""
    _commit(tmp_path, 0)
    _checksum(tmp_path, 0, **{missing: None})
    assert state_of(tmp_path, 0) is None


def test_a_change_of_the_table_is_known_from_its_commit(folder: Path) -> None:
    """A commit that changes the table says how an append has to be from then on."""
    _commit(folder, 2, {"metaData": _set(owner="me")}, {"txn": {"appId": "a", "version": 4}})
    later = followed(folder, _known(folder, 1))
    assert later is not None
    assert ("property owner", 4) == (later.form, later.numbers["a"])
    _commit(folder, 3, {"metaData": _metadata()})
    assert isinstance(_known(folder, 3).form, TableForm)
    _commit(folder, 4, {"protocol": {**PROTOCOL, "writerFeatures": ["columnMapping"]}})
    assert "features ['columnMapping']" == _known(folder, 4).form


def test_another_log_in_its_place_is_not_followed(folder: Path) -> None:
    """A commit that is not the one that was read belongs to another table."""
    state = _known(folder)
    (folder / f"{1:020}.json").unlink()
    assert followed(folder, state) is None
    _commit(folder, 9)
    (folder / f"{9:020}.json").rename(folder / f"{1:020}.json")
    assert followed(folder, state) is None


def test_our_own_commit_is_known_without_reading_it(folder: Path) -> None:
    """After a commit of ours all is known that reading it would tell."""
    state = _known(folder)
    _commit(folder, 2, {"txn": {"appId": "a", "version": 8}}, {"domainMetadata": _row_ids(12)})
    note_commit(folder, state, numbered=("a", 8), last_row_id=12)
    assert followed(folder, state) == log_state._known[folder]
    assert 8 == _known(folder).numbers["a"]


def test_nothing_is_known_without_a_checksum_file(tmp_path: Path) -> None:
    """A log that has none is Spark's."""
    _commit(tmp_path, 0)
    assert state_of(tmp_path, 0) is None
