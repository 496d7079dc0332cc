"""Settings of the NATS publisher."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from delta_outbox.core.secrets import secrets_of
from delta_outbox.publishers.setting_reader import TLS_FILES, SettingReader, matches_any

_ALLOWED: Final = (
    *("mode", "servers", "subjects", "stream", "max_in_flight"),
    *("username", "password", "token", "credentials_file", "nkey_seed_file"),
    *("tls", *TLS_FILES),
    *("connect_timeout_seconds", "inbox_prefix"),
)
_PORT: Final = 4222
_IN_FLIGHT: Final = 256  # events without an answer
_INTERNAL: Final = ("$", "_")  # the server's own subjects and the inboxes begin so


class Mode(StrEnum):
    """Who acknowledges an event: a stream that has stored it, or nobody."""

    JETSTREAM = "jetstream"
    CORE = "core"


@dataclass(frozen=True, kw_only=True)
class NatsSettings:
    """Checked settings.

    Args:
        mode: JetStream (the default) or core. Nobody acknowledges in mode core: Delivered then
            means that the server has processed the message, also if nobody listened.
        servers: URLs without users.
        subjects: globs of the subjects that may be published to.
        stream: the stream that must store the events; None: whichever has the subject.
        max_in_flight: events without an answer at once.
        username: of a user with a password.
        password: of that user.
        token: in place of a user.
        credentials_file: JWT and seed of a user.
        nkey_seed_file: seed of a user.
        tls: a context that verifies certificate and host name; None: no TLS.
        connect_timeout: seconds.
        inbox_prefix: of the subject on which answers come.
        secrets: values that must never be shown.
    """

    mode: Mode
    servers: tuple[str, ...]
    subjects: tuple[str, ...]
    stream: str | None
    max_in_flight: int
    username: str | None = field(repr=False)
    password: str | None = field(repr=False)
    token: str | None = field(repr=False)
    credentials_file: str | None
    nkey_seed_file: str | None
    tls: ssl.SSLContext | None = field(repr=False)
    connect_timeout: float
    inbox_prefix: str
    secrets: tuple[str, ...] = field(repr=False, default=())

    @property
    def address(self) -> str:
        """Return the servers as people write them."""
        return ", ".join(self.servers)

    def allows(self, subject: str) -> bool:
        """Return whether a subject is on the allow-list.

        As a shell hides dot files, a glob finds internal subjects only if it names their first
        character.

        Args:
            subject: the rendered route.
        """
        globs = self.subjects
        if subject.startswith(_INTERNAL):
            globs = tuple(glob for glob in globs if glob.startswith(_INTERNAL))
        return matches_any(globs, subject)


def parse_settings(settings: Mapping[str, object]) -> NatsSettings:
    """Check the settings of a destination of type `nats`.

    Args:
        settings: of the destination.

    Raises:
        ValueError: one sentence about the first setting that breaks a rule.
    """
    reader = SettingReader("nats", settings, _ALLOWED)
    mode = Mode(reader.choice("mode", (Mode.JETSTREAM, Mode.CORE)))
    if mode is Mode.CORE and reader.has("stream"):
        reader.refuse("`stream` belongs to mode jetstream, not to mode core.")
    servers, is_tls = _servers(reader, settings.get("servers"))
    username, password = reader.text("username"), reader.text("password")
    if (username is None) != (password is None):
        reader.refuse("`username` and `password` need each other.")
    ways = [n for n in ("username", "token", "credentials_file", "nkey_seed_file") if reader.has(n)]
    if len(ways) > 1:
        reader.refuse(f"there is one way to log in. Got: {' and '.join(ways)}.")
    prefix = reader.text("inbox_prefix", default="_INBOX")
    if subject_fault(prefix) is not None:
        reader.refuse(f"`inbox_prefix` must be a subject without wildcards. Got: {prefix!r}.")
    return NatsSettings(
        mode=mode,
        servers=servers,
        subjects=reader.globs("subjects", what="subjects", example="order.*"),
        stream=reader.text("stream"),
        max_in_flight=reader.integer("max_in_flight", least=1, most=100_000, default=_IN_FLIGHT),
        username=username,
        password=password,
        token=reader.text("token"),
        credentials_file=reader.file("credentials_file"),
        nkey_seed_file=reader.file("nkey_seed_file"),
        tls=reader.tls_context(wanted=is_tls),
        connect_timeout=reader.seconds("connect_timeout_seconds", default=5.0, most=60.0),
        inbox_prefix=prefix,
        secrets=secrets_of(settings),
    )


MAX_SUBJECT: Final = 2048  # bytes; the server ends a connection at a line of 4096


def subject_fault(subject: str) -> str | None:
    """Return why nothing can be published to a subject, None if something can.

    Args:
        subject: the rendered route.
    """
    if not all(subject.split(".")):
        return "a part of it is empty"
    if any(c in "*>" for c in subject):
        return "it has a wildcard"
    if not subject.isprintable() or any(c.isspace() for c in subject):
        return "it has a space or a character that cannot be printed"
    if len(subject.encode()) > MAX_SUBJECT:
        return f"it has more than {MAX_SUBJECT} bytes"
    return None


def _servers(reader: SettingReader, value: object) -> tuple[tuple[str, ...], bool]:
    """Return the servers with their ports, and whether TLS is wanted."""
    urls = value.split(",") if isinstance(value, str) else value
    if not isinstance(urls, list | tuple) or not urls:
        reader.refuse('`servers` must list URLs, for example ["nats://HOST:4222"].')
    assert isinstance(urls, list | tuple)
    found, schemes = [], set()
    for url in urls:
        text = url.strip() if isinstance(url, str) else ""
        if "@" in text:
            # The servers are shown in errors and logs, so they hold no secret.
            reader.refuse("`servers` must not hold users: set `username` and `password`.")
        try:
            parts = urlsplit(text)
            port = _PORT if parts.port is None else parts.port
        except ValueError:
            port = 0
        if (
            not port
            or parts.scheme not in ("nats", "tls")
            or not parts.hostname
            or parts.path.strip("/")
            or parts.query
            or parts.fragment
        ):
            reader.refuse(
                f"`servers` must be nats://HOST:PORT, or tls://HOST:PORT for TLS. Got: {text!r}."
            )
        assert parts.hostname is not None
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        found.append(f"{parts.scheme}://{host}:{port}")
        schemes.add(parts.scheme)
    if len(schemes) > 1:
        reader.refuse("`servers` must all be nats:// or all be tls://.")
    return tuple(found), reader.flag("tls") or schemes == {"tls"}
