"""What a value of the settings must be: the sentence a person reads, and the check behind it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of one setting.

    Args:
        sentence: what the value must be, after its name.
        accept: whether it is.
        convert: to the type that is kept.
    """

    sentence: str
    accept: Callable[[object], bool]
    convert: Callable[[Any], object]


def whole(low: int, high: int) -> Rule:
    """Return the rule of a whole number.

    Args:
        low: the smallest.
        high: the largest.
    """
    # bool is an int in Python; `batch_size = true` is a mistake all the same.
    return Rule(
        sentence=f"must be a whole number from {low} to {high}",
        accept=lambda value: type(value) is int and low <= value <= high,
        convert=int,
    )


def number(low: float, high: float, *, of: str) -> Rule:
    """Return the rule of a number.

    Args:
        low: the smallest.
        high: the largest.
        of: its unit.
    """
    return Rule(
        sentence=f"must be a number of {of} from {low:g} to {high:g}",
        accept=lambda value: type(value) in (int, float) and low <= value <= high,  # type: ignore[operator]
        convert=float,
    )


def seconds(low: float, high: float) -> Rule:
    """Return the rule of a duration.

    Args:
        low: the shortest.
        high: the longest.
    """
    return number(low, high, of="seconds")


def _is_pattern(value: object) -> bool:
    try:
        return isinstance(value, str) and value != "" and re.compile(value) is not None
    except (re.error, OverflowError, RecursionError):
        return False


PATTERN: Final = Rule(
    sentence="must be a regular expression in Python's syntax", accept=_is_pattern, convert=str
)
TRUTH: Final = Rule(
    sentence="must be true or false", accept=lambda value: type(value) is bool, convert=bool
)

RELAY: Final[Mapping[str, Rule]] = {
    "batch_size": whole(1, 1_000_000),
    "batch_bytes": whole(1, 1024**3),
    "claims_in_flight": whole(1, 64),
    "poll_seconds": seconds(0.01, 3600),
    "refresh_seconds": seconds(1, 86_400),
    "max_lanes": whole(1, 1024),
    "clock_skew_seconds": seconds(0, 7 * 86_400),
    "parallelism": whole(1, 4096),
    "tracing": TRUTH,
}
APPEND: Final[Mapping[str, Rule]] = {
    "max_payload_bytes": whole(1, 1024**3),
    "max_header_bytes": whole(0, 1024**3),
    "event_type_pattern": PATTERN,
    "horizon_days": whole(1, 3650),
}
STORAGE: Final[Mapping[str, Rule]] = {"single_driver": TRUTH}
LIMITS: Final[Mapping[str, Rule]] = {
    "workers": whole(1, 4096),
    "rate_per_second": number(0.001, 1_000_000, of="events"),
    "rate_per_key_per_second": number(0.001, 1_000_000, of="events"),
    "breaker_failures": whole(1, 1_000_000),
    "breaker_seconds": seconds(0.1, 86_400),
}
"""What a destination of every type may say about itself; no publisher sees it."""

_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")

WORKFLOWS: Final[Mapping[str, Rule]] = {
    "modules": Rule(
        sentence='must be a list of module names, such as ["orders.workflows"]',
        accept=lambda value: (
            isinstance(value, list)
            and all(isinstance(one, str) and _MODULE.fullmatch(one) for one in value)
        ),
        convert=tuple,
    ),
    "hosts": whole(1, 256),
}
