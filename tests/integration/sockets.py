"""Where processes listen."""

from __future__ import annotations

import psutil


def listening(*processes: psutil.Process) -> list[str]:
    """Return the address of every socket on which processes or their children listen.

    Args:
        processes: of this user.
    """
    family = [one for process in processes for one in (process, *process.children(recursive=True))]
    return [
        connection.laddr.ip
        for process in set(family)
        if process.is_running()
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    ]
