"""A webhook receiver as the publisher kit sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from tests.publishers.http_server import SECRET, Receiver, Request

from delta_outbox.publishers import Event
from delta_outbox.publishers.http.publisher import HttpPublisher
from delta_outbox.testing.publishers import Arrival, Content, TcpAdapter

_OF_THE_TRANSPORT: Final = frozenset(
    {
        "content-length",
        "content-type",
        "host",
        "idempotency-key",
        "outbox-key",
        "user-agent",
        "webhook-id",
        "webhook-signature",
        "webhook-timestamp",
    }
)
_REFUSED: Final = {"/in/closed": 410, "/in/busy": 503}


class HttpAdapter(TcpAdapter):
    """A receiver that takes what is posted to `/in/kit`.

    It speaks TLS: a probe sends no request, so over plain HTTP it cannot notice silence.

    Args:
        receiver: with a certificate for 127.0.0.1.
        ca_file: of the authority that signed it.
        settings: further ones.
    """

    publisher = HttpPublisher
    many_headers = 80  # the web server of Python takes 100, the transport's among them
    rejects = frozenset({Content.NO_VALUE, Content.UNICODE_HEADERS})

    def __init__(self, receiver: Receiver, ca_file: Path, **settings: object) -> None:
        super().__init__(receiver.port)
        self.receiver = receiver
        receiver.answer = lambda request: (_REFUSED.get(request.path, 200), {})
        url = f"https://{self.host}:{self.port}/in"
        self.settings = {"url": url, "secrets": [SECRET], "ca_file": str(ca_file), **settings}

    def received(self) -> list[Arrival]:
        requests = list(self.receiver.requests)
        return [self._arrival(one) for one in requests if one.path not in _REFUSED]

    def expected_headers(self, event: Event) -> Mapping[str, str | None]:
        """Return them in small letters: in HTTP the names mean the same in any."""
        return {name.lower(): value for name, value in event.transport_headers().items()}

    def read(self, value: str) -> str:
        """Return the value of a header."""
        return value

    def refused(self, event: Event) -> Event:
        """Return it for where it is gone."""
        return replace(event, route="closed")

    def failing(self, event: Event) -> Event:
        """Return it for where nobody has time."""
        return replace(event, route="busy")

    def _arrival(self, request: Request) -> Arrival:
        headers = request.by_name
        return Arrival(
            delivery_id=headers["webhook-id"],
            payload=request.body,
            headers={
                name: self.read(value)
                for name, value in headers.items()
                if name not in _OF_THE_TRANSPORT
            },
            key=unquote(headers["outbox-key"]) if "outbox-key" in headers else None,
        )


class PercentAdapter(HttpAdapter):
    """The same with `header_values = "percent"`."""

    rejects = frozenset({Content.NO_VALUE})

    def __init__(self, receiver: Receiver, ca_file: Path) -> None:
        super().__init__(receiver, ca_file, header_values="percent")

    def read(self, value: str) -> str:
        """Return the value of a header."""
        return unquote(value)
