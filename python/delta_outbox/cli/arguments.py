"""The types of arguments: each takes a text and says which rule it breaks."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from datetime import UTC, date, datetime

from delta_outbox.core.globs import glob_to_regex
from delta_outbox.lifecycle.states import State
from delta_outbox.operations.inspection_filter import SORT_COLUMNS, Sort

LARGEST = 2**31 - 1


def _refuse(rule: str, text: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"{rule}. Got: {text[:80]!r}.")


def whole_number(low: int) -> Callable[[str], int]:
    """Return a reader of whole numbers.

    Args:
        low: the smallest that is accepted.
    """

    def read(text: str) -> int:
        digits = text.isascii() and text.isdigit() and len(text) <= 10
        if not digits or not low <= int(text) <= LARGEST:
            raise _refuse(f"must be a whole number from {low} to {LARGEST}", text)
        return int(text)

    return read


def port(text: str) -> int:
    """Read a port that needs no privilege."""
    if text.isascii() and text.isdigit() and len(text) <= 5 and 1024 <= int(text) <= 65535:
        return int(text)
    raise _refuse("must be a port from 1024 to 65535", text)


def seconds(text: str) -> float:
    """Read a duration in seconds, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e9:  # also refuses nan
        raise _refuse("must be a number of seconds, 0 or more", text)
    return value


def instant(text: str) -> datetime:
    """Read an instant: ISO 8601 with an offset, as every time that we print."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise _refuse("must be ISO 8601 with an offset, such as 2026-11-01T12:00:00Z", text)


def day(text: str) -> date:
    """Read a day of UTC, as `created_date` names it."""
    try:
        if len(text) == len("2026-11-01"):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise _refuse("must be a day such as 2026-11-01", text)


def state(text: str) -> State:
    """Read a state, in capitals or not."""
    try:
        return State(text.upper())
    except ValueError:
        raise _refuse(f"must be one of {', '.join(State)}", text) from None


def pair(text: str) -> tuple[str, str]:
    """Read two names, OLD=NEW."""
    old, separator, new = text.partition("=")
    if old and separator and new and "=" not in new:
        return old, new
    raise _refuse("must be OLD=NEW, the names of two tasks", text)


def glob(text: str) -> str:
    """Read a shell glob on event types, as in the delivery policies."""
    try:
        glob_to_regex(text)
    except ValueError as error:
        raise _refuse(f"must be an event type or a shell glob: {error}", text) from None
    return text


def sort(text: str) -> Sort:
    """Read a column to sort by: `attempts`, or `attempts:desc` for the largest first."""
    column, _, direction = text.partition(":")
    if column not in SORT_COLUMNS or direction not in ("", "asc", "desc"):
        known = ", ".join(SORT_COLUMNS)
        raise _refuse(f"must be one of {known}, with :desc for the last first", text)
    return Sort(column=column, descending=direction == "desc")
