"""Webhooks: one POST per event, signed as Standard Webhooks 1.0 asks, in order per key.

Promises, and what they rest on:

- Delivered means an answer of 2xx to the request that carried this very event. A request of which
  anything may have left and that got no answer is Unknown; it is not sent again here.
- One attempt: redirects are not followed, and a connection that turns out to be closed is replaced
  only while it has taken nothing of the request.
- Nothing is sent after the deadline: a request under way is cut off then.
- `ordered`: within a call the events of a key go one after another, and the first that is not
  delivered ends its key. Different keys are under way at once, at most `concurrency`.
- The destination is what the settings say: a route cannot leave the path of `url`, the address
  behind the name is checked and is the one connected to, no environment variable names a proxy.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import ClassVar

from delta_outbox.lifecycle.results import NotSent, Result
from delta_outbox.publishers.cloudevents.transport import Transport
from delta_outbox.publishers.http.call import HttpCall
from delta_outbox.publishers.http.connection import HttpConnection, NotConnected
from delta_outbox.publishers.http.settings import HttpSettings, parse_settings
from delta_outbox.publishers.protocol import EventBatch
from delta_outbox.publishers.setting_reader import FilesInHome


class HttpPublisher(FilesInHome):
    """Publish as webhooks."""

    ordered: ClassVar[bool] = True
    cloudevents: ClassVar[Transport] = Transport.HTTP

    def __init__(self) -> None:
        self._settings: HttpSettings | None = None
        self._idle: list[HttpConnection] = []

    @classmethod
    def validate(cls, settings: Mapping[str, object]) -> None:
        """Raise one sentence about bad settings, without connecting.

        Args:
            settings: see docs/publishers/http.md.

        Raises:
            ValueError: a setting is not allowed or has no meaning.
        """
        parse_settings(settings)

    @classmethod
    def probe(cls, settings: Mapping[str, object], timeout: float) -> None:
        """Raise if no connection can be made; no request is sent, for it would be an event.

        Args:
            settings: as for `open`.
            timeout: seconds to wait.

        Raises:
            ConnectionError: one sentence with host, port and cause.
        """
        try:
            HttpConnection(parse_settings(settings), until=time.monotonic() + timeout).close()
        except NotConnected as error:
            raise ConnectionError(f"{error}.") from error

    def open(self, settings: Mapping[str, object]) -> None:
        """Check the settings; connections are made by `publish`."""
        self._settings = parse_settings(settings)

    def publish(self, events: EventBatch) -> list[Result]:
        """Send every event once and return what was answered, at most until the deadline."""
        if self._settings is None:
            raise RuntimeError("HttpPublisher: `open` comes before `publish`.")
        if not events or events.remaining_seconds() <= 0:
            return [NotSent()] * len(events)
        return HttpCall(events, settings=self._settings, idle=self._idle).run()

    def close(self) -> None:
        """Drop the connections."""
        idle, self._idle = self._idle, []
        for connection in idle:
            with contextlib.suppress(OSError):
                connection.close()
