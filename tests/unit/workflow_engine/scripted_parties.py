"""The third parties of `categories.py`: those of the kit, for any category."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from delta_outbox.railway import CertainlyNot
from delta_outbox.testing.workflows import ThirdParty, Trouble

KEYED = frozenset({"keyed", "keyed_found", "first"})
"""The third parties that remember keys."""
ALONE = frozenset({"once", "asked", "thrice", "ever", "third"})
"""Those whose calls have a host to themselves, which dies where a worker is to die."""
DONE_ALL_THE_SAME = frozenset({Trouble.ANSWERS, Trouble.ACTS_SILENTLY, Trouble.DIES_AFTER})


class Party(ThirdParty):
    """A third party for any category. It takes holds, and books only those that are not undone.

    Args:
        script: what goes wrong with each call.
        party: its name.
    """

    def __init__(self, script: Sequence[Trouble] = (), *, party: str) -> None:
        super().__init__(script, remembers_keys=party in KEYED, remembers_for=timedelta(hours=24))
        self.name = party
        self.holds: list[str] = []
        self.made = 0
        self.times: list[datetime] = []  # of the calls that ask for an effect

    def hold(self, key: str) -> str:
        """Take a hold, also where nobody hears of it."""
        self.made += 1
        name = f"{key}/{self.made}"
        try:
            self.find(key)
        finally:
            if self.calls[-1].trouble in DONE_ALL_THE_SAME:
                self.holds.append(name)
        return name

    def book(self, key: str, hold: str) -> None:
        """Book what is held."""
        if hold not in self.holds:
            raise CertainlyNot("it is not held")
        self.act(key, hold, None)

    def listed(self, key: str) -> list[tuple[str, bool]]:
        """Return what is held, and whether it is booked."""
        self.find(key)
        return [(one, one in self.effects(key)) for one in self.holds]

    def undo(self, key: str, hold: str) -> None:
        """Let a hold go."""
        try:
            self.find(key)
        finally:
            if self.calls[-1].trouble in DONE_ALL_THE_SAME:
                self.holds.remove(hold)

    def _do(self, key: str, what: Any, answer: Any) -> None:
        is_booked = self.name in {"two_steps", "fourth"}
        if not is_booked or what in self.holds:
            super()._do(key, what, answer)

    def _next(self, key: str, what: Any, *, acting: bool) -> Trouble:
        if acting:
            self.times.append(self.clock.now)
        return super()._next(key, what, acting=acting)

    @property
    def told(self) -> dict[str, Any]:
        """Return its ledger and its calls, as JSON has them."""
        return {
            "effects": [one.what for one in self.ledger],
            "calls": [(one.trouble.name, one.acting) for one in self.calls],
            "first_at": self.times[0].isoformat() if self.times else None,
        }
