"""One publish call of the NATS publisher.

Nothing of a key is sent before its predecessor has been acknowledged (mode core: processed), so no
event overtakes another of its key; different keys are in flight together.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from delta_outbox.lifecycle.results import (
    Delivered,
    Failed,
    JsonText,
    NotSent,
    Rejected,
    Result,
    Unknown,
    to_json,
)
from delta_outbox.publishers.key_chains import key_chains
from delta_outbox.publishers.nats.connection import NatsConnection
from delta_outbox.publishers.nats.errors import result_of
from delta_outbox.publishers.nats.message import Unfit, header_bytes, nats_headers
from delta_outbox.publishers.nats.settings import Mode, NatsSettings, subject_fault
from delta_outbox.publishers.protocol import Event, EventBatch

if TYPE_CHECKING:
    from nats.aio.msg import Msg

_GRACE: Final = 0.5  # seconds for work that is cancelled
_ROUND: Final = 1000  # events of mode core between two questions
_NOT_SENT: Final = NotSent()
_UNANSWERED: Final = Unknown(error="NATS did not answer before the deadline")


class NatsCall:
    """Sends a batch and collects one result per event.

    Args:
        events: the batch.
        settings: checked settings.
    """

    def __init__(self, events: EventBatch, *, settings: NatsSettings) -> None:
        self._events = tuple(events)
        self._deadline = events.deadline
        self._settings = settings
        self._results: list[Result] = [_NOT_SENT] * len(self._events)
        self._chains = deque(key_chains(self._events))
        self._refused: dict[str, Result | None] = {}  # subject -> why nothing may be sent to it
        self._waiting: dict[int, asyncio.Future[Result]] = {}
        # The server names the subject of a message that it refuses, in lower case, not the message.
        self._open: defaultdict[str, set[int]] = defaultdict(set)
        self._denied: Counter[str] = Counter()
        self._is_over = False

    def fail(self, reason: str) -> list[Result]:
        """Return that nothing can be sent: an event whose predecessor failed was not tried.

        Args:
            reason: for people.
        """
        for chain in self._chains:
            self._results[chain[0]] = Failed(error=reason)
        return self._results

    async def run(self, connection: NatsConnection) -> list[Result]:
        """Publish until every event has an answer, the deadline comes or the connection ends.

        Args:
            connection: one that answers.
        """
        connection.listen(self._on_answer, self._on_denied)
        is_core = self._settings.mode is Mode.CORE
        work = asyncio.ensure_future(
            self._publish_in_rounds(connection) if is_core else self._publish_to_streams(connection)
        )
        await connection.wait(work, self._deadline - time.monotonic())
        self._is_over = True
        if not work.done():
            work.cancel()
            await asyncio.wait({work}, timeout=_GRACE)
        elif not work.cancelled():
            work.result()
        if connection.is_closed:
            self._explain(connection.complaint)
        return self._results

    async def _publish_to_streams(self, connection: NatsConnection) -> None:
        workers = min(self._settings.max_in_flight, len(self._chains))
        await asyncio.gather(*(self._follow_chains(connection) for _ in range(workers)))

    async def _publish_in_rounds(self, connection: NatsConnection) -> None:
        """Publish to whoever listens; the server says of each round that it has processed it."""
        going, depth = self._chains, 0
        while going and not self._is_late():
            following: deque[list[int]] = deque()
            while going and not self._is_late():
                chains = [going.popleft() for _ in range(min(_ROUND, len(going)))]
                await self._round(connection, [chain[depth] for chain in chains])
                following.extend(
                    chain
                    for chain in chains
                    if len(chain) > depth + 1 and type(self._results[chain[depth]]) is Delivered
                )
            going, depth = following, depth + 1

    def _is_late(self) -> bool:
        # The client swallows a cancellation while it waits for a slow server: hence the flag.
        return self._is_over or time.monotonic() >= self._deadline

    async def _round(self, connection: NatsConnection, positions: Sequence[int]) -> None:
        self._denied.clear()
        sent: dict[str, list[int]] = defaultdict(list)
        for position in positions:
            if self._is_late():
                break
            event = self._events[position]
            prepared = self._prepared(event, connection.max_payload)
            if not isinstance(prepared, dict):
                self._results[position] = prepared
            elif await connection.publish(event.route, event.payload, prepared):
                self._results[position] = _UNANSWERED
                sent[event.route.lower()].append(position)
        if not sent:
            return
        is_processed = await connection.flush(self._deadline - time.monotonic())
        for subject, places in sent.items():
            denied = self._denied[subject]
            for position in places:
                if denied == len(places):
                    self._results[position] = _no_right(self._events[position].route)
                elif denied:
                    self._results[position] = Unknown(error="the right to publish has just changed")
                elif is_processed:
                    receipt = to_json({"subject": self._events[position].route}) or ""
                    self._results[position] = Delivered(receipt=JsonText(receipt))

    async def _follow_chains(self, connection: NatsConnection) -> None:
        """Take chains of events that wait for each other, one after the other."""
        while self._chains:
            for position in self._chains.popleft():
                if self._is_late() or connection.is_closed:
                    return
                result = await self._attempt(connection, position)
                self._results[position] = result
                if type(result) is not Delivered:
                    break

    async def _attempt(self, connection: NatsConnection, position: int) -> Result:
        event = self._events[position]
        prepared = self._prepared(event, connection.max_payload)
        if not isinstance(prepared, dict):
            return prepared
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        subject = event.route.lower()
        self._waiting[position] = answer
        self._open[subject].add(position)
        self._results[position] = _UNANSWERED
        try:
            if not await connection.publish(
                event.route, event.payload, prepared, token=str(position)
            ):
                return _NOT_SENT
            return _UNANSWERED if self._is_over else await answer
        finally:
            del self._waiting[position]
            self._open[subject].discard(position)
            self._settle_denied(subject)

    def _on_answer(self, token: str, answer: Msg) -> None:
        waiting = self._waiting.get(int(token))
        if waiting is not None and not waiting.done():
            status = (answer.headers or {}).get("Status")
            subject = self._events[int(token)].route
            waiting.set_result(result_of(answer.data, status=status, subject=subject))

    def _on_denied(self, subject: str) -> None:
        self._denied[subject] += 1
        self._settle_denied(subject)

    def _settle_denied(self, subject: str) -> None:
        """Fail the events of a subject once as many were refused as have no answer."""
        places = [p for p in self._open[subject] if not self._waiting[p].done()]
        if places and self._denied[subject] >= len(places):
            self._denied[subject] = 0
            for position in places:
                self._waiting[position].set_result(_no_right(self._events[position].route))

    def _prepared(self, event: Event, max_payload: int) -> dict[str, str] | Result:
        """Return the headers, or why the event cannot be sent."""
        subject = event.route
        if subject not in self._refused:
            self._refused[subject] = self._forbidden(subject)
        if (refused := self._refused[subject]) is not None:
            return refused
        try:
            headers = nats_headers(event, stream=self._settings.stream)
            size = header_bytes(headers) + len(event.payload)
        except Unfit as error:
            return Rejected(error=f"it has no form in NATS: {error}")
        if size > max_payload:
            return Rejected(
                error=f"headers and payload have {size} bytes, and the server's max_payload is "
                f"{max_payload}"
            )
        return headers

    def _forbidden(self, subject: str) -> Result | None:
        try:
            fault = subject_fault(subject)
        except UnicodeError:
            fault = "it has no UTF-8 form"
        if fault is not None:
            return Rejected(error=f"the route is no subject, {fault}: {subject!r}")
        if not self._settings.allows(subject):
            return Rejected(error=f"the subject {subject!r} is not on the allow-list `subjects`")
        return None

    def _explain(self, complaint: str) -> None:
        """Give the events without an answer the reason that the connection ended for."""
        unknown = Unknown(error=f"NATS: the connection ended before the answer: {complaint}")
        for position, result in enumerate(self._results):
            if result is _UNANSWERED:
                self._results[position] = unknown


def _no_right(subject: str) -> Failed:
    return Failed(error=f"the user may not publish to {subject!r}: give it the right")
