"""How a table of rules is written: rows without numbers, counted here."""

from __future__ import annotations

from delta_outbox.testing.conformance.check import Check, Level, Rule

MUST, MUST_NOT = Level.MUST, Level.MUST_NOT
SHOULD, MAY = Level.SHOULD, Level.MAY

Row = tuple[Level, str, Check | str] | tuple[Level, str, Check, str]
"""Level, rule, check or the reason for none, and our reading where there is something to choose."""


def numbered(part: str, *rows: Row) -> tuple[Rule, ...]:
    """Return rules in order; a new one goes to the end of its table, so that numbers stay.

    Args:
        part: the letter of the text.
        rows: the rules.
    """
    return tuple(
        Rule(
            number=f"{part}-{number:02}",
            level=row[0],
            says=row[1],
            check=row[2] if isinstance(row[2], Check) else None,
            unchecked=row[2] if isinstance(row[2], str) else "",
            reading=row[3] if len(row) == 4 else "",
        )
        for number, row in enumerate(rows, start=1)
    )
