"""Settings of the RabbitMQ publisher."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pika

from delta_outbox.publishers.setting_reader import SettingReader

SHORT_STRING: Final = 255  # bytes of UTF-8 that AMQP gives to names
_PORT: Final = 5672
_TLS_PORT: Final = 5671
_HEARTBEAT: Final = 60  # seconds
_CONTENT_TYPE: Final = "application/octet-stream"
_NAMES: Final = ("host", "virtual_host", "username", "password", "exchange", "content_type")
_ALLOWED: Final = (*_NAMES, "port", "tls", "ca_file", "heartbeat")


@dataclass(frozen=True, kw_only=True)
class RabbitSettings:
    """Checked settings.

    Args:
        host: name or address of the broker.
        port: of AMQP.
        virtual_host: where exchange and queues are.
        username, password: of a user who may write to the exchange.
        tls: a context that verifies certificate and host name; None: no TLS.
        heartbeat: seconds; 0 leaves it out.
        exchange: that events go to; empty: the default exchange, where routes are queues.
        content_type: of events whose producer names none.
    """

    host: str
    port: int
    virtual_host: str = "/"
    username: str
    password: str = field(repr=False)
    tls: ssl.SSLContext | None = field(repr=False, default=None)
    heartbeat: int = _HEARTBEAT
    exchange: str = ""
    content_type: str = _CONTENT_TYPE

    @property
    def address(self) -> str:
        """Return host and port as one word."""
        return f"{self.host}:{self.port}"

    def parameters(self, *, timeout: float) -> pika.ConnectionParameters:
        """Return what pika connects with: one attempt.

        Args:
            timeout: seconds for connection and greeting.
        """
        return pika.ConnectionParameters(
            host=self.host,
            port=self.port,
            virtual_host=self.virtual_host,
            credentials=pika.PlainCredentials(self.username, self.password),
            ssl_options=None if self.tls is None else pika.SSLOptions(self.tls, self.host),
            heartbeat=self.heartbeat,
            connection_attempts=1,
            retry_delay=0,
            socket_timeout=timeout,
            stack_timeout=timeout,
            client_properties={"connection_name": "delta-outbox"},
        )


def parse_settings(settings: Mapping[str, object]) -> RabbitSettings:
    """Check the settings of a destination of type `rabbitmq`.

    Args:
        settings: the table of the destination.

    Raises:
        ValueError: one sentence about the first setting that breaks a rule.
    """
    reader = SettingReader("rabbitmq", settings, _ALLOWED)
    tls = reader.tls_context(wanted=reader.flag("tls"))
    port = _PORT if tls is None else _TLS_PORT
    parsed = RabbitSettings(
        host=reader.required_text("host"),
        port=reader.integer("port", least=1, most=65_535, default=port),
        virtual_host=reader.text("virtual_host", default="/"),
        username=reader.required_text("username"),
        password=reader.required_text("password"),
        tls=tls,
        heartbeat=reader.integer("heartbeat", least=0, most=3600, default=_HEARTBEAT),
        exchange=reader.text("exchange", default=""),
        content_type=reader.text("content_type", default=_CONTENT_TYPE),
    )
    for name in _NAMES:
        if len(getattr(parsed, name).encode(errors="replace")) > SHORT_STRING:
            reader.refuse(f"`{name}` must have at most {SHORT_STRING} bytes.")
    return parsed
