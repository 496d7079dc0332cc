"""What can go wrong with one call: the troubles that the kit tries, alone and in every order."""

from __future__ import annotations

import random
from enum import StrEnum
from typing import Final


class Trouble(StrEnum):
    """What goes wrong with one call; the values are words for people."""

    ANSWERS = "answers"
    REFUSES = "refuses: certainly not done"
    REJECTS = "refuses for good"
    ACTS_SILENTLY = "acts, and the answer does not come in time"
    STAYS_SILENT = "does not act, and no answer comes"
    ACTS_LATE = "gives no answer, and acts after the call was given up"
    DIES_BEFORE = "our worker dies before the call"
    DIES_AFTER = "acts, and our worker dies before it can record that"
    FORGETS_KEY = "has forgotten the key too early"
    LOOKS_UP_LATE = "does not show yet what it has done"


BROKEN_WORDS: Final = frozenset({Trouble.FORGETS_KEY, Trouble.LOOKS_UP_LATE})
"""Troubles in which the third party breaks its word; no category holds against them."""
TROUBLES: Final = tuple(one for one in Trouble if one not in BROKEN_WORDS)


def random_script(seed: random.Random, calls: int, share: float = 0.3) -> list[Trouble]:
    """Return a script in which some calls go wrong.

    Args:
        seed: a source of random numbers; print what it was seeded with.
        calls: its length.
        share: of calls that go wrong, from 0 to 1.
    """
    wrong = [one for one in TROUBLES if one is not Trouble.ANSWERS]
    return [seed.choice(wrong) if seed.random() < share else Trouble.ANSWERS for _ in range(calls)]
