"""Names that belong to workflows: types of tasks, keys of instances, ids of their ends."""

from __future__ import annotations

from typing import Final

RESERVED: Final = "workflow:"
"""How they begin. No producer may use such a name, and no row of the delivery policies."""

TO_DO: Final = "todo"
"""The destination of what waits for a person, and who holds it; such a claim ends when the item
expires.
"""
NOBODY: Final = "workflows"
"""The destination of tasks that a process does not run, and of what only looks like one."""
WORKFLOWS: Final = "workflows"
"""The writer that keeps the rows of workflows."""
FORMER_PLANS: Final = 100
"""How many of its last plans are looked at for what the newest no longer has."""
DERIVED: Final = "derived_events"
"""The writer that writes what follows in workflows."""
RESERVED_DESTINATIONS: Final = frozenset({TO_DO, NOBODY})
"""No third party has such a name, and no publisher."""


# twin: macros/lifecycle/is_reserved.sql::is_reserved
def reserved(column: str) -> str:
    """Return the condition, as SQL, that a column begins so; by it files are left out.

    Args:
        column: of texts.
    """
    beyond = RESERVED[:-1] + chr(ord(RESERVED[-1]) + 1)
    return f"({column} >= '{RESERVED}' and {column} < '{beyond}')"
