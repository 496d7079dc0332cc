"""Seldom searching for cycles: during a block only, and whoever searches more seldom keeps it."""

from __future__ import annotations

import gc

import pytest

from delta_outbox.relay.publish.garbage_collection import OBJECTS, seldom_collected


def test_what_was_set_comes_back():
    """Within the block cycles are searched for seldom; after it as before, also if it fails."""
    before = gc.get_threshold()

    def fail() -> None:
        with seldom_collected():
            assert (OBJECTS, *before[1:]) == gc.get_threshold()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert before == gc.get_threshold()


def test_a_higher_number_stays():
    """Whoever has set more than we would keeps it."""
    before = gc.get_threshold()
    gc.set_threshold(2 * OBJECTS, *before[1:])
    try:
        with seldom_collected():
            assert 2 * OBJECTS == gc.get_threshold()[0]
    finally:
        gc.set_threshold(*before)
