"""Redis as the publisher kit sees it: streams and channels, read by a client of its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from tests.publishers.redis_server import RedisServer

from delta_outbox.publishers import Event
from delta_outbox.publishers.redis.publisher import RedisPublisher
from delta_outbox.testing.publishers import Arrival, TcpAdapter

_USER: Final = "kit"
_PASSWORD: Final = "correct-horse-battery"
_LISTED: Final = ["kit", "closed"]
_MOMENT: Final = 0.02  # seconds for another message of a channel


class _RedisAdapter(TcpAdapter):
    """A server on which a user may write to `kit` and to nothing else."""

    publisher = RedisPublisher

    def __init__(self, server: RedisServer, **settings: object) -> None:
        super().__init__(server.port)
        self.client = server.client()
        rights: dict[str, Any] = {"keys": ["kit"], "channels": ["kit"], "commands": ["+@all"]}
        self.client.acl_setuser(_USER, enabled=True, passwords=[f"+{_PASSWORD}"], **rights)
        login = {"username": _USER, "password": _PASSWORD}
        self.settings = {"host": self.host, "port": self.port, **login, **settings}

    def refused(self, event: Event) -> Event:
        """Return it for a stream or channel that the settings do not list."""
        return replace(event, route="misspelt")

    def failing(self, event: Event) -> Event:
        """Return it for where the user may still be allowed to write."""
        return replace(event, route="closed")

    def close(self) -> None:
        super().close()
        self.client.acl_deluser(_USER)
        self.client.flushall()
        self.client.close()


class StreamAdapter(_RedisAdapter):
    """Streams."""

    def __init__(self, server: RedisServer) -> None:
        super().__init__(server, streams=_LISTED)

    def received(self) -> list[Arrival]:
        client: Any = self.client  # typed for clients of every kind at once
        return [_entry(fields) for name in client.keys("*") for _, fields in client.xrange(name)]


class ChannelAdapter(_RedisAdapter):
    """Channels, to which somebody listens."""

    def __init__(self, server: RedisServer) -> None:
        super().__init__(server, mode="pubsub", channels=_LISTED)
        self._listener = self.client.pubsub()
        self._listener.psubscribe("*")
        assert self._listener.get_message(timeout=10)
        self._arrived: list[Arrival] = []

    def received(self) -> list[Arrival]:
        while message := self._listener.get_message(timeout=_MOMENT):
            self._arrived.append(_message(json.loads(message["data"])))
        return self._arrived

    def close(self) -> None:
        self._listener.close()
        super().close()


def _entry(fields: Mapping[bytes, bytes]) -> Arrival:
    text = {name.decode(): value for name, value in fields.items()}
    return Arrival(
        delivery_id=text["id"].decode(),
        payload=text["payload"],
        headers=dict(_headers(text)),
        key=text["key"].decode() if "key" in text else None,
    )


def _headers(fields: Mapping[str, bytes]) -> Iterator[tuple[str, str | None]]:
    for field, value in fields.items():
        kind, colon, name = field.partition(":")
        if colon:
            yield name, value.decode() if kind == "header" else None


def _message(text: Mapping[str, Any]) -> Arrival:
    encoded = text.get("payload_base64")
    return Arrival(
        delivery_id=text["id"],
        payload=text["payload"].encode() if encoded is None else base64.b64decode(encoded),
        headers=text["headers"],
        key=text["key"],
    )
