"""Reads from the folder of a log, without Spark, what a reader or a writer must know of its table.

Delta leaves a checksum file beside a commit, which tells of the table its metadata and protocol,
the last number of each numbered writer, the last id of a row. The commits after it say what has
changed since (Delta's protocol, "Version Checksum File").

Files are read where the protocol of the table asks nothing of a reader beyond its first version:
then the rows are those of the files that commits add. Files are written only where all that the
protocol and the metadata say is in the lists below, with a value that our appends do justice to.
What is in no list, whoever has put it there, leaves the table to Spark (decision 0071).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.tables import FORMAT_PROPERTY
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.commits import NO_ROW_ID, read_commit, row_id_of
from delta_outbox.delta.files.row_checks import condition
from delta_outbox.runtime.log_folder import (
    COMMITS_LOOKED_AT,
    Identity,
    checksum_file,
    commit_file,
    identity_of,
)

FIRST_READER: Final = 1  # what a table may do that its readers need not know of

FEATURES: Final = frozenset(
    {
        *("allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints"),
        *("domainMetadata", "generatedColumns", "invariants", "rowTracking"),
    }
)
"""The table features that a writer of files knows."""
# Before features were named (3 for constraints, 4 for the change feed and generated columns), or
# with them.
_WRITERS: Final = (2, 3, 4, 7)
_TYPES: Final[Mapping[str, pa.DataType]] = {
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_MAP: Final = {
    "type": "map",
    "keyType": "string",
    "valueType": "string",
    "valueContainsNull": True,
}
_NUMBERS: Final = {"type": "array", "elementType": "integer", "containsNull": True}
_PARTITIONED_BY: Final = frozenset({"integer", "long", "string"})  # as they stand in a path
_CHECK: Final = "delta.constraints."
_STATISTICS: Final = "delta.dataSkippingStatsColumns"
_CHECKPOINTS: Final = "delta.checkpointInterval"
_DATE_OF: Final = "cast({} as date)"
_SIZE_OF: Final = "octet_length({})"
# A writer gives all columns, so that no default counts.
_NOTED: Final = frozenset({"comment", "CURRENT_DEFAULT"})

_PROPERTIES: Final[Mapping[str, Callable[[str], object]]] = {
    FORMAT_PROPERTY: str.isdecimal,
    _CHECKPOINTS: re.compile(r"[1-9][0-9]*").fullmatch,
    _STATISTICS: re.compile(r"\w+(,\w+)*").fullmatch,
    # An append is its own change feed.
    "delta.enableChangeDataFeed": str,
    # Whether rows get ids follows from the feature; the other two name columns of rewritten files.
    "delta.enableRowTracking": str,
    "delta.rowTracking.materializedRowIdColumnName": str,
    "delta.rowTracking.materializedRowCommitVersionColumnName": str,
    # What a writer does before its commit: nothing.
    "delta.autoOptimize.optimizeWrite": "false".__eq__,
    # After it: nothing. Where files are to be compacted, Spark does it after its own appends of
    # rows, which are those without a number that make a checkpoint.
    "delta.autoOptimize.autoCompact": ("true", "false").__contains__,
    # For whoever removes what is old.
    "delta.deletedFileRetentionDuration": str,
    "delta.logRetentionDuration": str,
}
"""The table properties that a writer of files knows, but for constraints: which values."""


class _NotKnownError(Exception):
    """A table has something that a writer of files does not know; the message says what."""


@dataclass(frozen=True, kw_only=True)
class TableForm:
    """What an append to a table has to be like.

    Args:
        columns: that a writer gives, in the order of the table, required ones not nullable.
        dates: of the instant of which a generated partition column is the date.
        sizes: of the bytes of which another generated column is the number.
        partitioned_by: the partition columns.
        conditions: the CHECK constraints by name.
        statistics: the columns of which Delta keeps the least and the greatest value of a file.
        checkpoint_interval: commits between two checkpoints.
        has_row_ids: rows are numbered.
    """

    columns: pa.Schema
    dates: Mapping[str, str]
    sizes: Mapping[str, str]
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
        metadata: of the table, as Delta's protocol has it.
        protocol: likewise.
        form: of an append; where that is Spark's to make, what is not known of the table.
        numbers: the last number of each numbered writer.
        last_row_id: the last id that a row was given, `NO_ROW_ID` if none.
    """

    version: int
    file: Identity
    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any]
    form: TableForm | str
    numbers: Mapping[str, int]
    last_row_id: int

    @property
    def is_readable(self) -> bool:
        """Say whether the rows of the table are those of the files that its commits have added."""
        return bool(self.protocol["minReaderVersion"] == FIRST_READER)


_known: Final[dict[Path, LogState]] = {}


def state_of(folder: Path, newest: int) -> LogState | None:
    """Return what is known of a table at its newest commit; None where its log does not tell.

    Args:
        folder: where Delta keeps its log.
        newest: a commit that is there; later ones are read as well.
    """
    state = _known.get(folder)
    state = None if state is None else followed(folder, state)
    if state is None:
        state = _from_checksum(folder, newest)
    if state is not None:
        _known[folder] = state
    return state


def state_here(history: CommitHistory, table: str) -> tuple[Path, LogState] | None:
    """Return where Delta keeps the log of a table, and what is known of it at its newest commit;
    None if the log is not on this machine, or does not tell.

    Args:
        history: of the tables of a Spark.
        table: its full name.
    """
    folder = history.folder(table)
    newest = None if folder is None else history.newest(table)
    if folder is None or newest is None:
        return None
    state = state_of(folder, newest.version)
    return None if state is None else (folder, state)


def _from_checksum(folder: Path, newest: int) -> LogState | None:
    for version in range(newest, max(-1, newest - COMMITS_LOOKED_AT), -1):
        file = checksum_file(folder, version)
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
    while (identity := identity_of(commit_file(folder, state.version + 1))) is not None:
        actions = read_commit(folder, state.version + 1)
        if actions is None:
            return None
        state = replace(
            state,
            version=state.version + 1,
            file=identity,
            numbers={**state.numbers, **actions.numbers},
            last_row_id=max(state.last_row_id, actions.last_row_id),
        )
        if actions.metadata is not None or actions.protocol is not None:
            metadata = actions.metadata or state.metadata
            protocol = actions.protocol or state.protocol
            form = form_of(metadata, protocol)
            state = replace(state, metadata=metadata, protocol=protocol, form=form)
    return state


def note_commit(
    folder: Path, state: LogState, *, numbered: tuple[str, int] | None, last_row_id: int
) -> None:
    """Note what is known after the commit that has just followed, which is ours.

    Args:
        folder: where Delta keeps the log.
        state: what was known before it.
        numbered: the numbered writer and the number of the append, if it has one.
        last_row_id: the last id that it gave to a row.
    """
    file = identity_of(commit_file(folder, state.version + 1))
    if file is not None:
        _known[folder] = replace(
            state,
            version=state.version + 1,
            file=file,
            numbers={**state.numbers, **dict([numbered] if numbered else [])},
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
        metadata=metadata,
        protocol=protocol,
        form=form_of(metadata, protocol),
        numbers=numbers,
        last_row_id=max(map(row_id_of, domains), default=NO_ROW_ID),
    )


def form_of(metadata: Mapping[str, Any], protocol: Mapping[str, Any]) -> TableForm | str:
    """Return what an append to a table has to be like; where that is Spark's to make, what of the
    table is not known.

    Args:
        metadata: of the table, as Delta's protocol has it.
        protocol: likewise.
    """
    try:
        return _form(metadata, protocol)
    except _NotKnownError as found:
        return str(found)


def _form(metadata: Mapping[str, Any], protocol: Mapping[str, Any]) -> TableForm:
    features = {*(protocol.get("writerFeatures") or ())}
    versions = protocol["minReaderVersion"], protocol["minWriterVersion"]
    _demand(versions[0] == FIRST_READER and versions[1] in _WRITERS, f"protocol {versions}")
    _demand(features <= FEATURES, f"features {sorted(features - FEATURES)}")
    partitioned_by = metadata["partitionColumns"]
    _demand(partitioned_by, "no partitions")
    columns: list[pa.Field] = []
    dates: dict[str, str] = {}
    sizes: dict[str, str] = {}
    for field in json.loads(metadata["schemaString"])["fields"]:
        name, more = field["name"], field["metadata"]
        generated = more.get("delta.generationExpression")
        if generated is not None:
            instant = next((c for c in columns if generated == _DATE_OF.format(c.name)), None)
            source = next((c for c in columns if generated == _SIZE_OF.format(c.name)), None)
            if instant is not None and not instant.nullable and name in partitioned_by:
                dates[name] = instant.name
            elif source is not None and (source.type, field["type"]) == (pa.binary(), "integer"):
                sizes[name] = source.name
            else:
                raise _NotKnownError(f"generated column {name}")
        else:
            kind = _type_of(field["type"])
            if kind is None or not more.keys() <= _NOTED:
                raise _NotKnownError(f"column {name}")
            if name in partitioned_by:
                known = field["type"] in _PARTITIONED_BY and not field["nullable"]
                _demand(known, f"partition {name}")
            columns.append(pa.field(name, kind, nullable=field["nullable"]))
    settings: Mapping[str, str] = metadata["configuration"]
    conditions: dict[str, pc.Expression] = {}
    for name, value in settings.items():
        check = condition(value) if name.startswith(_CHECK) else None
        if check is not None:
            conditions[name.removeprefix(_CHECK)] = check
        else:
            _demand(name in _PROPERTIES and _PROPERTIES[name](value), f"property {name}")
    all_names = [column.name for column in columns]
    kept = settings[_STATISTICS].split(",") if _STATISTICS in settings else all_names
    _demand({*kept} <= {*all_names, *dates}, f"property {_STATISTICS}")
    return TableForm(
        columns=pa.schema(columns),
        dates=dates,
        sizes=sizes,
        partitioned_by=partitioned_by,
        conditions=conditions,
        statistics=frozenset(kept),
        checkpoint_interval=int(settings.get(_CHECKPOINTS, 10)),
        has_row_ids="rowTracking" in features,
    )


def _type_of(given: object) -> pa.DataType | None:
    """Return the type of a column in Arrow, None if it is not known."""
    if given == _MAP:
        return pa.map_(pa.string(), pa.string())
    if given == _NUMBERS:
        return pa.list_(pa.int32())
    return _TYPES.get(given) if isinstance(given, str) else None


def _demand(is_so: object, otherwise: str) -> None:
    if not is_so:
        raise _NotKnownError(otherwise)
