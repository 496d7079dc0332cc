"""Which addresses a webhook may go to, and the look-up of a name within a time limit."""

from __future__ import annotations

import ipaddress
import queue
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Written out rather than asked of `ipaddress`: what that calls global differs between releases of
# Python. The lists are the special-purpose registries of IANA (RFC 6890 and its successors).
_NEVER: Final[Sequence[Network]] = tuple(
    map(
        ipaddress.ip_network,
        ("0.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4", "::/128", "ff00::/8"),
    )
)
_NOT_PUBLIC: Final[Sequence[Network]] = tuple(
    map(
        ipaddress.ip_network,
        (
            *("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
            *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
            # Protocols (Teredo among them), documentation, and 6to4, which carries IPv4.
            *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
        ),
    )
)
_PUBLIC_V6: Final = ipaddress.IPv6Network("2000::/3")  # what is handed out to networks
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """One address that a name stands for.

    Args:
        family: of the socket.
        address: as `socket.connect` takes it.
    """

    family: int
    address: tuple[str | int | bytes, ...]

    @property
    def ip(self) -> Address:
        """Return the address without its port and scope."""
        return ipaddress.ip_address(str(self.address[0]).partition("%")[0])


def refusal(ip: Address, *, allow_private: bool, loopback: bool) -> str | None:
    """Return why nothing may be sent to an address, None if it may.

    Args:
        ip: what a name stands for, or what the URL says.
        allow_private: take every address that a host can have.
        loopback: the URL names this machine literally, so only this machine will do.
    """
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        # The same machine by another name, which the rules for IPv4 would not see.
        return "an IPv4 address written as IPv6"
    if _is_within(ip, _NEVER):
        return "no address of a host"
    if loopback:
        return None if ip.is_loopback else "not on this machine"
    if allow_private or _is_public(ip):
        return None
    return "not public"


def _is_public(ip: Address) -> bool:
    if isinstance(ip, ipaddress.IPv6Address) and ip in _NAT64:
        # Where a network has no IPv4, this is how its hosts see all of it.
        ip = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    if isinstance(ip, ipaddress.IPv6Address) and ip not in _PUBLIC_V6:
        return False
    return not _is_within(ip, _NEVER) and not _is_within(ip, _NOT_PUBLIC)


def _is_within(ip: Address, networks: Iterable[Network]) -> bool:
    return any(ip in network for network in networks if network.version == ip.version)


def resolve(host: str, port: int, *, until: float) -> Sequence[Endpoint]:
    """Return what a name stands for, in the order of preference of the operating system.

    Args:
        host: a name or an address.
        port: to connect to.
        until: monotonic seconds; the operating system itself knows no limit.

    Raises:
        OSError: it stands for nothing, or nobody knows in time.
    """
    answers: queue.SimpleQueue[Sequence[Endpoint] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            answers.put(error)
        except UnicodeError as error:  # a label that is too long for a name
            answers.put(OSError(str(error)))
        else:
            answers.put([Endpoint(family=one[0], address=one[4]) for one in found])

    # A daemon: a look-up that hangs must hold neither the call nor the end of the process.
    threading.Thread(target=ask, name="outbox-http-resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=max(0.0, until - time.monotonic()))
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(answer, OSError):
        raise answer
    return answer
