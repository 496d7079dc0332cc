"""Checks: a scenario is played once on a store, and each of its checks judges what was seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from delta_outbox.testing.conformance.adapter import Capability
from delta_outbox.testing.conformance.stage import Stage

Seen = TypeVar("Seen")


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
