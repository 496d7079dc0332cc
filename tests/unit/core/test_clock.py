"""The clock: instants in UTC, shifted only by the one variable that tests may set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.core.clock import CLOCK_OFFSET_VARIABLE, Clock, SystemClock
from delta_outbox.core.errors import BadSettings


def _offset(text: str) -> float:
    return SystemClock({CLOCK_OFFSET_VARIABLE: text}).offset_seconds


def test_now_is_an_aware_utc_instant() -> None:
    """`now` is the current instant in UTC, so that no local time ever enters the log."""
    clock: Clock = SystemClock({})
    before = datetime.now(UTC)
    now = clock.now()
    assert now.tzinfo is UTC
    assert before <= now <= datetime.now(UTC)


def test_the_offset_shifts_instants() -> None:
    """An offset of an hour makes `now` an hour later."""
    shifted = SystemClock({CLOCK_OFFSET_VARIABLE: "3600"}).now() - SystemClock({}).now()
    assert timedelta(minutes=59, seconds=50) < shifted <= timedelta(hours=1)


def test_the_offset_does_not_shift_durations() -> None:
    """An offset leaves the monotonic clock alone, so that leases last as long as they say."""
    plain, shifted = SystemClock({}), SystemClock({CLOCK_OFFSET_VARIABLE: "3600"})
    assert abs(shifted.monotonic() - plain.monotonic()) < 60


def test_the_environment_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock keeps the offset that it was made with: time does not jump within a run."""
    monkeypatch.setenv(CLOCK_OFFSET_VARIABLE, "10")
    clock = SystemClock()
    monkeypatch.setenv(CLOCK_OFFSET_VARIABLE, "99999")
    assert clock.offset_seconds == 10
    assert clock.now() - datetime.now(UTC) < timedelta(seconds=11)


@pytest.mark.parametrize("text", ["", "  ", "0"])
def test_no_offset_is_no_shift(text: str) -> None:
    """A blank variable is the same as none."""
    assert _offset(text) == 0


@given(st.floats(-1e9, 1e9))
def test_any_number_of_seconds_is_an_offset(seconds: float) -> None:
    """Every number up to some thirty years either way shifts the clock, fractions too."""
    clock = SystemClock({CLOCK_OFFSET_VARIABLE: repr(seconds)})
    assert seconds == clock.offset_seconds
    assert clock.now().tzinfo is UTC


@pytest.mark.parametrize("text", ["1h", "nan", "inf", "-inf", "1e10", "-1e10", "1,5"])
def test_a_bad_offset_names_the_variable_the_rule_and_what_came(text: str) -> None:
    """An offset that is no sensible number of seconds stops with a sentence."""
    with pytest.raises(BadSettings, match="OUTBOX_CLOCK_OFFSET_SECONDS: must be a number") as bad:
        _offset(text)
    assert repr(text) in str(bad.value)
    assert CLOCK_OFFSET_VARIABLE in bad.value.remedy


def test_sleep_waits_at_least_that_long() -> None:
    """`sleep` waits its seconds."""
    clock = SystemClock({})
    start = clock.monotonic()
    clock.sleep(0.02)
    assert clock.monotonic() - start >= 0.02


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_sleep_of_nothing_returns_at_once(seconds: float) -> None:
    """A deadline that has passed is no error."""
    SystemClock({}).sleep(seconds)
