"""Rejections: which rule an event breaks, and in which line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

BATCH: Final = 0  # the `line` of a rejection that is about the batch as a whole

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, order=True)
class Rejection:
    """One broken rule of one row; the message never holds payload or header values."""

    line: int  # in the file, or counted from 1 in the batch; 0: the batch as a whole
    field: str  # "" if it is about no single column
    rule: str
    message: str


@dataclass(kw_only=True)
class Report:
    """Collects rejections; rows count from the start of the part that is being looked at."""

    lines: Rows
    rejections: list[Rejection]
    start: int = 0

    def add(self, field: str, rule: str, rows: Rows, message: str | Callable[[int], str]) -> None:
        """Add a rejection for every one of the rows.

        Args:
            field: the column.
            rule: its short name.
            rows: counted from `start`.
            message: the sentence, or what makes one from the row.
        """
        for row in rows.tolist():
            self.rejections.append(
                Rejection(
                    line=int(self.lines[self.start + row]),
                    field=field,
                    rule=rule,
                    message=message if isinstance(message, str) else message(row),
                )
            )


def shown(text: str) -> str:
    """Quote a name or an identifier for a message: escaped, and never longer than a line."""
    return repr(text) if len(text) <= 80 else f"{text[:80]!r}..."
