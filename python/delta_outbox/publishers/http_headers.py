"""An event's headers as HTTP headers: what they may be called, what they may hold.

The other destinations have headers of their own kind, in their `message.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from delta_outbox.publishers.protocol import KEY_HEADER, Event

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# Printable ASCII, blanks only within: all that servers, proxies and libraries read alike.
_PLAIN: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")
_ENCODED: Final = re.compile(r"[^\x21\x23\x24\x26-\x7e]")

CONTENT_TYPE: Final = "content-type"
USER_AGENT: Final = "user-agent"
SIGNATURE_HEADERS: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")
# Who sets these could end the message early, send another one behind it, or speak for us.
OURS: Final = frozenset(
    """
    connection content-length expect host http2-settings idempotency-key keep-alive
    proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade
    """.split()  # noqa: SIM905 - easier to check than fourteen quotes
)
_OUR_PREFIX: Final = "webhook-"
# They have a form of their own; CloudEvents forbids to encode what is encoded.
_ALWAYS_PLAIN: Final = (CONTENT_TYPE, "ce-")


class HeaderForm(StrEnum):
    """How the value of a header is written."""

    PLAIN = "plain"  # as it is; what is not printable ASCII has no form
    PERCENT = "percent"  # as CloudEvents does: all but visible ASCII in percent-encoded UTF-8


def is_plain_value(value: str) -> bool:
    """Return whether a value arrives everywhere as it is.

    Args:
        value: of a header.
    """
    return _PLAIN.fullmatch(value) is not None


def percent_encoded(value: str) -> str:
    """Return a value in visible ASCII (HTTP binding of CloudEvents 1.0.2, section 3.1.3.2).

    Args:
        value: any text.

    Raises:
        ValueError: it is no text that UTF-8 can express.
    """
    return _ENCODED.sub(lambda found: "".join(f"%{b:02X}" for b in found[0].encode()), value)


def event_headers(
    event: Event, *, form: HeaderForm, settings: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Return an event's headers, and ours that describe it, in the form of HTTP.

    The key is percent-encoded in either form: any key must fit, for it orders events.

    Args:
        event: the event.
        form: how values are written.
        settings: lower-case names that the settings give every request.

    Raises:
        ValueError: one has no form in HTTP; names it and never shows its value.
    """
    headers: list[tuple[str, str]] = []
    names: set[str] = set()
    for name, value in event.transport_headers().items():
        lower = name.lower()
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"the name of its header {name[:80]!r} is not allowed in HTTP")
        if lower in OURS or lower.startswith(_OUR_PREFIX):
            raise ValueError(f"its header {name[:80]!r} belongs to the transport")
        if lower in settings:
            raise ValueError(f"its header {name[:80]!r} is given by the settings")
        if lower in names:
            raise ValueError(f"its header {name[:80]!r} differs from another in case only")
        names.add(lower)
        headers.append((name, _written(name, lower, value, form)))
    if event.key is not None and KEY_HEADER not in names:
        try:
            headers.append((KEY_HEADER, percent_encoded(event.key)))
        except UnicodeEncodeError:
            raise ValueError("its key is no text") from None
    return headers


def _written(name: str, lower: str, value: str | None, form: HeaderForm) -> str:
    if value is None:
        raise ValueError(
            f"its header {name[:80]!r} has no value, which HTTP cannot tell from empty"
        )
    if form is HeaderForm.PERCENT and not lower.startswith(_ALWAYS_PLAIN):
        try:
            return percent_encoded(value)
        except UnicodeEncodeError:
            raise ValueError(f"its header {name[:80]!r} is no text") from None
    if not is_plain_value(value):
        remedy = "" if form is HeaderForm.PERCENT else '; header_values = "percent" encodes it'
        raise ValueError(f"its header {name[:80]!r} is not plain ASCII{remedy}")
    return value


def check_settings_headers(value: object) -> dict[str, str]:
    """Return the setting `headers`, names in lower case.

    Args:
        value: a table of names and values.

    Raises:
        ValueError: one sentence about the first that breaks a rule, without its value.
    """
    if not isinstance(value, Mapping):
        raise ValueError("http: `headers` must be a table of names and values.")
    headers: dict[str, str] = {}
    for name, text in value.items():
        lower = str(name).lower()
        if not _TOKEN.fullmatch(lower):
            raise ValueError(f"http: `headers` has the name {name!r}, which HTTP does not allow.")
        if lower in OURS or lower.startswith((_OUR_PREFIX, "outbox-")) or lower == CONTENT_TYPE:
            raise ValueError(
                f"http: `headers` must not hold {name!r}: the publisher sets it"
                + (" from `content_type`." if lower == CONTENT_TYPE else ".")
            )
        if lower in headers:
            raise ValueError(f"http: `headers` has the name {name!r} twice.")
        if not isinstance(text, str) or not is_plain_value(text):
            raise ValueError(f"http: the value of {name!r} in `headers` must be printable ASCII.")
        headers[lower] = text
    return headers
