"""One publish call of the RabbitMQ publisher: many messages under way, confirmed by their tags."""

from __future__ import annotations

import re
import struct
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected, Result, Unknown
from delta_outbox.publishers.protocol import EventBatch
from delta_outbox.publishers.rabbitmq.connection import RabbitConnection, Refusal, Unreachable
from delta_outbox.publishers.rabbitmq.message import properties_of

WINDOW: Final = 1000  # messages without a confirm
WINDOW_BYTES: Final = 1_048_576  # of them; a larger message travels alone
_ACCESS_REFUSED, _NOT_FOUND, _PRECONDITION_FAILED = 403, 404, 406
_SIZES: Final = re.compile(r"message size (\d+)\D+(\d+)")
_TOPIC: Final = re.compile(r"access to topic '(.*)' in exchange", re.DOTALL)
_DELIVERED: Final = Delivered()
_NOT_SENT: Final = NotSent()


@dataclass(kw_only=True)
class Lessons:
    """What refusals have taught; kept by the publisher as long as its connection.

    Args:
        size_limit: bytes of a payload that the broker takes.
        suspects: routes that were refused, and take the whole channel with them.
    """

    size_limit: int | None = None
    suspects: set[str] = field(default_factory=set)


class RabbitCall:
    """Sends a batch and collects one result per event.

    Args:
        events: the batch.
        content_type: of every message.
        lessons: of earlier refusals; this call adds its own.
    """

    def __init__(self, events: EventBatch, *, content_type: str, lessons: Lessons) -> None:
        self._events = tuple(events)
        self._deadline = events.deadline
        self._content_type = content_type
        self._lessons = lessons
        self._results: list[Result | None] = [None] * len(self._events)
        self._ready: deque[int] = deque()
        self._behind: dict[str, deque[int]] = {}  # key -> events that wait for their predecessor
        self._under_way: dict[int, int] = {}  # delivery tag -> position, ascending
        self._bytes = 0
        self._returned: dict[int, str] = {}
        self._alone = False  # what is under way must have no company
        self._scopes = [event.ordered_key for event in self._events]
        for position, scope in enumerate(self._scopes):
            if scope is not None and scope in self._behind:
                self._behind[scope].append(position)
                continue
            if scope is not None:
                self._behind[scope] = deque()
            self._ready.append(position)

    @property
    def unanswered(self) -> bool:
        """Return whether messages are under way."""
        return bool(self._under_way)

    def run(self, connection: RabbitConnection) -> list[Result]:
        """Send until everything has a result, the deadline comes or the connection is gone.

        Args:
            connection: that answers.
        """
        self._connection = connection
        connection.on_confirm, connection.on_return = self._confirm, self._note_return
        connection.on_change = self._pump
        try:
            self._send(connection)
        finally:
            connection.forget_listeners()
        return self._conclude()

    def _send(self, connection: RabbitConnection) -> None:
        while True:
            self._pump()
            connection.wait(self._is_over, self._deadline)
            refusal = connection.refusal
            if refusal is None or not self._sort_out(refusal):
                break
            if not self._ready:
                break
            try:
                connection.open_channel(self._deadline)
            except Unreachable as error:
                self._settle_ready(Failed(error=str(error)))
                break

    def _is_over(self) -> bool:
        return not (self._ready or self._under_way) or not self._connection.usable

    def _pump(self) -> None:
        """Hand over what the window has room for."""
        connection, ready = self._connection, self._ready
        while ready and connection.usable and connection.blocked is None:
            if time.monotonic() >= self._deadline:
                return
            position = ready[0]
            event = self._events[position]
            size = len(event.payload)
            # The first message of a channel travels alone: of an alarm, a missing right and so on
            # the broker tells us only then.
            alone = not connection.proven or event.route in self._lessons.suspects
            if self._under_way and (
                alone
                or self._alone
                or len(self._under_way) >= WINDOW
                or self._bytes + size > WINDOW_BYTES
            ):
                return
            ready.popleft()
            limit = self._lessons.size_limit
            if limit is not None and size > limit:
                self._settle(position, _too_large(size, limit))
                continue
            try:
                properties = properties_of(
                    event, content_type=self._content_type, frame_max=connection.frame_max
                )
                tag = connection.send(event.route, event.payload, properties)
            except UnicodeEncodeError:
                self._settle(position, Rejected(error="a text of it has no form in UTF-8"))
            except ValueError as error:
                self._settle(position, Rejected(error=f"it has no form in AMQP: {error}"))
            except (struct.error, ArithmeticError, TypeError) as error:
                # The client writes all of a message into memory before it hands any of it over.
                message = f"it has no form in AMQP: {type(error).__name__}"
                self._settle(position, Rejected(error=message))
            else:
                self._under_way[tag] = position
                self._bytes += size
                self._alone = alone

    def _confirm(self, tag: int, multiple: bool, positive: bool) -> None:
        tags = list(takewhile(lambda one: one <= tag, self._under_way)) if multiple else [tag]
        for one in tags:
            position = self._under_way.pop(one, None)
            if position is None:
                continue
            self._bytes -= len(self._events[position].payload)
            returned = self._returned.pop(position, None)
            if not positive:
                self._settle(position, Failed(error="RabbitMQ refused the message (basic.nack)"))
            elif returned is not None:
                self._settle(position, Failed(error=returned))
            else:
                self._settle(position, _DELIVERED)
        if not self._under_way:
            self._alone = False
        self._pump()

    def _note_return(self, message_id: str | None, text: str) -> None:
        """Keep for the confirm that follows that no queue took a message."""
        for position in self._under_way.values():
            event = self._events[position]
            if event.delivery_id == message_id and position not in self._returned:
                self._returned[position] = (
                    f"no queue is bound for the route {event.route!r} ({text}): bind one, "
                    "or correct the route"
                )
                return

    def _settle(self, position: int, result: Result) -> None:
        """Keep a result and let the key go on, or not."""
        self._results[position] = result
        scope = self._scopes[position]
        behind = None if scope is None else self._behind[scope]
        if not behind:
            return
        if isinstance(result, Delivered):
            self._ready.append(behind.popleft())
        else:
            for later in behind:
                self._results[later] = _NOT_SENT
            behind.clear()

    def _sort_out(self, refusal: Refusal) -> bool:
        """Find whom a closed channel was meant for; return whether the call can go on.

        The broker takes messages of a channel in their order and, once it has closed it, none: what
        came before the guilty one may be delivered, what came after it is certainly not.
        """
        order = list(self._under_way.values())
        self._under_way.clear()
        self._bytes, self._alone = 0, False
        guilty = self._guilty(refusal, order)
        message = f"RabbitMQ closed the channel: {refusal.text}"
        if guilty is None:
            for position in order:
                self._settle(position, Unknown(error=message))
            return False
        before, after = order[:guilty], order[guilty + 1 :]
        for position in before:
            self._settle(position, Unknown(error=message))
        self._settle(order[guilty], self._verdict(refusal, order[guilty]))
        self._ready.extendleft(reversed(after))
        return True

    def _guilty(self, refusal: Refusal, order: list[int]) -> int | None:
        if len(order) == 1:
            return 0
        if (sizes := _SIZES.search(refusal.text)) is not None:
            size = int(sizes[1])
            fits = (len(self._events[position].payload) == size for position in order)
        elif (topic := _TOPIC.search(refusal.text)) is not None:
            fits = (self._events[position].route == topic[1] for position in order)
        else:
            return None
        return next((number for number, fit in enumerate(fits) if fit), None)

    def _verdict(self, refusal: Refusal, position: int) -> Result:
        event = self._events[position]
        if (sizes := _SIZES.search(refusal.text)) is not None:
            self._lessons.size_limit = int(sizes[2])
            return _too_large(len(event.payload), int(sizes[2]))
        if refusal.code == _PRECONDITION_FAILED:
            return Rejected(error=f"RabbitMQ refused the message: {refusal.text}")
        if refusal.code in (_ACCESS_REFUSED, _NOT_FOUND):
            self._lessons.suspects.add(event.route)
            return Failed(error=f"RabbitMQ refused the message: {refusal.text}")
        return Unknown(error=f"RabbitMQ closed the channel: {refusal.text}")

    def _settle_ready(self, result: Result) -> None:
        while self._ready:
            self._settle(self._ready.popleft(), result)

    def _conclude(self) -> list[Result]:
        connection = self._connection
        if connection.lost is not None:
            unknown = Unknown(error=f"the connection to RabbitMQ was lost: {connection.lost}")
        elif connection.blocked is not None:
            unknown = Unknown(
                error=f"RabbitMQ is blocked ({connection.blocked}) and did not answer"
            )
        else:
            unknown = Unknown(error="RabbitMQ did not answer before the deadline")
        for position in self._under_way.values():
            self._settle(position, unknown)
        if connection.lost is None and connection.blocked is not None:
            self._settle_ready(blocked_result(connection.blocked))
        return [_NOT_SENT if result is None else result for result in self._results]


def blocked_result(reason: str) -> Failed:
    """Return the result of an event that a blocked broker did not take.

    Args:
        reason: the broker's.
    """
    return Failed(error=f"RabbitMQ takes no messages for now: {reason}")


def _too_large(size: int, limit: int) -> Rejected:
    return Rejected(
        error=f"the message is too large: {size} bytes, and RabbitMQ's max_message_size is {limit}"
    )
