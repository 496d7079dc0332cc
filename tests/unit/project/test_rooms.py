"""Rooms: what a room says of its modules is true."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[3] / "python" / "delta_outbox"
LINE = re.compile(r"^- (\w+): ", re.MULTILINE)


def test_a_room_names_each_of_its_modules() -> None:
    """A room whose docstring lists its modules lists all that are there, in order."""
    listed, there = {}, {}
    for file in sorted(PACKAGE.rglob("__init__.py")):
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        names = LINE.findall(text)
        if names:
            room = file.parent
            listed[room.relative_to(PACKAGE).as_posix()] = names
            there[room.relative_to(PACKAGE).as_posix()] = sorted(
                one.stem
                for one in [*room.glob("[!_]*.py"), *room.glob("[!_]*/")]
                if one.suffix == ".py" or (one / "__init__.py").exists()
            )
    assert len(listed) > 5
    assert there == listed
