"""The arguments of commands, which anybody may have written by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def arguments_of(text: str | None) -> Mapping[str, Any]:
    """Return the arguments of a command; none where the text is no JSON object, or one that is
    nested deeper than can be read.

    Args:
        text: as the command log has it.
    """
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def instant_in(arguments: Mapping[str, Any], name: str) -> datetime | None:
    """Return an instant with an offset that arguments name, in UTC; None if they name none, or one
    that is none in UTC, as before the year 1.

    Args:
        arguments: of a command.
        name: of the argument, ISO 8601.
    """
    try:
        found = datetime.fromisoformat(str(arguments.get(name)))
        return found.astimezone(UTC) if found.utcoffset() is not None else None
    except (ValueError, OverflowError):
        return None
