"""Stores that treat leases and crashes wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from delta_outbox.lifecycle.endings import Ending, EndOfClaim, LeaseExpired
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.testing.conformance.adapter import Held, Record
from delta_outbox.testing.conformance.memory import MemoryStore
from delta_outbox.testing.conformance.memory_row import LiveClaim, Row


class ExpiresEarly(MemoryStore):
    """Takes every claim for one that is over."""

    def _is_over(self, claim: LiveClaim) -> bool:
        return True


class NeverExpires(MemoryStore):
    """Lets a claim stand whose worker is gone."""

    def _is_over(self, claim: LiveClaim) -> bool:
        return False


class PausesAfterALease(MemoryStore):
    """Lets an event wait whose worker is gone."""

    def _decide(self, row: Row, result: EndOfClaim) -> Ending:
        ending = super()._decide(row, result)
        if isinstance(result, LeaseExpired):
            return replace(ending, available_at=self.now() + timedelta(seconds=10))
        return ending


class ExpiresSilently(MemoryStore):
    """Says nothing of a lease that ran out."""

    def _decide(self, row: Row, result: EndOfClaim) -> Ending:
        ending = super()._decide(row, result)
        return replace(ending, error=None) if isinstance(result, LeaseExpired) else ending


class _KnowsTheFormer(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, str] = {}
        self._worker = ""

    def claim(self, worker: str, limit: int) -> Held | None:
        """Take what this worker may have."""
        self._worker = worker
        held = super().claim(worker, limit)
        self._last |= dict.fromkeys(held.event_ids if held else (), worker)
        return held

    def _former(self, row: Row) -> str | None:
        return self._last.get(row.event.event_id)


class BarsTheSameRelay(_KnowsTheFormer):
    """Never gives an event to the same relay twice."""

    def _eligible(self) -> list[Row]:
        return [row for row in super()._eligible() if self._former(row) != self._worker]


class KeepsToOneRelay(_KnowsTheFormer):
    """Gives an event to its first relay only."""

    def _eligible(self) -> list[Row]:
        return [row for row in super()._eligible() if self._former(row) in (None, self._worker)]


class LosesTheCrashed(MemoryStore):
    """Shows and takes nothing any more whose worker has died."""

    def __init__(self) -> None:
        super().__init__()
        self._lost: set[str] = set()

    def _decide(self, row: Row, result: EndOfClaim) -> Ending:
        if isinstance(result, LeaseExpired):
            self._lost.add(row.event.event_id)
        return super()._decide(row, result)

    def _is_hidden(self, row: Row) -> bool:
        return row.event.event_id in self._lost

    def read(self, event_ids: Sequence[str]) -> Sequence[Record]:
        """Return what was not lost."""
        return [one for one in super().read(event_ids) if one.event_id not in self._lost]


class NeverTwice(MemoryStore):
    """Buries what may have been sent."""

    def _decide(self, row: Row, result: EndOfClaim) -> Ending:
        ending = super()._decide(row, result)
        if isinstance(result, LeaseExpired):
            return replace(ending, to_state=State.DEAD, reason=Reason.EXHAUSTED)
        return ending


class BlamesTheBatch(MemoryStore):
    """Counts a crash against every event of the claim."""

    def _decide(self, row: Row, result: EndOfClaim) -> Ending:
        if isinstance(result, LeaseExpired) and row.claim is not None:
            row.claim = replace(row.claim, size=1)
        return super()._decide(row, result)


class BlamesNobody(MemoryStore):
    """Lets an event kill its worker for ever."""

    def _decide(self, row: Row, result: EndOfClaim) -> Ending:
        if isinstance(result, LeaseExpired) and row.claim is not None:
            row.claim = replace(row.claim, size=2)
        return super()._decide(row, result)
