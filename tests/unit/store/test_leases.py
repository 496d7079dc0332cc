"""Leases of others count by our own clock, from when we first saw them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from delta_outbox.store.leases import LeaseWatch
from delta_outbox.testing.conformance.clock import ManualClock

THEIRS = datetime(1999, 1, 1, tzinfo=UTC)  # a clock that is wrong by decades


def claim(claim_id: str, lease: float = 30) -> dict[str, object]:
    """Return a claim of another relay."""
    expires = THEIRS + timedelta(seconds=lease)
    return {"claim_id": claim_id, "claimed_at": THEIRS, "lease_expires_at": expires}


def test_a_lease_counts_from_the_first_poll():
    """A claim may end once it was seen unchanged for its lease, whatever its owner's clock says."""
    clock = ManualClock()
    watch = LeaseWatch(clock)
    watch.observe([claim("a")], at=clock.monotonic())
    assert 30 == watch.remaining("a")
    clock.sleep(20)
    watch.observe([claim("a"), claim("b", lease=5)], at=clock.monotonic())
    assert (10, 5) == (watch.remaining("a"), watch.remaining("b"))
    assert (False, False) == (watch.is_over("a"), watch.is_over("b"))
    clock.sleep(10)
    watch.observe([claim("a"), claim("b", lease=5)], at=clock.monotonic())
    assert (0, -5) == (watch.remaining("a"), watch.remaining("b"))
    assert (True, True) == (watch.is_over("a"), watch.is_over("b"))


def test_what_was_read_long_ago_proves_no_lease_over():
    """While somebody reads what is open its owner may have ended it: only what a log showed when
    the lease was over counts.
    """
    clock = ManualClock()
    watch = LeaseWatch(clock)
    asked_at = clock.monotonic()
    clock.sleep(40)  # to read
    watch.observe([claim("a")], at=asked_at, since=asked_at)
    assert (-10, False) == (watch.remaining("a"), watch.is_over("a"))
    watch.observe([claim("a")], at=clock.monotonic())
    assert watch.is_over("a")


def test_a_lease_counts_from_no_time_before_its_claim():
    """Where nobody knows since when the log is as it is, a lease counts from when it was read: the
    claim may have been made right before that.
    """
    clock = ManualClock()
    watch = LeaseWatch(clock)
    asked_at = clock.monotonic()
    clock.sleep(8)
    watch.observe([claim("a")], at=asked_at)
    assert 30 == watch.remaining("a")
    clock.sleep(29)
    watch.observe([claim("a")], at=clock.monotonic())
    assert not watch.is_over("a")


def test_a_lease_counts_from_when_the_log_came_to_rest():
    """A claim of a log that has stood still for a while was live for as long."""
    clock = ManualClock()
    watch = LeaseWatch(clock)
    at_rest = clock.monotonic()
    clock.sleep(12)
    watch.observe([claim("a")], at=clock.monotonic(), since=at_rest)
    assert 18 == watch.remaining("a")
    watch.observe([claim("a"), claim("b")], at=clock.monotonic())
    assert (18, 30) == (watch.remaining("a"), watch.remaining("b"))


def test_a_claim_that_ended_is_forgotten():
    """What is no longer live is forgotten; seen again, its lease counts from then."""
    clock = ManualClock()
    watch = LeaseWatch(clock)
    watch.observe([claim("a")], at=clock.monotonic())
    clock.sleep(25)
    watch.observe([], at=clock.monotonic())
    with pytest.raises(KeyError):
        watch.remaining("a")
    watch.observe([claim("a")], at=clock.monotonic())
    assert 30 == watch.remaining("a")
