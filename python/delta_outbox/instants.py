"""Instants as Spark reads them: microseconds since 1970, without a detour through a float."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def micros(value: datetime) -> int:
    """Return an instant as microseconds since 1970.

    Args:
        value: with an offset.
    """
    return (value - _EPOCH) // timedelta(microseconds=1)
