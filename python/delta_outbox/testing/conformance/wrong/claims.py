"""Stores that claim wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from delta_outbox.lifecycle.endings import Ending
from delta_outbox.testing.conformance.adapter import Held, Record
from delta_outbox.testing.conformance.memory import MemoryStore
from delta_outbox.testing.conformance.memory_row import LiveClaim, Row


class SendsWithoutClaim(MemoryStore):
    """Gives events to a worker and writes nothing down."""

    def _begin(self, rows: Sequence[Row], worker: str) -> Held:
        ids = tuple(row.event.event_id for row in rows)
        return Held(worker=worker, event_ids=ids, token=None)

    def _is_live(self, row: Row, held: Held) -> bool:
        return True


class ClaimsInThePast(MemoryStore):
    """Dates its claims a minute back."""

    def _begin(self, rows: Sequence[Row], worker: str) -> Held:
        held = super()._begin(rows, worker)
        for row in rows:
            assert row.claim is not None
            row.claim = replace(row.claim, at=row.claim.at - timedelta(seconds=60))
        return held


class NamesNobody(MemoryStore):
    """Does not say who has claimed."""

    def read(self, event_ids: Sequence[str]) -> Sequence[Record]:
        """Return events without their owners."""
        return [replace(record, claimed_by=None) for record in super().read(event_ids)]


class OneRelayOnly(MemoryStore):
    """Gives everything to the relay that came first, for ever."""

    _first: str | None = None

    def claim(self, worker: str, limit: int) -> Held | None:
        """Take what is eligible, for the first relay."""
        self._first = self._first or worker
        return super().claim(worker, limit) if worker == self._first else None


class _Remembers(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._owners: dict[str, LiveClaim] = {}

    def _apply(self, row: Row, ending: Ending) -> None:
        if row.claim is not None:
            self._owners[row.event.event_id] = row.claim
        super()._apply(row, ending)


class KeepsClaimedAt(_Remembers):
    """Does not clear claimed_at."""

    def read(self, event_ids: Sequence[str]) -> Sequence[Record]:
        """Return events with the time of their last claim."""
        return [
            replace(one, claimed_at=one.claimed_at or self._owners[one.event_id].at)
            if one.event_id in self._owners
            else one
            for one in super().read(event_ids)
        ]


class KeepsClaimedBy(_Remembers):
    """Does not clear claimed_by."""

    def read(self, event_ids: Sequence[str]) -> Sequence[Record]:
        """Return events with the owner of their last claim."""
        return [
            replace(one, claimed_by=one.claimed_by or self._owners[one.event_id].worker)
            if one.event_id in self._owners
            else one
            for one in super().read(event_ids)
        ]


class BelievesLateAnswers(MemoryStore):
    """Ends events by claims that are over."""

    def _is_live(self, row: Row, held: Held) -> bool:
        return True


class FencesByName(MemoryStore):
    """Knows a claim by the name of its worker."""

    def _is_live(self, row: Row, held: Held) -> bool:
        return row.claim is not None and row.claim.worker == held.worker
