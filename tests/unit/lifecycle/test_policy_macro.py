"""The check of the policy seed in dbt: the same rules, in the same words, as the Python side."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.lifecycle.policy_cases import CELLS, LAST, TABLES, Row
from tests.unit.macro_namespace import Macros

from delta_outbox.core.errors import BadPolicy
from delta_outbox.core.globs import glob_to_regex
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.policy_columns import COLUMNS


@pytest.fixture(scope="module")
def macros() -> Macros:
    """Return the macros of the folder as Jinja reads them."""
    return Macros("policies")


def _in_dbt(macros: Macros, rows: Sequence[Row]) -> list[str]:
    problems: list[str] = []
    macros.policy_problems([dict(row) for row in rows], problems)
    return problems


def _in_python(rows: Sequence[Row]) -> list[str]:
    try:
        PolicySet.parse(rows)
    except BadPolicy as bad:
        return list(bad.problems)
    return []


@pytest.mark.parametrize("rows", TABLES)
def test_both_sides_say_the_same(macros: Macros, rows: Sequence[Row]) -> None:
    """What dbt says of a seed is what the relay would say of it, word for word."""
    assert _in_python(rows) == _in_dbt(macros, rows)


def test_the_cases_are_good_and_bad() -> None:
    """The table of cases has a bad cell for every column, and a good one for every other."""
    judged = [
        (name, _in_python([{"event_type": "x"} | {name: cell}, LAST])) for name, cell in CELLS
    ]
    bad = {name for name, problems in judged if problems}
    assert set(COLUMNS) <= bad
    good = {name for name, problems in judged if not problems}
    assert set(COLUMNS) - {"backoff_multiplier", "backoff_max_seconds"} <= good


CELL = st.one_of(
    st.none(),
    st.text("ab[]!-*?{}|'\\é \n", max_size=8),
    st.sampled_from([cell for _, cell in CELLS]),
    st.floats().map(str),
    st.integers(-2, 2_000_000).map(str),
)
ROWS = st.lists(st.dictionaries(st.sampled_from([*COLUMNS, "x"]), CELL, max_size=6), max_size=4)


@given(rows=ROWS)
def test_both_sides_say_the_same_of_anything(
    macros: Macros, rows: list[dict[str, str | None]]
) -> None:
    """Also where nobody has thought of a case."""
    assert _in_python(rows) == _in_dbt(macros, rows)


@given(glob=st.text("ab.c-!^[]*?\\&~|#$+(){}/_ \n'\u00e9\u2028\U0001f600", max_size=10))
def test_both_sides_read_a_glob_the_same(macros: Macros, glob: str) -> None:
    """A glob means the same regular expression in the views and in the relay."""
    parts: list[str] = []
    flaws: list[str] = []
    macros.read_glob(glob, parts, flaws)
    expected, flaw = "".join(parts), []
    try:
        expected = glob_to_regex(glob)
    except ValueError as error:
        flaw = [str(error)]
    assert (expected, flaw) == ("".join(parts), flaws[:1])
