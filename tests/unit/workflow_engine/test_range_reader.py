"""What is read of a range of the logs without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.delta.files.event_files import VERSION
from delta_outbox.delta.log_reader import Added
from delta_outbox.workflow_engine import range_reader
from delta_outbox.workflow_engine.range_reader import RangeReader
from delta_outbox.workflow_engine.write_range import MOST_NEWS, News, Span


class Asked(Exception):
    """Spark was asked."""


class NoSpark:
    """A session that answers nothing."""

    def sql(self, text: str) -> Any:
        """Refuse a query."""
        raise Asked(text)


@contextmanager
def reader() -> Iterator[tuple[RangeReader, Mock]]:
    """Return a reader without Spark, and what it reads the logs with."""
    tables: Any = SimpleNamespace(events="events", transitions="transitions")
    statements: Any = SimpleNamespace(fill=lambda *_, **__: "c.event_id")
    spark: Any = NoSpark()
    none: Any = None
    with (
        patch.object(range_reader, "LogReader") as of_log,
        patch.object(range_reader, "MoveReader"),
    ):
        yield RangeReader(spark, tables, statements, tasks=none, known=none), of_log.return_value


@pytest.mark.parametrize(
    ("added", "is_asked"),
    [
        (["workflow:orders/pay", "order.paid"], False),
        ([], False),
        (["workflow:orders/pay", "order.requested"], True),
        (None, True),  # more than are read at once, or gone
    ],
)
def test_a_range_without_start_events_asks_no_spark(
    added: list[str] | None, is_asked: bool
) -> None:
    """Most ranges hold tasks alone; the files of their commits say so. Where they do not, or cannot
    be read, Spark says which events start an instance.
    """
    rows = None if added is None else pa.table({"event_type": pa.array(added, pa.string())})
    write: Any = SimpleNamespace(events=Span(after=3, to=5, through="e-7"))
    with reader() as (made, log):
        log.few_added.return_value = rows
        if is_asked:
            with pytest.raises(Asked, match="event_type in"):
                made.starts(write, ["order.requested"])
        else:
            assert () == made.starts(write, ["order.requested"])
    # The commit of which a part belongs to the range is looked at as well.
    looked = log.few_added.call_args.kwargs
    assert (3, 6) == (looked["after"], looked["to"])


def test_of_a_large_commit_no_more_is_taken_than_a_write_may_have() -> None:
    """A commit may have a million start events: each of the thousand writes that it takes makes
    objects of those that it has, and not of all.
    """
    ids = [f"e-{number:05}" for number in reversed(range(20_000))]
    rows = pa.table(
        {
            "event_type": ["order.requested"] * len(ids),
            "event_id": ids,
            "payload_bytes": pa.array([1] * len(ids), pa.int32()),
            VERSION: pa.array([4] * len(ids), pa.int64()),
        }
    )
    with reader() as (made, log), patch.object(range_reader, "News", wraps=News) as news:
        log.added.return_value = Added(rows=rows, to=4)
        part, found = made.new_starts(Span(after=3, to=4, behind="e-00009"), ["order.requested"])
    assert Span(after=3, to=3, behind="e-00009", through="e-01009") == part
    assert ids[::-1][10:1010] == [one.event_id for one in found]
    assert MOST_NEWS + 1 == news.call_count


names = st.sampled_from(["a", "b", "é", "\U0001f600"])


@given(
    st.lists(st.tuples(st.integers(11, 14), names), max_size=8),
    st.builds(
        Span,
        after=st.just(10),
        to=st.just(13),
        behind=st.none() | names,
        through=st.none() | names,
    ),
)
def test_rows_of_a_span_are_those_that_it_holds(rows: list[tuple[int, str]], span: Span) -> None:
    """Arrow leaves out what belongs to other writes, and orders what is left, as plans do."""
    read = [one for one in rows if one[0] <= span.last]
    table = pa.table(
        {
            VERSION: pa.array([version for version, _ in read], pa.int64() if read else pa.null()),
            "event_id": pa.array([name for _, name in read]).dictionary_encode(),
        }
    )
    found = range_reader._in_order(table, span).to_pylist()
    expected = sorted(one for one in read if span.holds(*one))
    assert expected == [(one[VERSION], one["event_id"]) for one in found]
