"""Stores that show or keep the wrong thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.testing.conformance.adapter import Change, Noticed, Record, Step
from delta_outbox.testing.conformance.memory import MemoryStore
from delta_outbox.testing.conformance.memory_row import Row


class SaysProcessing(MemoryStore):
    """Has a word of its own for CLAIMED."""

    def read(self, event_ids: Sequence[str]) -> Sequence[Record]:
        """Return events in other words."""
        return [
            replace(record, state="PROCESSING") if record.state == "CLAIMED" else record
            for record in super().read(event_ids)
        ]


class DropsTheDelivered(MemoryStore):
    """Shows nothing that was delivered."""

    def read(self, event_ids: Sequence[str]) -> Sequence[Record]:
        """Return what was not delivered."""
        return [record for record in super().read(event_ids) if record.state != "PUBLISHED"]


class ForgetsAtRestart(MemoryStore):
    """Loses what happened to an event when it is restarted."""

    def reopen(self) -> None:
        """Begin again with what was appended."""
        events = [row.event for row in self.rows.values()]
        self.rows = {}
        self.append(events)


class KeepsNoRecordOfClaims(MemoryStore):
    """Writes endings down, and no claims."""

    def _step(self, row: Row, to_state: State, reason: Reason) -> None:
        if to_state is State.CLAIMED:
            row.state, row.reason = to_state, reason
        else:
            super()._step(row, to_state, reason)


class KeepsNoRecordOfExpiry(MemoryStore):
    """Writes nothing down when a lease runs out."""

    def _step(self, row: Row, to_state: State, reason: Reason) -> None:
        if reason is Reason.LEASE_EXPIRED:
            row.state, row.reason = to_state, reason
        else:
            super()._step(row, to_state, reason)


class SkipsTheClaim(MemoryStore):
    """Buries an event that it has requeued before."""

    def _step(self, row: Row, to_state: State, reason: Reason) -> None:
        if to_state is State.DEAD and row.state is State.CLAIMED:
            super()._step(row, State.PENDING, Reason.RELEASED)
        super()._step(row, to_state, reason)


class NoticesNothing(MemoryStore):
    """Does not look whether its record was rewritten."""

    def tamper(self) -> Mapping[Change, Noticed]:
        """Rewrite the record of transitions in every way, and find nothing."""
        return dict.fromkeys(super().tamper(), Noticed.NO)


class RewritesItsRecord(MemoryStore):
    """Keeps the last step of an event only."""

    def history(self, event_ids: Sequence[str]) -> Sequence[Step]:
        """Return the last step of each event."""
        return list({step.event_id: step for step in super().history(event_ids)}.values())
