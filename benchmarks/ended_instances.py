"""Instances of a workflow that have ended long ago: start event, task and closing event of each.

They are written before the workflows are put into force, so nothing follows from them: what is
measured then is what a relay makes of a log that holds them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from benchmarks.messages import Stream
from benchmarks.seeding import write_history

from delta_outbox.api import Outbox
from delta_outbox.railway.routing import Place
from delta_outbox.workflow_engine.derivation.events import (
    NewEvent,
    Origin,
    TaskEvent,
    instance_key,
    json_bytes,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NUMBER: Final = "@number@"  # where the text of a row has that of its instance
_BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class _Rows(Stream):
    """Messages that are rows of instances.

    Args:
        row: of the instance whose number is `_NUMBER`.
    """

    row: NewEvent = field(repr=False)

    def frame(self, spark: SparkSession, **given: Any) -> DataFrame:
        """Return a range of them, as `Stream.frame` does."""
        from pyspark.sql import functions

        def text(value: str) -> Any:
            before, *after = value.split(_NUMBER)
            number = functions.substring_index("event_id", "-", -1)
            parts = [functions.lit(before)]
            for part in after:
                parts += [number, functions.lit(part)]
            return functions.concat(*parts)

        columns = {
            "event_type": functions.lit(self.row.event_type),
            "payload": text(self.row.payload.decode()).cast("binary"),
            "ordering_key": text(self.row.ordering_key or ""),
        }
        return super().frame(spark, **given).withColumns(columns)


def write_ended_instances(
    outbox: Outbox, count: int, *, workflow: str, task: str, outcome: str, closing: str
) -> None:
    """Write instances of one task as ended in the course of the last days.

    Args:
        outbox: the store; no workflows are in force, and it has no transition so far.
        count: how many.
        workflow: its name; `<workflow>.asked` starts it.
        task: its name in the workflow.
        outcome: that each has ended with.
        closing: type of the event that ends an instance.
    """
    now = datetime.now(UTC)
    name = f"past-{workflow}"
    payload = json_bytes({"number": 0})
    start = NewEvent(
        event_id=f"start-{name}-{_NUMBER}",
        event_type=f"{workflow}.asked",
        payload=payload,
        created_at=_BEGAN,
        ordering_key=f"start-{name}-{_NUMBER}",
    )
    called = TaskEvent(
        workflow=workflow,
        plan=1,
        version=1,
        instance=f"{name}-{_NUMBER}",
        place=Place(task=task, visits={task: 1}),
        task_id=f"{name}-{_NUMBER}",
        origin=Origin(
            event_id=start.event_id,
            started_at=_BEGAN.isoformat(),
            payload=payload.decode(),
            ordering_key=start.ordering_key,
            partition_key=None,
        ),
        fields={"number": f"{name}-{_NUMBER}"},
        created_at=_BEGAN,
    )
    closed = NewEvent(
        event_id=instance_key(workflow, called.instance),
        event_type=closing,
        payload=payload,
        created_at=_BEGAN,
        ordering_key=start.ordering_key,
    )
    for row, ended_with in ((start, None), (called.row(), outcome), (closed, None)):
        stream = _Rows(name=row.event_id.removesuffix(f"-{_NUMBER}"), count=count, row=row)
        write_history(outbox, stream, now=now, outcome=ended_with)
