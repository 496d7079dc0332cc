"""Foreign errors that mean "somebody else was first", told apart once, at the edge."""

from __future__ import annotations

from typing import Final

# Delta's error classes are the same on a classic session and through Spark Connect, where the
# typed exception is lost and only the text arrives.
_CONFLICTS: Final = (
    "ConcurrentTransactionException",
    "ConcurrentAppendException",
    "ConcurrentWriteException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "DELTA_CONCURRENT_",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
)


def is_conflict(error: BaseException) -> bool:
    """Say whether a write failed because another one was committed first.

    Args:
        error: what Spark raised, on a classic session or through Spark Connect.
    """
    text = f"{type(error).__name__} {error}"
    return any(mark in text for mark in _CONFLICTS)
