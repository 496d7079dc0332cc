"""Converts instants to and from microseconds since 1970, without rounding.

An outbox knows the instants of the years 1 to 9999 (UTC): those that Python can hold. The tables
refuse others; a log of format 1 may hold some.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# twin: macros/storage/instant_bounds.sql::instant_bounds
FIRST_INSTANT: Final = -62_135_596_800_000_000  # 0001-01-01T00:00:00Z
LAST_INSTANT: Final = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999Z


def micros(value: datetime) -> int:
    """Return an instant as microseconds since 1970.

    Args:
        value: with an offset.
    """
    return (value - _EPOCH) // timedelta(microseconds=1)


def iso_text(instant: datetime) -> str:
    """Return an instant as documents show it: ISO 8601 in UTC, with microseconds and Z.

    Args:
        instant: aware.
    """
    naive = instant.astimezone(UTC).replace(tzinfo=None)
    return f"{naive.isoformat(timespec='microseconds')}Z"


def instant_of(value: int) -> datetime:
    """Return an instant that is given as microseconds since 1970, or the nearest that there is.

    Args:
        value: microseconds.
    """
    return _EPOCH + timedelta(microseconds=min(max(value, FIRST_INSTANT), LAST_INSTANT))
