"""Which lane an event belongs to: the hash of its ordering key, else of its id."""

from __future__ import annotations

import zlib


# twin: macros/storage/lane.sql::lane
def lane_of(*, ordering_key: str | None, event_id: str, lanes: int) -> int:
    """Return the lane of an event.

    Args:
        ordering_key: as the event carries it.
        event_id: as the event carries it.
        lanes: the number of lanes of the current epoch, at least 1.
    """
    scope = event_id if ordering_key is None else ordering_key
    return zlib.crc32(scope.encode()) % lanes
