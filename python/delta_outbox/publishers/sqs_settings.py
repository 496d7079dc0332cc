"""Settings of the SQS publisher."""

from __future__ import annotations

import difflib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

SERVICE_LIMIT: Final = 1_048_576  # bytes of a message and of a request; 262,144 before August 2025
_ALLOWED: Final = (
    "region",
    "endpoint_url",
    "access_key_id",
    "secret_access_key",
    "session_token",
    "profile",
    "account_id",
    "ca_file",
    "max_message_bytes",
    "concurrency",
)


@dataclass(frozen=True, kw_only=True)
class SqsSettings:
    """Checked settings.

    Args:
        region: of the queues; None: the SDK's own search.
        endpoint_url: of another server than Amazon's.
        access_key_id, secret_access_key, session_token: credentials; None: the SDK's own search.
        profile: of the SDK's own files.
        account_id: that owns the queues; None: that of the credentials.
        ca_file: certificates of the authorities to trust.
        max_message_bytes: of a message and of a request, attributes included.
        concurrency: requests under way at the same time.
    """

    region: str | None = None
    endpoint_url: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = field(repr=False, default=None)
    session_token: str | None = field(repr=False, default=None)
    profile: str | None = None
    account_id: str | None = None
    ca_file: str | None = None
    max_message_bytes: int = SERVICE_LIMIT
    concurrency: int = 8

    @property
    def place(self) -> str:
        """Return where the queues are, for sentences."""
        return self.endpoint_url or f"in {self.region or 'the default region'}"


def parse_settings(settings: Mapping[str, object]) -> SqsSettings:
    """Check the settings of a destination of type `sqs`.

    Args:
        settings: the table of the destination.

    Raises:
        ValueError: one sentence about the first setting that breaks a rule.
    """
    for name in settings:
        if name not in _ALLOWED:
            close = difflib.get_close_matches(name, _ALLOWED, n=1)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            raise ValueError(f"sqs: `{name}` is not among the settings that can be given.{hint}")
    texts = {name: _text(settings, name) for name in _ALLOWED[:8]}
    if (texts["access_key_id"] is None) != (texts["secret_access_key"] is None):
        raise ValueError("sqs: `access_key_id` and `secret_access_key` belong together.")
    if texts["session_token"] is not None and texts["access_key_id"] is None:
        raise ValueError("sqs: `session_token` belongs to an `access_key_id`.")
    if texts["profile"] is not None and texts["access_key_id"] is not None:
        raise ValueError("sqs: give `profile` or `access_key_id`, not both.")
    if texts["endpoint_url"] is not None:
        _check_endpoint(texts["endpoint_url"])
    if texts["ca_file"] is not None and not Path(texts["ca_file"]).is_file():
        raise ValueError(f"sqs: `ca_file` must be a file. Got: {texts['ca_file']!r}.")
    return SqsSettings(
        **texts,
        max_message_bytes=_number(
            settings, "max_message_bytes", SERVICE_LIMIT, least=1024, most=SERVICE_LIMIT
        ),
        concurrency=_number(settings, "concurrency", 8, least=1, most=64),
    )


def _text(settings: Mapping[str, object], name: str) -> str | None:
    if name not in settings:
        return None
    value = settings[name]
    if not isinstance(value, str) or not value.strip():
        # The value is left out: it may be a secret.
        raise ValueError(f"sqs: `{name}` must be a text, in quotes and not empty.")
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
            f"sqs: `{name}` must be a whole number from {least} to {most}. Got: {value!r}."
        )
    return value


def _check_endpoint(url: str) -> None:
    rule = "must be https://HOST[:PORT], or http:// on loopback, without user or path"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError(f"sqs: `endpoint_url` {rule}.") from None
    plain = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
    secure = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host or ""))
    if not (host and plain and secure):
        # It may hold a user, so it is not repeated.
        raise ValueError(f"sqs: `endpoint_url` {rule}.")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
