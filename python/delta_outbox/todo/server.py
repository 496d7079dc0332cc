"""Runs the server of To-Do items until it is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from delta_outbox.core.clock import Clock
from delta_outbox.core.errors import BadSettings, OutboxError
from delta_outbox.core.secrets import hiding
from delta_outbox.core.settings import TodoSettings
from delta_outbox.todo.app import create_app
from delta_outbox.todo.contracts import check_types
from delta_outbox.todo.credentials import Credentials, KeyRing
from delta_outbox.todo.desk import Desk
from delta_outbox.todo.item_thread import ItemThread, KeySource, OpenOutbox
from delta_outbox.todo.limits import MOST_HEADERS
from delta_outbox.todo.tokens import token_reader

MOST_AT_ONCE: Final = 1000  # connections; more are answered 503
KEEP_ALIVE_SECONDS: Final = 5
REQUEST_SECONDS: Final = (
    10.0  # until all headers of the first request, or of the next one, are there
)
STOP_INTERVAL: Final = 0.1  # seconds between two looks whether it was told to end


class NotListening(OutboxError):
    """The server cannot listen at its address."""

    code = "NOT_LISTENING"
    remedy = "Give another `--port`, or correct `[todo] host`."


def check_listening(settings: TodoSettings) -> None:
    """Demand TLS, or somebody before the server who speaks it, where others can connect.

    Args:
        settings: `[todo]`.

    Raises:
        BadSettings: keys would pass networks as plain text, or a part of TLS is missing.
    """
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        raise BadSettings(
            "`todo.tls_certificate` and `todo.tls_key` must be given together.",
            remedy="Give both, or none.",
        )
    if is_loopback(settings.host) or settings.tls_certificate or settings.behind_proxy:
        return
    raise BadSettings(
        f"`todo.host` must be an address of loopback without TLS. Got: {settings.host!r}.",
        remedy="Give `tls_certificate` and `tls_key`; or say `behind_proxy = true` if whoever "
        "stands before it speaks TLS with the world.",
    )


def is_loopback(host: str) -> bool:
    """Say whether only this machine can connect to an address.

    Args:
        host: an address, or `localhost`; another name may be anything.
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Listen for a block.

    Args:
        host: an address or a name of this machine.
        port: 0 for a free one.

    Raises:
        NotListening: the address is taken, or not of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise NotListening(f"{host}: {error.strerror}.") from None
    with socket.socket(family, kind, protocol) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(address)
        except OSError as error:
            raise NotListening(f"{host}, port {port}: {error.strerror}.") from None
        yield made


def serve(
    opened: Callable[[], AbstractContextManager[OpenOutbox]],
    settings: TodoSettings,
    *,
    clock: Clock,
    stop: threading.Event,
    say: Callable[[str], None],
) -> None:
    """Answer requests until told to end; those that are under way are answered first.

    Args:
        opened: opens the outbox; called anew where it was lost.
        settings: `[todo]`.
        clock: the time.
        stop: ends it.
        say: is told the address, once requests are answered.

    Raises:
        BadSettings: a setting breaks a rule.
        NotListening: the address is taken.
        OutboxError: the outbox cannot be opened.
    """
    check_listening(settings)
    tokens = token_reader(settings)
    thread = ItemThread(opened, answer_seconds=settings.answer_seconds)

    def keys() -> KeySource | None:
        return thread.outbox.keys if thread.outbox is not None else None

    ring = KeyRing(keys)
    secrets = [secret for one in settings.signatures.values() for secret in one.secrets]
    with listening(settings.host, settings.port) as listener, contextlib.ExitStack() as running:
        running.enter_context(hiding(secrets))
        thread.start()
        running.callback(thread.stop)
        ring.start()
        running.callback(ring.stop)
        check_types(thread.types)
        desk = Desk(thread, clock=clock)
        credentials = Credentials(ring, tokens, patience=settings.answer_seconds)
        app = create_app(desk, settings, credentials=credentials)
        asyncio.run(run(app, settings, listener, stop, say))


async def run(
    app: FastAPI,
    settings: TodoSettings,
    listener: socket.socket,
    stop: threading.Event,
    say: Callable[[str], None],
) -> None:
    """Answer requests until told to end.

    Args:
        app: answers them.
        settings: `[todo]`.
        listener: where they come from.
        stop: ends it.
        say: is told the address, once requests are answered.
    """
    config = uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=MOST_HEADERS,
        limit_concurrency=MOST_AT_ONCE,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(settings.answer_seconds) + 1,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    scheme = "https" if settings.tls_certificate else "http"
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    is_known = False
    while not serving.done():
        if server.started and not is_known:
            is_known = True
            say(f"{scheme}://{shown}:{port}")
        if stop.is_set():
            server.should_exit = True
        await asyncio.wait([serving], timeout=STOP_INTERVAL)
    await serving


class _Connection(H11Protocol):
    """A connection that is closed if no request has come in time, whatever else has. Connections
    are bounded, so who says nothing would keep out the others.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_for_request()

    def _wait_for_request(self) -> None:
        self.loop.call_later(REQUEST_SECONDS, self._close_after, self.cycle)

    def _close_after(self, cycle: object) -> None:
        if self.cycle is cycle:
            self.transport.close()


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield
