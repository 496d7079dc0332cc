"""Everything that may happen to an attempt, tried with the generators that ship."""

from __future__ import annotations

import pytest
from scripts.exploration.conditions import (
    CONDITIONS,
    NAMES,
    OPTIMISTIC,
    ROOT,
    Condition,
    plain,
)
from scripts.exploration.search import search
from scripts.exploration.world import Assumptions, Explored

from delta_outbox.railway.algorithms.steps import Rules

CODE = [one for one in CONDITIONS if one.without is None]
# Where attempts race, there are thirty times as many states.
TWO = [
    pytest.param(
        rules,
        store,
        id=f"{name}-{store}",
        marks=[pytest.mark.rest] if (rules, store) == (OPTIMISTIC, "plain") else [],
    )
    for rules, name in NAMES.items()
    for store in ("claims", "plain")
]


@pytest.mark.parametrize(("rules", "store"), TWO)
def test_two_workers_break_no_promise(rules: Rules, store: str) -> None:
    """With two attempts, deaths, an expiry and late requests anywhere, no promise is broken."""
    assumptions = Assumptions() if store == "claims" else plain(rules)
    found = search(Explored(rules, 2, assumptions))
    assert (None, ()) == (found.wrong, found.trace)


@pytest.mark.rest
@pytest.mark.parametrize("rules", NAMES, ids=list(NAMES.values()))
def test_three_attempts_break_no_promise(rules: Rules) -> None:
    """With three attempts under claims of ours no promise is broken either."""
    found = search(Explored(rules, 3))
    assert (None, ()) == (found.wrong, found.trace)


@pytest.mark.parametrize("condition", CONDITIONS, ids=[one.name for one in CONDITIONS])
def test_each_condition_is_needed(condition: Condition) -> None:
    """Without any one of the conditions a promise is broken, and a trace shows how."""
    found = condition.broken()
    assert found.wrong is not None
    assert found.trace


@pytest.mark.parametrize("condition", CODE, ids=[one.name for one in CODE])
def test_the_mutants_are_those_of_the_conditions(condition: Condition) -> None:
    """The patch of each condition that is code is what the condition says."""
    patch = ROOT / "tests" / "mutants" / f"railway-{condition.name}.patch"
    assert condition.patch() == patch.read_text(encoding="utf-8")


def test_the_prose_of_the_source_strands_a_task() -> None:
    """The optimistic lock of the source's chart ends every task; that of its prose does not."""
    (prose,) = (one for one in CONDITIONS if one.name == "second-step-of-the-dead-is-left")
    assert OPTIMISTIC == prose.rules
    assert "the task never ends, although nothing goes wrong any more" == prose.broken().wrong
