"""Settings of the RabbitMQ publisher."""

from __future__ import annotations

import difflib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pika

SHORT_STRING: Final = 255  # bytes of UTF-8 that AMQP gives to names
_PORT: Final = 5672
_TLS_PORT: Final = 5671
_HEARTBEAT: Final = 60  # seconds
_CONTENT_TYPE: Final = "application/octet-stream"
_ALLOWED: Final = (
    "host",
    "port",
    "virtual_host",
    "username",
    "password",
    "tls",
    "ca_file",
    "heartbeat",
    "exchange",
    "content_type",
)


@dataclass(frozen=True, kw_only=True)
class RabbitSettings:
    """Checked settings.

    Args:
        host: name or address of the broker.
        port: of AMQP.
        virtual_host: where exchange and queues are.
        username, password: of a user who may write to the exchange.
        tls: whether the connection is encrypted; the certificate is always verified.
        ca_file: certificates of the authorities to trust; None: those of the system.
        heartbeat: seconds; 0 leaves it out.
        exchange: that events go to; empty: the default exchange, where routes are queues.
        content_type: of events whose producer names none.
    """

    host: str
    port: int
    virtual_host: str = "/"
    username: str
    password: str = field(repr=False)
    tls: bool = False
    ca_file: str | None = None
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
        context = ssl.create_default_context(cafile=self.ca_file) if self.tls else None
        return pika.ConnectionParameters(
            host=self.host,
            port=self.port,
            virtual_host=self.virtual_host,
            credentials=pika.PlainCredentials(self.username, self.password),
            ssl_options=None if context is None else pika.SSLOptions(context, self.host),
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
    for name in settings:
        if name not in _ALLOWED:
            close = difflib.get_close_matches(name, _ALLOWED, n=1)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            raise ValueError(
                f"rabbitmq: `{name}` is not among the settings that can be given.{hint}"
            )
    tls = _flag(settings, "tls")
    port = _number(settings, "port", _TLS_PORT if tls else _PORT, least=1, most=65_535)
    return RabbitSettings(
        host=_text(settings, "host"),
        port=port,
        virtual_host=_text(settings, "virtual_host", "/"),
        username=_text(settings, "username"),
        password=_text(settings, "password"),
        tls=tls,
        ca_file=_ca_file(settings, tls=tls),
        heartbeat=_number(settings, "heartbeat", _HEARTBEAT, least=0, most=3600),
        exchange=_text(settings, "exchange", "", may_be_empty=True),
        content_type=_text(settings, "content_type", _CONTENT_TYPE),
    )


def _text(
    settings: Mapping[str, object],
    name: str,
    default: str | None = None,
    *,
    may_be_empty: bool = False,
) -> str:
    value = settings.get(name, default)
    if not isinstance(value, str) or not (value or may_be_empty):
        # The value is left out: it may be a password.
        got = "nothing" if value in (None, "") else f"a {type(value).__name__}"
        raise ValueError(f"rabbitmq: `{name}` must be a text. Got: {got}.")
    if len(value.encode(errors="replace")) > SHORT_STRING:
        raise ValueError(f"rabbitmq: `{name}` must have at most {SHORT_STRING} bytes.")
    return value


def _flag(settings: Mapping[str, object], name: str) -> bool:
    value = settings.get(name, False)
    if not isinstance(value, bool):
        raise ValueError(f"rabbitmq: `{name}` must be true or false. Got: {value!r}.")
    return value


def _number(
    settings: Mapping[str, object], name: str, default: int, *, least: int, most: int
) -> int:
    value = settings.get(name, default)
    # A reference to the environment is a text.
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(
            f"rabbitmq: `{name}` must be a whole number from {least} to {most}. Got: {value!r}."
        )
    return value


def _ca_file(settings: Mapping[str, object], *, tls: bool) -> str | None:
    if "ca_file" not in settings:
        return None
    file = str(settings["ca_file"])
    if not tls:
        raise ValueError("rabbitmq: `ca_file` has a meaning only with `tls = true`.")
    try:
        ssl.create_default_context(cafile=str(Path(file)))
    except OSError as error:  # ssl's own errors are of this kind
        raise ValueError(
            f"rabbitmq: `ca_file` must be a file of certificates in PEM. Got: {file!r}, and "
            f"{error.strerror or type(error).__name__}."
        ) from error
    return file
