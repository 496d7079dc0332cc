"""What the log of transitions says of the attempts of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.clock import Clock
from delta_outbox.core.tables import Tables
from delta_outbox.lifecycle.endings import LAST_ATTEMPT
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.railway.algorithms.history import History

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNSURE: Final = frozenset({Reason.UNKNOWN, Reason.CRASHED, Reason.LEASE_EXPIRED})
"""Why an attempt has ended that may have acted. One that left no word may have."""
MOST_KEPT: Final = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Transition:
    """A row of the log.

    Args:
        to_state: of the row.
        reason: of the row.
        occurred_at: of the row.
        receipt: of the row.
    """

    to_state: str
    reason: str
    occurred_at: datetime
    receipt: str | None = None


def history_of(transitions: Iterable[Transition], *, triggered_at: datetime) -> History:
    """Return what has become of the attempts of a task.

    Args:
        transitions: of the task, in the order of the log.
        triggered_at: when the task was triggered.
    """
    found = History(triggered_at=triggered_at)
    for row in transitions:
        if row.to_state == State.CLAIMED:
            found = found.claimed(row.occurred_at)
        else:
            unsure = row.reason in UNSURE
            released = row.reason == Reason.RELEASED
            found = replace(
                found,
                attempts=found.attempts + (not released),
                executions=found.executions + unsure,
                unsure_at=row.occurred_at if unsure else found.unsure_at,
                stopped=found.stopped or row.receipt == LAST_ATTEMPT,
                released=found.released + 1 if released else 0,
            )
    return found


_Counted = tuple[int, int, int]  # claims, attempts that have failed, and those without a word


def _counted(deliveries: pa.Table) -> list[_Counted]:
    columns = ("attempts", "publish_attempts", "crashes")
    return list(zip(*(deliveries[one].to_pylist() for one in columns), strict=True))


class Histories:
    """The histories of tasks that are open.

    What this relay has attempted itself it knows; of the others, the log is read.

    Args:
        spark: the session to read with.
        tables: the names of the relations.
        clock: the time.
    """

    def __init__(self, spark: SparkSession, tables: Tables, *, clock: Clock) -> None:
        self._spark = spark
        self._table = tables.transitions
        self._clock = clock
        self._lock = Lock()  # several threads read, and others keep
        self._kept: dict[str, tuple[_Counted, History]] = {}

    def keep(self, claimed: pa.Table, reason: Reason, history: History) -> None:
        """Keep the history of a task that is to be attempted again. It counts only if the claim
        ends as it says: of one that somebody else has ended meanwhile, the log is read.

        Args:
            claimed: the task before its claim, columns of `claims.DELIVERIES`.
            reason: why the attempt has ended.
            history: as it is after that.
        """
        (event_id,) = claimed["event_id"].to_pylist()
        ((claims, failures, crashes),) = _counted(claimed)
        failures += reason in {Reason.FAILED, Reason.UNKNOWN}
        with self._lock:
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[event_id] = (claims + 1, failures, crashes), history

    def of(
        self, deliveries: pa.Table, triggered_at: Mapping[str, datetime]
    ) -> Mapping[str, History]:
        """Return the histories of tasks.

        Args:
            deliveries: columns of `claims.DELIVERIES`.
            triggered_at: of each task, when it was.
        """
        found: dict[str, History] = {}
        asked = []
        for event_id, counted in zip(
            deliveries["event_id"].to_pylist(), _counted(deliveries), strict=True
        ):
            with self._lock:
                kept, history = self._kept.pop(event_id, (None, None))
            if history is not None and kept == counted:
                found[event_id] = history
            elif counted[0]:
                asked.append(event_id)
            else:
                found[event_id] = History(triggered_at=triggered_at[event_id])
        rows = self._read(asked, since=pc.min(deliveries["created_at"]).as_py()) if asked else {}
        for event_id in asked:
            found[event_id] = history_of(
                rows.get(event_id, ()), triggered_at=triggered_at[event_id]
            )
        return found

    def _read(self, asked: list[str], *, since: datetime) -> dict[str, list[Transition]]:
        """Read the transitions of tasks, from a day before an instant on: clocks may differ."""
        from pyspark.sql import functions as sf

        first = min(since, self._clock.now()) - timedelta(days=1)
        rows = (
            self._spark.table(self._table)
            .where(sf.col("occurred_date") >= sf.lit(first.date()))
            .join(
                sf.broadcast(self._spark.createDataFrame(pa.table({"event_id": asked}))), "event_id"
            )
            .orderBy("attempt", sf.col("to_state") != State.CLAIMED.value)
            .select("event_id", "to_state", "reason", "occurred_at", "receipt")
            .toArrow()
        )
        found: dict[str, list[Transition]] = {}
        for row in rows.to_pylist():
            found.setdefault(row.pop("event_id"), []).append(Transition(**row))
        return found
