"""The Redis publisher: an acknowledgement is Redis' answer to the command of that very event.

What it promises, and what it rests on:

- In a stream, Delivered means that the server named the entry's id. In mode pubsub it means that
  Redis passed the message to whoever listened at that moment, perhaps to nobody: no consumer
  acknowledges anything, and the receipt says how many received it.
- One attempt per event: no library that retries stands between the publisher and the socket. A
  connection is tried with PING before a call uses it, and once it breaks nothing more is sent.
- What was written and not answered is Unknown; a command whose last byte never left is NotSent.
- `ordered`: see redis_call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import ClassVar

from delta_outbox.lifecycle.results import NotSent, Result
from delta_outbox.publishers.cloudevents.transport import Transport
from delta_outbox.publishers.protocol import EventBatch
from delta_outbox.publishers.redis.call import RedisCall
from delta_outbox.publishers.redis.connection import RedisConnection, Unreachable
from delta_outbox.publishers.redis.settings import RedisSettings, parse_settings
from delta_outbox.publishers.setting_reader import FilesInHome

logger = logging.getLogger(__name__)


class RedisPublisher(FilesInHome):
    """Publish to Redis Streams, or to the channels of Redis pub/sub."""

    ordered: ClassVar[bool] = True
    cloudevents: ClassVar[Transport] = Transport.UNBOUND

    def __init__(self) -> None:
        self._settings: RedisSettings | None = None
        self._connection: RedisConnection | None = None

    @classmethod
    def validate(cls, settings: Mapping[str, object]) -> None:
        """Raise one sentence about bad settings, without connecting.

        Args:
            settings: of the destination.

        Raises:
            ValueError: a setting is not allowed or has no meaning.
        """
        parse_settings(settings)

    @classmethod
    def probe(cls, settings: Mapping[str, object], timeout: float) -> None:
        """Raise if the server does not answer or does not let us in.

        Args:
            settings: as for `open`.
            timeout: seconds to wait.

        Raises:
            ConnectionError: one sentence with the address and the cause.
        """
        parsed = parse_settings(settings)
        RedisConnection(parsed, deadline=time.monotonic() + timeout).close()

    def open(self, settings: Mapping[str, object]) -> None:
        """Check the settings; the connection is made by the first `publish`."""
        self._settings = parse_settings(settings)

    def publish(self, events: EventBatch) -> list[Result]:
        """Send every event once and wait for the answers, at most until the deadline."""
        settings = self._settings
        if settings is None:
            raise RuntimeError("RedisPublisher: `open` comes before `publish`.")
        if not events or events.remaining_seconds() <= 0:
            return [NotSent()] * len(events)
        call = RedisCall(events, settings=settings)
        try:
            connection = self._connection_for(settings, events.deadline)
        except Unreachable as error:
            logger.warning("redis_unreachable", extra={"error": str(error)})
            return call.fail(str(error))
        is_good = False
        try:
            results, is_good = call.run(connection)
        finally:
            if not is_good:
                self.close()
        return results

    def close(self) -> None:
        """Drop the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connection_for(self, settings: RedisSettings, deadline: float) -> RedisConnection:
        # Servers and firewalls end idle connections: a question tells before an event is lost.
        connection = self._connection
        if connection is not None:
            if connection.is_alive(min(deadline, time.monotonic() + settings.connect_timeout)):
                return connection
            self.close()
        self._connection = connection = RedisConnection(settings, deadline=deadline)
        return connection
