"""What a log holds before anything is measured, written in bulk as relays would have left it.

History is delivered long ago: each part is an append of events; the claim of a part and the endings
of the part before it are one append of transitions, at the next number of the lane. Open claims are
one append, a claim for each event. The invariants of the project judge both.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from benchmarks import ours
from benchmarks.messages import Stream, shares
from benchmarks.progress import say

from delta_outbox.outbox import Outbox

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PART: Final = 250_000  # events
CHECKED_EVERY: Final = 8  # parts: what is checked at once must fit into the driver
DAYS: Final = 30
_RELAY: Final = "history"
_LEASE: Final = 30  # seconds


def write_history(
    outbox: Outbox, stream: Stream, *, now: datetime, waiting: Stream | None = None
) -> None:
    """Write a stream as delivered in the course of the last days.

    Args:
        outbox: the store; it has no transition so far.
        stream: of messages.
        now: the current instant.
        waiting: events of the first day whose only attempt failed; they are due now.
    """
    policy_version = outbox.policies().version
    parts = list(shares(len(stream), PART))
    endings: DataFrame | None = None
    for number, (first, count) in enumerate(parts):
        at = now - timedelta(days=DAYS) * (len(parts) - number) / len(parts)
        beginning = waiting if waiting is not None and number == 0 else None
        frame = stream.frame(outbox.spark, first=first, count=count, created_at=at)
        if beginning is not None:
            # Keys of their own: nothing that was delivered later has overtaken them.
            frame = frame.unionByName(beginning.frame(outbox.spark, created_at=at))
        frame.write.format("delta").mode("append").saveAsTable(outbox.tables.events)
        arrival = outbox.projection.latest_version(outbox.tables.events)
        part = _Part(
            outbox=outbox,
            stream=stream,
            first=first,
            count=count,
            arrival=arrival,
            at=at,
            policy_version=policy_version,
            waiting=beginning,
        )
        _append(outbox, [frame for frame in (endings, part.claims()) if frame is not None])
        endings = part.endings(due=now)
        last = number == len(parts) - 1
        if last:
            _append(outbox, [endings])
        outbox.refresh()
        say(f"history: {first + count:,} of {len(stream):,} events")
        if last or number % CHECKED_EVERY == CHECKED_EVERY - 1:
            ours.check_invariants(outbox)


def write_open_claims(
    outbox: Outbox, stream: Stream, *, owner: str, now: datetime, until: datetime
) -> None:
    """Write a stream as claimed, each event by a claim of its own.

    Args:
        outbox: the store; nothing of its lane is claimed by anybody else.
        stream: of messages that no log has so far.
        owner: who claims. Of `todo` no relay ends a claim before its lease.
        now: the current instant.
        until: end of the leases.
    """
    stream.frame(outbox.spark).write.format("delta").mode("append").saveAsTable(
        outbox.tables.events
    )
    part = _Part(
        outbox=outbox,
        stream=stream,
        first=0,
        count=len(stream),
        arrival=outbox.projection.latest_version(outbox.tables.events),
        at=now,
        policy_version=outbox.policies().version,
        waiting=None,
    )
    each_its_own = {"claim_id": f"concat('{owner}-', id)", "claim_size": "1"}
    _append(outbox, [part.claims(until=until, **each_its_own)], owner=owner)


class _Part:
    """A part of what is written, and the transitions of its events.

    Args:
        outbox: the store.
        stream: of messages.
        first: number of its first.
        count: how many.
        arrival: the commit of the events.
        at: when.
        policy_version: of the policies that would have decided.
        waiting: events whose only attempt failed.
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        stream: Stream,
        first: int,
        count: int,
        arrival: int,
        at: datetime,
        policy_version: str,
        waiting: Stream | None,
    ) -> None:
        self._outbox = outbox
        self._names = {stream.name: (first, count)}
        if waiting is not None:
            self._names[waiting.name] = (0, len(waiting))
        self._waiting = waiting
        self._at = at
        self._columns = {
            "arrival": f"{arrival}L",
            "destination": "'default'",
            "lifecycle": "0",
            "attempt": "1",
            "claim_id": f"'history-{arrival}'",
            "claim_size": str(sum(count for _, count in self._names.values())),
            "crashes": "0",
            "suspect": "0",
            "policy_version": f"'{policy_version}'",
        }

    def claims(self, *, until: datetime | None = None, **others: str) -> DataFrame:
        """Return PENDING to CLAIMED of all events.

        Args:
            until: end of the lease; soon if left out.
            others: columns that are not as in the history.
        """
        lease = _instant(until or self._at + timedelta(seconds=_LEASE))
        return self._rows(
            list(self._names),
            from_state="'PENDING'",
            to_state="'CLAIMED'",
            reason="'claimed'",
            publish_attempts="0",
            lease_expires_at=lease,
            occurred_at=_instant(self._at),
            **others,
        )

    def endings(self, *, due: datetime) -> DataFrame:
        """Return how the claim ended.

        Args:
            due: when what has failed is tried again.
        """
        at = _instant(self._at + timedelta(seconds=1))
        failed = self._waiting.name if self._waiting is not None else None
        rows = self._rows(
            [name for name in self._names if name != failed],
            from_state="'CLAIMED'",
            to_state="'PUBLISHED'",
            reason="'delivered'",
            publish_attempts="0",
            occurred_at=at,
        )
        if failed is None:
            return rows
        others = self._rows(
            [failed],
            from_state="'CLAIMED'",
            to_state="'PENDING'",
            reason="'failed'",
            publish_attempts="1",
            occurred_at=at,
            available_at=_instant(due),
            error="'the broker was down'",
        )
        return rows.unionByName(others, allowMissingColumns=True)

    def _rows(self, names: Sequence[str], **columns: str) -> DataFrame:
        frames = []
        for name in names:
            first, count = self._names[name]
            ids = self._outbox.spark.range(first, first + count, 1, 2)
            event_id = f"concat('{name}-', lpad(cast(id as string), 12, '0')) as event_id"
            given = {**self._columns, **columns}
            frames.append(ids.selectExpr(event_id, *(f"{v} as {k}" for k, v in given.items())))
        rows = frames[0]
        for frame in frames[1:]:
            rows = rows.unionByName(frame)
        return rows


def _append(outbox: Outbox, frames: Sequence[DataFrame], *, owner: str = _RELAY) -> None:
    """Append transitions at the next number of the lane."""
    outbox.log.catch_up()
    number = outbox.log.sequence + 1
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionByName(frame, allowMissingColumns=True)
    position = ["0 as epoch", "0 as lane", f"{number}L as sequence", f"'{owner}' as relay_id"]
    (
        rows.selectExpr(*position, "*")
        .write.format("delta")
        .mode("append")
        .option("txnAppId", outbox.log.app_id)
        .option("txnVersion", number)
        .saveAsTable(outbox.tables.transitions)
    )


def _instant(at: datetime) -> str:
    return f"timestamp'{at:%Y-%m-%d %H:%M:%S}'"
