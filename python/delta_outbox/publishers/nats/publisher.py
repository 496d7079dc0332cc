"""The NATS publisher: an acknowledgement is a stream's answer to that very event.

What it promises, and what it rests on:

- Mode jetstream: Delivered means that a stream has stored the event, or already had its delivery
  id within its window (`duplicate` in the receipt).
- Mode core: Delivered means that the server has processed the message (it answered a PING that
  came after it). No consumer acknowledges anything; it may have gone to nobody.
- One attempt per event: the client does not reconnect, because it would send again.
- What was handed over and not answered is Unknown; with it the connection ends, and what it still
  held is not sent.
- `ordered`: see nats_call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import ClassVar

from delta_outbox.lifecycle.results import NotSent, Result, Unknown
from delta_outbox.publishers.cloudevents.transport import Transport
from delta_outbox.publishers.nats.call import NatsCall
from delta_outbox.publishers.nats.connection import NatsConnection, Unreachable
from delta_outbox.publishers.nats.settings import NatsSettings, parse_settings
from delta_outbox.publishers.protocol import EventBatch
from delta_outbox.publishers.setting_reader import FilesInHome

logger = logging.getLogger(__name__)


class NatsPublisher(FilesInHome):
    """Publish to NATS JetStream, or to core NATS."""

    ordered: ClassVar[bool] = True
    cloudevents: ClassVar[Transport] = Transport.NATS

    def __init__(self) -> None:
        self._settings: NatsSettings | None = None
        self._connection: NatsConnection | None = None

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
        """Raise if no server answers or lets us in.

        Args:
            settings: as for `open`.
            timeout: seconds to wait.

        Raises:
            ConnectionError: one sentence with the servers and the cause.
        """
        parsed = parse_settings(settings)
        NatsConnection(parsed, deadline=time.monotonic() + timeout).close()

    def open(self, settings: Mapping[str, object]) -> None:
        """Check the settings; the connection is made by the first `publish`."""
        self._settings = parse_settings(settings)

    def publish(self, events: EventBatch) -> list[Result]:
        """Send every event once and wait for the answers, at most until the deadline."""
        settings = self._settings
        if settings is None:
            raise RuntimeError("NatsPublisher: `open` comes before `publish`.")
        if not events or events.remaining_seconds() <= 0:
            return [NotSent()] * len(events)
        call = NatsCall(events, settings=settings)
        try:
            connection = self._connection_for(settings, events.deadline)
        except Unreachable as error:
            logger.warning("nats_unreachable", extra={"error": str(error)})
            return call.fail(str(error))
        is_good = False
        try:
            results = connection.run(call.run(connection))
            # An answer that is still to come must not meet the events of the next call.
            is_good = not any(type(result) is Unknown for result in results)
        finally:
            if not is_good:
                self.close()
        return results

    def close(self) -> None:
        """Drop the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connection_for(self, settings: NatsSettings, deadline: float) -> NatsConnection:
        # Servers and firewalls end idle connections: a question tells before an event is lost.
        connection = self._connection
        if connection is not None:
            if connection.is_alive(deadline):
                return connection
            self.close()
        self._connection = connection = NatsConnection(settings, deadline=deadline)
        return connection
