"""Which kills a soak makes, in which order: all of it follows from the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

ALONE = 0.25  # of the kills are of a relay, with no other kill before all is over: 50 of 200
SHARE = 0.15  # of the kills are of a JVM, and as many of a worker: 30 and 30 of 200
LONGEST_WAIT = 2.0  # seconds from the sign that a relay is at work to the kill
LONGEST_FREEZE = 0.5  # seconds; well below the deadline of a claim


@dataclass(frozen=True, kw_only=True)
class Strike:
    """A kill that is to be made.

    Args:
        number: counts from 1.
        kind: relay, jvm or worker.
        alone: the next kill waits until all that this one leaves is delivered.
        wait: seconds from the sign that a relay is at work.
        frozen: whether the broker is frozen first, so that something is sent and not acknowledged.
        freeze: seconds from then to the kill.
    """

    number: int
    kind: str
    alone: bool
    wait: float
    frozen: bool
    freeze: float


def strikes(seed: int, kills: int) -> list[Strike]:
    """Return the kills in order.

    Args:
        seed: decides.
        kills: how many, at least 3.
    """
    alone, share = max(1, round(kills * ALONE)), max(1, round(kills * SHARE))
    others = ["jvm"] * share + ["worker"] * share
    others += ["relay"] * (kills - alone - len(others))
    dice = random.Random(seed)
    dice.shuffle(others)
    kinds = ["relay"] * alone + others  # alone at first: later kills leave work for a long time
    return [
        Strike(
            number=number,
            kind=kind,
            alone=number <= alone,
            wait=dice.uniform(0.0, LONGEST_WAIT),
            # A worker is hit while it waits for the broker: it sends for milliseconds only.
            frozen=dice.random() < 0.5 or kind == "worker",
            freeze=dice.uniform(0.0, LONGEST_FREEZE),
        )
        for number, kind in enumerate(kinds, start=1)
    ]
