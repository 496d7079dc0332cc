"""What was requeued, or is not due, waits; what is behind it in its order scope waits as well."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.delta.files.event_files import FILE, LOCATED, ROW
from delta_outbox.lifecycle.claims import DELIVERIES
from delta_outbox.relay.waiting import AT_ONCE, Waiting, joined, requeued

NOW = datetime(2026, 11, 24, tzinfo=UTC)
Row = tuple[int, str | None, int | None]  # arrival, scope, seconds until it is due

rows = st.lists(
    st.tuples(
        st.integers(0, 50),
        st.sampled_from([None, "a", "b", "c"]),
        st.sampled_from([None, -5, 0, 1, 60]),
    ),
    max_size=20,
    unique_by=lambda row: row[0],
)


def table(*rows: Row) -> pa.Table:
    """Return deliveries, whose ordering key stands for their scope."""
    due = [None if row[2] is None else NOW + timedelta(seconds=row[2]) for row in rows]
    columns: dict[str, Any] = {
        "event_id": [str(row[0]) for row in rows],
        "arrival": [row[0] for row in rows],
        "ordering_key": [row[1] for row in rows],
        "available_at": due,
        **{name: [0] * len(rows) for name in ("attempts", "publish_attempts", "crashes")},
    }
    given = {name: columns.get(name, [None] * len(rows)) for name in DELIVERIES.names}
    return pa.table(given, schema=DELIVERIES)


def scopes(deliveries: pa.Table) -> pa.StringArray:
    """Return the order scope of each delivery."""
    column = deliveries["ordering_key"]
    return pa.array(column.to_pylist(), pa.string())


def arrivals(deliveries: pa.Table) -> list[int]:
    """Return which deliveries these are."""
    numbers: list[int] = deliveries["arrival"].to_pylist()
    return numbers


@given(rows, rows, st.integers(0, 100))
def test_what_is_planned_is_due_and_behind_nothing(
    kept: list[Row], more: list[Row], seconds: int
) -> None:
    """At any time exactly that is planned, in order, which is due and has nothing that is not due
    before it in its scope; the rest waits, and nothing is lost or there twice.
    """
    known = {row[0] for row in kept}
    more = [row for row in more if row[0] not in known]
    now = NOW + timedelta(seconds=seconds)
    waiting = Waiting()
    waiting.add(table(*kept))
    planned, its_scopes = waiting.take(table(*more), scopes, now=now)
    expected, holding = [], set()
    for arrival, scope, due in sorted([*kept, *more]):
        if (due is not None and due > seconds) or (scope is not None and scope in holding):
            holding.add(scope)
        else:
            expected.append(arrival)
    assert expected == arrivals(planned)
    assert scopes(planned).to_pylist() == its_scopes.to_pylist()
    later = [row[2] for row in (*kept, *more) if row[2] is not None and row[2] > seconds]
    assert waiting.due_at == (NOW + timedelta(seconds=min(later)) if later else None)
    assert len(kept) + len(more) - len(expected) == len(waiting)
    rest, _ = waiting.take(table(), scopes, now=NOW + timedelta(days=1))
    assert sorted([*expected, *arrivals(rest)]) == sorted(row[0] for row in (*kept, *more))


def test_what_was_given_back_is_due_at_once() -> None:
    """What has no time of its own may go on at once, what has failed when its time has come."""
    waiting = Waiting()
    assert waiting.due_at is None
    waiting.add(table((1, "a", 60)))
    assert NOW + timedelta(seconds=60) == waiting.due_at
    waiting.add(table((2, "b", None)))
    assert AT_ONCE == waiting.due_at
    waiting.clear()
    assert (0, None) == (len(waiting), waiting.due_at)


def test_what_comes_back_has_the_counters_of_its_ending() -> None:
    """Of a claim that has ended those are requeued that are PENDING again, as they are then."""
    endings = pa.table(
        {
            "to_state": ["PUBLISHED", "PENDING", "DEAD"],
            "attempt": pa.array([1, 2, 3], pa.int32()),
            "publish_attempts": pa.array([0, 2, 3], pa.int32()),
            "crashes": pa.array([0, 1, 0], pa.int32()),
            "suspect": pa.array([0, 1, 0], pa.int32()),
            "available_at": pa.array([None, NOW, None], pa.timestamp("us", "UTC")),
        }
    )
    (back,) = requeued(table((1, "a", None), (2, "a", None), (3, "b", None)), endings).to_pylist()
    names = ("arrival", "attempts", "publish_attempts", "crashes", "suspect", "available_at")
    assert (2, 2, 2, 1, 1, NOW) == tuple(back[name] for name in names)
    gone = endings.set_column(0, "to_state", pa.array(["PUBLISHED"] * 3))
    assert not requeued(table((1, "a", None), (2, "a", None), (3, "b", None)), gone).num_rows


def test_where_they_lie_is_kept_where_it_is_known() -> None:
    """Deliveries of which it is known where they lie join others, and stay readable."""
    located = table((1, None, None))
    for name, value in ((FILE, "f.parquet"), (ROW, 7)):
        field = LOCATED.field(name)
        located = located.append_column(field, pa.array([value]).cast(field.type))
    both = joined(located, table((2, None, None)))
    assert [("f.parquet", 7), (None, None)] == [(row[FILE], row[ROW]) for row in both.to_pylist()]
