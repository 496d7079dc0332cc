"""What happened, as a table that people of the business can read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """Something that happened.

    Args:
        at: since the beginning.
        task: its name for people.
        what: happened.
    """

    at: timedelta
    task: str
    what: str


def table(lines: list[Line]) -> str:
    """Return the lines as a table.

    Args:
        lines: in order.
    """
    rows = [
        ("time", "task", "what happened"),
        *((_time(one.at), one.task, one.what) for one in lines),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(
        f"{at:>{widths[0]}}  {task:<{widths[1]}}  {what}".rstrip() for at, task, what in rows
    )


def _time(span: timedelta) -> str:
    seconds = span.total_seconds()
    days, rest = divmod(int(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    minutes, whole = divmod(rest, 60)
    day = f"{days} d " if days else ""
    return f"{day}{hours:02}:{minutes:02}:{whole:02}"
