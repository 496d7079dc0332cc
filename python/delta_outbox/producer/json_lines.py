"""Reads events from JSON lines, as `outbox append FILE.jsonl` takes them.

One object a line, its fields the columns of the log. `payload` is any JSON value: a text is
stored as its UTF-8 bytes, anything else (null too) as compact JSON text in which names keep
their order and numbers stand as they were written. `payload_base64` instead holds bytes.
Instants are ISO 8601 with an offset; what is finer than a microsecond is cut. A field that is
null counts as left out, except `payload`.
"""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from delta_outbox.core.byte_bounds import AT_ONCE
from delta_outbox.core.errors import WrongUsage
from delta_outbox.producer.candidates import COLUMNS, REQUIRED, unknown_column
from delta_outbox.producer.json_text import JsonReader, JsonTextError
from delta_outbox.producer.rejection import Rejection, Rows, shown

_FIELDS: Final = frozenset(COLUMNS) | {"payload_base64"}
# Python objects are kept for so many rows and bytes of payloads, Arrow holds the rest.
_CHUNK_ROWS: Final = 20_000


@dataclass(frozen=True, kw_only=True)
class EventRows:
    """What a file holds: the rows that could be read, their lines, and what is wrong."""

    events: pa.Table  # the required columns, and those that a line gives
    lines: Rows  # the line of each row, counted from 1
    rejections: tuple[Rejection, ...]  # sorted by line


class _RowError(Exception):
    """A line breaks a rule."""

    def __init__(self, field: str, rule: str, message: str) -> None:
        super().__init__(message)
        self.field, self.rule, self.message = field, rule, message

    def at(self, line: int) -> Rejection:
        return Rejection(line=line, field=self.field, rule=self.rule, message=self.message)


def read_file(name: str) -> EventRows:
    """Read a file of JSON lines, or standard input if the name is `-`.

    Raises:
        WrongUsage: the file cannot be read.
    """
    try:
        if name == "-":
            return read_lines(sys.stdin.buffer)
        with Path(name).open("rb") as stream:
            return read_lines(stream)
    except OSError as error:
        raise WrongUsage(
            f"append: FILE must be a file that can be read, or `-`. Got: {shown(name)} "
            f"({error.strerror or 'unknown error'}).",
            remedy="Correct the name of the file.",
        ) from error


def read_lines(lines: Iterable[bytes]) -> EventRows:
    """Read JSON lines.

    Args:
        lines: as a binary stream gives them. Only a line feed ends a line: other line
            separators of Unicode may stand inside a JSON text.
    """
    reader = JsonReader()
    columns = _Columns()
    rejections: list[Rejection] = []
    for number, raw in enumerate(lines, start=1):
        line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
        if not line.strip():
            continue
        try:
            columns.add(number, _row(reader, line))
        except _RowError as refused:
            rejections.append(refused.at(number))
        except JsonTextError as bad:
            rejections.append(Rejection(line=number, field="", rule=bad.rule, message=bad.message))
    return EventRows(
        events=columns.table(),
        lines=np.array(columns.lines, dtype=np.int64),
        rejections=tuple(rejections),
    )


@dataclass(kw_only=True)
class _Columns:
    """Gathers rows and turns them into Arrow in parts."""

    lines: list[int] = field(default_factory=list)
    _rows: list[dict[str, object]] = field(default_factory=list)
    _parts: list[pa.Table] = field(default_factory=list)
    _given: set[str] = field(default_factory=set)
    _bytes: int = 0

    def add(self, line: int, row: dict[str, Any]) -> None:
        self.lines.append(line)
        self._rows.append(row)
        self._given.update(row)
        self._bytes += len(row["payload"])
        if len(self._rows) == _CHUNK_ROWS or self._bytes >= AT_ONCE:
            self._flush()

    def table(self) -> pa.Table:
        self._flush()
        # The required ones are there even if no line gives them: each line is then at fault.
        names = [name for name in COLUMNS if name in self._given or name in REQUIRED]
        return pa.concat_tables(self._parts).select(names)

    def _flush(self) -> None:
        arrays = {
            name: pa.array([row.get(name) for row in self._rows], kind)
            for name, kind in COLUMNS.items()
        }
        self._parts.append(pa.table(arrays))
        self._rows, self._bytes = [], 0


def _row(reader: JsonReader, line: bytes) -> dict[str, object]:
    document = reader.read(line)
    if not isinstance(document, dict):
        raise _RowError("", "json_object", f"a line must be a JSON object. Got: {_kind(document)}.")
    for name in document:
        if name not in _FIELDS:
            raise _RowError(name[:80], "known_column", unknown_column(name))
    row: dict[str, object] = {"payload": _payload(reader, document)}
    for name, value in document.items():
        if value is not None and name in _READ:
            row[name] = _READ[name](name, value)
    return row


def _payload(reader: JsonReader, document: dict[str, Any]) -> bytes:
    if ("payload" in document) == ("payload_base64" in document):
        raise _RowError(
            "payload", "one_payload", "exactly one of payload and payload_base64 must be given."
        )
    if "payload" in document:
        value = document["payload"]
        text = value if isinstance(value, str) else reader.text_of("payload")
        return text.encode("utf-8")
    encoded = _text("payload_base64", document["payload_base64"])
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise _RowError(
            "payload_base64", "base64", "must be base64 (RFC 4648, section 4, with padding)."
        ) from None


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _RowError(name, "type", f"must be a text. Got: {_kind(value)}.")
    return value


def _instant(name: str, value: object) -> datetime:
    text = _text(name, value)
    try:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise _RowError(
        name,
        "timestamp",
        "must be ISO 8601 with an offset, such as 2026-11-01T12:00:00.000001Z. "
        f"Got: {shown(text)}.",
    )


def _whole_number(name: str, value: object) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise _RowError(name, "type", f"must be a whole number of 64 bits. Got: {_kind(value)}.")
    return value


def _map(name: str, value: object) -> list[tuple[str, str]]:
    if not isinstance(value, dict):
        raise _RowError(name, "type", f"must be an object. Got: {_kind(value)}.")
    for key, entry in value.items():
        if not isinstance(entry, str):
            raise _RowError(name, "type", f"{shown(key)} must be a text. Got: {_kind(entry)}.")
    return list(value.items())


_READ: Final[dict[str, Callable[[str, object], object]]] = {
    "event_id": _text,
    "event_type": _text,
    "created_at": _instant,
    "ordering_key": _text,
    "partition_key": _text,
    "headers": _map,
    "metadata": _map,
    "available_at": _instant,
    "ordinal": _whole_number,
}


def _kind(value: object) -> str:
    """Name the kind of a JSON value without showing it."""
    kinds = {dict: "an object", list: "an array", str: "a text", type(None): "null"}
    return kinds.get(type(value)) or ("true or false" if isinstance(value, bool) else "a number")
