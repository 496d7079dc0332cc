"""Checks: a scenario is played once with a publisher, and each of its checks judges what was seen.

As in the conformance kit, whose words `holds` and `same` it shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from delta_outbox.testing.publishers.adapter import Capability
from delta_outbox.testing.publishers.stage import Stage

Seen = TypeVar("Seen")


@dataclass(frozen=True, kw_only=True)
class Check:
    """An executable check.

    Args:
        scenario: what is played.
        judge: demands something of what was seen; raises `Broken`.
        needs: without them the check is not asked.
        number: in the table.
    """

    scenario: Scenario[Any]
    judge: Callable[[Any], None]
    needs: frozenset[Capability]
    number: str = ""

    @property
    def name(self) -> str:
        """Return what it checks, in a few words."""
        return self.judge.__name__

    @property
    def says(self) -> str:
        """Return the sentence that a publisher must keep."""
        return " ".join((self.judge.__doc__ or "").split())


class Scenario(Generic[Seen]):
    """Something that happens to a publisher, and what is seen of it.

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


def numbered(*checks: Check) -> tuple[Check, ...]:
    """Return checks with numbers; a new one goes to the end, so that numbers stay.

    Args:
        checks: in order.
    """
    return tuple(
        replace(check, number=f"P-{number:02}") for number, check in enumerate(checks, start=1)
    )
