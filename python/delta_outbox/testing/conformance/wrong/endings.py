"""Stores that end claims wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from delta_outbox.lifecycle.endings import Counters, Ending, EndOfClaim
from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected, Result, Unknown
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.testing.conformance.adapter import Held, Refused
from delta_outbox.testing.conformance.memory import MemoryStore
from delta_outbox.testing.conformance.memory_row import Row


class NeverPublishes(MemoryStore):
    """Takes success for silence."""

    def _end(self, row: Row, result: EndOfClaim) -> None:
        super()._end(row, Unknown() if isinstance(result, Delivered) else result)


class SetsNoPublishedAt(MemoryStore):
    """Does not say when an event was published."""

    def _apply(self, row: Row, ending: Ending) -> None:
        super()._apply(row, ending)
        row.published_at = None


class RenewsPublishedAt(MemoryStore):
    """Moves published_at when somebody says once more that it was delivered."""

    def end(self, held: Held, results: Sequence[Result]) -> None:
        """End a claim, and date what was over already anew."""
        for event_id, result in zip(held.event_ids, results, strict=True):
            row = self.rows[event_id]
            if row.state is State.PUBLISHED and isinstance(result, Delivered):
                row.published_at = self.now()
        super().end(held, results)


class TrustsSilence(MemoryStore):
    """Takes an attempt without an answer for a success."""

    def _end(self, row: Row, result: EndOfClaim) -> None:
        super()._end(row, Delivered() if isinstance(result, Unknown) else result)


class GivesUpAtOnce(MemoryStore):
    """Buries an event at its first failure."""

    def _decide(self, row: Row, result: EndOfClaim) -> Ending:
        ending = super()._decide(row, result)
        if isinstance(result, Failed | Unknown):
            return replace(ending, to_state=State.DEAD, reason=Reason.EXHAUSTED, available_at=None)
        return ending


class RetriesForEver(MemoryStore):
    """Buries nothing."""

    def _decide(self, row: Row, result: EndOfClaim) -> Ending:
        ending = super()._decide(row, result)
        if ending.to_state is State.DEAD:
            return replace(ending, to_state=State.PENDING, reason=Reason.FAILED)
        return ending


class AllowsOneAttemptMore(MemoryStore):
    """Counts the budget of attempts from one too late."""

    def _decide(self, row: Row, result: EndOfClaim) -> Ending:
        before = row.counters
        fewer = max(0, before.publish_attempts - 1) if row.counters.attempt > 1 else 0
        row.counters = replace(before, publish_attempts=fewer)
        ending = super()._decide(row, result)
        kept = before.publish_attempts + (ending.counters.publish_attempts - fewer)
        return replace(ending, counters=replace(ending.counters, publish_attempts=kept))


class KeepsNoErrors(MemoryStore):
    """Does not say what went wrong."""

    def _apply(self, row: Row, ending: Ending) -> None:
        super()._apply(row, replace(ending, error=None))


class KeepsTheFirstError(MemoryStore):
    """Says for ever what went wrong first."""

    def _apply(self, row: Row, ending: Ending) -> None:
        first = row.last_error
        super()._apply(row, ending)
        row.last_error = first or row.last_error


class NeverPauses(MemoryStore):
    """Tries again at once."""

    def _apply(self, row: Row, ending: Ending) -> None:
        super()._apply(row, replace(ending, available_at=None))


class PausesAlways(MemoryStore):
    """Lets an event wait that was never sent."""

    def _decide(self, row: Row, result: EndOfClaim) -> Ending:
        ending = super()._decide(row, result)
        if isinstance(result, NotSent):
            return replace(ending, available_at=self.now() + timedelta(seconds=10))
        return ending


class StopsAtABadEvent(MemoryStore):
    """Gives the rest of a claim back when one event of it is bad."""

    def end(self, held: Held, results: Sequence[Result]) -> None:
        """End a claim up to the first event that is bad."""
        bad = [isinstance(result, Failed | Rejected) for result in results]
        cut = bad.index(True) + 1 if True in bad else len(results)
        super().end(held, [*results[:cut], *[NotSent()] * (len(results) - cut)])


class RevivesTheDead(MemoryStore):
    """Tries the dead again, without being asked."""

    def reap(self) -> None:
        """Reap, and wake the dead."""
        super().reap()
        for row in self.rows.values():
            if row.state is State.DEAD:
                self._step(row, State.PENDING, Reason.REPLAYED)


class EndsTheFirstOnly(MemoryStore):
    """Loses all but the first ending of a claim."""

    def end(self, held: Held, results: Sequence[Result]) -> None:
        """End the first event of a claim."""
        first = Held(worker=held.worker, event_ids=held.event_ids[:1], token=held.token)
        super().end(first, results[:1])


class RefusesAllForOne(MemoryStore):
    """Makes a claim end as a whole, as badly as its worst event."""

    def end(self, held: Held, results: Sequence[Result]) -> None:
        """End every event of a claim alike."""
        if not all(self._is_live(self.rows[one], held) for one in held.event_ids):
            raise Refused("the claim is over")
        worst = next((one for one in results if isinstance(one, Rejected)), None)
        super().end(held, [worst or result for result in results])


class ResetsAtARetry(MemoryStore):
    """Begins to count anew with every retry."""

    def _begin(self, rows: Sequence[Row], worker: str) -> Held:
        for row in rows:
            row.counters = replace(Counters(), publish_attempts=row.counters.publish_attempts)
        return super()._begin(rows, worker)


class DropsWhatFails(MemoryStore):
    """Removes an event that has failed."""

    def _apply(self, row: Row, ending: Ending) -> None:
        super()._apply(row, ending)
        if ending.reason is Reason.FAILED:
            del self.rows[row.event.event_id]
