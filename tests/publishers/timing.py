"""Time in tests of publishers: how late a call may end, and a fault once a call is at work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

# Seconds. On a busy machine a process may not run for some; a call that ignores its deadline waits
# for a server that is frozen, or says nothing, for ever.
GRACE: Final = 20.0
# Seconds. In these a call that has its connection comes to its middle on a busy machine: the
# deadline of one that is to end there.
MIDDLE: Final = 4.0
LOOK: Final = 0.002  # seconds between two questions
STILL: Final = 1.0  # seconds in which what goes on grows, also on a busy machine


@contextmanager
def once(fact: Callable[[], bool], act: Callable[[], object]) -> Iterator[None]:
    """Do something beside a block as soon as something is a fact.

    Args:
        fact: asked again and again, as long as the block lasts.
        act: done once, also if the block ends before.
    """
    over = threading.Event()

    def watch() -> None:
        while not fact() and not over.is_set():
            time.sleep(LOOK)
        act()

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def settled(count: Callable[[], int]) -> int:
    """Wait until a server has taken what was on its way when it froze; return how much that is.

    Args:
        count: what it has taken.
    """
    before = -1
    while before != (now := count()):
        before = now
        time.sleep(STILL)
    return now
