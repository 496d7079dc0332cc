"""The conformance kit on its reference store, and the document that lists its rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from delta_outbox.lifecycle.states import State
from delta_outbox.testing.conformance.__main__ import document, main
from delta_outbox.testing.conformance.adapter import Capability
from delta_outbox.testing.conformance.check import Level
from delta_outbox.testing.conformance.memory import MemoryStore, MemoryStores
from delta_outbox.testing.conformance.rules import PARTS, RULES
from delta_outbox.testing.conformance.run import Verdict, all_checks, run, scenario_names
from delta_outbox.testing.conformance.stage import Stage

ROOT = Path(__file__).resolve().parents[3]


def test_the_reference_store_passes_every_check():
    """The in-memory store claims everything and keeps every rule."""
    results = run(MemoryStores())
    wrong = {name: result for name, result in results.items() if result.verdict != Verdict.PASSED}
    assert {} == wrong


def test_the_document_is_that_of_the_code():
    """docs/conformance.md says what the kit checks; `make conformance` writes it."""
    assert document() == (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")


def test_rules_are_numbered_and_few_are_unchecked():
    """Numbers are unique and in order; at most five rules lack a check, with a reason."""
    numbers = [rule.number for rule in RULES]
    assert sorted(set(numbers), key=lambda number: ("LSETD".index(number[0]), number)) == numbers
    assert set(PARTS) == {number[0] for number in numbers}
    unchecked = [rule for rule in RULES if rule.check is None]
    assert len(unchecked) <= 5
    assert all(rule.unchecked for rule in unchecked)
    assert all(rule.level is not Level.DEFECT for rule in unchecked)


def test_an_adapter_fits_on_a_page():
    """What the document says about an adapter of one's own takes less than 40 lines."""
    section = re.search(r"^## Your own store\n(.*?)^## ", document(), re.MULTILINE | re.DOTALL)
    assert section is not None
    assert len(section[1].splitlines()) < 40


class _Modest(MemoryStore):
    """Claims nothing that the specification leaves to a store."""

    capabilities = frozenset()


class _BrokenStores(MemoryStores):
    def fresh(self) -> MemoryStore:
        """Return no store."""
        raise OSError("the disk is full")


def test_what_is_not_claimed_is_not_asked_and_shown():
    """Checks of a capability that a store lacks say so, and all others are made."""
    results = run(MemoryStores(_Modest))
    assert {Verdict.PASSED, Verdict.NOT_CLAIMED} == {one.verdict for one in results.values()}
    assert str(Capability.LOGS) == results["an_update_is_noticed"].message


def test_a_store_that_raises_has_not_passed():
    """An adapter that crashes fails every check of the scenario."""
    assert {Verdict.CRASHED} == {one.verdict for one in run(_BrokenStores()).values()}


@pytest.mark.parametrize("name", ["", "no.such.module:Store", "json:NoSuchThing"])
def test_a_store_that_is_not_there_is_wrong_usage(name: str, capsys: pytest.CaptureFixture[str]):
    """A factory that cannot be imported is said to be so, with exit code 2."""
    assert 2 == main(["--store", name])
    assert "--store must be package.module:Factory" in capsys.readouterr().out


@pytest.mark.parametrize("name", scenario_names())
def test_a_scenario_leaves_nothing_open(name: str):
    """After a scenario nothing waits and nothing is claimed: the next may use the same store."""
    scenario = next(one.scenario for one in all_checks() if one.scenario.name == name)
    store = MemoryStore()
    scenario.play(Stage(store, name))
    is_open = {State.PENDING, State.CLAIMED}
    assert [] == [row for row in store.rows.values() if row.state in is_open]
