"""Rules that are stated in SQL and in Python: each statement names the other one as its twin."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.unit.macro_namespace import Macros

from delta_outbox.core.reserved_names import reserved
from delta_outbox.lifecycle import claims
from delta_outbox.operations.maintenance import removal
from delta_outbox.railway.routing import CAUSES

ROOT = Path(__file__).resolve().parents[3]
TWIN = re.compile(r"\btwin: (\S+)")
PLACE = re.compile(r"(?:macros|python)/[\w/]+\.(?:sql|py)::\w+")


def named_by_macros() -> Iterator[tuple[str, str]]:
    """Yield each twin that a macro names, after the place of the macro."""
    for file in (ROOT / "macros").rglob("*.sql"):
        for twin in TWIN.findall(file.read_text("utf-8")):
            yield f"{file.relative_to(ROOT).as_posix()}::{file.stem}", twin


def named_by_python() -> Iterator[tuple[str, str]]:
    """Yield each twin that a comment in Python names, after the place of what the comment is on."""
    for file in (ROOT / "python").rglob("*.py"):
        text = file.read_text("utf-8")
        if not TWIN.search(text):
            continue
        names = names_by_line(ast.parse(text))
        for number, line in enumerate(text.splitlines(), start=1):
            for twin in TWIN.findall(line):
                at = min(first for first in names if first > number)
                yield f"{file.relative_to(ROOT).as_posix()}::{names[at]}", twin


def names_by_line(module: ast.Module) -> dict[int, str]:
    """Return what a module defines, by the line on which each definition begins."""
    names = {}
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[min([node.lineno, *(one.lineno for one in node.decorator_list)])] = node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.lineno] = node.target.id
    return names


def test_twins_name_each_other():
    """Whoever changes one statement of a rule is told where the other one is."""
    macros, python = set(named_by_macros()), set(named_by_python())
    assert [] == [twin for _, twin in macros | python if not PLACE.fullmatch(twin)]
    assert macros == {(there, here) for here, there in python}
    assert len(macros) > 30


def test_twins_that_are_one_text():
    """What Python says in a word of SQL, or by one constant, is what the macro says."""
    assert f"{Macros('eligibility').age_from()} as started_at" in claims.COLUMNS
    assert removal.MARKER == Macros("invariants").purge_marker()
    assert reserved("event_id") == Macros("lifecycle").is_reserved("event_id")
    causes = re.findall(r"when '(\w+)' then '(\w+)'", Macros("workflows").cause_of_ending("reason"))
    assert CAUSES == dict(causes)
