"""Which lane an event belongs to: the hash of its ordering key, else of its id.

The macro `lane` (macros/storage/lane.sql) says the same; a test holds the two together.
"""

from __future__ import annotations

import zlib


def lane_sql(lanes: int) -> str:
    """Return what the macro `lane` renders to: the lane of an event, in SQL.

    Args:
        lanes: the number of lanes of the current epoch, at least 1.
    """
    return (
        f"cast(pmod(crc32(cast(coalesce(ordering_key, event_id) as binary)), {int(lanes)}) as int)"
    )


def lane_of(*, ordering_key: str | None, event_id: str, lanes: int) -> int:
    """Return the lane of an event, as the macro `lane` does in SQL.

    Args:
        ordering_key: as the event carries it.
        event_id: as the event carries it.
        lanes: the number of lanes of the current epoch, at least 1.
    """
    scope = event_id if ordering_key is None else ordering_key
    return zlib.crc32(scope.encode()) % lanes
