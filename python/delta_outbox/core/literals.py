"""Writes any value as an SQL literal."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from delta_outbox.core.instants import micros


def instant_literal(value: datetime) -> str:
    """Return an instant as an SQL literal.

    Args:
        value: with an offset.
    """
    return f"timestamp_micros({micros(value)})"


# twin: macros/storage/text_literal.sql::text_literal
def text_literal(value: str) -> str:
    """Return a text as an SQL literal.

    Args:
        value: any text that has a form in UTF-8.
    """
    return f"string(x'{value.encode().hex()}')"


def listed(names: Iterable[str]) -> str:
    """Return names of ours as the literals of an SQL list.

    Args:
        names: at least one, without quotes or backslashes: states, ids of claims.
    """
    return ", ".join(f"'{name}'" for name in names)
