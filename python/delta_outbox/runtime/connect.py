"""Clients of Spark Connect: how they close, and whether a server has forgotten a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass

# By the server; by the client, once it was told that the server has begun anew.
FORGOTTEN = (
    "INVALID_HANDLE.SESSION_CLOSED",
    "INVALID_HANDLE.SESSION_NOT_FOUND",
    "INVALID_HANDLE.SESSION_CHANGED",
    "NO_ACTIVE_SESSION",
)
"""The errors of a session that its server does not know (any more)."""


def keep_apart(client: Any) -> None:
    """Let the end of a client end nothing that others use.

    A client of Spark 4.1 that closes also ends the threads of all clients, and closes once more
    when the garbage collector finds its session. If that happens while such a thread is started,
    the process waits for itself for ever (seen in tests of a refused session).

    Args:
        client: one that has just been made.
    """

    def close() -> None:
        client._closed = True
        client._channel.close()

    client.close = close


def is_forgotten(error: Exception) -> bool:
    """Say whether an error means that a server does not know our session (any more).

    Args:
        error: what Spark raised.
    """
    # Those of a classic session would ask a JVM that may be gone.
    if type(error).__module__ != "pyspark.errors.exceptions.connect":
        return False
    remote: Any = error
    return remote.getCondition() in FORGOTTEN
