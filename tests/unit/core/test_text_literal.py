"""The one way a value reaches SQL text."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.macro_namespace import Macros

MACROS = Macros("storage")
TEXT = st.text("ab'\\\"${}u0024\n;-\u00e9\U0001f600") | st.text()


def as_spark_reads(literal: str) -> str:
    """Return the value of a literal by Spark's rules, after its own variables were replaced."""
    replaced = re.sub(r"\$\{\S+?\}", "REPLACED", literal)
    assert replaced[0] == replaced[-1] == "'"
    inside = replaced[1:-1]
    assert re.fullmatch(r"(?:[^'\\]|\\[\s\S])*", inside), "the text ends before its end"

    def plain(match: re.Match[str]) -> str:
        code = match.group(1)
        return chr(int(code[1:], 16)) if code.startswith("u") else code

    return re.sub(r"\\(u[0-9a-f]{4}|[\s\S])", plain, inside)


@given(TEXT)
@example("${env:HOME}")
@example("\\${env:HOME}")
@example("' or 1=1 --")
@example("\\' or 1=1 --")
@example("\\u0027 or 1=1")
def test_a_literal_means_its_value(value: str) -> None:
    """Whatever the value, the literal means it: no quote ends it, no variable changes it."""
    assert value == as_spark_reads(str(MACROS.text_literal(value)))
