"""One connection to NATS, in an event loop of its own that runs only while a call does.

The client never reconnects: what it would send again then, it may have sent before.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from nats import errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from delta_outbox.core.redaction import scrub
from delta_outbox.publishers.nats.settings import NatsSettings

_T = TypeVar("_T")
_TURNS: Final = (
    20  # of the loop, in which the client writes what it holds unless the server is slow
)
_PENDING_LOOK: Final = 0.002  # seconds
_FOR_EVER: Final = 3600  # seconds; whoever waits for the client has a limit of its own
_GRACE: Final = 1.0  # seconds for the client's own tasks to end
_LOOK: Final = 0.05  # seconds until the end of a connection is noticed
_RETRY_WAIT: Final = 0.05  # seconds between the two tries that the client makes to connect
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: what the system still holds is not sent
_DENIED: Final = re.compile(r'permissions violation for publish to "(.*)"')


class Unreachable(ConnectionError):
    """No server answers, or none lets us in."""


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that knows its connections, to end them, and whether they became TLS."""

    def __init__(self) -> None:
        super().__init__()
        self.transports: list[asyncio.Transport] = []
        self.is_secured = False

    async def create_connection(self, *args: Any, **options: Any) -> Any:
        """Make a connection and remember it."""
        made = await super().create_connection(*args, **options)
        self.transports.append(made[0])
        return made

    async def start_tls(self, *args: Any, **options: Any) -> Any:
        """Turn a connection into one of TLS, and note it."""
        secured = await super().start_tls(*args, **options)
        self.is_secured = True
        return secured


class NatsConnection:
    """A connection that is logged in.

    Args:
        settings: checked settings.
        deadline: `time.monotonic()` seconds.

    Raises:
        Unreachable: one sentence with the servers and the reason.
    """

    def __init__(self, settings: NatsSettings, *, deadline: float) -> None:
        self._settings = settings
        self._complaint: str | None = None
        self._loop = _Loop()
        self._client = Client()
        self._on_answer: Callable[[str, Msg], None] = lambda token, answer: None
        self._on_denied: Callable[[str], None] = lambda subject: None
        self._inbox = ""
        seconds = min(settings.connect_timeout, deadline - time.monotonic())
        try:
            self.run(asyncio.wait_for(self._connect(seconds), seconds))
        except (OSError, errors.Error, TimeoutError, UnicodeError, ValueError) as error:
            sentence = self._sentence(error)
            self.close()
            raise Unreachable(sentence) from None
        except BaseException:
            self.close()
            raise

    @property
    def max_payload(self) -> int:
        """Return the bytes of headers and payload that the server takes."""
        return self._client.max_payload

    @property
    def is_closed(self) -> bool:
        """Return whether the connection has ended."""
        transports = self._loop.transports
        return self._client.is_closed or not transports or transports[-1].is_closing()

    @property
    def complaint(self) -> str:
        """Return the last error of the connection, for people."""
        return self._complaint or "the connection ended"

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run the loop until some work is done.

        Args:
            work: what to do.
        """
        return self._loop.run_until_complete(work)

    def listen(
        self, on_answer: Callable[[str, Msg], None], on_denied: Callable[[str], None]
    ) -> None:
        """Say who gets what comes in.

        Args:
            on_answer: called with the token of a `publish` and its answer.
            on_denied: called with a subject, in lower case, that we may not publish to.
        """
        self._on_answer, self._on_denied = on_answer, on_denied

    async def publish(
        self, subject: str, payload: bytes, headers: dict[str, str], *, token: str | None = None
    ) -> bool:
        """Hand a message to the client; return False if it is certain that it was not.

        Args:
            subject: where to.
            payload: the bytes.
            headers: of the message.
            token: names the answer; None: none is wanted.
        """
        reply = "" if token is None else f"{self._inbox}.{token}"
        try:
            await self._client.publish(subject, payload, reply=reply, headers=headers)
        except (
            errors.ConnectionClosedError,
            errors.OutboundBufferLimitError,
            errors.MaxPayloadError,
            errors.BadSubjectError,
        ):
            return False
        return True

    async def flush(self, seconds: float) -> bool:
        """Return whether the server has processed all that was published before.

        Args:
            seconds: to wait.
        """
        pong = asyncio.ensure_future(self._ask())
        await self.wait(pong, seconds)  # the client would wait on when the connection ends
        if not pong.done():
            pong.cancel()
        return (
            pong.done() and not pong.cancelled() and pong.exception() is None and not self.is_closed
        )

    async def wait(self, work: asyncio.Future[Any], seconds: float) -> None:
        """Wait until some work is done, the connection ends or the time is over.

        Args:
            work: what to wait for.
            seconds: to wait.
        """
        end = time.monotonic() + seconds
        # Looked at, not waited for: a connection that was reset ends without the client's callback.
        while not self.is_closed and (left := end - time.monotonic()) > 0:
            done, _ = await asyncio.wait({work}, timeout=min(left, _LOOK))
            if done:
                return
        await asyncio.sleep(0)  # what has come in reaches those who wait for it

    def is_alive(self, deadline: float) -> bool:
        """Return whether the server answers on this connection.

        Args:
            deadline: `time.monotonic()` seconds.
        """
        seconds = min(self._settings.connect_timeout, deadline - time.monotonic())
        return not self.is_closed and self.run(self.flush(seconds))

    def close(self) -> None:
        """Drop the connection together with what has not been sent yet."""
        if self._loop.is_closed():
            return
        for transport in self._loop.transports:
            connected = transport.get_extra_info("socket")
            with contextlib.suppress(OSError):
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            transport.abort()
        self.run(_end_all())
        self._loop.close()

    async def _connect(self, seconds: float) -> None:
        given = self._settings
        await self._client.connect(
            list(given.servers),
            error_cb=self._note,
            name="delta-outbox",
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=_RETRY_WAIT,  # type: ignore[arg-type] # it sleeps for any number
            connect_timeout=seconds,  # type: ignore[arg-type] # as above
            tls=given.tls,
            user=self._secret(given.username),
            password=self._secret(given.password),
            token=self._secret(given.token),
            user_credentials=given.credentials_file,
            nkeys_seed=given.nkey_seed_file,
            inbox_prefix=given.inbox_prefix,
        )
        self._demand_tls()
        self._complaint = None  # another server of the list did not answer
        self._inbox = self._client.new_inbox()
        await self._client.subscribe(f"{self._inbox}.*", cb=self._take)
        await self._ask()
        if self._complaint is not None:
            raise errors.Error(self._complaint)

    async def _ask(self) -> None:
        """Ask the server for an answer that comes after all that was published before."""
        # The client writes its PING at once, past the messages that it still holds.
        turns = 0
        while self._client.pending_data_size > 0 and not self._client.is_closed:
            await asyncio.sleep(0 if turns < _TURNS else _PENDING_LOOK)
            turns += 1
        await self._client.flush(timeout=_FOR_EVER)

    def _secret(self, value: str | None) -> Callable[[], str] | None:
        """Return a secret that is given away only after TLS, where TLS is wanted."""
        if value is None:
            return None

        def tell() -> str:
            self._demand_tls()
            return value

        return tell

    def _demand_tls(self) -> None:
        # The client goes on in the clear with a server, or somebody between, that offers no TLS.
        if self._settings.tls is not None and not self._loop.is_secured:
            raise errors.Error("the server offers no TLS")

    async def _take(self, answer: Msg) -> None:
        self._on_answer(answer.subject.rsplit(".", 1)[1], answer)

    async def _note(self, error: Exception) -> None:
        message = str(error).removeprefix("nats: ")
        denied = _DENIED.search(message)
        if denied is not None:
            self._on_denied(denied[1])
        elif message:
            self._complaint = message

    def _sentence(self, error: Exception) -> str:
        message = self._complaint
        if message is None or not isinstance(error, errors.NoServersError | TimeoutError):
            message = str(error).removeprefix("nats: ") or message or "no answer in time"
        return scrub(
            f"NATS at {self._settings.address} is not usable: {message}",
            secrets=self._settings.secrets,
        )


async def _end_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_GRACE)
    await asyncio.sleep(0)  # the sockets are closed by now
