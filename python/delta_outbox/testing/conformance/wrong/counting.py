"""Stores that count wrongly."""

from __future__ import annotations

from dataclasses import replace

from delta_outbox.lifecycle.endings import Counters, Ending, EndOfClaim, LeaseExpired
from delta_outbox.lifecycle.results import NotSent
from delta_outbox.testing.conformance.memory import MemoryStore
from delta_outbox.testing.conformance.memory_row import Row


class CountsNothing(MemoryStore):
    """Leaves attempts at 0."""

    def _counted(self, counters: Counters) -> Counters:
        return counters


class CountsAfterwards(MemoryStore):
    """Counts an attempt when it is over."""

    def _counted(self, counters: Counters) -> Counters:
        return counters

    def _apply(self, row: Row, ending: Ending) -> None:
        counted = replace(ending.counters, attempt=ending.counters.attempt + 1)
        super()._apply(row, replace(ending, counters=counted))


class _Uncounts(MemoryStore):
    results: tuple[type, ...] = ()

    def _decide(self, row: Row, result: EndOfClaim) -> Ending:
        ending = super()._decide(row, result)
        if isinstance(result, self.results):
            fewer = replace(ending.counters, attempt=ending.counters.attempt - 1)
            return replace(ending, counters=fewer)
        return ending


class UncountsTheUnsent(_Uncounts):
    """Takes an attempt back that sent nothing."""

    results = (NotSent,)


class CountsNoExpiry(_Uncounts):
    """Takes an attempt back whose lease ran out."""

    results = (LeaseExpired,)
