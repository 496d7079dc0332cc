"""Settings of the HTTP publisher, each from an allow-list."""

from __future__ import annotations

import difflib
import math
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from delta_outbox.publishers.http_headers import (
    HeaderForm,
    check_settings_headers,
    is_plain_value,
)
from delta_outbox.publishers.http_target import HttpTarget, parse_url
from delta_outbox.publishers.webhook_signature import read_secrets

ALLOWED: Final = frozenset(
    """
    url append_route sign secrets headers content_type header_values concurrency timeout_seconds
    allow_private ca_file client_certificate_file client_key_file
    """.split()  # noqa: SIM905 - easier to check than fourteen quotes
)
FILES: Final = ("ca_file", "client_certificate_file", "client_key_file")
DEFAULT_CONTENT_TYPE: Final = "application/json"
DEFAULT_CONCURRENCY: Final = 8
MAX_CONCURRENCY: Final = 64
DEFAULT_TIMEOUT: Final = 10.0  # seconds
_TIMEOUTS: Final = (0.1, 300.0)  # seconds


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
        ca_file: authorities to trust instead of the system's.
        client_certificate: file of our own certificate and file of its key.
    """

    target: HttpTarget
    keys: Sequence[bytes] = field(default=(), repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content_type: str = DEFAULT_CONTENT_TYPE
    header_values: HeaderForm = HeaderForm.PLAIN
    concurrency: int = DEFAULT_CONCURRENCY
    timeout: float = DEFAULT_TIMEOUT
    allow_private: bool = False
    ca_file: str | None = None
    client_certificate: tuple[str, str | None] | None = None

    def tls_context(self) -> ssl.SSLContext | None:
        """Return how the server is verified, None without encryption.

        Raises:
            ValueError: a file cannot be read, or holds something else.
        """
        if not self.target.is_tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError):
            raise ValueError(
                "http: `ca_file` must be a readable file of certificates (PEM)."
            ) from None
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if self.client_certificate is not None:
            certificate, key = self.client_certificate
            try:
                # An encrypted key would have OpenSSL ask for its password on the terminal.
                context.load_cert_chain(certificate, key, password=_no_password)
            except (OSError, ssl.SSLError, ValueError):
                raise ValueError(
                    "http: `client_certificate_file` and `client_key_file` must be readable files "
                    "of a certificate and its unencrypted key (PEM)."
                ) from None
        return context


def parse_settings(settings: Mapping[str, object]) -> HttpSettings:
    """Check the settings of a destination of type `http`.

    Args:
        settings: the table `[publishers.<destination>]` without `type`.

    Raises:
        ValueError: one sentence about the first setting that breaks a rule.
    """
    for name in settings:
        if name not in ALLOWED:
            close = difflib.get_close_matches(str(name), ALLOWED, n=1)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            raise ValueError(f"http: `{name}` is not among the settings that can be given.{hint}")
    allow_private = _flag(settings, "allow_private", default=False)
    target = parse_url(
        settings.get("url"),
        allow_private=allow_private,
        append_route=_flag(settings, "append_route", default=True),
    )
    content_type = settings.get("content_type", DEFAULT_CONTENT_TYPE)
    if not isinstance(content_type, str) or not content_type or not is_plain_value(content_type):
        raise ValueError("http: `content_type` must be a media type such as application/json.")
    return HttpSettings(
        target=target,
        keys=_keys(settings),
        headers=check_settings_headers(settings.get("headers", {})),
        content_type=content_type,
        header_values=_form(settings.get("header_values", HeaderForm.PLAIN)),
        concurrency=_concurrency(settings.get("concurrency", DEFAULT_CONCURRENCY)),
        timeout=_timeout(settings.get("timeout_seconds", DEFAULT_TIMEOUT)),
        allow_private=allow_private,
        ca_file=_file(settings, "ca_file", target),
        client_certificate=_client_certificate(settings, target),
    )


def absolute_files(settings: Mapping[str, object], home: Path) -> dict[str, object]:
    """Return settings whose files are found from every folder: relative ones are the home's.

    Args:
        settings: as written in the settings file.
        home: the folder of the outbox.
    """
    files = {
        name: str(home.absolute() / Path(value).expanduser())
        for name in FILES
        if isinstance(value := settings.get(name), str) and value
    }
    return {**settings, **files}


def _keys(settings: Mapping[str, object]) -> Sequence[bytes]:
    if not _flag(settings, "sign", default=True):
        if "secrets" in settings:
            raise ValueError("http: `secrets` must not be given with `sign = false`.")
        return ()
    keys = read_secrets(settings.get("secrets", []))
    if not keys:
        raise ValueError(
            "http: `secrets` must hold the secret that signs the webhooks (whsec_ and base64), "
            "several while it is being replaced; `sign = false` sends them unsigned."
        )
    return keys


def _flag(settings: Mapping[str, object], name: str, *, default: bool) -> bool:
    value = settings.get(name, default)
    if not isinstance(value, bool):
        raise ValueError(f"http: `{name}` must be true or false. Got: a {type(value).__name__}.")
    return value


def _form(value: object) -> HeaderForm:
    try:
        return HeaderForm(str(value))
    except ValueError:
        raise ValueError(
            f"http: `header_values` must be {' or '.join(HeaderForm)}. Got: {value!r}."
        ) from None


def _concurrency(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_CONCURRENCY:
        raise ValueError(
            f"http: `concurrency` must be a whole number from 1 to {MAX_CONCURRENCY}. "
            f"Got: {value!r}."
        )
    return value


def _timeout(value: object) -> float:
    low, high = _TIMEOUTS
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if (
        not is_number
        or not low <= float(str(value)) <= high
        or not math.isfinite(float(str(value)))
    ):
        raise ValueError(
            f"http: `timeout_seconds` must be a number from {low:g} to {high:g}. Got: {value!r}."
        )
    return float(str(value))


def _file(settings: Mapping[str, object], name: str, target: HttpTarget) -> str | None:
    value = settings.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ValueError(f"http: `{name}` must name a file. Got: {value!r}.")
    if not target.is_tls:
        raise ValueError(f"http: `{name}` must not be given with a `url` without TLS.")
    return value


def _client_certificate(
    settings: Mapping[str, object], target: HttpTarget
) -> tuple[str, str | None] | None:
    certificate = _file(settings, "client_certificate_file", target)
    key = _file(settings, "client_key_file", target)
    if certificate is None:
        if key is not None:
            raise ValueError("http: `client_key_file` must come with `client_certificate_file`.")
        return None
    return certificate, key


def _no_password() -> str:
    raise ValueError("the key is encrypted")
