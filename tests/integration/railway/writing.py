"""Writes what follows in workflows, without a relay."""

from __future__ import annotations

from delta_outbox.workflow_engine.derived_events import DerivedEvents


def write(own: DerivedEvents) -> int:
    """Write all that follows, also from what follows, and return how many events that is."""
    came = own.step()
    count = came.events
    while came.more or came.events:
        came = own.step()
        count += came.events
    return count
