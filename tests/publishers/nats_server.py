"""A real NATS with JetStream, read by a client that is not the publisher's connection."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from tests.publishers.local_server import LocalServer, find_program


class NatsServer(LocalServer):
    """A server.

    Args:
        settings: further lines of its configuration.
        connect: how the tests log in.
    """

    def __init__(self, settings: str = "", **connect: Any) -> None:
        super().__init__()
        self._settings = settings
        self._connect = connect

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def configure(self, settings: str) -> None:
        """Write the configuration; a running server is not told."""
        self._settings = settings
        (self.folder / "nats.conf").write_text(
            f'host: "127.0.0.1"\nport: {self.port}\n'
            f'jetstream {{ store_dir: "{self.folder}/store" }}\n{settings}\n'
        )

    def command(self) -> Iterable[str]:
        self.configure(self._settings)
        yield find_program("nats-server", "nats-server")
        yield from ("-c", str(self.folder / "nats.conf"))

    def is_ready(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            return connection.recv(4) == b"INFO"

    def ask(self, work: Callable[[Client, JetStreamContext], Awaitable[Any]]) -> Any:
        """Do some work with a connection of its own and return what it gives."""

        async def run() -> Any:
            client = Client()
            await client.connect(self.url, allow_reconnect=False, **self._connect)
            try:
                return await work(client, client.jetstream())
            finally:
                await client.close()

        return asyncio.run(run())

    def add_stream(self, name: str, *subjects: str, **config: Any) -> None:
        """Create a stream."""
        self.ask(lambda _, js: js.add_stream(name=name, subjects=list(subjects), **config))

    def read(self, stream: str) -> list[Msg]:
        """Return all messages of a stream, in order."""

        async def collect(client: Client, js: JetStreamContext) -> list[Msg]:
            info = await js.stream_info(stream)
            found: list[Msg] = []
            subscription = await js.subscribe(
                ">" if not info.config.subjects else info.config.subjects[0],
                stream=stream,
                ordered_consumer=True,
            )
            while len(found) < info.state.messages:
                found.append(await subscription.next_msg(timeout=10))
            return found

        found: list[Msg] = self.ask(collect)
        return found
