"""A connection to RabbitMQ with one channel in confirm mode, driven by whoever waits for it.

No thread serves it: frames are read and written only within `wait`, so that nothing can be sent
behind the publisher's back. Pika's blocking connection confirms one message at a time (1,100
messages/s on loopback); its callbacks, used here, let many be under way (11,500 messages/s).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pika
from pika.exceptions import AMQPError, ConnectionClosedByClient

from delta_outbox.core.redaction import scrub
from delta_outbox.publishers.rabbitmq.settings import RabbitSettings

_CLOSE_TIMEOUT: Final = 1.0  # seconds for a farewell


class Unreachable(Exception):
    """RabbitMQ does not answer, or lets us in only so far; nothing was sent."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why the broker closed the channel.

    Args:
        code: of AMQP.
        text: the broker's words.
    """

    code: int
    text: str


class RabbitConnection:
    """A connection and its channel.

    Args:
        settings: where to and as whom.
        timeout: seconds until it must be usable.

    Attributes:
        lost: why there is no connection any more.
        refusal: why there is no channel any more.
        blocked: why the broker takes no messages for now.
        proven: the broker has answered for a message of this channel.
        on_confirm: called with tag, multiple and whether it is positive.
        on_return: called with message id and text for a message without a queue.
        on_change: called when the broker takes messages again.

    Raises:
        Unreachable: there is no connection, or the exchange cannot be used.
    """

    def __init__(self, settings: RabbitSettings, *, timeout: float) -> None:
        self._settings = settings
        self.lost: str | None = None
        self.refusal: Refusal | None = None
        self.blocked: str | None = None
        self.proven = False
        self.forget_listeners()
        self._done: Callable[[], bool] = lambda: False
        self._channel: Any = None
        self._tag = 0
        self._asked = self._answered = 0
        self._open = False
        deadline = time.monotonic() + timeout
        self._connection = pika.SelectConnection(
            settings.parameters(timeout=timeout),
            on_open_callback=self._opened,
            on_open_error_callback=self._closed,
            on_close_callback=self._closed,
        )
        self._connection.add_on_connection_blocked_callback(self._became_blocked)
        self._connection.add_on_connection_unblocked_callback(self._became_free)
        try:
            if not self.wait(lambda: self._open or self.lost is not None, deadline):
                raise Unreachable(f"RabbitMQ at {settings.address} does not answer")
            if self.lost is not None:
                raise Unreachable(f"RabbitMQ at {settings.address}: {self.lost}")
            self.open_channel(deadline)
        except BaseException:
            self.abandon()
            raise

    @property
    def frame_max(self) -> int:
        """Return the bytes of a frame, as agreed with the broker."""
        return int(self._connection.params.frame_max or 131_072)

    @property
    def usable(self) -> bool:
        """Return whether messages can be handed over."""
        return self.lost is None and self.refusal is None and self._channel is not None

    def open_channel(self, deadline: float) -> None:
        """Open a channel in confirm mode, and see that the exchange is there.

        Args:
            deadline: monotonic seconds.

        Raises:
            Unreachable: it cannot be used.
        """
        self.refusal, self.proven, self._tag, self._channel = None, False, 0, None
        self._asked = self._answered = 0
        ready = False

        def select(channel: Any) -> None:
            channel.add_on_close_callback(self._channel_closed)
            channel.add_on_return_callback(self._returned)
            channel.confirm_delivery(self._confirmed, callback=lambda _: declare(channel))

        def declare(channel: Any) -> None:
            exchange = self._settings.exchange
            if exchange:
                channel.exchange_declare(exchange, passive=True, callback=lambda _: finish(channel))
            else:  # the default exchange is always there, and may not be asked for
                finish(channel)

        def finish(channel: Any) -> None:
            nonlocal ready
            self._channel, ready = channel, True
            self._look()

        self._connection.channel(on_open_callback=select)
        self.wait(lambda: ready or not (self.lost is None and self.refusal is None), deadline)
        where = f"RabbitMQ at {self._settings.address}"
        if self.refusal is not None:
            raise Unreachable(f"{where}: {self.refusal.text}")
        if not ready:
            raise Unreachable(f"{where}: {self.lost or 'it does not answer'}")

    def forget_listeners(self) -> None:
        """Let nobody be told of confirms and returns."""
        self.on_confirm: Callable[[int, bool, bool], None] = lambda *_: None
        self.on_return: Callable[[str | None, str], None] = lambda *_: None
        self.on_change: Callable[[], None] = lambda: None

    def answers(self, deadline: float) -> bool:
        """Return whether the broker answers on this channel; nothing is published.

        Args:
            deadline: monotonic seconds.
        """
        if not self.usable:
            return False
        if self._asked == self._answered:  # a blocked broker has not read the last question yet
            self._asked += 1
            try:
                self._channel.basic_qos(callback=self._heard)
            except AMQPError:
                return False
        self.wait(lambda: self._is_answered() or not self.usable, deadline)
        return self._is_answered()

    def send(self, route: str, payload: bytes, properties: pika.BasicProperties) -> int:
        """Hand a message over; return its delivery tag.

        Args:
            route: routing key.
            payload: the body.
            properties: of the message.

        Raises:
            UnicodeEncodeError: a text has no UTF-8; nothing was handed over.
        """
        self._channel.basic_publish(
            self._settings.exchange, route, payload, properties, mandatory=True
        )
        self._tag += 1
        return self._tag

    def wait(self, done: Callable[[], bool], deadline: float) -> bool:
        """Read and write until something is so, or the deadline comes; return whether it is so.

        Args:
            done: asked after everything that the broker says.
            deadline: monotonic seconds.
        """
        if done():
            return True
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            return False
        loop = self._connection.ioloop
        timer = loop.call_later(seconds, loop.stop)
        self._done = done
        try:
            loop.start()
        finally:
            self._done = lambda: False
            loop.remove_timeout(timer)
        return done()

    def close(self) -> None:
        """Take leave of the broker."""
        with contextlib.suppress(AMQPError):
            if self.lost is None:
                self._connection.close()
                self.wait(lambda: self.lost is not None, time.monotonic() + _CLOSE_TIMEOUT)
        self.abandon()

    def abandon(self) -> None:
        """Drop the connection and whatever of it has not left this process."""
        if self.lost is None:
            # The public `close` would first send what is queued.
            connection: Any = self._connection
            connection._terminate_stream(ConnectionClosedByClient(200, "abandoned"))
            self.wait(lambda: self.lost is not None, time.monotonic() + _CLOSE_TIMEOUT)
            self.lost = "it was given up"
        self._connection.ioloop.close()

    def _is_answered(self) -> bool:
        return self.usable and self._asked == self._answered

    def _look(self) -> None:
        if self._done():
            self._connection.ioloop.stop()

    def _opened(self, _: Any) -> None:
        self._open = True
        self._look()

    def _closed(self, _: Any, error: BaseException) -> None:
        self.lost = _sentence(error)
        self._look()

    def _channel_closed(self, _: Any, error: BaseException) -> None:
        self._channel = None
        if isinstance(error, pika.exceptions.ChannelClosedByBroker):
            self.refusal = Refusal(code=error.reply_code, text=str(error.reply_text))
        self._look()

    def _became_blocked(self, _: Any, frame: Any) -> None:
        self.blocked = str(frame.method.reason) or "it takes no messages for now"
        self._look()

    def _became_free(self, *_: Any) -> None:
        self.blocked = None
        self.on_change()
        self._look()

    def _heard(self, _: Any) -> None:
        self._answered += 1
        self._look()

    def _confirmed(self, frame: Any) -> None:
        method = frame.method
        self.proven = True
        positive = isinstance(method, pika.spec.Basic.Ack)
        self.on_confirm(method.delivery_tag, method.multiple, positive)
        self._look()

    def _returned(self, _: Any, method: Any, properties: Any, body: bytes) -> None:
        self.on_return(properties.message_id, str(method.reply_text))


def _sentence(error: BaseException) -> str:
    """Return the innermost cause of what pika says, in one line."""
    inner: Any = error
    while True:
        nested = getattr(inner, "exceptions", None) or [getattr(inner, "exception", None)]
        if not isinstance(nested[-1], BaseException):
            break
        inner = nested[-1]
    if isinstance(inner, pika.exceptions.ConnectionClosed):
        return scrub(f"{inner.reply_text} ({inner.reply_code})")
    return scrub(f"{type(inner).__name__}: {inner}")
