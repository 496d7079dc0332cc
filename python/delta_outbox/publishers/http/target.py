"""The URL of a destination, and the path of one event below it."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, urlsplit

from delta_outbox.publishers.http.addresses import refusal

_NAME: Final = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
    r"(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*\.?"
)
# Numbers that C's resolver takes for an address: 2130706433, 0x7f.1, 127.1.
_NUMBERS: Final = re.compile(r"(?:0[xX][0-9A-Fa-f]*|[0-9]+)(?:\.(?:0[xX][0-9A-Fa-f]*|[0-9]+))*\.?")
_PATH: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")
_QUERY: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")
_PORTS: Final = {"http": 80, "https": 443}
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f\\]")


@dataclass(frozen=True, kw_only=True)
class HttpTarget:
    """Where webhooks go.

    Args:
        host: a name or an address.
        port: of the server.
        is_tls: whether the connection is encrypted.
        is_loopback: whether the URL names this machine literally.
        path: of the URL, without a slash at its end.
        query: of the URL, with its question mark, or nothing.
        slash: what ends the path if no route is appended.
        append_route: whether the event's route becomes a part of the path.
    """

    host: str
    port: int
    is_tls: bool
    is_loopback: bool
    path: str = field(repr=False)
    query: str = field(repr=False)
    slash: str = ""
    append_route: bool = True

    @property
    def name(self) -> str:
        """Return host and port, for messages: a path may hold what is not theirs to show."""
        return f"{self._bracketed}:{self.port}"

    @property
    def host_header(self) -> str:
        """Return the value of `Host`."""
        usual = self.port == _PORTS["https" if self.is_tls else "http"]
        return self._bracketed if usual else self.name

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    def request_target(self, route: str) -> str:
        """Return path and query for an event; nothing in a route leads out of the path.

        Args:
            route: as rendered from the policy.

        Raises:
            ValueError: the route is no path; without the route, which may hold an event's values.
        """
        if not self.append_route:
            return (self.path + self.slash or "/") + self.query
        parts = route.removeprefix("/").split("/")
        last = len(parts) - 1
        if any(not part and (number < last or not last) for number, part in enumerate(parts)):
            raise ValueError("its route is empty or has an empty part")
        if any(part in (".", "..") for part in parts):
            raise ValueError("its route has the part . or ..")
        if _FORBIDDEN.search(route):
            raise ValueError("its route has a backslash or a control character")
        try:
            encoded = "/".join(quote(part, safe="") for part in parts)
        except UnicodeEncodeError:
            raise ValueError("its route is no text that UTF-8 can express") from None
        return f"{self.path}/{encoded}{self.query}"


def parse_url(value: object, *, allow_private: bool, append_route: bool) -> HttpTarget:
    """Read the setting `url`.

    Args:
        value: as written in the settings.
        allow_private: whether addresses of private networks are taken.
        append_route: whether the event's route becomes a part of the path.

    Raises:
        ValueError: one sentence; without the URL, which may hold a token.
    """
    if not isinstance(value, str) or not value:
        raise ValueError("http: `url` must be an https URL. Got: nothing.")
    if not (value.isascii() and value.isprintable()) or " " in value:
        # `urlsplit` would take some of them out of what it reads.
        raise ValueError("http: `url` must be percent-encoded ASCII, without blanks.")
    try:
        parts = urlsplit(value)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("http: `url` must be a URL: its host or port cannot be read.") from None
    scheme = parts.scheme
    if scheme not in _PORTS or not host or port == 0:
        raise ValueError("http: `url` must be https://HOST[:PORT][/PATH].")
    if "@" in parts.netloc:
        raise ValueError(
            "http: `url` must not hold a user: name credentials in `headers` (Authorization)."
        )
    if "#" in value:
        raise ValueError("http: `url` must not have a fragment (#).")
    if not _PATH.fullmatch(parts.path) or not _QUERY.fullmatch(parts.query):
        raise ValueError("http: `url` must be percent-encoded ASCII in path and query.")
    segments = parts.path.replace("%2e", ".").replace("%2E", ".").split("/")
    if "." in segments or ".." in segments or "//" in parts.path:
        raise ValueError("http: the path of `url` must not hold //, /./ or /../.")
    is_loopback = _check_host(host, allow_private=allow_private)
    if scheme == "http" and not is_loopback:
        raise ValueError(
            "http: `url` must begin with https:// except for localhost, 127.0.0.1 and [::1]: "
            "payloads would cross the network unencrypted."
        )
    return HttpTarget(
        host=host,
        port=port or _PORTS[scheme],
        is_tls=scheme == "https",
        is_loopback=is_loopback,
        path=parts.path.rstrip("/"),
        query=f"?{parts.query}" if parts.query else "",
        slash="/" if parts.path.endswith("/") else "",
        append_route=append_route,
    )


def _check_host(host: str, *, allow_private: bool) -> bool:
    """Refuse a host that can never be sent to; return whether it names this machine."""
    if host == "localhost":
        return True
    try:
        ip = ipaddress.ip_address("" if "%" in host else host)
    except ValueError:
        if _NUMBERS.fullmatch(host) or not _NAME.fullmatch(host):
            raise ValueError(
                "http: the host of `url` must be a name in ASCII (xn--... for others), an IPv4 "
                "address of four numbers, or an IPv6 address in brackets."
            ) from None
        return False
    why = refusal(ip, allow_private=allow_private, loopback=ip.is_loopback)
    if why is not None:
        raise ValueError(
            f"http: the host of `url` must be a public address. {ip} is {why}"
            + ("; `allow_private = true` takes it." if why == "not public" else ".")
        )
    return ip.is_loopback
