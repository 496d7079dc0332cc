"""Renders tables that fit the terminal, and data that cannot send it control characters."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType, RenderResult

NOTHING: Final = "-"
_GAP: Final = 2  # cells between two columns
_WIDEST: Final = 44  # cells that one column asks for; what is longer is folded
_UNBOUNDED: Final = 100_000  # width of a pipe: lines are not folded for programs

_STYLES: Final = {"DEAD": "bold red", "PUBLISHED": "green", "CLAIMED": "cyan"}


def printable(value: object) -> str:
    r"""Return a value as text that cannot steer a terminal.

    Control, formatting and unassigned characters (escape sequences, carriage returns, changes of
    the writing direction, lone surrogates) appear as escapes such as `\x1b`.

    Args:
        value: any value; None becomes a dash, JSON for what is nested.
    """
    if value is None:
        return NOTHING
    if isinstance(value, float):
        value = f"{value:.6g}"
    elif isinstance(value, (dict, list, tuple, bool)):
        value = json.dumps(value, ensure_ascii=False)
    return "".join(map(_visible, str(value)))


def _visible(char: str) -> str:
    if char.isprintable() or unicodedata.category(char) == "Zs":
        return char
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def lines_of(text: str) -> str:
    """Return a text of ours that may quote data: only its line breaks stay as they are."""
    return "\n".join(printable(line) for line in text.split("\n"))


def duration(seconds: float | None) -> str:
    """Return a duration as a person says it, for example `3 min 20 s`.

    Args:
        seconds: 0 or more; None becomes a dash.
    """
    if seconds is None:
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    for unit, size, smaller, part in (
        ("d", 86_400, "h", 3600),
        ("h", 3600, "min", 60),
        ("min", 60, "s", 1),
    ):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part} {smaller}"
    raise AssertionError(seconds)


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table.

    Args:
        name: the key in the rows, and the heading.
        rank: 0 is always shown; the highest goes first when the terminal is too narrow.
        right: numbers stand to the right.
    """

    name: str
    rank: int = 0
    right: bool = False


@dataclass(frozen=True, kw_only=True)
class Rows:
    """A table of data: drops what ranks lowest until it fits, and folds what is still too wide."""

    columns: Sequence[Column]
    rows: Sequence[Mapping[str, object]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table at the width that there is."""
        chosen = fitting(self.columns, self.rows, options.max_width)
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False)
        for column in chosen:
            table.add_column(
                Text(column.name, style="bold"),
                justify="right" if column.right else "left",
                overflow="fold",
            )
        for row in self.rows:
            cells = (printable(row.get(column.name)) for column in chosen)
            table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))
        yield table


def fitting(
    columns: Sequence[Column], rows: Sequence[Mapping[str, object]], width: int
) -> list[Column]:
    """Return the columns that fit side by side, in their order.

    Args:
        columns: all of them.
        rows: what they hold.
        width: cells of the terminal.
    """
    wanted = {
        column.name: min(
            _WIDEST,
            max(
                cell_len(printable(row.get(column.name)))
                for row in [{column.name: column.name}, *rows]
            ),
        )
        for column in columns
    }
    chosen = list(columns)
    while sum(wanted[column.name] + _GAP for column in chosen) - _GAP > width:
        last = max(chosen, key=lambda column: (column.rank, chosen.index(column)))
        if last.rank == 0:
            break
        chosen.remove(last)
    return chosen


def facts(pairs: Iterable[tuple[str, object]]) -> RenderableType:
    """Return names and values below each other."""
    table = Table(box=None, show_header=False, padding=(0, _GAP, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        text = printable(value)
        table.add_row(Text(printable(name), style="bold"), Text(text, style=_STYLES.get(text, "")))
    return table


def sentence(text: str, *, style: str = "") -> RenderableType:
    """Return a line of text; data in it is made harmless."""
    return Text(lines_of(text), style=style)


def console_for(stream: TextIO) -> Console:
    """Return a console; a pipe gets neither colours nor folded lines.

    Args:
        stream: standard output or standard error.
    """
    return Console(
        file=stream,
        width=None if stream.isatty() else _UNBOUNDED,
        markup=False,
        highlight=False,
        emoji=False,
    )
