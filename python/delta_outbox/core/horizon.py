"""Which days of the event log are asked for the id of a new event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Final

Range = tuple[int, int]  # days since 1970, first and last

EPOCH: Final = date(1970, 1, 1)
MOST_RANGES: Final = 100
NEAR: Final = 31  # days; to read so many between two ranges costs less than one more condition


# twin: macros/projection/days_of_news.sql::days_of_news
def day_ranges(days: Iterable[int], *, back: int) -> Sequence[Range]:
    """Return the ranges from some days before each day to that day.

    Days that lie far apart have ranges of their own, so that an event of the year 1 or 9999 does
    not ask for all days between. Of more than `MOST_RANGES` one remains, around all of them.

    Args:
        days: since 1970, in any order.
        back: how many days before each are looked at.
    """
    ranges: list[Range] = []
    for day in sorted(set(days)):
        if ranges and day - ranges[-1][1] <= back + NEAR:
            ranges[-1] = ranges[-1][0], day
        else:
            ranges.append((day - back, day))
    if len(ranges) > MOST_RANGES:
        return [(ranges[0][0], ranges[-1][1])]
    return ranges


def first_day(ranges: Iterable[Range]) -> date:
    """Return the first day of ranges.

    Args:
        ranges: at least one.
    """
    return EPOCH + timedelta(days=min(first for first, _ in ranges))


def days_condition(ranges: Sequence[Range]) -> str:
    """Return ranges of days as a condition on `created_date`, whichever years they are of.

    Args:
        ranges: as `day_ranges` returns them.
    """
    return (
        " or ".join(
            f"created_date between date_from_unix_date({first}) and date_from_unix_date({last})"
            for first, last in ranges
        )
        or "false"
    )
