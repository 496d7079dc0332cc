"""Who is alive is heard, by our own clock: skew keeps no dead relay alive, and kills no living."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from delta_outbox.core.tables import Tables
from delta_outbox.store.heartbeat import (
    ALIVE_SECONDS,
    BUSY_SECONDS,
    Beats,
    BeatWatch,
    is_any_alive,
)
from delta_outbox.store.presence import Presence
from delta_outbox.testing.conformance.clock import ManualClock

SKEW = 600.0  # seconds


@pytest.fixture
def clock():
    """Return the clock of whoever listens."""
    return ManualClock()


def said(at: datetime, *, is_over: bool = False) -> dict[str, Beats]:
    """Return one relay that began an hour before its last beat."""
    return {"other": Beats(first=at - timedelta(hours=1), last=at, is_over=is_over)}


def test_a_beat_from_the_future_keeps_nobody_alive(clock):
    """A relay that died with its clock ahead counts as dead at once, not when time catches up."""
    watch = BeatWatch(clock)
    ahead = said(clock.now() + timedelta(seconds=SKEW))
    assert set() == watch.living(ahead)
    clock.sleep(SKEW)  # its beat is of this very moment now, and still the same
    assert set() == watch.living(ahead)


@pytest.mark.parametrize("skew", [SKEW, -SKEW, 0.0])
def test_a_relay_that_is_heard_is_alive(clock, skew):
    """A relay whose beats go on is alive, whatever its clock says, and dead without them."""
    watch = BeatWatch(clock)
    start = clock.now() + timedelta(seconds=skew)
    watch.living(said(start))
    clock.sleep(10)
    later = said(start + timedelta(seconds=10))
    assert {"other"} == watch.living(later)
    clock.sleep(ALIVE_SECONDS)
    assert {"other"} == watch.living(later)
    clock.sleep(1)
    assert set() == watch.living(later)


def test_the_first_look_goes_by_what_is_written(clock):
    """Of a relay that was never heard the age of its last beat counts."""
    watch = BeatWatch(clock)
    beat = said(clock.now() - timedelta(seconds=20))
    assert {"other"} == watch.living(beat)
    clock.sleep(11)
    assert set() == watch.living(beat)


def test_a_relay_that_stopped_is_not_alive(clock):
    """The end of a relay counts, however fresh it is."""
    beats = said(clock.now(), is_over=True)
    assert set() == BeatWatch(clock).living(beats)


def test_a_silent_relay_whose_process_lives_is_alive_for_longer(clock):
    """A relay that is too busy to beat is alive while its process lives, but not for ever."""
    watch = BeatWatch(clock)
    beat = said(clock.now())
    assert {"other"} == watch.living(beat)
    clock.sleep(BUSY_SECONDS)
    assert set() == watch.living(beat)
    assert {"other"} == watch.living(beat, is_there=lambda name: name == "other")
    clock.sleep(1)
    assert set() == watch.living(beat, is_there=lambda name: True)


def test_whoever_asks_leaves_its_work_to_a_busy_relay(clock, tmp_path):
    """At first sight, too, a relay of this home that is too busy to beat is alive while its process
    lives; one that nobody knows here is not.
    """
    at = clock.now() - timedelta(seconds=BUSY_SECONDS - 1)
    beats = pa.Table.from_pylist(
        [{"relay_id": "busy", "first": at, "last": at, "kind": "alive", "lanes": [0]}]
    )
    spark: Any = SimpleNamespace(sql=lambda _: SimpleNamespace(toArrow=lambda: beats))
    tables, presence = Tables(schema="outbox"), Presence(tmp_path / "relays")
    assert not is_any_alive(spark, tables, clock=clock, presence=presence)
    presence.enter("busy")
    assert is_any_alive(spark, tables, clock=clock, presence=presence)
    assert not is_any_alive(spark, tables, clock=clock, presence=Presence(None))
    presence.leave()
    assert not is_any_alive(spark, tables, clock=clock, presence=presence)
