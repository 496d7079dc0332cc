"""A TCP proxy on loopback in front of the broker, with the faults of a network."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from typing import Final, Self

_CHUNK: Final = 65_536  # bytes
_BUFFER: Final = 16_384  # bytes that the operating system keeps for a slow reader
_LOOK: Final = 0.02  # seconds until a connection notices what a test has changed
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: closing drops what is left and sends RST
_GREETING: Final = 8192  # bytes; what a client sends before its first messages is far below


class Proxy:
    """Passes connections on to a port; a test tells it what goes wrong.

    Attributes:
        target: the port that connections are passed on to.
        bytes_per_second: how fast a client may send; None: as fast as it likes.
        holds_replies: let no answer of the broker through.
        accepted: connections that were made so far.
        carried: bytes that clients have sent so far.
    """

    def __init__(self) -> None:
        """Listen, so that the port is known before the broker is."""
        self.target = 0
        self.bytes_per_second: float | None = None
        self.holds_replies = False
        self.resets = 0  # that were made
        self.carried = 0  # bytes that clients have sent
        self.accepted = 0
        self._forgotten = 0  # connections that carry nothing any more
        self._closed = 0  # connections that were closed
        self._requests_to_reset = 0
        self._replies_to_reset = 0
        self._lock = threading.Lock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self.port: int = self._server.getsockname()[1]
        self._ended = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    @property
    def address(self) -> str:
        """Return the address for `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    def reset_requests(self, times: int) -> None:
        """Reset connections in the middle of a request that holds messages.

        Args:
            times: how many connections.
        """
        self._requests_to_reset, self.resets = times, 0

    def reset_replies(self, times: int) -> None:
        """Reset connections when the broker has taken messages and is about to say so.

        Args:
            times: how many connections.
        """
        self._replies_to_reset, self.resets = times, 0

    def forget(self) -> None:
        """Carry nothing any more over the connections that there are, without a word to either end,
        as a firewall does that has forgotten them; new ones are well.
        """
        self._forgotten = self.accepted

    def close(self) -> None:
        """Close the connections that there are, as a server does that has waited long enough."""
        self._closed = self.accepted

    def heal(self) -> None:
        """Let everything through again."""
        self._requests_to_reset = self._replies_to_reset = 0
        self.bytes_per_second, self.holds_replies = None, False

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                try:
                    broker = socket.create_connection(("127.0.0.1", self.target))
                except OSError:  # as if nobody listened here
                    client.close()
                    continue
                self.accepted += 1
                ends = (client, broker, self.accepted)
                threading.Thread(target=self._serve, args=ends, daemon=True).start()

    def _serve(self, client: socket.socket, broker: socket.socket, number: int) -> None:
        # One thread for both directions: a thread that waits in `recv` would keep the RST back.
        with client, broker, contextlib.suppress(OSError):
            carried = 0
            while not self._ended and number > self._closed:
                if number <= self._forgotten:
                    time.sleep(_LOOK)
                    continue
                sides = [client] if self.holds_replies else [client, broker]
                ready, _, _ = select.select(sides, [], [], _LOOK)
                if client in ready:
                    data = self._take(client)
                    carried += len(data)
                    self.carried += len(data)
                    if carried > _GREETING and self._resets_request():
                        broker.sendall(data[: len(data) // 2])
                        _reset(client, broker)
                        return
                    broker.sendall(data)
                if broker in ready:
                    data = broker.recv(_CHUNK)
                    if carried > _GREETING and self._resets_reply():
                        _reset(client, broker)
                        return
                    client.sendall(data)
                if ready and not data:
                    return

    def _take(self, client: socket.socket) -> bytes:
        rate = self.bytes_per_second
        if rate is None:
            return client.recv(_CHUNK)
        data = client.recv(max(1, int(rate * _LOOK)))
        time.sleep(len(data) / rate)
        return data

    def _resets_request(self) -> bool:
        with self._lock:
            due = self._requests_to_reset > 0
            self._requests_to_reset -= due
            self.resets += due
            return due

    def _resets_reply(self) -> bool:
        with self._lock:
            due = self._replies_to_reset > 0
            self._replies_to_reset -= due
            self.resets += due
            return due


def _reset(*sides: socket.socket) -> None:
    for side in sides:
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        side.close()
