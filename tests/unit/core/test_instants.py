"""Instants that an outbox knows, and what is asked of days."""

from __future__ import annotations

import ast
import re
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from delta_outbox.core.arrow import known, nearest, out_of_range, with_nearest
from delta_outbox.core.horizon import MOST_RANGES, NEAR, day_ranges, days_condition
from delta_outbox.core.instants import FIRST_INSTANT, LAST_INSTANT, iso_text, micros
from delta_outbox.delta.files.row_checks import broken, condition

MACROS = Path(__file__).resolve().parents[3] / "macros"
INSTANT = pa.timestamp("us", "UTC")
BEYOND = (FIRST_INSTANT - 1, LAST_INSTANT + 1, -(2**63) + 1, 2**63 - 1)
FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


def test_the_macro_knows_the_same_instants() -> None:
    """Python and SQL agree on the first and the last instant, which are those of Python."""
    text = (MACROS / "storage" / "instant_bounds.sql").read_text()
    found = re.search(r"return\((.*)\) }}", text)
    assert found is not None
    assert [FIRST_INSTANT, LAST_INSTANT] == ast.literal_eval(found[1])
    assert [FIRST_INSTANT, LAST_INSTANT] == [micros(FIRST), micros(LAST)]


@given(number=st.none() | st.integers(-(2**63) + 1, 2**63 - 1))
@example(number=FIRST_INSTANT)
@example(number=LAST_INSTANT)
@example(number=BEYOND[0])
@example(number=BEYOND[1])
def test_any_number_of_microseconds_becomes_an_instant(number: int | None) -> None:
    """Whatever a column holds, what remains of it is an instant of Python, and one that was is the
    same.
    """
    column = pa.chunked_array([pa.array([number], INSTANT)])
    is_known = number is None or FIRST_INSTANT <= number <= LAST_INSTANT
    assert [not is_known] == out_of_range(column).to_pylist()
    near, kept = nearest(column), known(column, pa.scalar(None, INSTANT))
    if is_known:
        assert column.to_pylist() == near.to_pylist() == kept.to_pylist()
    else:
        assert [FIRST if number is not None and number < 0 else LAST] == near.to_pylist()
        assert [None] == kept.to_pylist()


def test_rows_that_nobody_can_hold_have_the_nearest_instants() -> None:
    """Whatever instants rows have, Python can hold them, and nothing else of them is changed."""
    rows = pa.table({"at": pa.array([BEYOND[0], None, 0, BEYOND[1]], INSTANT), "text": [*"abcd"]})
    expected = [FIRST, None, datetime(1970, 1, 1, tzinfo=UTC), LAST]
    found = with_nearest(rows)
    assert expected == found["at"].to_pylist()
    assert rows["text"] == found["text"]


@given(at=st.datetimes(timezones=st.just(UTC)))
@example(at=FIRST)
@example(at=datetime(999, 1, 1, tzinfo=UTC))
@example(at=LAST)
def test_an_instant_comes_back_from_its_text(at: datetime) -> None:
    """Also before the year 1000: ISO 8601 has four digits, and other texts are no instants."""
    assert at == datetime.fromisoformat(iso_text(at))


def test_arrow_asks_what_the_constraint_says() -> None:
    """A file of rows is held against the constraint of instants as CREATE and ALTER write it."""
    for text in (
        f"coalesce(unix_micros(at) between {FIRST_INSTANT} and {LAST_INSTANT}, true)",
        f"coalesce ( unix_micros ( at ) between - {-FIRST_INSTANT} and {LAST_INSTANT} , true )",
    ):
        found = condition(text)
        assert found is not None
        fine = pa.table({"at": pa.array([None, FIRST_INSTANT, LAST_INSTANT], INSTANT)})
        assert broken(fine, {"range": found}) is None
        for number in BEYOND:
            assert "range" == broken(
                pa.table({"at": pa.array([number], INSTANT)}), {"range": found}
            )
    assert condition("coalesce(unix_micros(at) between 0 and 1, true)") is None


@given(days=st.lists(st.integers(-800_000, 3_000_000), max_size=12), back=st.integers(0, 10))
def test_ranges_hold_what_each_day_needs(days: list[int], back: int) -> None:
    """All days from some before each to itself are looked at, far ones in ranges of their own."""
    ranges = day_ranges(days, back=back)
    for day in days:
        assert any(first <= day - back and day <= last for first, last in ranges)
    looked_at = sum(last - first + 1 for first, last in ranges)
    assert looked_at <= len(set(days)) * (back + NEAR + back + 1)


def test_a_far_day_costs_itself_alone() -> None:
    """An event of the year 1 or 9999 among those of today does not ask for the days between."""
    today, first, last = ((d - date(1970, 1, 1)).days for d in _days())
    ranges = day_ranges([today, first, last, today - 1], back=7)
    assert [(first - 7, first), (today - 8, today), (last - 7, last)] == ranges
    assert days_condition(ranges[:1]) == (
        f"created_date between date_from_unix_date({first - 7}) and date_from_unix_date({first})"
    )
    assert "false" == days_condition([])
    many = [n * 1000 for n in range(MOST_RANGES + 1)]
    assert [(-7, MOST_RANGES * 1000)] == day_ranges(many, back=7)


def _days() -> tuple[date, date, date]:
    return date(2026, 11, 1), FIRST.date(), LAST.date()
