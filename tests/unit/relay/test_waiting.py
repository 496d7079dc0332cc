"""For what a relay waits that has something planned, and can claim none of it."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from delta_outbox.relay import Mode, Relay
from delta_outbox.relay.destinations.isolation import NEVER


@pytest.mark.parametrize(
    ("seconds", "is_starting", "waits"),
    [(NEVER, False, False), (NEVER, True, True), (61.0, False, False), (0.01, False, True)],
)
def test_a_drain_waits_for_what_comes_soon(
    *, seconds: float, is_starting: bool, waits: bool
) -> None:
    """A drain waits for rates, and for hosts that start; for nothing else, nor for long."""
    relay = object.__new__(Relay)
    relay._isolation = cast("Any", SimpleNamespace(wait=lambda: seconds))
    relay._tasks = cast("Any", SimpleNamespace(is_starting=is_starting))
    stop = Event()
    if seconds > 1:
        stop.set()  # it does not take the second
    assert waits == relay._waited(Mode.DRAIN, 60.0, stop, is_paused=False)
    assert not relay._waited(Mode.ONCE, 60.0, stop, is_paused=False)
