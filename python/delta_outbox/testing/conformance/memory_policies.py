"""What the in-memory store promises, and how it cuts a claim: by the rules of the relay."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa

from delta_outbox.lifecycle.claims import DELIVERIES
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.relay.plan.window import Kind, Window
from delta_outbox.testing.conformance.adapter import SHORT_LIVED, Terms
from delta_outbox.testing.conformance.memory_row import Row

TERMS: Final = Terms(
    lease_seconds=30, backoff_seconds=60, max_attempts=3, max_crashes=2, age_seconds=600
)
POLICIES: Final = PolicySet.parse(
    [
        {
            "event_type": event_type,
            "max_attempts": TERMS.max_attempts,
            "max_crashes": TERMS.max_crashes,
            "lease_seconds": TERMS.lease_seconds,
            "backoff_max_seconds": TERMS.backoff_seconds,
            "expires_after_seconds": age_seconds,
        }
        for event_type, age_seconds in ((SHORT_LIVED, TERMS.age_seconds), ("*", None))
    ]
)


def cut(rows: Sequence[Row], policies: PolicySet, limit: int) -> list[str]:
    """Cut a claim as a relay does: of one kind, suspects among themselves, a prefix of each key.

    Args:
        rows: what is eligible, in order.
        policies: the delivery policies.
        limit: events at most.

    Returns:
        The ids of what is taken.
    """
    if not any(row.counters.suspect or row.counters.publish_attempts for row in rows):
        # All of one kind: what a window would give, without its cost.
        return [row.event.event_id for row in rows[:limit]]
    eligible = [{**row.delivery(), "available_at": None, "started_at": None} for row in rows]
    table = pa.Table.from_pylist(eligible, schema=DELIVERIES)
    window = Window(table, policies, batch_size=limit)
    window.select(now=datetime.now(UTC))
    is_retry = rows[0].counters.suspect or rows[0].counters.publish_attempts
    first, other = (
        (Kind.RETRY, Kind.FIRST_ATTEMPT) if is_retry else (Kind.FIRST_ATTEMPT, Kind.RETRY)
    )
    taken = window.take(first, limit)
    if not taken.num_rows:
        taken = window.take(other, limit)
    ids: list[str] = taken["event_id"].to_pylist()
    return ids
