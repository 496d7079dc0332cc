"""RabbitMQ: one persistent message per event, confirmed by the broker, in order per key.

Promises, and what they rest on:

- Delivered means the broker's confirm for that very message, which it had routed to a queue
  (`mandatory`). A confirm of a persistent message in a durable queue means that it is on disk, in a
  quorum queue on the disks of a majority.
- Nothing is sent after the deadline: what is under way then is Unknown, and its connection is
  dropped with all that has not left this process. Bytes that the operating system holds already
  cannot be called back.
- `ordered`: within a call an event is handed over only when its predecessor of the same key has
  been confirmed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import ClassVar, Final

from delta_outbox.lifecycle.results import Failed, NotSent, Result
from delta_outbox.publishers.cloudevents.transport import Transport
from delta_outbox.publishers.protocol import EventBatch
from delta_outbox.publishers.rabbitmq.call import Lessons, RabbitCall, blocked_result
from delta_outbox.publishers.rabbitmq.connection import RabbitConnection, Unreachable
from delta_outbox.publishers.rabbitmq.settings import RabbitSettings, parse_settings
from delta_outbox.publishers.setting_reader import FilesInHome

logger = logging.getLogger(__name__)

_CONNECT_TIMEOUT: Final = 10.0  # seconds; a claim lasts longer
_ANSWER_TIMEOUT: Final = 5.0  # seconds until a silent connection is given up


class RabbitPublisher(FilesInHome):
    """Publish to RabbitMQ through pika."""

    ordered: ClassVar[bool] = True
    cloudevents: ClassVar[Transport] = Transport.AMQP

    def __init__(self) -> None:
        self._settings: RabbitSettings | None = None
        self._connection: RabbitConnection | None = None
        self._lessons = Lessons()

    @classmethod
    def validate(cls, settings: Mapping[str, object]) -> None:
        """Raise one sentence about bad settings, without connecting.

        Args:
            settings: the table of the destination.

        Raises:
            ValueError: a setting is not allowed or has no meaning.
        """
        parse_settings(settings)

    @classmethod
    def probe(cls, settings: Mapping[str, object], timeout: float) -> None:
        """Raise if RabbitMQ does not let us in, or the exchange is not there.

        Args:
            settings: as for `open`.
            timeout: seconds to wait.

        Raises:
            ConnectionError: one sentence with the address and the cause.
        """
        try:
            RabbitConnection(parse_settings(settings), timeout=timeout).close()
        except Unreachable as error:
            raise ConnectionError(f"{error}.") from error

    def open(self, settings: Mapping[str, object]) -> None:
        """Check the settings; the connection is made by the first `publish`."""
        self._settings = parse_settings(settings)

    def publish(self, events: EventBatch) -> list[Result]:
        """Send every event once and wait for the confirms, at most until the deadline."""
        settings = self._settings
        if settings is None:
            raise RuntimeError("RabbitPublisher: `open` comes before `publish`.")
        if not events or events.remaining_seconds() <= 0:
            return [NotSent()] * len(events)
        try:
            connection = self._connected(settings, events)
        except Unreachable as error:
            logger.warning("rabbitmq_unreachable", extra={"error": str(error)})
            return [Failed(error=str(error)) for _ in events]
        if connection.blocked is not None:
            return [blocked_result(connection.blocked) for _ in events]
        call = RabbitCall(events, content_type=settings.content_type, lessons=self._lessons)
        try:
            return call.run(connection)
        finally:
            if call.unanswered or connection.lost is not None:
                self._drop()

    def close(self) -> None:
        """Take leave of the broker; nothing is sent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self, settings: RabbitSettings, events: EventBatch) -> RabbitConnection:
        """Return a connection that has just answered, or is blocked."""
        connection = self._connection
        if connection is not None:
            # Half of the time is left for a new connection.
            seconds = min(_ANSWER_TIMEOUT, events.remaining_seconds() / 2)
            deadline = time.monotonic() + seconds
            try:
                if connection.refusal is not None:
                    connection.open_channel(deadline)
                if connection.answers(deadline) or connection.blocked is not None:
                    return connection
            except Unreachable:
                self._drop()
                raise
            self._drop()
        self._lessons = Lessons()
        if events.remaining_seconds() <= 0:
            raise Unreachable(f"RabbitMQ at {settings.address} does not answer")
        timeout = min(_CONNECT_TIMEOUT, events.remaining_seconds())
        self._connection = RabbitConnection(settings, timeout=timeout)
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abandon()
