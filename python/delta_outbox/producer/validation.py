"""Checks events against the rules of an append, and reports every broken one.

Whole columns are looked at at once; Python sees single values only where a rule is broken, and
each distinct event type and header name once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import invalid_utf8, rows_where, sizes_of, without
from delta_outbox.core.reserved_names import RESERVED
from delta_outbox.core.settings import MAX_ID_BYTES, AppendSettings
from delta_outbox.producer.candidates import REQUIRED, complete, normalise
from delta_outbox.producer.log_match import contradictions, differing
from delta_outbox.producer.map_rules import check_map
from delta_outbox.producer.rejection import Rejection, Report, Rows, shown

__all__ = ["Rejection", "Validated", "complete", "validate"]

# As in the constraint `text_not_too_long` of the log.
MAX_TYPE_BYTES: Final = 512
MAX_KEY_BYTES: Final = 1024

# `created_at` decides the partition and how far the look-up of known ids reaches, so a slip of
# the unit (seconds taken for milliseconds, or the other way round) must not get in. A day ahead
# leaves room for local time that was labelled UTC.
EARLIEST_CREATED_AT: Final = datetime(2000, 1, 1, tzinfo=UTC)
CREATED_AT_AHEAD: Final = timedelta(days=1)
# The past means "at once"; later than ten years is more often a slip of the unit than a plan.
EARLIEST_AVAILABLE_AT: Final = datetime(1970, 1, 1, tzinfo=UTC)
AVAILABLE_AT_AHEAD: Final = timedelta(days=3653)

_CONTROL: Final = r"\p{Cc}"


@dataclass(frozen=True, kw_only=True)
class Validated:
    """What came of a batch: the rows with the types of the log, and all that is wrong."""

    given: pa.Table  # the given columns only, a repeated row only once
    lines: Rows  # the line of each row of `given`
    repeated: int  # rows left out of `given`: same id and content as an earlier row
    rejections: tuple[Rejection, ...]  # sorted by line; not empty: append nothing


def validate(
    candidate: pa.Table,
    *,
    settings: AppendSettings,
    now: datetime,
    lines: Sequence[int] | Rows | None = None,
) -> Validated:
    """Check a batch of candidate events against every rule that needs no look into the log.

    Args:
        candidate: columns of `outbox_events` that a producer may give.
        settings: sizes in bytes, and the pattern of event types.
        now: an aware instant; the bounds of `created_at` and `available_at` count from it.
        lines: the line of each row (default: counted from 1).
    """
    table, rejections = normalise(candidate)
    if lines is None:
        numbers = np.arange(1, table.num_rows + 1)
    else:
        numbers = np.asarray(lines, dtype=np.int64)
    report = Report(lines=numbers, rejections=rejections)
    rules = _Rules(settings=settings, now=now, report=report)
    for batch in table.to_batches():
        rules.check(batch)
        report.start += batch.num_rows
    kept, contradicting = _first_of_each(table, report)
    return Validated(
        given=table if len(kept) == table.num_rows else table.take(kept),
        lines=numbers[kept],
        repeated=table.num_rows - len(kept) - contradicting,
        rejections=tuple(sorted(report.rejections)),
    )


@dataclass(kw_only=True)
class _Rules:
    settings: AppendSettings
    now: datetime
    report: Report
    types: dict[str, bool] = field(default_factory=dict)  # event type -> matches the pattern

    def check(self, batch: pa.RecordBatch) -> None:
        """Apply all rules that look at one row at a time."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name in REQUIRED:
            if name in columns:
                rows = rows_where(columns[name].is_null())
                self.report.add(name, "required", rows, "must not be null.")
        text = {
            name: self._utf8(name, columns[name])
            for name in ("event_id", "event_type", "ordering_key", "partition_key")
            if name in columns
        }
        if "event_id" in text:
            self._event_id(text["event_id"])
        if "event_type" in text:
            self._event_type(text["event_type"])
        for name in ("ordering_key", "partition_key"):
            if name in text:
                self._size(name, text[name], MAX_KEY_BYTES)
        if "payload" in columns:
            self._payload(columns["payload"])
        for name, (low, high) in self._bounds().items():
            if name in columns:
                self._between(name, columns[name], low, high)
        max_bytes = self.settings.max_header_bytes
        for name in ("headers", "metadata"):
            if name in columns:
                check_map(name, columns[name], max_bytes=max_bytes, report=self.report)

    def _utf8(self, name: str, column: pa.Array) -> pa.Array:
        bad = invalid_utf8(column)
        self.report.add(name, "utf8", np.flatnonzero(bad), "must be valid UTF-8.")
        return without(column, bad)

    def _size(self, name: str, column: pa.Array, limit: int) -> None:
        sizes = sizes_of(column)
        empty = (sizes == 0) & np.asarray(column.is_valid())
        hint = "must not be empty." if name in REQUIRED else "must not be empty: leave it out."
        self.report.add(name, "not_empty", np.flatnonzero(empty), hint)
        self.report.add(
            name,
            "max_bytes",
            np.flatnonzero(sizes > limit),
            lambda row: f"must have at most {limit} bytes. Got: {sizes[row]}.",
        )

    def _reserved(self, name: str, column: pa.Array) -> None:
        rows = rows_where(pc.starts_with(column, RESERVED))
        hint = f"must not begin with '{RESERVED}': so do tasks and ends of workflows."
        self.report.add(name, "reserved", rows, hint)

    def _event_id(self, column: pa.Array) -> None:
        self._reserved("event_id", column)
        self._size("event_id", column, MAX_ID_BYTES)
        rows = rows_where(pc.match_substring_regex(column, _CONTROL))
        self.report.add(
            "event_id", "no_control_characters", rows, "must not have control characters."
        )

    def _event_type(self, column: pa.Array) -> None:
        self._reserved("event_type", column)
        sizes = sizes_of(column)
        self.report.add(
            "event_type",
            "max_bytes",
            np.flatnonzero(sizes > MAX_TYPE_BYTES),
            lambda row: f"must have at most {MAX_TYPE_BYTES} bytes. Got: {sizes[row]}.",
        )
        encoded = column.dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        for value in distinct:
            if value not in self.types:
                pattern = self.settings.event_type_pattern
                self.types[value] = re.fullmatch(pattern, value) is not None
        bad = np.array([not self.types[value] for value in distinct], dtype=np.bool_)
        codes = np.asarray(pc.fill_null(encoded.indices, len(distinct)))
        self.report.add(
            "event_type",
            "event_type_pattern",
            np.flatnonzero(np.append(bad, False)[codes]),
            lambda row: (
                f"must match {self.settings.event_type_pattern}. "
                f"Got: {shown(distinct[int(codes[row])])}."
            ),
        )

    def _payload(self, column: pa.Array) -> None:
        limit = self.settings.max_payload_bytes
        sizes = sizes_of(column)
        self.report.add(
            "payload",
            "max_payload_bytes",
            np.flatnonzero(sizes > limit),
            lambda row: f"must have at most {limit} bytes. Got: {sizes[row]}.",
        )

    def _bounds(self) -> dict[str, tuple[datetime, datetime]]:
        return {
            "created_at": (EARLIEST_CREATED_AT, self.now + CREATED_AT_AHEAD),
            "available_at": (EARLIEST_AVAILABLE_AT, self.now + AVAILABLE_AT_AHEAD),
        }

    def _between(self, name: str, column: pa.Array, low: datetime, high: datetime) -> None:
        outside = pc.or_(
            pc.less(column, pa.scalar(low, column.type)),
            pc.greater(column, pa.scalar(high, column.type)),
        )
        # numpy, because the value may lie beyond what Python's own datetime can show.
        instants = np.asarray(pc.fill_null(column.cast(pa.int64()), 0))
        span = f"{low:%Y-%m-%dT%H:%M:%SZ} and {high.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        self.report.add(
            name,
            "plausible_time",
            rows_where(outside),
            lambda row: (
                f"must lie between {span}. Got: {np.datetime64(int(instants[row]), 'us')}Z."
            ),
        )


def _first_of_each(table: pa.Table, report: Report) -> tuple[Rows, int]:
    """Keep the first row of every id; a later one must say the same.

    Returns:
        The rows that are kept, and how many of the others say something else.
    """
    everything: Rows = np.arange(table.num_rows)
    if "event_id" not in table.column_names or table.num_rows == 0:
        return everything, 0
    encoded = table["event_id"].dictionary_encode().unify_dictionaries().combine_chunks()
    codes = np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64)
    first = np.zeros(len(encoded.dictionary) + 1, dtype=np.int64)
    first[codes[::-1]] = everything[::-1]  # the last assignment stays: the first row
    later = everything[(first[codes] != everything) & (codes >= 0)]
    earlier = first[codes[later]]
    report.start = 0
    found = contradictions(differing(table.take(later), table.take(earlier)))
    for place, names in found:
        message = f"line {report.lines[earlier[place]]} has this event_id with other content"
        report.add(
            "event_id",
            "same_id_same_content",
            later[place : place + 1],
            f"{message} ({', '.join(names)}).",
        )
    return np.setdiff1d(everything, later, assume_unique=True), len(found)
