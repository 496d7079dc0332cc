"""The life of ten events, from their append to their end: played here, judged beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected, Result, Unknown
from delta_outbox.testing.conformance.adapter import Message, NewEvent
from delta_outbox.testing.conformance.check import Scenario
from delta_outbox.testing.conformance.stage import Look, Stage

A_DAY: Final = 86_400.0  # seconds
TRACE: Final = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
HEADERS: Final = {
    "Content-Type": "application/octet-stream",
    "traceparent": TRACE,
    "x-empty": "",
    "x-text": 'grüße, "quoted" \\ and spaces ',
}
PRIVATE: Final = "internal-note-7f3a"
METADATA: Final = {"traceparent": TRACE, "note": PRIVATE}
MISLEADING: Final = {
    "state": "DEAD",
    "priority": "9",
    "available_at": "2999-01-01T00:00:00Z",
    "max_attempts": "1",
    "ordering_key": "a",
    "event_type": "another.type",
}
RESULTS: Final[Mapping[str, Result]] = {
    "delivered": Delivered(receipt={"offset": 1}),
    "empty": Delivered(),
    "json": Delivered(),
    "failed": Failed(error="boom"),
    "twin": Failed(error="boom"),
    "unknown": Unknown(error="no answer"),
    "rejected": Rejected(error="too strange"),
    "released": NotSent(),
    "neighbour": Delivered(),
}
DUE: Final = tuple(RESULTS)
DONE: Final = ("delivered", "empty", "json", "neighbour")
RETRIED: Final = ("failed", "twin", "unknown", "released")


@dataclass(frozen=True, kw_only=True)
class Life:
    """What was seen.

    Args:
        looks: every look, in order.
        appended, claimed, ended, reopened, reclaimed, published, late, final: looks by their time.
        eligible: after the append.
        taken: by the first claim.
        claim_began, claim_ended: the time around the first claim.
        end_began, end_ended: the time around its end.
        messages, retries: what publishers were given.
        left: eligible right after the first end.
        terminal: eligible when all but the scheduled event are over.
        due: eligible when that one is due.
        again: taken after the pause.
        history: steps by event; empty without a history.
    """

    looks: tuple[Look, ...]
    appended: Look
    claimed: Look
    ended: Look
    reopened: Look
    reclaimed: Look
    published: Look
    late: Look
    final: Look
    eligible: tuple[str, ...]
    taken: tuple[str, ...]
    claim_began: datetime
    claim_ended: datetime
    end_began: datetime
    end_ended: datetime
    messages: Mapping[str, Message]
    retries: Mapping[str, Message]
    left: tuple[str, ...]
    terminal: tuple[str, ...]
    due: tuple[str, ...]
    again: tuple[str, ...]
    history: Mapping[str, tuple[tuple[str, str], ...]]


def new_events(now: datetime) -> list[NewEvent]:
    """Return the events: each with something of its own.

    Args:
        now: the time of the store.
    """
    return [
        NewEvent(
            event_id="delivered",
            payload=bytes(range(256)),
            partition_key="partition-1",
            headers=HEADERS,
            metadata=METADATA,
        ),
        NewEvent(event_id="empty", payload=b"", headers={}),
        NewEvent(event_id="json", payload=b'{ "b": 1.0,\n "a": [ ] }', ordering_key="json"),
        NewEvent(event_id="failed", headers=HEADERS),
        NewEvent(event_id="twin", headers=HEADERS, metadata=MISLEADING),
        NewEvent(event_id="unknown"),
        NewEvent(event_id="rejected"),
        NewEvent(event_id="released"),
        NewEvent(event_id="neighbour"),
        NewEvent(event_id="scheduled", available_at=now + timedelta(seconds=A_DAY)),
    ]


def play(stage: Stage) -> Life:
    """Let the events live.

    Args:
        stage: where.
    """
    stage.append(*new_events(stage.now()))
    appended, eligible = stage.look(), stage.retrieve()
    claim_began = stage.now()
    first = stage.take("relay-1", *DUE)
    claim_ended = stage.now()
    claimed, messages = stage.look(), stage.messages(first)
    end_began = stage.now()
    stage.end(first, RESULTS)
    end_ended = stage.now()
    ended, left = stage.look(), stage.retrieve()
    stage.store.reopen()
    reopened = stage.look()
    stage.store.advance(stage.terms.backoff_seconds)
    second = stage.take("relay-2", *RETRIED)
    reclaimed, retries = stage.look(), stage.messages(second)
    stage.end(second)
    published = stage.look()
    # Both claims are over; nothing that their workers still say may count.
    stage.end(second, otherwise=Failed(error="late"))
    stage.end(second, otherwise=Delivered())
    stage.end(first, otherwise=Delivered())
    stage.end(first, otherwise=Rejected(error="late"))
    stage.store.reap()
    late, terminal = stage.look(), stage.retrieve()
    stage.store.advance(A_DAY)
    due = stage.retrieve()
    stage.end(stage.take("relay-1", "scheduled"))
    final = stage.look()
    return Life(
        looks=(appended, claimed, ended, reopened, reclaimed, published, late, final),
        appended=appended,
        claimed=claimed,
        ended=ended,
        reopened=reopened,
        reclaimed=reclaimed,
        published=published,
        late=late,
        final=final,
        eligible=eligible,
        taken=first.names,
        claim_began=claim_began,
        claim_ended=claim_ended,
        end_began=end_began,
        end_ended=end_ended,
        messages=messages,
        retries=retries,
        left=left,
        terminal=terminal,
        due=due,
        again=second.names,
        history=stage.history(),
    )


LIFE: Final = Scenario("life", play)
