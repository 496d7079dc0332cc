"""How many requests somebody may make: a token bucket for each name."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MOST_KNOWN: Final = 10_000  # names; the one not seen for longest starts with a full bucket


class Rates:
    """Counts the requests of each name.

    Args:
        per_second: requests.
        at_once: requests that may come at once; None: twice as many as in a second.
        monotonic: seconds.
    """

    def __init__(
        self,
        per_second: float,
        *,
        at_once: int | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._most = float(at_once or max(1.0, 2 * per_second))
        self._monotonic = monotonic
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, name: str) -> int:
        """Count a request; return for how many seconds whoever makes it must wait, 0 if it is one
        that may be made.

        Args:
            name: of the person, or whatever else is counted.
        """
        now = self._monotonic()
        at, left = self._left.pop(name, (now, self._most))
        left = min(self._most, left + (now - at) * self._per_second)
        is_free = left >= 1
        self._left[name] = (now, left - 1 if is_free else left)
        if len(self._left) > MOST_KNOWN:
            self._left.popitem(last=False)
        return 0 if is_free else math.ceil((1 - left) / self._per_second)

    def give_back(self, name: str) -> None:
        """Count the last request no more.

        Args:
            name: that has made it.
        """
        at, left = self._left.get(name, (self._monotonic(), self._most - 1))
        self._left[name] = (at, min(self._most, left + 1))
