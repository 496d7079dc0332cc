"""The states of a delivery, the legal transitions between them, and the reasons for each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


# twin: macros/lifecycle/states.sql::states
class State(StrEnum):
    """Where a delivery stands."""

    PENDING = "PENDING"
    CLAIMED = "CLAIMED"
    PUBLISHED = "PUBLISHED"
    DEAD = "DEAD"


OPEN_STATES: Final = (State.PENDING.value, State.CLAIMED.value)


TERMINAL_STATES: Final = (State.PUBLISHED.value, State.DEAD.value)


class Reason(StrEnum):
    """Why a transition happened."""

    CLAIMED = "claimed"
    DELIVERED = "delivered"
    FAILED = "failed"
    REJECTED = "rejected"
    UNKNOWN = "unknown"
    CRASHED = "crashed"
    LEASE_EXPIRED = "lease_expired"
    RELEASED = "released"
    EXHAUSTED = "exhausted"
    EXPIRED = "expired"
    OPERATOR = "operator"
    REPLAYED = "replayed"
    COMPLETED = "completed"
    UNCERTAIN = "uncertain"


# twin: macros/lifecycle/legal_transitions.sql::legal_transitions
REASONS: Final[Mapping[tuple[State, State], frozenset[Reason]]] = MappingProxyType(
    {
        (State.PENDING, State.CLAIMED): frozenset({Reason.CLAIMED}),
        (State.CLAIMED, State.PUBLISHED): frozenset(
            {
                Reason.DELIVERED,
                # The rest are endings of workflow tasks and carry an outcome (OUTCOME_REASONS).
                Reason.COMPLETED,
                Reason.UNCERTAIN,
                Reason.REJECTED,
                Reason.EXHAUSTED,
                Reason.EXPIRED,
            }
        ),
        (State.CLAIMED, State.PENDING): frozenset(
            {
                Reason.FAILED,
                Reason.UNKNOWN,
                Reason.CRASHED,
                Reason.LEASE_EXPIRED,
                Reason.RELEASED,
            }
        ),
        (State.CLAIMED, State.DEAD): frozenset(
            {Reason.REJECTED, Reason.EXHAUSTED, Reason.EXPIRED, Reason.OPERATOR}
        ),
        (State.PUBLISHED, State.PENDING): frozenset({Reason.REPLAYED}),
        (State.DEAD, State.PENDING): frozenset({Reason.REPLAYED}),
    }
)
"""The legal transitions (Open Outbox, Processing Lifecycle) and the reasons each may have."""


LEGAL_TRANSITIONS: Final[frozenset[tuple[State, State]]] = frozenset(REASONS)


OUTCOME_REASONS: Final = REASONS[State.CLAIMED, State.PUBLISHED] - {Reason.DELIVERED}
"""Reasons that lead to PUBLISHED only together with an outcome."""
