"""Stores that do wrongly what operators ask for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from delta_outbox.lifecycle.endings import Expired, Killed
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.testing.conformance.memory import MemoryStore
from delta_outbox.testing.conformance.memory_row import Row


class HidesNothing(MemoryStore):
    """Takes an event that was killed."""

    def _is_hidden(self, row: Row) -> bool:
        return False


class ForgetsKills(MemoryStore):
    """Hides what is killed and never ends it."""

    def _end_unsent(self, row: Row) -> Expired | Killed | None:
        return None if row.kill else super()._end_unsent(row)


class KillsAtOnce(MemoryStore):
    """Makes everything DEAD that is to be killed, waiting or in work."""

    def kill(self, event_ids: Sequence[str]) -> None:
        """Bury events."""
        for event_id in event_ids:
            row = self.rows[event_id]
            row.claim = None
            self._step(row, State.DEAD, Reason.OPERATOR)


class NeverAges(MemoryStore):
    """Lets events get as old as they like."""

    def _end_unsent(self, row: Row) -> Expired | Killed | None:
        return row.kill


class ReplaysLater(MemoryStore):
    """Lets what is replayed wait for an hour."""

    def _replay(self, row: Row) -> None:
        super()._replay(row)
        row.available_at = self.now() + timedelta(hours=1)


class ReplaysEverything(MemoryStore):
    """Replays whatever stands where the named events stand."""

    def replay(self, event_ids: Sequence[str], *, state: State) -> None:
        """Replay all of a state."""
        super().replay(list(self.rows), state=state)


class RefusesTheDead(MemoryStore):
    """Replays nothing that is DEAD."""

    def replay(self, event_ids: Sequence[str], *, state: State) -> None:
        """Replay what is PUBLISHED."""
        if state is not State.DEAD:
            super().replay(event_ids, state=state)


class RefusesThePublished(MemoryStore):
    """Replays nothing that is PUBLISHED."""

    def replay(self, event_ids: Sequence[str], *, state: State) -> None:
        """Replay what is DEAD."""
        if state is not State.PUBLISHED:
            super().replay(event_ids, state=state)


class ReplayGoesOnCounting(MemoryStore):
    """Takes a replay for a retry."""

    def _replay(self, row: Row) -> None:
        counters = row.counters
        super()._replay(row)
        row.counters = counters


class ReplayKeepsPublishedAt(MemoryStore):
    """Shows a replayed event as published."""

    def _replay(self, row: Row) -> None:
        published_at = row.published_at
        super()._replay(row)
        row.published_at = published_at
