"""Ports for servers that this project starts for itself."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Sequence
from typing import Final

# Below the ports that systems give to outgoing connections (Linux from 32,768, others from 49,152):
# one of those could be taken again between our choice, or a stop, and the start of the server.
_CHOICE: Final = range(18_000, 32_768)


def free_ports(count: int, *, among: Sequence[int] = _CHOICE) -> list[int]:
    """Return ports of loopback that nobody has, as of now.

    Args:
        count: how many.
        among: those that may be chosen.

    Raises:
        OSError: there are not so many.
    """
    with contextlib.ExitStack() as taken:
        ports: list[int] = []
        for port in random.sample(among, len(among)):
            if len(ports) == count:
                break
            one = taken.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", port))
                ports.append(port)
    if len(ports) < count:
        raise OSError(f"of {len(among)} ports of loopback, fewer than {count} are free")
    return ports
