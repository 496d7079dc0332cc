"""Settings of the HTTP publisher, each from an allow-list."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from delta_outbox.publishers.http.signature import read_secrets
from delta_outbox.publishers.http.target import HttpTarget, parse_url
from delta_outbox.publishers.http_headers import HeaderForm, check_settings_headers, is_plain_value
from delta_outbox.publishers.setting_reader import TLS_FILES, SettingReader

_ALLOWED: Final = (
    *("url", "append_route", "sign", "secrets", "headers", "content_type", "header_values"),
    *("concurrency", "timeout_seconds", "allow_private", *TLS_FILES),
)
_CONTENT_TYPE: Final = "application/json"
_CONCURRENCY: Final = 8
_TIMEOUT: Final = 10.0  # seconds


@dataclass(frozen=True, kw_only=True)
class HttpSettings:
    """Checked settings.

    Args:
        target: where to.
        keys: of the signatures, none if webhooks are not signed.
        headers: further headers of every request.
        content_type: of payloads whose producer names none.
        header_values: how values of headers are written.
        concurrency: requests under way at once.
        timeout: seconds for one request, connection and answer included.
        allow_private: whether addresses of private networks are taken.
        tls: a context that verifies certificate and host name; None: no TLS.
    """

    target: HttpTarget
    keys: Sequence[bytes] = field(default=(), repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content_type: str = _CONTENT_TYPE
    header_values: HeaderForm = HeaderForm.PLAIN
    concurrency: int = _CONCURRENCY
    timeout: float = _TIMEOUT
    allow_private: bool = False
    tls: ssl.SSLContext | None = field(repr=False, default=None)


def parse_settings(settings: Mapping[str, object]) -> HttpSettings:
    """Check the settings of a destination of type `http`.

    Args:
        settings: the table `[publishers.<destination>]` without `type`.

    Raises:
        ValueError: one sentence about the first setting that breaks a rule.
    """
    reader = SettingReader("http", settings, _ALLOWED, tables=("headers",))
    allow_private = reader.flag("allow_private")
    target = parse_url(
        settings.get("url"),
        allow_private=allow_private,
        append_route=reader.flag("append_route", default=True),
    )
    content_type = reader.text("content_type", default=_CONTENT_TYPE)
    if not is_plain_value(content_type):
        reader.refuse("`content_type` must be a media type such as application/json.")
    return HttpSettings(
        target=target,
        keys=_keys(reader, settings.get("secrets", [])),
        headers=check_settings_headers(settings.get("headers", {})),
        content_type=content_type,
        header_values=HeaderForm(reader.choice("header_values", tuple(HeaderForm))),
        concurrency=reader.integer("concurrency", least=1, most=64, default=_CONCURRENCY),
        timeout=reader.seconds("timeout_seconds", default=_TIMEOUT, most=300),
        allow_private=allow_private,
        # The last: reading the authorities of the system takes longer than all the rest.
        tls=_tls(reader, wanted=target.is_tls),
    )


def _tls(reader: SettingReader, *, wanted: bool) -> ssl.SSLContext | None:
    context = reader.tls_context(wanted=wanted)
    if context is not None:
        context.set_alpn_protocols(["http/1.1"])
    return context


def _keys(reader: SettingReader, secrets: object) -> Sequence[bytes]:
    if not reader.flag("sign", default=True):
        if reader.has("secrets"):
            reader.refuse("`secrets` must not be given with `sign = false`.")
        return ()
    keys = read_secrets(secrets)
    if not keys:
        reader.refuse(
            "`secrets` must hold the secret that signs the webhooks (whsec_ and base64), several "
            "while it is being replaced; `sign = false` sends them unsigned."
        )
    return keys
