"""Ports for servers that this project starts for itself."""

from __future__ import annotations

import contextlib
import random
import socket
from typing import Final

# Below the ports that systems give to outgoing connections (Linux from 32,768, others from 49,152):
# one of those could be taken again between our choice, or a stop, and the start of the server.
_CHOICE: Final = range(18_000, 32_768)


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that nobody has, as of now.

    Args:
        count: how many.

    Raises:
        OSError: there are not so many.
    """
    with contextlib.ExitStack() as taken:
        ports: list[int] = []
        for port in random.sample(_CHOICE, len(_CHOICE)):
            if len(ports) == count:
                break
            one = taken.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", port))
                ports.append(port)
    if len(ports) < count:
        raise OSError(f"of {len(_CHOICE)} ports of loopback, fewer than {count} are free")
    return ports
