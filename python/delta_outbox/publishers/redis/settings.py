"""Settings of the Redis publisher."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import SplitResult, urlsplit

from delta_outbox.core.secrets import secrets_of
from delta_outbox.publishers.setting_reader import TLS_FILES, SettingReader, matches_any

_ALLOWED: Final = (
    *("mode", "streams", "channels", "max_length"),
    *("url", "host", "port", "db", "username", "password"),
    *("tls", *TLS_FILES),
    *("connect_timeout_seconds", "max_value_bytes"),
)
_PORT: Final = 6379
_URL_EXAMPLE: Final = "redis://HOST:PORT/DB, or rediss:// for TLS"
# Redis' own default of proto-max-bulk-len: a longer value ends the connection.
_MAX_VALUE: Final = 512 * 1024 * 1024  # bytes


class Mode(StrEnum):
    """Where an event goes: to a stream, which keeps it, or to whoever listens at this moment."""

    STREAM = "stream"
    PUBSUB = "pubsub"


@dataclass(frozen=True, kw_only=True)
class RedisSettings:
    """Checked settings.

    Args:
        mode: streams (the default) or pub/sub. No consumer acknowledges pub/sub: Delivered then
            means that Redis took the message, also if nobody listened.
        routes: globs of the streams or channels that may be written.
        max_length: about how many entries a stream keeps; None: all.
        host: name or address of the server.
        port: its TCP port.
        db: number of the database.
        username: of an ACL user; None: `default`.
        password: None: none.
        tls: a context that verifies certificate and host name; None: no TLS.
        connect_timeout: seconds.
        max_value_bytes: size above which a value is rejected here.
        secrets: values that must never be shown.
    """

    mode: Mode
    routes: tuple[str, ...]
    max_length: int | None
    host: str
    port: int
    db: int
    username: str | None = field(repr=False)
    password: str | None = field(repr=False)
    tls: ssl.SSLContext | None = field(repr=False)
    connect_timeout: float
    max_value_bytes: int
    secrets: tuple[str, ...] = field(repr=False, default=())

    @property
    def address(self) -> str:
        """Return host and port as people write them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def allows(self, route: str) -> bool:
        """Return whether a stream or channel is on the allow-list.

        Args:
            route: as rendered.
        """
        return matches_any(self.routes, route)


def parse_settings(settings: Mapping[str, object]) -> RedisSettings:
    """Check the settings of a destination of type `redis`.

    Args:
        settings: of the destination.

    Raises:
        ValueError: one sentence about the first setting that breaks a rule.
    """
    reader = SettingReader("redis", settings, _ALLOWED)
    mode = Mode(reader.choice("mode", (Mode.STREAM, Mode.PUBSUB)))
    host, port, db, is_tls = _server(reader)
    username, password = reader.text("username"), reader.text("password")
    if username is not None and password is None:
        reader.refuse("`username` needs `password` beside it.")
    return RedisSettings(
        mode=mode,
        routes=_routes(reader, mode),
        max_length=reader.integer("max_length", least=1, most=2**63 - 1),
        host=host,
        port=port,
        db=db,
        username=username,
        password=password,
        tls=reader.tls_context(wanted=is_tls),
        connect_timeout=reader.seconds("connect_timeout_seconds", default=5.0, most=60.0),
        max_value_bytes=reader.integer("max_value_bytes", least=1, most=2**31, default=_MAX_VALUE),
        secrets=secrets_of(settings),
    )


def _routes(reader: SettingReader, mode: Mode) -> tuple[str, ...]:
    if mode is Mode.PUBSUB:
        if reader.has("streams") or reader.has("max_length"):
            reader.refuse("`streams` and `max_length` belong to mode stream, not to mode pubsub.")
        return reader.globs("channels", what="channels", example="order.*")
    if reader.has("channels"):
        reader.refuse(
            '`channels` belongs to mode pubsub: name the `streams`, or set mode = "pubsub".'
        )
    return reader.globs("streams", what="streams", example="order.*")


def _server(reader: SettingReader) -> tuple[str, int, int, bool]:
    """Return host, port, database and whether TLS is wanted."""
    url = reader.text("url")
    is_tls = reader.flag("tls")
    if url is not None:
        for name in ("host", "port", "db", "tls"):
            if reader.has(name):
                reader.refuse(f"`{name}` is in `url` already: give one of the two.")
        host, port, db, is_tls = _from_url(reader, url)
    else:
        host = reader.text("host", default="")
        if not host or any(c.isspace() or c in "/@" for c in host):
            reader.refuse(f"`host` must name the server (or give `url`: {_URL_EXAMPLE}).")
        host = host.removeprefix("[").removesuffix("]")
        port = reader.integer("port", least=1, most=65535, default=_PORT)
        db = reader.integer("db", least=0, most=2**31 - 1, default=0)
    return host, port, db, is_tls


def _from_url(reader: SettingReader, url: str) -> tuple[str, int, int, bool]:
    parts: SplitResult | None = None
    try:
        parts = urlsplit(url)
        port = _PORT if parts.port is None else parts.port
    except ValueError:
        port = 0
    if parts is not None and "@" in parts.netloc:
        # The URL is shown in errors and logs, so it is not shown here.
        reader.refuse("`url` must not hold a user or a password: set `username` and `password`.")
    db = parts.path.removeprefix("/") if parts is not None else ""
    if (
        parts is None
        or not port
        or parts.scheme not in ("redis", "rediss")
        or not parts.hostname
        or parts.query
        or parts.fragment
        or not (db == "" or (db.isascii() and db.isdigit() and len(db) < 10))
    ):
        reader.refuse(f"`url` must be {_URL_EXAMPLE}, with nothing behind it.")
    assert parts is not None
    assert parts.hostname is not None
    return parts.hostname, port, int(db or 0), parts.scheme == "rediss"
