"""How much a claim may hold: what its destinations take in a few seconds."""

from __future__ import annotations

from typing import Final

CLAIM_SECONDS: Final = 5.0  # that the publishing of a claim is to last at most
LEAST: Final = 100  # deliveries of a claim; from there it doubles


class Pace:
    """Bounds the claims for destinations that are slow; for others `batch_size` is the bound.

    Without it, most of a large claim for a slow destination would be given back at its deadline,
    which is two transitions of each delivery for nothing, and a crash would leave it claimed.
    """

    def __init__(self) -> None:
        self._most: dict[str, int] = {}  # of those that were slow

    def room(self, to: str, most: int) -> int:
        """Return how many deliveries a claim may have.

        Args:
            to: its destinations, joined by `|`.
            most: that are wanted.
        """
        return min(most, *(self._most.get(one, most) for one in {to, *to.split("|")}))

    def took(self, to: str, *, size: int, sent: int, seconds: float) -> None:
        """Note how long the publishing of a claim has lasted.

        Args:
            to: its destinations, joined by `|`.
            size: its deliveries.
            sent: those that were tried.
            seconds: that it lasted.
        """
        most = self._most.get(to)
        if seconds > CLAIM_SECONDS:
            self._most[to] = max(LEAST, int(sent * CLAIM_SECONDS / seconds))
        elif most is not None and size >= most:
            self._most[to] = 2 * most
