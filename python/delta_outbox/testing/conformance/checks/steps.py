"""Steps on record: which are legal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from delta_outbox.lifecycle.states import LEGAL_TRANSITIONS
from delta_outbox.testing.demands import holds, same

LEGAL: Final = frozenset((str(before), str(after)) for before, after in LEGAL_TRANSITIONS)


def check_steps(history: Mapping[str, Sequence[tuple[str, str]]]) -> Mapping[str, str]:
    """Demand that each event begins PENDING and goes on by listed steps, each from where it stood.

    Args:
        history: steps by event.

    Returns:
        Where each event stands in the end.

    Raises:
        Broken: it does not.
    """
    ends = {}
    for name, steps in history.items():
        state = "PENDING"
        for before, after in steps:
            holds((before, after) in LEGAL, f"{name!r} went from {before} to {after}")
            same(state, before, f"where the next step of {name!r} begins")
            state = after
        ends[name] = state
    return ends
