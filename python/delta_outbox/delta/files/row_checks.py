"""Checks rows by Arrow against the CHECK constraints of our logs, where Spark does not write them.

The SQL of the tables is the rule; a condition that is not known here leaves the write to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from delta_outbox.core.instants import FIRST_INSTANT, LAST_INSTANT

_of = pc.field
_COUNTERS: Final = ("lifecycle", "attempt", "publish_attempts", "crashes", "suspect")


def _all(*conditions: pc.Expression) -> pc.Expression:
    return reduce(and_, conditions)


def _is_short(name: str, most: int) -> pc.Expression:
    """Say whether a text has so many bytes at most."""
    return pc.binary_length(_of(name)) <= most


_NAMES: Final = "concat_ws(' ', event_id, event_type, ordering_key, partition_key)"

# twin: macros/storage/log_checks.sql::log_checks
_CONDITIONS: Final[Mapping[str, pc.Expression]] = {
    "length(event_id) > 0": _of("event_id") != "",
    "length(event_type) > 0": _of("event_type") != "",
    # `broken` asks it of all text.
    f"decode(encode({_NAMES}, 'UTF-16BE'), 'UTF-16BE') = {_NAMES}": pc.scalar(True),
    "octet_length(event_id) <= 512 and octet_length(event_type) <= 512 "
    "and coalesce(octet_length(ordering_key) <= 1024, true) "
    "and coalesce(octet_length(partition_key) <= 1024, true)": _all(
        _is_short("event_id", 512),
        _is_short("event_type", 512),
        _of("ordering_key").is_null() | _is_short("ordering_key", 1024),
        _of("partition_key").is_null() | _is_short("partition_key", 1024),
    ),
    "epoch >= 0 and lane >= 0 and sequence >= 1 and arrival >= 0": _all(
        *(_of(name) >= 0 for name in ("epoch", "lane", "arrival")), _of("sequence") >= 1
    ),
    "length(event_id) > 0 and length(destination) > 0": (
        (_of("event_id") != "") & (_of("destination") != "")
    ),
    "lifecycle >= 0 and attempt >= 0 and publish_attempts >= 0 and crashes >= 0 and suspect >= 0 "
    "and publish_attempts <= attempt and crashes <= attempt and suspect <= attempt": _all(
        *(_of(name) >= 0 for name in _COUNTERS),
        *(_of(name) <= _of("attempt") for name in _COUNTERS[2:]),
    ),
    "to_state <> 'CLAIMED' or (claim_id is not null and relay_id is not null "
    "and lease_expires_at is not null and claim_size >= 1 and attempt >= 1)": (
        (_of("to_state") != "CLAIMED")
        | _all(
            *(_of(name).is_valid() for name in ("claim_id", "relay_id", "lease_expires_at")),
            _of("claim_size") >= 1,
            _of("attempt") >= 1,
        )
    ),
    "from_state <> 'CLAIMED' or claim_id is not null": (
        (_of("from_state") != "CLAIMED") | _of("claim_id").is_valid()
    ),
    "reason not in ('replayed', 'operator') or (actor is not null and command_id is not null)": (
        ((_of("reason") != "replayed") & (_of("reason") != "operator"))
        | (_of("actor").is_valid() & _of("command_id").is_valid())
    ),
    "reason <> 'replayed' or (lifecycle >= 1 and attempt = 0 and publish_attempts = 0 "
    "and crashes = 0 and suspect = 0)": (
        (_of("reason") != "replayed")
        | _all(_of("lifecycle") >= 1, *(_of(name) == 0 for name in _COUNTERS[1:]))
    ),
    "number >= 1 and length(writer) > 0": (_of("number") >= 1) & (_of("writer") != ""),
    "length(trim(actor)) > 0 and length(trim(reason)) > 0": (
        (pc.utf8_trim(_of("actor"), " ") != "") & (pc.utf8_trim(_of("reason"), " ") != "")
    ),
}
# ALTER TABLE puts blanks between all words of a condition. In literals of ours none decides.
_BLANKS: Final = re.compile(r"\s+")
_OF_BARE_TEXT: Final = {_BLANKS.sub("", sql): check for sql, check in _CONDITIONS.items()}
_TRIPLES: Final = re.compile(
    r"concat\(from_state,'>',to_state,':',reason\)in\(((?:'[A-Z]+>[A-Z]+:[a-z_]+',?)+)\)"
)
_KINDS: Final = re.compile(r"kindin\(((?:'[a-z_]+',?)+)\)")
_IN_RANGE: Final = re.compile(
    rf"(coalesce\(unix_micros\((\w+)\)between{FIRST_INSTANT}and{LAST_INSTANT},true\)(and|$))+"
)
_NAMED: Final = re.compile(r"'([^']+)'")
_INSTANT: Final = re.compile(r"unix_micros\((\w+)\)")


def condition(sql: str) -> pc.Expression | None:
    """Return a CHECK constraint as Arrow asks it; None if it is not one of ours.

    Args:
        sql: the constraint as the table has it.
    """
    bare = _BLANKS.sub("", sql)
    if _IN_RANGE.fullmatch(bare):
        return _all(*map(_is_in_range, _INSTANT.findall(bare)))
    kinds = _KINDS.fullmatch(bare)
    if kinds is not None:
        return _of("kind").isin(_NAMED.findall(kinds[1]))
    triples = _TRIPLES.fullmatch(bare)
    if triples is None:
        return _OF_BARE_TEXT.get(bare)
    triple = pc.binary_join_element_wise(
        pc.binary_join_element_wise(_of("from_state"), _of("to_state"), ">"), _of("reason"), ":"
    )
    return triple.isin(_NAMED.findall(triples[1]))


def _is_in_range(name: str) -> pc.Expression:
    number = _of(name).cast(pa.int64())
    inside = (number >= FIRST_INSTANT) & (number <= LAST_INSTANT)
    return _of(name).is_null() | inside


def broken(rows: pa.Table, conditions: Mapping[str, pc.Expression]) -> str | None:
    """Return the name of a constraint that some row does not fulfil, or `text` if some text is not
    UTF-8; None if all is well.

    As in SQL, what cannot be said (NULL) is not fulfilled.

    Args:
        rows: all that is to be written.
        conditions: by name.
    """
    try:
        rows.validate(full=True)
    except pa.ArrowInvalid:
        return "text"
    asked = ds.dataset(rows).to_table(columns=dict(conditions))
    for name in conditions:
        if not pc.all(asked[name], skip_nulls=False, min_count=0).as_py():
            return name
    return None
