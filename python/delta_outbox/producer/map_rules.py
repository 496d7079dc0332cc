"""The rules for headers and metadata: names, values, trace context, size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import Mask, invalid_utf8, rows_where, sizes_of, without
from delta_outbox.producer.log_match import Entries, entries
from delta_outbox.producer.rejection import Report, Rows, shown
from delta_outbox.publishers.protocol import RESERVED_HEADERS

# W3C Trace Context, section 3.2: version 00, lower case, neither id all zero.
_TRACEPARENT: Final = r"^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"
_ZERO_IDS: Final = r"^00-(0{32}-|[0-9a-f]{32}-0{16}-)"
# What would let a value end its header and begin another one in a text protocol.
_LINE_BREAK_OR_NUL: Final = r"[\r\n\x00]"


def check_map(field: str, column: pa.Array, *, max_bytes: int, report: Report) -> None:
    """Check a column of maps; metadata never leaves, so fewer rules hold for it.

    Args:
        field: `headers` or `metadata`.
        column: maps from text to text.
        max_bytes: the limit for all names and values of one row together.
        report: gets the rejections.
    """
    found = entries(pa.chunked_array([column]))
    bad = invalid_utf8(found.names) | invalid_utf8(found.values)
    report.add(field, "utf8", found.rows[bad], "names and values must be valid UTF-8.")
    usable = Entries(
        rows=found.rows,
        names=without(found.names, bad),
        values=without(found.values, bad, instead=""),
    )
    rules = _MapRules(field=field, entries=usable, report=report)
    rules.names()
    rules.values()
    rules.traceparent()
    rules.size(max_bytes, rows=len(column))


@dataclass(kw_only=True)
class _MapRules:
    field: str
    entries: Entries
    report: Report

    def __post_init__(self) -> None:
        encoded = self.entries.names.dictionary_encode()
        self._distinct: list[str] = encoded.dictionary.to_pylist()
        # A name that is no text (null here) gets the code after the last: reported already.
        codes = pc.fill_null(encoded.indices, len(self._distinct))
        self._codes: Rows = np.asarray(codes).astype(np.int64)

    def names(self) -> None:
        self._refuse(
            "name",
            self._named([not name or _has_control(name) for name in self._distinct]),
            "is not a name: it must not be empty and must not have control characters.",
        )
        if self.field == "headers":
            self._refuse(
                "reserved_header",
                self._named([name.lower() in RESERVED_HEADERS for name in self._distinct]),
                "is a name that the relay sets itself; leave it out.",
            )
        self._refuse("unique_names", self._repeated(), "is given more than once.")

    def values(self) -> None:
        values = self.entries.values
        self._refuse("not_null", values.is_null(), "has no value; leave it out.")
        if self.field == "headers":
            broken = pc.match_substring_regex(values, _LINE_BREAK_OR_NUL)
            self._refuse("header_value", broken, "must not hold CR, LF or NUL.")

    def traceparent(self) -> None:
        places = rows_where(self._named([name.lower() == "traceparent" for name in self._distinct]))
        values = self.entries.values.take(places)
        good = pc.and_not(
            pc.match_substring_regex(values, _TRACEPARENT),
            pc.match_substring_regex(values, _ZERO_IDS),
        )
        self.report.add(
            self.field,
            "traceparent",
            self.entries.rows[places[rows_where(pc.invert(good))]],
            "`traceparent` must be 00-<32 hex>-<16 hex>-<2 hex> in lower case, "
            "neither id all zero (W3C Trace Context).",
        )

    def size(self, limit: int, *, rows: int) -> None:
        sizes = sizes_of(self.entries.names) + sizes_of(self.entries.values)
        total = np.bincount(self.entries.rows, weights=sizes, minlength=rows).astype(np.int64)
        self.report.add(
            self.field,
            "max_header_bytes",
            rows_where(total > limit),
            lambda row: (
                f"names and values must have at most {limit} bytes together. Got: {total[row]}."
            ),
        )

    def _named(self, hits: list[bool]) -> Mask:
        """Tell for each entry whether its name is one of the hits among the distinct names."""
        return np.array([*hits, False], dtype=np.bool_)[self._codes]

    def _repeated(self) -> Mask:
        rows, codes = self.entries.rows, self._codes
        order = np.lexsort((codes, rows))
        same = (np.diff(rows[order]) == 0) & (np.diff(codes[order]) == 0)
        repeated = np.zeros(len(codes), dtype=np.bool_)
        repeated[order[1:][same]] = True
        return repeated & (codes < len(self._distinct))

    def _refuse(self, rule: str, broken: Any, message: str) -> None:
        for place in rows_where(broken):
            name = self.entries.names[int(place)].as_py() or ""
            row = self.entries.rows[place : place + 1]
            self.report.add(self.field, rule, row, f"{shown(name)} {message}")


def _has_control(text: str) -> bool:
    return any(character < " " or "\x7f" <= character <= "\x9f" for character in text)
