"""Checks: a scenario is played once on a store, and each of its checks judges what was seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NoReturn, TypeVar

from delta_outbox.conformance.adapter import Capability
from delta_outbox.conformance.stage import Stage

Seen = TypeVar("Seen")


class Broken(AssertionError):
    """A store breaks a rule; the message says what was expected and what was seen."""


def broken(what: str) -> NoReturn:
    """Say that a rule is broken.

    Args:
        what: the sentence for the report.

    Raises:
        Broken: always.
    """
    raise Broken(what)


def holds(condition: object, what: str) -> None:
    """Demand that something holds.

    Args:
        condition: true or false.
        what: what does not hold if it is false.

    Raises:
        Broken: it does not.
    """
    if not condition:
        broken(what)


def same(expected: object, actual: object, what: str) -> None:
    """Demand that two things are equal.

    Args:
        expected: what should be.
        actual: what was seen.
        what: what they are.

    Raises:
        Broken: they differ.
    """
    if expected != actual:
        broken(f"{what}: expected {expected!r}, saw {actual!r}")


class Level(StrEnum):
    """How strongly the specification asks for something."""

    MUST = "MUST"
    MUST_NOT = "MUST NOT"
    SHOULD = "SHOULD"
    MAY = "MAY"  # which we claim
    DEFECT = "defect"  # which a relay somewhere has


@dataclass(frozen=True, kw_only=True)
class Check:
    """An executable check.

    Args:
        scenario: what is played.
        judge: demands something of what was seen; raises `Broken`.
        needs: without them the check is not asked.
    """

    scenario: Scenario[Any]
    judge: Callable[[Any], None]
    needs: frozenset[Capability]

    @property
    def name(self) -> str:
        """Return what it checks, in a few words."""
        return self.judge.__name__

    @property
    def words(self) -> str:
        """Return its name as a sentence would have it."""
        return self.name.replace("_", " ")


class Scenario(Generic[Seen]):
    """Something that happens to a store, and what is seen of it.

    Args:
        name: of the scenario.
        play: lets it happen.
        needs: capabilities without which it cannot be played.
    """

    def __init__(self, name: str, play: Callable[[Stage], Seen], *needs: Capability) -> None:
        self.name = name
        self.play = play
        self.needs = frozenset(needs)

    def check(self, *needs: Capability) -> Callable[[Callable[[Seen], None]], Check]:
        """Make a check of a function that judges what was seen.

        Args:
            needs: capabilities beyond those of the scenario.
        """

        def make(judge: Callable[[Seen], None]) -> Check:
            return Check(scenario=self, judge=judge, needs=self.needs | frozenset(needs))

        return make


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of the specification.

    Args:
        number: L lifecycle, S store contract, E event model, T terminology, D known defect.
        level: how strongly it is asked for.
        says: the rule, in our words.
        reading: how we read it; empty where there is nothing to choose.
        check: how it is checked.
        unchecked: why there is no check.
    """

    number: str
    level: Level
    says: str
    reading: str = ""
    check: Check | None = None
    unchecked: str = ""
