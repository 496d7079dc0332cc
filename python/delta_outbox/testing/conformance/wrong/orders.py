"""Stores that get the order wrong."""

from __future__ import annotations

from delta_outbox.lifecycle.states import State
from delta_outbox.testing.conformance.memory import MemoryStore
from delta_outbox.testing.conformance.memory_row import Row


class NewestFirst(MemoryStore):
    """Takes what came last first."""

    def _eligible(self) -> list[Row]:
        return super()._eligible()[::-1]


class LetsOthersIn(MemoryStore):
    """Gives a key to several relays."""

    def _holds_up(self, row: Row) -> bool:
        return row.state is not State.CLAIMED and super()._holds_up(row)


class PassesTheFailed(MemoryStore):
    """Lets later events of a key pass one that backs off."""

    def _holds_up(self, row: Row) -> bool:
        failed = row.state is State.PENDING and row.counters.attempt > 0
        return not failed and super()._holds_up(row)


class PassesTheScheduled(MemoryStore):
    """Lets later events of a key pass one that is scheduled."""

    def _holds_up(self, row: Row) -> bool:
        scheduled = row.state is State.PENDING and row.counters.attempt == 0
        return not scheduled and super()._holds_up(row)


class StopsEveryKey(MemoryStore):
    """Lets every event wait for every other."""

    def _scope(self, row: Row) -> str | None:
        return "everything"


class OrdersByPartition(MemoryStore):
    """Takes the partition key for an ordering key."""

    def _scope(self, row: Row) -> str | None:
        return super()._scope(row) or row.event.partition_key


class HoldsForEver(MemoryStore):
    """Lets a key wait for an event that failed, also after its delivery."""

    def _holds_up(self, row: Row) -> bool:
        recovered = row.state is State.PUBLISHED and row.counters.attempt > 1
        return recovered or super()._holds_up(row)
