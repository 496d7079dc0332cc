"""Asks for another number of lanes, and says how many there are; `store/lane_change.py` does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_outbox.core.errors import WrongUsage
from delta_outbox.operations.argument_rules import MAX_ACTOR, MAX_TEXT, Arguments
from delta_outbox.operations.inspection import relays_alive
from delta_outbox.store.epochs import MOST_LANES
from delta_outbox.store.lane_change import LaneChange

if TYPE_CHECKING:
    from delta_outbox.store.store import Store


@dataclass(frozen=True, kw_only=True)
class LaneRequest:
    """How many lanes there are to be, as an operator asks for it.

    Args:
        lanes: how many.
        actor: who asks.
        reason: why.
    """

    lanes: int
    actor: str
    reason: str

    def __post_init__(self) -> None:
        arguments = Arguments()
        arguments.line("reason", self.reason, MAX_TEXT)
        arguments.line("actor", self.actor, MAX_ACTOR)
        problems = list(arguments.problems)
        if not 1 <= self.lanes <= MOST_LANES:
            problems.append(f"`to` must be from 1 to {MOST_LANES}. Got: {self.lanes}")
        if problems:
            raise WrongUsage(f"lanes: {'; '.join(problems)}.")


def change_lanes(outbox: Store, request: LaneRequest, *, max_wait: float) -> bool:
    """Begin a new epoch; say whether it has begun.

    Args:
        outbox: the store.
        request: how many lanes it is to have.
        max_wait: seconds to wait for what is claimed; what is begun is finished by others.
    """
    return LaneChange(outbox).run(
        lanes=request.lanes,
        actor=request.actor.strip(),
        reason=request.reason.strip(),
        max_wait=max_wait,
    )


def describe(outbox: Store) -> dict[str, Any]:
    """Return the lanes as they are, who works on which, and what is open.

    Args:
        outbox: the store.
    """
    outbox.logs.read()
    now = outbox.logs.epoch
    found = outbox.deliveries.overview(outbox.read_view())
    return {
        "epoch": now.number,
        "lanes": now.lanes,
        "becomes": now.becomes,
        "open": found.open,
        "claimed": found.claimed,
        "relays": [
            {
                "relay_id": one["relay_id"],
                "lanes": one["lanes"],
                "last_beat_at": one["last_beat_at"],
            }
            for one in relays_alive(outbox)
        ],
    }
