"""The columns of the delivery policies: what each cell may hold, and how it is read.

A reader takes the text of a cell that is not blank and raises ValueError with the rule, worded to
follow "must be".
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from delta_outbox.core.globs import glob_to_regex
from delta_outbox.core.reserved_names import RESERVED, RESERVED_DESTINATIONS


class Ordering(StrEnum):
    """Whether events of one key wait for each other."""

    STRICT = "strict"
    NONE = "none"


class OrderScope(StrEnum):
    """Whether a key is in order over all destinations or within each."""

    KEY = "key"
    DESTINATION = "destination"


class OnDead(StrEnum):
    """What a DEAD event does to the later events of its key."""

    CONTINUE = "continue"
    HOLD = "hold"


class PayloadFormat(StrEnum):
    """What a publisher sends: the payload as it is, or a CloudEvent."""

    RAW = "raw"
    CLOUDEVENTS_STRUCTURED = "cloudevents-structured"
    CLOUDEVENTS_BINARY = "cloudevents-binary"


ROUTE_PLACEHOLDERS: Final = ("event_type", "event_id", "ordering_key", "partition_key")

_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_ROUTE: Final = re.compile(rf"(?:[^{{}}]|{{{{|}}}}|{{(?:{'|'.join(ROUTE_PLACEHOLDERS)})}})*")
_DESTINATION: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_MAX_TEXT: Final = 255  # characters
MOST_ATTEMPTS: Final = 1_000_000
MOST_CRASHES: Final = 1_000
_DAY: Final = 86_400  # seconds


def placeholders(route: str) -> list[str]:
    """Return the names between the braces of a route template, in order.

    Args:
        route: a template that was checked.
    """
    return [name for _, name, _, _ in string.Formatter().parse(route) if name is not None]


def _text(cell: str) -> str:
    if len(cell) > _MAX_TEXT or not cell.isprintable():
        raise ValueError(f"printable text of at most {_MAX_TEXT} characters")
    return cell


def _glob(cell: str) -> str:
    try:
        glob_to_regex(_text(cell))
    except ValueError as error:
        raise ValueError(f"a shell glob with *, ? and [..] ({error})") from error
    if cell.startswith(RESERVED):
        raise ValueError(
            f"a shell glob that does not begin with '{RESERVED}': tasks have the policies of their "
            "workflows, so leave the row out"
        )
    return cell


def _destinations(cell: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in cell.split("|"))
    if len(set(names)) < len(names) or not all(_DESTINATION.fullmatch(name) for name in names):
        raise ValueError(
            "one or more different destinations joined by |, each a letter followed by at most "
            "62 letters, digits, _ or -"
        )
    if not RESERVED_DESTINATIONS.isdisjoint(names):
        raise ValueError("other destinations than todo and workflows: those are for tasks")
    return names


def _route(cell: str) -> str:
    names = ", ".join(f"{{{name}}}" for name in ROUTE_PLACEHOLDERS)
    rule = f"a template with {names}, and {{{{ or }}}} for a brace"
    try:
        _text(cell)
    except ValueError as error:
        raise ValueError(f"{rule} ({error})") from error
    if not _ROUTE.fullmatch(cell):
        raise ValueError(rule)
    return cell


def _one_of(choices: type[StrEnum]) -> Callable[[str], StrEnum]:
    def read(cell: str) -> StrEnum:
        try:
            return choices(cell)
        except ValueError as error:
            raise ValueError(" or ".join(choices)) from error

    return read


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(cell: str) -> int:
        # A seed loaded by dbt-spark may show 10 as 10.0; every whole float up to 2^53 is exact.
        number = float(cell) if _NUMBER.fullmatch(cell) else math.nan
        if not low <= number <= high or not number.is_integer():
            raise ValueError(f"a whole number from {low} to {high}")
        return int(number)

    return read


def _number(low: float, high: float) -> Callable[[str], float]:
    def read(cell: str) -> float:
        number = float(cell) if _NUMBER.fullmatch(cell) else math.nan
        if not low <= number <= high:
            raise ValueError(f"a number from {low:g} to {high:.10g}")
        return number + 0.0  # -0.0 becomes 0.0: one canonical form

    return read


# twin: macros/policies/policy_columns.sql::policy_columns
COLUMNS: Final[Mapping[str, Callable[[str], object]]] = MappingProxyType(
    {
        "event_type": _glob,
        "destination": _destinations,
        "route": _route,
        "format": _one_of(PayloadFormat),
        "ordering": _one_of(Ordering),
        "order_scope": _one_of(OrderScope),
        "max_attempts": _whole(1, MOST_ATTEMPTS),
        "max_crashes": _whole(1, MOST_CRASHES),
        "expires_after_seconds": _number(0.001, 1e9),
        "lease_seconds": _number(1, _DAY),
        "backoff_initial_seconds": _number(0, _DAY),
        "backoff_multiplier": _number(1, 100),
        "backoff_max_seconds": _number(0, 30 * _DAY),
        "backoff_jitter": _number(0, 1),
        "on_dead": _one_of(OnDead),
    }
)
"""Reader of each column, in the order of the seed."""
