"""Stores that find the wrong events."""

from __future__ import annotations

from collections.abc import Sequence

from delta_outbox.lifecycle.states import State
from delta_outbox.testing.conformance.adapter import Held
from delta_outbox.testing.conformance.memory import MemoryStore
from delta_outbox.testing.conformance.memory_row import Row


class PassesOver(MemoryStore):
    """Never finds every third event."""

    def _eligible(self) -> list[Row]:
        return [row for row in super()._eligible() if row.arrival % 3]


class WantsATime(MemoryStore):
    """Takes an event without available_at for one that is not due."""

    def _is_due(self, row: Row) -> bool:
        return row.available_at is not None and super()._is_due(row)


class IgnoresTheTime(MemoryStore):
    """Does not look at available_at."""

    def _is_due(self, row: Row) -> bool:
        return True


class ForgetsTheScheduled(MemoryStore):
    """Never comes back to an event that was scheduled."""

    def _is_due(self, row: Row) -> bool:
        return row.event.available_at is None and super()._is_due(row)


class RetrievesTheDone(MemoryStore):
    """Retrieves what is over, too."""

    def retrieve(self, limit: int) -> Sequence[str]:
        """Return what is eligible, and what is over."""
        over = [
            row.event.event_id
            for row in self.rows.values()
            if row.state in (State.PUBLISHED, State.DEAD)
        ]
        return [*super().retrieve(limit), *over][:limit]


class RetrievesOneMore(MemoryStore):
    """Takes a limit for less than it is when it retrieves."""

    def retrieve(self, limit: int) -> Sequence[str]:
        """Return one more than asked for."""
        return super().retrieve(limit + 1)


class ClaimsOneMore(MemoryStore):
    """Takes a limit for less than it is when it claims."""

    def claim(self, worker: str, limit: int) -> Held | None:
        """Take one more than asked for."""
        return super().claim(worker, limit + 1)


class CountsTheWaitingIn(MemoryStore):
    """Cuts at the limit first, then looks which of those are due."""

    def _cut(self, rows: Sequence[Row], limit: int) -> Sequence[Row]:
        first = [row for row in self.rows.values() if row.state is State.PENDING][:limit]
        return super()._cut([row for row in rows if row in first], limit)


class CountsTheDeadIn(MemoryStore):
    """Cuts at the limit first, then looks which of those are not dead."""

    def retrieve(self, limit: int) -> Sequence[str]:
        """Return what is eligible among the first that are not delivered."""
        ids = [row.event.event_id for row in self.rows.values() if row.published_at is None]
        return [one for one in super().retrieve(limit) if one in ids[:limit]]


class ClaimsWhatItSaw(MemoryStore):
    """Claims what was retrieved last, without looking whether it is still to be had."""

    _seen: Sequence[Row] = ()

    def retrieve(self, limit: int) -> Sequence[str]:
        """Return what is eligible, and remember it."""
        found = super().retrieve(limit)
        self._seen = [self.rows[event_id] for event_id in found]
        return found

    def _eligible(self) -> list[Row]:
        return list(self._seen) or super()._eligible()
