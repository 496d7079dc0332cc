"""What is read of a range of the logs without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from delta_outbox.workflow_engine import range_reader
from delta_outbox.workflow_engine.range_reader import RangeReader
from delta_outbox.workflow_engine.write_range import Span


class Asked(Exception):
    """Spark was asked."""


class NoSpark:
    """A session that answers nothing."""

    def sql(self, text: str) -> Any:
        """Refuse a query."""
        raise Asked(text)


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
    tables: Any = SimpleNamespace(events="events", transitions="transitions")
    statements: Any = SimpleNamespace(fill=lambda *_, **__: "c.event_id")
    write: Any = SimpleNamespace(events=Span(after=3, to=5, through="e-7"))
    with (
        patch.object(range_reader, "LogReader") as reader,
        patch.object(range_reader, "MoveReader"),
    ):
        reader.return_value.few_added.return_value = rows
        none: Any = None
        made = RangeReader(
            NoSpark(),  # type: ignore[arg-type]
            tables,
            statements,
            tasks=none,
            known=none,
        )
        if is_asked:
            with pytest.raises(Asked, match="event_type in"):
                made.starts(write, ["order.requested"])
        else:
            assert () == made.starts(write, ["order.requested"])
    # The commit of which a part belongs to the range is looked at as well.
    looked = reader.return_value.few_added.call_args.kwargs
    assert (3, 6) == (looked["after"], looked["to"])
