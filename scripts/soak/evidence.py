"""What a soak is judged by: rows of the logs, messages of the topic, and the kills themselves.

Instants are seconds since 1970, all by the clock of one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Appended:
    """A row of the event log.

    Args:
        event_id: the event.
        key: its ordering key.
        position: commit of the log, then the ordinal within it.
    """

    event_id: str
    key: str
    position: tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A row of the transition log.

    Args:
        event_id: the event.
        sequence: of the append that holds it.
        before, after: the states.
        reason: why.
        claim_id: the claim that it begins or ends.
        relay_id: who appended it.
        attempt: the number of the claim.
        at: when it was decided.
    """

    event_id: str
    sequence: int
    before: str
    after: str
    reason: str
    claim_id: str
    relay_id: str
    attempt: int
    at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Copy:
    """A message of the topic.

    Args:
        event_id: as its header says.
        key: of the message.
        payload: its content, as text.
        partition, offset: its place.
        at: when the broker appended it.
    """

    event_id: str
    key: str
    payload: str
    partition: int
    offset: int
    at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Kill:
    """A process that was ended with SIGKILL.

    Args:
        number: counts from 1.
        kind: relay, jvm or worker.
        at: when.
        frozen: whether the broker answered nothing at that moment.
        claim_id: one that the relay at work had; it names the relay.
        alone: the next kill waited until all that this one had left was delivered.
        until: the end of the stretch in which the soak then ran; None while it runs.
    """

    number: int
    kind: str
    at: float
    frozen: bool
    claim_id: str
    alone: bool = False
    until: float | None = None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that a soak leaves behind.

    Args:
        acknowledged: ids of the events whose append was answered with success.
        appended: the event log, in its order.
        steps: the transition log, in its order.
        copies: the topic, in order of the offsets within each partition.
        kills: in order of time.
    """

    acknowledged: Sequence[str] = ()
    appended: Sequence[Appended] = ()
    steps: Sequence[Step] = ()
    copies: Sequence[Copy] = ()
    kills: Sequence[Kill] = field(default=())
