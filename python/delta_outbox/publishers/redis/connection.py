"""One connection to Redis that knows what has been written and never writes anything twice.

The library is the protocol alone (hiredis): a client would hide how much of a pipeline was handed
over when the connection broke, and may retry.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time
from typing import Any, Final

import hiredis

from delta_outbox.core.redaction import scrub
from delta_outbox.publishers.redis.errors import ErrorReply
from delta_outbox.publishers.redis.settings import RedisSettings

_READ: Final = 65_536  # bytes
_WRITE: Final = 16_384  # bytes: a record of TLS
_NOTHING: Final = object()
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: what the system still holds is not sent


class Unreachable(ConnectionError):
    """The server does not answer, or does not let us in."""


class Broken(Exception):
    """The connection is of no more use.

    Args:
        reason: for people.
        handed: bytes of the last `write` that may have left this process.
    """

    def __init__(self, reason: str, *, handed: int = 0) -> None:
        super().__init__(reason)
        self.handed = handed


class RedisConnection:
    """A connection that is logged in.

    Args:
        settings: checked settings.
        deadline: `time.monotonic()` seconds.

    Raises:
        Unreachable: one sentence with the address and the reason.
    """

    def __init__(self, settings: RedisSettings, *, deadline: float) -> None:
        self._address = settings.address
        self._secrets = settings.secrets
        self._reader = hiredis.Reader(
            protocolError=Broken, replyError=ErrorReply, notEnoughData=_NOTHING
        )
        self._socket: socket.socket | None = None
        deadline = min(deadline, time.monotonic() + settings.connect_timeout)
        try:
            self._socket = _connected(settings, deadline)
            self._log_in(settings, deadline)
        except (OSError, Broken, ErrorReply, UnicodeError) as error:
            self.close()
            raise self._unreachable(error) from None

    def is_alive(self, deadline: float) -> bool:
        """Return whether the server answers on this connection.

        Args:
            deadline: `time.monotonic()` seconds.
        """
        try:
            self._ask(deadline, "PING")
        except (Broken, ErrorReply):
            return False
        return True

    def write(self, data: bytes, deadline: float) -> None:
        """Hand all the bytes over.

        Args:
            data: packed commands.
            deadline: `time.monotonic()` seconds.

        Raises:
            Broken: not all of them were; it says how many may have been.
        """
        connected = self._socket
        if connected is None:
            raise Broken("the connection is closed")
        view, sent = memoryview(data), 0
        while sent < len(view):
            piece = view[sent : sent + _WRITE]
            # Bytes that an attempt has not taken are still ours; under TLS one cannot tell.
            handed = sent + (len(piece) if isinstance(connected, ssl.SSLSocket) else 0)
            try:
                connected.settimeout(_left(deadline))
                sent += connected.send(piece)
            except _Late:
                raise Broken("the deadline came", handed=sent) from None
            except TimeoutError:
                raise Broken("Redis took no more before the deadline", handed=handed) from None
            except OSError as error:
                raise Broken(_text(error), handed=handed) from error

    def read(self, deadline: float) -> Any:
        """Return the next reply; an error reply is returned, not raised.

        Args:
            deadline: `time.monotonic()` seconds.

        Raises:
            Broken: there is none.
        """
        while (reply := self._reader.gets()) is _NOTHING:
            connected = self._socket
            if connected is None:
                raise Broken("the connection is closed")
            try:
                connected.settimeout(_left(deadline))
                data = connected.recv(_READ)
            except (_Late, TimeoutError):
                raise Broken("Redis did not answer before the deadline") from None
            except OSError as error:
                raise Broken(_text(error)) from error
            if not data:
                raise Broken("Redis closed the connection")
            self._reader.feed(data)
        return reply

    def close(self) -> None:
        """Drop the connection together with what the system has not sent yet."""
        connected, self._socket = self._socket, None
        if connected is not None:
            with contextlib.suppress(OSError):
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connected.close()

    def _log_in(self, settings: RedisSettings, deadline: float) -> None:
        if settings.password is not None:
            user = () if settings.username is None else (settings.username,)
            self._ask(deadline, "AUTH", *user, settings.password)
        if settings.db:
            self._ask(deadline, "SELECT", str(settings.db))
        # The order of a key rests on transactions. An empty one tells whether this user may make
        # them, and like a PING whether the server is ready.
        for command in ("PING", "MULTI", "EXEC"):
            self._ask(deadline, command)

    def _ask(self, deadline: float, *words: str) -> None:
        self.write(pack(*(word.encode() for word in words)), deadline)
        reply = self.read(deadline)
        if isinstance(reply, ErrorReply):
            raise reply

    def _unreachable(self, error: Exception) -> Unreachable:
        message = error.sentence if isinstance(error, ErrorReply) else _text(error)
        return Unreachable(
            scrub(f"Redis at {self._address} is not usable: {message}", secrets=self._secrets)
        )


def pack(*words: bytes) -> bytes:
    """Return a command as bytes of the protocol.

    Args:
        words: the command and its arguments.
    """
    packed: bytes = hiredis.pack_command(words)  # type: ignore[arg-type] # its hint has one word
    return packed


class _Late(Exception):
    """The deadline has passed."""


def _left(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise _Late
    return seconds


def _connected(settings: RedisSettings, deadline: float) -> socket.socket:
    try:
        plain = socket.create_connection((settings.host, settings.port), timeout=_left(deadline))
    except _Late:
        raise Broken("the deadline came before the connection") from None
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if settings.tls is not None:
            return settings.tls.wrap_socket(plain, server_hostname=settings.host)
    except BaseException:
        plain.close()
        raise
    return plain


def _text(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
