"""NATS as the publisher kit sees it: a stream, and core NATS with somebody who listens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from tests.publishers.nats_server import NatsServer

from delta_outbox.publishers import Event
from delta_outbox.publishers.nats.publisher import NatsPublisher
from delta_outbox.testing.publishers import Arrival, TcpAdapter

USER: Final = "kit"
PASSWORD: Final = "correct-horse-battery"
USERS: Final = f"""
authorization {{
  users: [{{user: {USER}, password: "{PASSWORD}", permissions: {{publish: {{deny: "closed.>"}}}}}}]
}}
"""
_MAX_PAYLOAD: Final = 1024 * 1024  # bytes; the server's default
_TIMEOUT: Final = 10.0  # seconds
_OF_THE_TRANSPORT: Final = ("Nats-Msg-Id", "outbox-key", "outbox-null-headers")


class _NatsAdapter(TcpAdapter):
    """A server with `USERS`."""

    publisher = NatsPublisher

    def __init__(self, server: NatsServer, **settings: object) -> None:
        super().__init__(server.port)
        self.server = server
        self.settings = {
            "servers": [f"nats://{self.host}:{self.port}"],
            "subjects": ["kit.*", "live.*", "closed.*", "nobody.*"],
            "username": USER,
            "password": PASSWORD,
            **settings,
        }

    def refused(self, event: Event) -> Event:
        """Return it larger than the server takes anything."""
        return replace(event, payload=event.payload + b"x" * _MAX_PAYLOAD)


class StreamAdapter(_NatsAdapter):
    """JetStream."""

    route = "kit.events"

    def __init__(self, server: NatsServer) -> None:
        super().__init__(server)
        server.add_stream("kit", "kit.>")

    def received(self) -> list[Arrival]:
        return [_arrival(message) for message in self.server.read("kit")]

    def failing(self, event: Event) -> Event:
        """Return it for a subject that no stream has so far."""
        return replace(event, route="nobody.events")


class CoreAdapter(_NatsAdapter):
    """Core NATS, and a client that listens to everything."""

    route = "live.events"

    def __init__(self, server: NatsServer) -> None:
        super().__init__(server, mode="core")
        self._arrived: list[Msg] = []
        self._client = Client()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._run(self._listen())

    def received(self) -> list[Arrival]:
        return [_arrival(message) for message in list(self._arrived)]

    def failing(self, event: Event) -> Event:
        """Return it for a subject to which the user may still be allowed to publish."""
        return replace(event, route="closed.events")

    def close(self) -> None:
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        super().close()

    async def _listen(self) -> None:
        await self._client.connect(self.server.url, user=USER, password=PASSWORD)
        for subject in ("live.>", "closed.>"):
            await self._client.subscribe(subject, cb=self._take)
        await self._client.flush()

    async def _take(self, message: Msg) -> None:
        self._arrived.append(message)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_TIMEOUT)


def _arrival(message: Msg) -> Arrival:
    given = dict(message.headers or {})
    headers: dict[str, str | None] = {
        name: value for name, value in given.items() if name not in _OF_THE_TRANSPORT
    }
    headers |= dict.fromkeys(given.get("outbox-null-headers", "").split())
    return Arrival(
        delivery_id=given["Nats-Msg-Id"],
        payload=message.data,
        headers=headers,
        key=given.get("outbox-key"),
    )
