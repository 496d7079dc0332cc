"""One publish call of the Redis publisher: pipelines, and one result per event.

Redis carries out the commands of a connection in their order, so a broken pipeline leaves a prefix
done. What it does not promise is that a command is refused because the one before it was: between
two commands a server may get memory back, finish loading or become the primary. So the events of
one key travel in a transaction (MULTI, EXEC): whatever the server refuses for a while, it refuses
for all of them.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from delta_outbox.lifecycle.results import (
    Delivered,
    Failed,
    JsonText,
    NotSent,
    Rejected,
    Result,
    Unknown,
)
from delta_outbox.publishers.protocol import Event, EventBatch
from delta_outbox.publishers.redis.connection import Broken, RedisConnection, pack
from delta_outbox.publishers.redis.errors import ErrorReply
from delta_outbox.publishers.redis.message import channel_message, stream_fields
from delta_outbox.publishers.redis.settings import Mode, RedisSettings

_PIPELINE_EVENTS: Final = 1000
_PIPELINE_BYTES: Final = 1024 * 1024  # a single event may be larger
_LOOK_AHEAD: Final = 1000  # events that are passed over for the next pipeline
_MULTI: Final = b"*1\r\n$5\r\nMULTI\r\n"
_EXEC: Final = b"*1\r\n$4\r\nEXEC\r\n"
_NOT_SENT: Final = NotSent()


@dataclass(kw_only=True, slots=True)
class _Unit:
    """Commands of which Redis carries out all or none: the events of a key, or one without.

    Args:
        route: where they go.
        positions: of the events.
        commands: packed, one per event.
        end: where the unit ends in the bytes of its pipeline.
    """

    route: str
    positions: list[int] = field(default_factory=list)
    commands: list[bytes] = field(default_factory=list)
    end: int = 0

    def packed(self) -> bytes:
        if len(self.commands) == 1:
            return self.commands[0]
        return b"".join((_MULTI, *self.commands, _EXEC))


class RedisCall:
    """Sends a batch and collects one result per event.

    Args:
        events: the batch.
        settings: checked settings.
    """

    def __init__(self, events: EventBatch, *, settings: RedisSettings) -> None:
        self._events = tuple(events)
        self._deadline = events.deadline
        self._settings = settings
        self._results: list[Result] = [_NOT_SENT] * len(self._events)
        self._blocked: set[str] = set()  # keys of which an event was not delivered
        self._refused: dict[str, Result | None] = {}  # route -> why it may not be written
        self._is_stream = settings.mode is Mode.STREAM
        cap = settings.max_length
        self._cap = () if cap is None else (b"MAXLEN", b"~", b"%d" % cap)

    def fail(self, reason: str) -> list[Result]:
        """Return that nothing can be sent: an event whose predecessor failed was not tried.

        Args:
            reason: for people.
        """
        for position, event in enumerate(self._events):
            if event.ordered_key not in self._blocked:
                self._settle(position, Failed(error=reason))
        return self._results

    def run(self, connection: RedisConnection) -> tuple[list[Result], bool]:
        """Send until everything has a result, the deadline comes or the connection breaks.

        Args:
            connection: one that answers.

        Returns:
            The results, and whether the connection can be used again.
        """
        waiting = deque(range(len(self._events)))
        while waiting and time.monotonic() < self._deadline:
            units = self._cut(waiting)
            if units and not self._exchange(connection, units):
                return self._results, False
        return self._results, True

    def _cut(self, waiting: deque[int]) -> list[_Unit]:
        """Take the events of the next pipeline out of those that wait.

        A key whose events go to several streams takes turns: one transaction must not be refused
        for a stream and the next one be carried out for another.
        """
        units: list[_Unit] = []
        open_units: dict[str, _Unit] = {}
        passed: dict[int, None] = {}
        passed_keys: set[str] = set()
        count = size = 0
        while waiting and count < _PIPELINE_EVENTS and size < _PIPELINE_BYTES:
            if len(passed) >= _LOOK_AHEAD:
                break
            position = waiting.popleft()
            event = self._events[position]
            scope = event.ordered_key
            if scope is not None:
                if scope in self._blocked:
                    continue
                unit = open_units.get(scope)
                if scope in passed_keys or (unit is not None and unit.route != event.route):
                    passed_keys.add(scope)
                    passed[position] = None
                    continue
            else:
                unit = None
            command = self._packed(event)
            if not isinstance(command, bytes):
                self._settle(position, command)
                continue
            if unit is None:
                unit = _Unit(route=event.route)
                units.append(unit)
                if scope is not None:
                    open_units[scope] = unit
            unit.positions.append(position)
            unit.commands.append(command)
            count += 1
            size += len(command)
        waiting.extendleft(reversed(passed))
        return units

    def _packed(self, event: Event) -> bytes | Result:
        """Return the command, or why there is none."""
        route = event.route
        if route not in self._refused:
            self._refused[route] = self._forbidden(route)
        if (refused := self._refused[route]) is not None:
            return refused
        try:
            if self._is_stream:
                values = stream_fields(event)
                largest = max(map(len, values))
                words = (b"XADD", route.encode(), *self._cap, b"*", *values)
            else:
                message = channel_message(event)
                largest = len(message)
                words = (b"PUBLISH", route.encode(), message)
        except UnicodeError:
            return Rejected(error="a text of the event, its key or its headers has no UTF-8 form")
        if largest > self._settings.max_value_bytes:
            return Rejected(
                error=f"a value of {largest} bytes is too large: max_value_bytes is "
                f"{self._settings.max_value_bytes}"
            )
        return pack(*words)

    def _forbidden(self, route: str) -> Result | None:
        kind = "streams" if self._is_stream else "channels"
        if not route:
            return Rejected(error="the route is empty")
        if not self._settings.allows(route):
            return Rejected(error=f"the route {route!r} is not on the allow-list `{kind}`")
        return None

    def _exchange(self, connection: RedisConnection, units: list[_Unit]) -> bool:
        """Write a pipeline and read its answers; return whether the connection is still good."""
        parts: list[bytes] = []
        end = 0
        for unit in units:
            parts.append(unit.packed())
            unit.end = end = end + len(parts[-1])
        broken: Broken | None = None
        handed = end
        try:
            connection.write(b"".join(parts), self._deadline)
        except Broken as error:
            # Redis carries out whole commands only: one whose end is still here is not sent.
            broken, handed = error, error.handed
        for unit in units:
            if unit.end > handed:
                break
            try:
                answers = _answers(connection, unit, self._deadline)
            except Broken as error:
                broken = error
                answers = iter([Unknown(error=f"Redis: {error}")] * len(unit.positions))
            self._note(unit, answers)
        return broken is None

    def _note(self, unit: _Unit, answers: Iterator[object]) -> None:
        for position, answer in zip(unit.positions, answers, strict=True):
            result: Result
            if isinstance(answer, ErrorReply):
                result = answer.result()
            elif isinstance(answer, Failed | Unknown):
                result = answer
            elif self._is_stream and isinstance(answer, bytes):
                result = Delivered(
                    receipt=_receipt("stream", unit.route, "id", json.dumps(answer.decode()))
                )
            elif not self._is_stream and isinstance(answer, int):
                result = Delivered(
                    receipt=_receipt("channel", unit.route, "receivers", str(answer))
                )
            else:
                result = Unknown(error="the answer is none that Redis gives")
            self._settle(position, result)

    def _settle(self, position: int, result: Result) -> None:
        self._results[position] = result
        scope = self._events[position].ordered_key
        if scope is not None and type(result) is not Delivered:
            self._blocked.add(scope)


def _answers(connection: RedisConnection, unit: _Unit, deadline: float) -> Iterator[Any]:
    """Return one answer per event of a unit: a reply, or what follows from another's."""
    read: Callable[[], Any] = lambda: connection.read(deadline)  # noqa: E731
    if len(unit.positions) == 1:
        return iter([read()])
    begun = read()
    queued = [read() for _ in unit.positions]
    ended = read()
    if isinstance(begun, ErrorReply):
        # A user who lost the right to MULTI since the connection was made: each stood for itself.
        return iter(queued)
    if isinstance(ended, list) and len(ended) == len(queued):
        return iter(ended)
    if not isinstance(ended, ErrorReply):
        return iter([None] * len(queued))
    # Discarded as a whole: the first complaint is the cause.
    first = next((one for one in queued if isinstance(one, ErrorReply)), ended)
    verdict = ended.result()
    if isinstance(verdict, Failed):
        verdict = Failed(error=first.sentence)
    return iter([verdict] * len(queued))


def _receipt(place: str, route: str, name: str, value: str) -> JsonText:
    return JsonText(f'{{"{place}":{json.dumps(route, ensure_ascii=False)},"{name}":{value}}}')
