"""When a relay refreshes the views, and beside what."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from delta_outbox.relay.plan.freshness import MOST_COMMITS, TAIL_COMMITS, Freshness
from delta_outbox.testing.conformance.clock import ManualClock

EVERY = 45.0  # seconds
LATEST = {"events": 1}


class Views:
    """A store whose refreshes wait until they may go on.

    Args:
        tail: commits that the projection has not seen.
    """

    def __init__(self, tail: int) -> None:
        self.tail = tail
        self.begun = 0
        self.fails = False
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.clock = ManualClock()
        self.worker_id = "worker"
        self.settings = SimpleNamespace(relay=SimpleNamespace(refresh_seconds=EVERY))
        self.projection = SimpleNamespace(
            tail=lambda latest: self.tail, known_watermark=lambda: "known"
        )

    def refresh(self, *, planned_by: str, touch: bool, latest: Mapping[str, int] | None) -> None:
        """Refresh."""
        self.begun += 1
        self.has_begun.set()
        assert self.may_end.wait(20)
        if self.fails:
            raise OSError("no space left on device")
        self.tail = 0


@contextmanager
def fresh(tail: int) -> Iterator[tuple[Views, Freshness]]:
    """Return a store and what keeps it fresh, from now on."""
    views: Any = Views(tail)
    freshness = Freshness(views)
    freshness.start()
    try:
        yield views, freshness
    finally:
        views.may_end.set()
        freshness.close()


@pytest.mark.parametrize(("tail", "has_listed"), [(TAIL_COMMITS + 1, True), (0, False)])
def test_a_refresh_holds_nobody_up(tail: int, *, has_listed: bool) -> None:
    """A refresh runs beside the rest once it is time, or once a listing has met a long tail; while
    one runs there is no other, and the next time counts from its end.
    """
    with fresh(tail) as (views, freshness):
        if not has_listed:
            freshness.keep(LATEST, has_listed=has_listed)
            views.clock.sleep(EVERY)
        for _ in range(3):  # the first does not wait for its end
            freshness.keep(LATEST, has_listed=has_listed)
        assert views.has_begun.wait(20)
        assert 1 == views.begun
        views.may_end.set()
        freshness.refresh()  # waits for it
        freshness.keep(LATEST, has_listed=has_listed)
        assert 2 == views.begun


def test_a_long_tail_is_left_to_whoever_lists() -> None:
    """Who only follows does not look at the tails, so they may grow until it is time."""
    with fresh(MOST_COMMITS) as (views, freshness):
        freshness.keep(LATEST, has_listed=False)
        freshness.shorten(LATEST)
        assert 0 == views.begun


def test_a_tail_that_costs_more_than_a_refresh_is_shortened_first() -> None:
    """So that what is open is listed soon; one refresh that runs already is enough."""
    with fresh(MOST_COMMITS + 1) as (views, freshness):
        freshness.keep(LATEST, has_listed=True)
        assert views.has_begun.wait(20)
        assert 1 == views.begun
        views.may_end.set()
        freshness.shorten(LATEST)
        assert (1, 0) == (views.begun, views.tail)
        views.tail = MOST_COMMITS + 1
        freshness.shorten(LATEST)
        assert (2, 0) == (views.begun, views.tail)


def test_a_refresh_that_fails_is_not_hidden() -> None:
    """What a refresh beside the rest has raised ends the relay at its next poll."""
    with fresh(TAIL_COMMITS + 1) as (views, freshness):
        views.fails = True
        views.may_end.set()
        freshness.keep(LATEST, has_listed=True)
        assert views.has_begun.wait(20)
        assert 1 == views.begun
        with pytest.raises(OSError, match="no space"):
            freshness.refresh()
