"""The plans of `workflows`: the newest one, and those that open instances have started with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from delta_outbox.core.clock import Clock
from delta_outbox.core.tables import Tables
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.commits import Commit
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.workflow_engine.derivation.plans import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITER: Final = "workflows"


class WorkflowPlans:
    """Reads each plan once.

    Args:
        spark: the session to read with.
        tables: the names of the relations.
        clock: the time.
    """

    def __init__(self, spark: SparkSession, tables: Tables, *, clock: Clock) -> None:
        self._table = tables.progress
        self._history = CommitHistory(spark)
        self._writes = NumberedWrites(spark, tables, writer=WRITER, clock=clock)
        self._plans: dict[int, Plan] = {}
        self._seen: Commit | None = None
        self._newest: Plan | None = None

    def newest(self) -> Plan | None:
        """Return the plan in force, None if there is none; costs a look at a file if nothing was
        planned by anybody.
        """
        commit = self._history.newest(self._table)
        if commit is None or commit != self._seen:
            found = next(self._writes.last(), None)
            self._newest = None
            if found is not None:
                plan = Plan(found.number, found.plan)
                self._newest = self._plans.setdefault(found.number, plan)
            self._seen = commit
        return self._newest

    def numbered(self, number: int) -> Plan | None:
        """Return a plan, None if there is none of this number.

        Args:
            number: from 1.
        """
        if number not in self._plans:
            found = self._writes.numbered(number)
            if found is None:
                return None
            self._plans[number] = Plan(number, found.plan)
        return self._plans[number]
