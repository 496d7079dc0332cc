"""Recognises errors that mean "somebody else was first" or "the change feed is gone"."""

from __future__ import annotations

from typing import Final

from delta_outbox.core.errors import ChangeFeedGone

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

_FEED_GONE: Final = (
    "DELTA_CHANGE_DATA_FILE_NOT_FOUND",
    "DELTA_LOG_FILE_NOT_FOUND",
    "DELTA_MISSING_CHANGE_DATA",
    "DELTA_NO_RECREATABLE_HISTORY_FOUND",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    "DELTA_VERSION_NOT_FOUND",
    "FILE_NOT_EXIST",
)


def is_conflict(error: BaseException) -> bool:
    """Say whether a write failed because another one was committed first.

    Args:
        error: what Spark raised, on a classic session or through Spark Connect.
    """
    text = f"{type(error).__name__} {error}"
    return any(mark in text for mark in _CONFLICTS)


def is_feed_gone(error: BaseException) -> bool:
    """Say whether a read failed because maintenance has removed what it needs of the past.

    Args:
        error: what Spark raised, on a classic session or through Spark Connect, or the reader of a
            log.
    """
    return isinstance(error, ChangeFeedGone) or any(mark in str(error) for mark in _FEED_GONE)
