"""Ends the sessions of clients whose process has ended without a word.

A server keeps a session for an hour after its last word, with all that its client has sent: some
megabytes for each relay that was killed. Clients of a home tell the server their process by the
user of their sessions, which counts for nothing else there: a token lets them in.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from delta_outbox.runtime.home_lock import is_alive

LOOK_SECONDS: Final = 10.0  # between two looks at who has ended
_PREFIX: Final = "outbox-process"


def user_of_process() -> str:
    """Return the user by which a server knows this process."""
    return f"{_PREFIX}/{_pid_namespace()}/{os.getpid()}"


def has_ended(user: str) -> bool:
    """Say whether it is known that the process of a user has ended: one that `user_of_process` has
    named in our pid namespace.

    Args:
        user: of a session.
    """
    prefix, _, rest = user.partition("/")
    numbers, _, pid = rest.rpartition("/")
    is_of_ours = prefix == _PREFIX and numbers == _pid_namespace() and pid.isdecimal()
    return is_of_ours and not is_alive(int(pid))


def end_sessions(service: Any) -> int:
    """End the sessions of processes that have ended, and return how many these are.

    Args:
        service: Spark's SparkConnectService, in the JVM of the server.

    Raises:
        Py4JError: the JVM has failed, or has ended.
    """
    manager = service.sessionManager()
    found = manager.listActiveSessions()
    sessions = [found.apply(place) for place in range(found.size())]
    over = [one.key() for one in sessions if has_ended(one.userId())]
    for key in over:
        manager.closeSession(key, False)  # for good
    return len(over)


def _pid_namespace() -> str:
    """Return in which namespace processes have their numbers here: a container has its own."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # no Linux
        return ""
