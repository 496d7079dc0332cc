"""How things are named: for machines in snake case, for people as a sentence begins."""

from __future__ import annotations

import re
from datetime import timedelta

_PLAIN = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake(name: str) -> str:
    """Return the name of a class in snake case.

    Args:
        name: such as `ReserveStock`.
    """
    return "_".join(_WORDS.split(name.strip("_"))).lower()


def title(name: str) -> str:
    """Return a name as people read it.

    Args:
        name: such as `reserve_stock` or `order.cancelled`.
    """
    words = re.sub(r"[_.\-:/]+", " ", name).strip()
    return words[:1].upper() + words[1:]


def is_plain(name: str) -> bool:
    """Say whether a name consists of lower-case words joined by `_`.

    Args:
        name: of a workflow, a task or an outcome.
    """
    return _PLAIN.fullmatch(name) is not None


def duration(span: timedelta) -> str:
    """Return a duration as people say it.

    Args:
        span: how long.
    """
    seconds = span.total_seconds()
    for size, one, many in (
        (86400, "day", "days"),
        (3600, "hour", "hours"),
        (60, "minute", "minutes"),
    ):
        if seconds >= size and seconds % size == 0:
            number = int(seconds // size)
            return f"{number} {one if number == 1 else many}"
    return f"{seconds:g} {'second' if seconds == 1 else 'seconds'}"
