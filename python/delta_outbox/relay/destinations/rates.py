"""How many events may leave now: token buckets. Pure: the time is given."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

BURST_SECONDS: Final = 1.0  # of its rate that a bucket holds; and one event at least
_SLACK: Final = 1e-9  # what floating point loses; without it a wait may end just too early


class Bucket:
    """Tokens that come at a rate, one per event; full at first.

    Args:
        rate: tokens per second.
        now: monotonic seconds.
    """

    def __init__(self, rate: float, *, now: float) -> None:
        self._rate = rate
        self._tokens = self._size
        self._at = now

    def fill_at(self, rate: float, now: float) -> None:
        """Change the rate. What the bucket holds stays, as far as it has room for it.

        Args:
            rate: tokens per second; 0: it holds nothing, and nothing comes.
            now: monotonic seconds.
        """
        level = self._level(now)
        self._rate, self._at = rate, now
        self._tokens = min(level, self._size)

    def available(self, now: float) -> int:
        """Return how many events may leave.

        Args:
            now: monotonic seconds.
        """
        return max(0, math.floor(self._level(now) + _SLACK))

    def take(self, count: int, now: float) -> None:
        """Let events leave; what is more than available is owed.

        Args:
            count: how many.
            now: monotonic seconds.
        """
        self._tokens = self._level(now) - count
        self._at = now

    def wait(self, now: float) -> float:
        """Return the seconds until one event may leave; 0 if one may, infinity if none ever may.

        Args:
            now: monotonic seconds.
        """
        lacking = max(0.0, 1.0 - self._level(now))
        return lacking / self._rate if self._rate else math.inf

    def is_full(self, now: float) -> bool:
        """Say whether it is as a new one would be.

        Args:
            now: monotonic seconds.
        """
        return self._level(now) >= self._size

    @property
    def _size(self) -> float:
        return max(1.0, self._rate * BURST_SECONDS) if self._rate else 0.0

    def _level(self, now: float) -> float:
        return min(self._size, self._tokens + max(0.0, now - self._at) * self._rate)


class KeyBuckets:
    """A bucket for each key that is in use; what has no key is not limited.

    Args:
        rate: tokens per second and key.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._buckets: dict[str, Bucket] = {}

    def allowed(self, keys: Sequence[str | None], now: float) -> npt.NDArray[np.bool_]:
        """Say which events may leave: the first of each key, as many as it has tokens.

        Args:
            keys: of each event, in order.
            now: monotonic seconds.
        """
        left: dict[str, int] = {}
        result = np.ones(len(keys), dtype=bool)
        for place, key in enumerate(keys):
            if key is None:
                continue
            if key not in left:
                left[key] = (self._buckets.get(key) or Bucket(self._rate, now=now)).available(now)
            result[place] = left[key] > 0
            left[key] -= 1
        return result

    def take(self, keys: Sequence[str | None], now: float) -> None:
        """Let events leave, and forget the keys that nothing has left of for a while.

        Args:
            keys: of each event; those that were allowed.
            now: monotonic seconds.
        """
        self._buckets = {
            key: bucket for key, bucket in self._buckets.items() if not bucket.is_full(now)
        }
        for key, count in Counter(key for key in keys if key is not None).items():
            self._buckets.setdefault(key, Bucket(self._rate, now=now)).take(count, now)

    def wait(self, now: float) -> float:
        """Return the seconds until a key that has no tokens has one again; 0 if all have.

        Args:
            now: monotonic seconds.
        """
        waits = [bucket.wait(now) for bucket in self._buckets.values()]
        return min((wait for wait in waits if wait > 0), default=0.0)
