"""Reads from the folder of a log, without Spark, what a writer has to know of its table.

Delta leaves a checksum file beside a commit, which tells of the table what a writer needs: its
metadata and protocol, the last number of each numbered writer, the last id of a row. The commits
after it say what has changed since (Delta's protocol, "Version Checksum File").
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.delta.files.row_checks import condition
from delta_outbox.runtime.log_folder import Identity, actions_of, commit_file, identity_of

COMMITS_LOOKED_AT: Final = 120  # back from the newest one, for one with a checksum file
ROW_TRACKING: Final = "delta.rowTracking"
NO_ROW_ID: Final = -1  # the ids of rows begin with 0

# What our appends do justice to. A table with any other feature is Spark's to write.
_FEATURES: Final = frozenset(
    {
        *("appendOnly", "changeDataFeed", "checkConstraints", "domainMetadata"),
        *("generatedColumns", "invariants", "rowTracking"),
    }
)
# Reader and writer version: before features were named (3 for constraints, 4 for the change feed
# and generated columns), or with them.
_PROTOCOLS: Final = ((1, 2), (1, 3), (1, 4), (1, 7))
_TYPES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_CHECK: Final = "delta.constraints."
_DATE_OF: Final = "cast({} as date)"


@dataclass(frozen=True, kw_only=True)
class TableForm:
    """What an append to a table has to be like.

    Args:
        columns: that a writer gives, in the order of the table, required ones not nullable.
        dates: of the instant of which a generated partition column is the date.
        partitioned_by: the partition columns.
        conditions: the CHECK constraints by name.
        statistics: the columns of which Delta keeps the least and the greatest value of a file.
        checkpoint_interval: commits between two checkpoints.
        has_row_ids: rows are numbered.
    """

    columns: pa.Schema
    dates: Mapping[str, str]
    partitioned_by: Sequence[str]
    conditions: Mapping[str, pc.Expression]
    statistics: frozenset[str]
    checkpoint_interval: int
    has_row_ids: bool


@dataclass(frozen=True, kw_only=True)
class LogState:
    """What is known of a table at a commit.

    Args:
        version: the commit.
        file: what tells the commit's file from another one in its place.
        form: of an append; None where an append is Spark's to make.
        numbers: the last number of each numbered writer.
        last_row_id: the last id that a row was given, `NO_ROW_ID` if none.
    """

    version: int
    file: Identity
    form: TableForm | None
    numbers: Mapping[str, int]
    last_row_id: int


def state_of(folder: Path, newest: int) -> LogState | None:
    """Return what is known of a table at its newest commit; None where its log does not tell.

    Args:
        folder: where Delta keeps its log.
        newest: a commit that is there; later ones are read as well.
    """
    for version in range(newest, max(-1, newest - COMMITS_LOOKED_AT), -1):
        file = folder / f"{version:020}.crc"
        if file.exists():
            state = _of_checksum(folder, version, file)
            return state and followed(folder, state)
    return None


def followed(folder: Path, state: LogState) -> LogState | None:
    """Return what is known after the commits that came since; None where the log does not tell.

    Args:
        folder: where Delta keeps the log.
        state: what was known earlier.
    """
    if identity_of(commit_file(folder, state.version)) != state.file:
        return None  # another table has taken the place of the one that we knew
    while commit_file(folder, state.version + 1).exists():
        state = _after(folder, state)
    return state


def committed(
    folder: Path, state: LogState, *, app_id: str, number: int, last_row_id: int
) -> LogState | None:
    """Return what is known after the commit that has just followed, which is ours.

    Args:
        folder: where Delta keeps the log.
        state: what was known before it.
        app_id: the numbered writer.
        number: of the append.
        last_row_id: the last id that it gave to a row.
    """
    file = identity_of(commit_file(folder, state.version + 1))
    return file and replace(
        state,
        version=state.version + 1,
        file=file,
        numbers={**state.numbers, app_id: number},
        last_row_id=last_row_id,
    )


def _of_checksum(folder: Path, version: int, file: Path) -> LogState | None:
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        numbers = {one["appId"]: int(one["version"]) for one in told["setTransactions"]}
        domains, metadata, protocol = told["domainMetadata"], told["metadata"], told["protocol"]
    except (ValueError, KeyError, TypeError, FileNotFoundError):  # Delta need not write any of it
        return None
    identity = identity_of(commit_file(folder, version))
    return identity and LogState(
        version=version,
        file=identity,
        form=_form(metadata, protocol),
        numbers=numbers,
        last_row_id=max(map(_last_row_id, domains), default=NO_ROW_ID),
    )


def _after(folder: Path, state: LogState) -> LogState:
    """Return what is known after one more commit."""
    numbers, last, form = dict(state.numbers), state.last_row_id, state.form
    identity = identity_of(commit_file(folder, state.version + 1))
    assert identity is not None
    for action in actions_of(folder, state.version + 1):
        if "txn" in action:
            numbers[action["txn"]["appId"]] = int(action["txn"]["version"])
        elif "domainMetadata" in action:
            last = max(last, _last_row_id(action["domainMetadata"]))
        elif "metaData" in action or "protocol" in action:
            form = None  # until a checksum file tells both
    return replace(
        state,
        version=state.version + 1,
        file=identity,
        numbers=numbers,
        last_row_id=last,
        form=form,
    )


def _last_row_id(domain: Mapping[str, Any]) -> int:
    if domain["domain"] != ROW_TRACKING:
        return NO_ROW_ID
    return int(json.loads(domain["configuration"])["rowIdHighWaterMark"])


def _form(metadata: Mapping[str, Any], protocol: Mapping[str, Any]) -> TableForm | None:
    features = set(protocol.get("writerFeatures", ()))
    versions = protocol["minReaderVersion"], protocol["minWriterVersion"]
    partitioned_by = metadata["partitionColumns"]
    if versions not in _PROTOCOLS or not features <= _FEATURES or not partitioned_by:
        return None
    columns: list[pa.Field] = []
    dates: dict[str, str] = {}
    for field in json.loads(metadata["schemaString"])["fields"]:
        name, more = field["name"], field["metadata"]
        generated = more.get("delta.generationExpression")
        if generated is not None:
            instant = next((c.name for c in columns if generated == _DATE_OF.format(c.name)), None)
            if instant is None or name not in partitioned_by:
                return None
            dates[name] = instant
        elif field["type"] not in _TYPES or not more.keys() <= {"comment"}:
            return None
        else:
            columns.append(pa.field(name, _TYPES[field["type"]], nullable=field["nullable"]))
    settings = metadata["configuration"]
    checks = {
        name.removeprefix(_CHECK): condition(sql)
        for name, sql in settings.items()
        if name.startswith(_CHECK)
    }
    conditions = {name: check for name, check in checks.items() if check is not None}
    if len(conditions) < len(checks):
        return None
    kept = settings.get("delta.dataSkippingStatsColumns")
    return TableForm(
        columns=pa.schema(columns),
        dates=dates,
        partitioned_by=partitioned_by,
        conditions=conditions,
        statistics=frozenset(kept.split(",") if kept else (column.name for column in columns)),
        checkpoint_interval=int(settings.get("delta.checkpointInterval", 10)),
        has_row_ids="rowTracking" in features,
    )
