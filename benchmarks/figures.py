"""The arithmetic of results: medians, ratios, percentiles, the best of a sweep, drift."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

_DIGITS: Final = 4  # what a measurement on a shared machine is worth at most


def median(values: Sequence[float]) -> float:
    """Return the median.

    Args:
        values: at least one.
    """
    return rounded(statistics.median(values))


def rate(count: int, seconds: float) -> float:
    """Return how many a second.

    Args:
        count: how many.
        seconds: above 0.
    """
    return rounded(count / seconds)


def ratio(value: float, to: float) -> float:
    """Return a value relative to another.

    Args:
        value: the one.
        to: the other, above 0.
    """
    return rounded(value / to)


def rounded(value: float) -> float:
    """Return a value with the digits that mean something."""
    if not value or not math.isfinite(value):
        return value
    return round(value, _DIGITS - 1 - math.floor(math.log10(abs(value))))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least a share of the values does not exceed.

    Args:
        values: at least one.
        share: above 0, up to 1.
    """
    return rounded(sorted(values)[max(0, math.ceil(share * len(values)) - 1)])


def best(sweep: Mapping[int, float]) -> int:
    """Return the setting with the highest rate; of equals the smallest.

    Args:
        sweep: rate of each setting, at least one.
    """
    return max(sorted(sweep), key=lambda setting: sweep[setting])


def drift(values: Sequence[float]) -> float:
    """Return the median of the last third relative to that of the first third.

    Args:
        values: in the order of time, at least three, above 0.
    """
    third = len(values) // 3
    return ratio(statistics.median(values[-third:]), statistics.median(values[:third]))


def spread(values: Sequence[float]) -> float:
    """Return how far the largest value is above the smallest, as a share of the smallest.

    Args:
        values: at least one, above 0.
    """
    return rounded(max(values) / min(values) - 1)


def with_and_without(rates: Mapping[str, Sequence[float]]) -> dict[str, object]:
    """Return what a document says of rates beside something and without it.

    Args:
        rates: those of each round, as "with" and "without".
    """
    medians = {name: median(found) for name, found in rates.items()}
    return {
        "rates": rates,
        "rate": medians,
        "ratios": {"with to without": ratio(medians["with"], medians["without"])},
    }


def scaled(count: int, size: float, *, at_least: int = 1000) -> int:
    """Return how many there are at a size factor.

    Args:
        count: at factor 1.
        size: the factor.
        at_least: fewer would measure nothing.
    """
    return max(at_least, round(count * size))
