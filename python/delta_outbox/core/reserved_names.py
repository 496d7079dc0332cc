"""Names that belong to workflows: types of tasks, keys of instances, ids of their ends."""

from __future__ import annotations

from typing import Final

RESERVED: Final = "workflow:"
"""How they begin. No producer may use such a name, and no row of the delivery policies."""


def reserved(column: str) -> str:
    """Return the condition, as SQL, that a column begins so; by it files are left out.

    Args:
        column: of texts.
    """
    beyond = RESERVED[:-1] + chr(ord(RESERVED[-1]) + 1)
    return f"({column} >= '{RESERVED}' and {column} < '{beyond}')"
