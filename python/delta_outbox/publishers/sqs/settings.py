"""Settings of the SQS publisher."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from delta_outbox.publishers.setting_reader import SettingReader

SERVICE_LIMIT: Final = 1_048_576  # bytes of a message and of a request; 262,144 before August 2025
_TEXTS: Final = (
    *("region", "endpoint_url", "profile", "account_id"),
    *("access_key_id", "secret_access_key", "session_token"),
)
_ALLOWED: Final = (*_TEXTS, "ca_file", "max_message_bytes", "concurrency")
_CONCURRENCY: Final = 8


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
    concurrency: int = _CONCURRENCY

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
    reader = SettingReader("sqs", settings, _ALLOWED)
    texts = {name: reader.text(name) for name in _TEXTS}
    if (texts["access_key_id"] is None) != (texts["secret_access_key"] is None):
        reader.refuse("`access_key_id` and `secret_access_key` belong together.")
    if texts["session_token"] is not None and texts["access_key_id"] is None:
        reader.refuse("`session_token` belongs to an `access_key_id`.")
    if texts["profile"] is not None and texts["access_key_id"] is not None:
        reader.refuse("give `profile` or `access_key_id`, not both.")
    if texts["endpoint_url"] is not None and not _is_endpoint(texts["endpoint_url"]):
        # It may hold a user, so it is not repeated.
        reader.refuse(
            "`endpoint_url` must be https://HOST[:PORT], or http:// on loopback, without user or "
            "path."
        )
    return SqsSettings(
        **texts,
        ca_file=reader.file("ca_file"),
        max_message_bytes=reader.integer(
            "max_message_bytes", least=1024, most=SERVICE_LIMIT, default=SERVICE_LIMIT
        ),
        concurrency=reader.integer("concurrency", least=1, most=64, default=_CONCURRENCY),
    )


def _is_endpoint(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    plain = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
    secure = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host or ""))
    return bool(host) and plain and secure


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
