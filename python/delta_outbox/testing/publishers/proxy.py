"""A TCP proxy on loopback in front of a destination, and an adapter that disturbs by it."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from typing import Final, Self

from delta_outbox.testing.publishers.adapter import Adapter
from delta_outbox.testing.publishers.stage import LARGE_MESSAGE

_CHUNK: Final = 65_536  # bytes
_LOOK: Final = 0.01  # seconds until a connection notices what has changed
_DRAIN: Final = 2.0  # seconds for a destination to read what a client sent before it left
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: closing drops what is left and sends RST


class Proxy:
    """Passes connections on to a destination, unless it is told otherwise.

    Args:
        port: of the destination.
        host: of the destination.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.connections = 0  # that were accepted
        self.answers_lost = 0
        self.port = 0
        self._target = (host, port)
        self._frozen = False
        self._answers_to_lose = 0
        self._resets = 0  # so far; a connection ends with the next one
        self._server: socket.socket | None = None
        self._accepting: threading.Thread | None = None
        self._serving: list[threading.Thread] = []
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listen, again at the same port."""
        if self._server is None:
            self._server = server = socket.create_server(("127.0.0.1", self.port))
            self.port = server.getsockname()[1]
            self._accepting = threading.Thread(target=self._accept, args=(server,), daemon=True)
            self._accepting.start()

    def stop(self) -> None:
        """Reset all connections and listen no more."""
        server, self._server = self._server, None
        self._resets += 1
        if server is not None and self._accepting is not None:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()
            self._accepting.join()
        while self._serving:  # nothing gets through any more when this returns
            self._serving.pop().join()

    def freeze(self) -> None:
        """Keep connections and let nothing through."""
        self._frozen = True

    def thaw(self) -> None:
        """Let through what has waited."""
        self._frozen = False

    def lose_answer(self) -> None:
        """Reset the connection that next gets an answer to a large message, once."""
        self._answers_to_lose, self.answers_lost = 1, 0

    def _accept(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                self.connections += 1
                serving = threading.Thread(
                    target=self._serve, args=(client, self._resets), daemon=True
                )
                self._serving = [one for one in self._serving if one.is_alive()] + [serving]
                serving.start()

    def _serve(self, client: socket.socket, resets: int) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(self._target) as server:
            carried = 0
            while self._resets == resets:
                if self._frozen:
                    time.sleep(_LOOK)
                    continue
                ready, _, _ = select.select([client, server], [], [], _LOOK)
                if client in ready:
                    data = client.recv(_CHUNK)
                    if not data:
                        _drain(server)
                        return
                    server.sendall(data)
                    carried += len(data)
                if server in ready:
                    data = server.recv(_CHUNK)
                    if carried >= LARGE_MESSAGE and self._answers_to_lose:
                        self._answers_to_lose = 0
                        self.answers_lost += 1
                        break
                    if not data:
                        return
                    client.sendall(data)
                    carried = 0
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _drain(server: socket.socket) -> None:
    """Let the destination read to the end what a client has sent before it left."""
    server.shutdown(socket.SHUT_WR)
    server.settimeout(_DRAIN)
    while server.recv(_CHUNK):
        pass


class TcpAdapter(Adapter):
    """An adapter for a destination that listens at a TCP port: it is reached through a proxy.

    Let `settings` name `self.host` and `self.port`; stopping, freezing and losing answers are
    there then.

    Args:
        port: of the destination.
        host: of the destination.
    """

    host = "127.0.0.1"

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.proxy = Proxy(port, host)
        self.port = self.proxy.port

    def stop(self) -> None:
        """Reset all connections and listen no more."""
        self.proxy.stop()

    def start(self) -> None:
        """Listen again."""
        self.proxy.start()

    def freeze(self) -> None:
        """Keep connections and let nothing through."""
        self.proxy.freeze()

    def thaw(self) -> None:
        """Let through what has waited."""
        self.proxy.thaw()

    def lose_answer(self) -> None:
        """Reset the connection that next gets an answer to a large message."""
        self.proxy.lose_answer()

    def has_lost_answer(self) -> bool:
        """Return whether the proxy has lost the answer."""
        return self.proxy.answers_lost > 0

    def connections(self) -> int:
        """Return how many connections the proxy has seen."""
        return self.proxy.connections

    def close(self) -> None:
        """End the proxy."""
        self.proxy.stop()
