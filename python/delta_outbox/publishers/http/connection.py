"""One connection to a webhook receiver: pinned to a checked address, with a limit on every step.

It knows at any moment whether a byte of a request has left, which decides between Failed and
Unknown. That, the time limit over a whole exchange, and connecting to an address that was checked
are why the sockets are ours and only the protocol is a library's.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from typing import Final

import h11

from delta_outbox.publishers.http.addresses import Endpoint, refusal, resolve
from delta_outbox.publishers.http.answer import HttpAnswer
from delta_outbox.publishers.http.message import HttpMessage
from delta_outbox.publishers.http.settings import HttpSettings

_CHUNK: Final = 65_536  # bytes
_MAX_HEAD: Final = 16_384  # bytes of an answer before its body
_MAX_BODY: Final = 65_536  # bytes of an answer that are read, and dropped, to keep the connection
_DRAIN_TIMEOUT: Final = 0.5  # seconds to wait for them
_IDLE_LIMIT: Final = 1.0  # seconds; the least patient servers close after two


class NotConnected(Exception):
    """There is no connection, so nothing was sent; the text is for the result."""


class Lost(Exception):
    """An exchange ended without an answer; the text is for the result.

    Attributes:
        sent: whether anything of the request may have left.
    """

    def __init__(self, text: str, *, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


class HttpConnection:
    """A connection that carries one request at a time.

    Args:
        settings: of the destination.
        until: monotonic seconds by which it must stand.

    Raises:
        NotConnected: it cannot be had, or may not.
    """

    def __init__(self, settings: HttpSettings, *, until: float) -> None:
        self._name = settings.target.name
        self._socket = _connected(settings, until=until)
        self._socket.setblocking(False)
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._wants = select.POLLIN
        self._sent = 0  # bytes of the request under way
        self._broken: str | None = None  # why no more can be sent
        self._idle_since: float | None = None
        self._closed = False

    def close(self) -> None:
        """End the connection."""
        self._closed = True
        self._socket.close()

    def is_reusable(self) -> bool:
        """Return whether another request may be sent; a look at the socket, nothing is sent."""
        if self._closed or self._idle_since is None:
            return False
        if time.monotonic() - self._idle_since > _IDLE_LIMIT:
            return False
        try:
            # A closed connection reads as empty; what nobody asked for makes answers ambiguous.
            return self._receive() is None
        except Lost:
            return False

    def exchange(self, message: HttpMessage, *, until: float, timeout: float) -> HttpAnswer:
        """Send a request and return its final answer.

        Args:
            message: the request.
            until: monotonic seconds by which the answer must be there.
            timeout: what that was in seconds, for the sentence.

        Raises:
            Lost: no answer came; the connection is closed.
        """
        self._sent, self._broken, self._idle_since = 0, None, None
        try:
            rest = memoryview(self._encoded(message))
            while True:
                if time.monotonic() >= until:
                    raise self._lost(f"gave no answer within {timeout:.3g} s")
                sent = self._send(rest)
                rest = rest[sent:]
                received = self._receive()
                if received is not None:
                    answer = self._answer(received)
                    # A no needs no more of the request; a yes counts when all of it is sent.
                    if answer is not None and not (answer.is_success and rest):
                        break
                elif not sent:
                    self._wait(until)
            if rest:
                self.close()
            else:
                self._drain(until)
        except BaseException:
            self.close()
            raise
        return answer

    def _encoded(self, message: HttpMessage) -> bytes:
        http = self._http
        if http.our_state is not h11.IDLE:
            http.start_next_cycle()
        request = h11.Request(method="POST", target=message.target, headers=message.headers)
        parts = (http.send(request), http.send(h11.Data(data=message.body)))
        http.send(h11.EndOfMessage())
        return b"".join(part for part in parts if part)

    def _send(self, rest: memoryview) -> int:
        """Hand over what the system takes; a refusal is kept, because an answer may have come."""
        self._wants = select.POLLIN
        if not rest or self._broken is not None:
            return 0
        try:
            sent = self._socket.send(rest[:_CHUNK])
        except ssl.SSLWantReadError:
            return 0
        except (BlockingIOError, ssl.SSLWantWriteError):
            self._wants |= select.POLLOUT
            return 0
        except OSError as error:
            self._broken = _cause(error)
            return 0
        self._sent += sent
        return sent

    def _receive(self) -> bytes | None:
        """Return what has come, nothing if the peer has ended, None if there is nothing yet."""
        try:
            return self._socket.recv(_CHUNK)
        except ssl.SSLWantWriteError:
            self._wants |= select.POLLOUT
            return None
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        except OSError as error:
            raise self._lost(f"ended the connection without an answer: {_cause(error)}") from error

    def _answer(self, received: bytes) -> HttpAnswer | None:
        """Return the final answer if its head is there; those before it (1xx) say nothing."""
        try:
            self._http.receive_data(received)
            while True:
                event = self._http.next_event()
                if isinstance(event, h11.Response):
                    found = dict(event.headers.raw_items())
                    lower = {name.lower(): value for name, value in found.items()}
                    value = lower.get(b"retry-after")
                    return HttpAnswer(
                        status=event.status_code,
                        retry_after=None if value is None else value.decode("latin-1"),
                    )
                if not isinstance(event, h11.InformationalResponse):
                    break
        except h11.RemoteProtocolError as error:
            if received:
                raise self._lost("answered something that is not HTTP") from error
        if not received:
            broken = f": {self._broken}" if self._broken else ""
            raise self._lost(f"ended the connection without an answer{broken}")
        return None

    def _drain(self, until: float) -> None:
        """Read the rest of an answer, so that the connection can be used again, or close it.

        The answer is known, so nothing that happens here changes it.
        """
        until = min(until, time.monotonic() + _DRAIN_TIMEOUT)
        read = 0
        try:
            while read <= _MAX_BODY and time.monotonic() < until:
                event = self._http.next_event()
                if isinstance(event, h11.Data):
                    read += len(event.data)
                elif event is h11.NEED_DATA:
                    received = self._receive()
                    if received is None:
                        self._wait(until)
                    else:
                        self._http.receive_data(received)
                else:
                    break
            self._http.start_next_cycle()
            if not self._http.trailing_data[0]:
                self._idle_since = time.monotonic()
                return
        except (Lost, h11.ProtocolError):
            pass
        self.close()

    def _wait(self, until: float) -> None:
        self._poll.modify(self._socket, self._wants)
        self._poll.poll(max(0.0, until - time.monotonic()) * 1000)

    def _lost(self, what: str) -> Lost:
        return Lost(f"{self._name} {what}", sent=self._sent > 0)


def _connected(settings: HttpSettings, *, until: float) -> socket.socket:
    """Resolve the name once, check what it stands for, and connect to that very address."""
    target = settings.target
    try:
        endpoints = resolve(target.host, target.port, until=until)
    except OSError as error:
        raise NotConnected(f"{target.name} cannot be resolved: {_cause(error)}") from error
    for endpoint in endpoints:
        # One bad address among good ones is a sign of somebody else's hand in the answer.
        why = refusal(
            endpoint.ip, allow_private=settings.allow_private, loopback=target.is_loopback
        )
        if why is not None:
            raise NotConnected(
                f"{target.name} stands for {endpoint.ip}, which is refused: {why}"
                + ("; `allow_private = true` takes it" if why == "not public" else "")
            )
    cause = "it stands for no address"
    for number, endpoint in enumerate(endpoints):
        # An address that does not answer must leave time for the others.
        limit = (until - time.monotonic()) / (len(endpoints) - number)
        if limit <= 0:
            break
        try:
            return _socket_to(endpoint, target.host, settings.tls, limit=limit)
        except OSError as error:
            cause = _cause(error)
    raise NotConnected(f"{target.name} cannot be reached: {cause}")


def _socket_to(
    endpoint: Endpoint, host: str, context: ssl.SSLContext | None, *, limit: float
) -> socket.socket:
    until = time.monotonic() + limit
    raw = socket.socket(endpoint.family, socket.SOCK_STREAM)
    try:
        raw.settimeout(limit)
        raw.connect(endpoint.address)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is None:
            return raw
        raw.settimeout(max(0.001, until - time.monotonic()))
        # The address is pinned; the name is what the certificate must be for.
        return context.wrap_socket(raw, server_hostname=host.rstrip("."))
    except BaseException:
        raw.close()
        raise


def _cause(error: OSError) -> str:
    """Return an error's own words, without the place in OpenSSL that raised it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {(error.reason or type(error).__name__).lower().replace('_', ' ')}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return error.strerror or type(error).__name__
