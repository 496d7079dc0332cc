"""The plans of `workflows`, each read once; and which numbered writes are the newest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_outbox.core.clock import Clock
from delta_outbox.core.errors import ChangeFeedGone
from delta_outbox.core.reserved_names import FORMER_PLANS
from delta_outbox.core.tables import Tables
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.delta.numbered_writes import NumberedWrite, NumberedWrites
from delta_outbox.workflow_engine.derivation.events import TaskEvent, task_type
from delta_outbox.workflow_engine.derivation.plans import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.railway.routing import Routing


class NewestWrites:
    """The newest numbered writes of some writers. Whether there are newer ones is read from the
    commits of the log since, without a query.

    Args:
        spark: the session to read with.
        tables: the names of the relations.
        writers: whose.
        clock: the time.
    """

    def __init__(
        self, spark: SparkSession, tables: Tables, *, writers: Iterable[str], clock: Clock
    ) -> None:
        self._log = tables.progress
        self._history = CommitHistory(spark)
        self._reader = LogReader(spark)
        self.writes = {
            writer: NumberedWrites(spark, tables, writer=writer, clock=clock) for writer in writers
        }
        self._newest: dict[str, NumberedWrite | None] = {}
        self._at = -1

    def forget(self, writer: str) -> None:
        """Ask anew for the newest of a writer.

        Args:
            writer: whose.
        """
        self._newest.pop(writer, None)

    def know(self, writer: str, newest: NumberedWrite) -> None:
        """Note a numbered write that was just made.

        Args:
            writer: whose.
            newest: of them.
        """
        self._newest[writer] = newest

    def of(self, writer: str) -> NumberedWrite | None:
        """Return the newest numbered write of a writer, None if there is none.

        Args:
            writer: whose.
        """
        commit = self._history.newest(self._log)
        version = -1 if commit is None else commit.version
        if version > self._at:
            self._follow(version)
            self._at = version
        if writer not in self._newest:
            self._newest[writer] = next(self.writes[writer].last(), None)
        return self._newest[writer]

    def _follow(self, version: int) -> None:
        """Forget what may be older than what the commits up to one have."""
        if not self._newest:
            return
        columns = ("writer", "number")
        try:
            found = self._reader.added(self._log, after=self._at, to=version, columns=columns)
        except ChangeFeedGone:
            found = None
        if found is None:
            self._newest.clear()
            return
        for row in found.rows.to_pylist():
            known = self._newest.get(row["writer"])
            if known is None or known.number < row["number"]:
                self.forget(row["writer"])


class WorkflowPlans:
    """The plans of `workflows`.

    Args:
        writes: its numbered writes.
    """

    def __init__(self, writes: NumberedWrites) -> None:
        self._writes = writes
        self._plans: dict[int, Plan] = {}
        self._due: tuple[int, frozenset[str]] = 0, frozenset()

    def plan(self, number: int) -> Plan | None:
        """Return a plan, None if there is none of this number.

        Args:
            number: from 1.
        """
        return self.of([number]).get(number)

    def of(self, numbers: Iterable[int]) -> dict[int, Plan]:
        """Return plans by number; those that are not there are left out. What is not known yet is
        asked for at once.

        Args:
            numbers: of the plans.
        """
        asked = set(numbers)
        if missing := asked - self._plans.keys():
            for one in self._writes.among(sorted(missing)):
                self._plans[one.number] = Plan(one.number, one.plan)
        return {number: self._plans[number] for number in asked & self._plans.keys()}

    def routing(self, task: TaskEvent) -> Routing | None:
        """Return the rows by which the instance of a task goes, None if they do not have it, or are
        not there any more.

        Args:
            task: the task.
        """
        plan = self.plan(task.plan)
        version = None if plan is None else plan.versions.get(task.workflow)
        if version is None or task.place.task not in version.routing.tasks:
            return None
        return version.routing

    def starting(self, *numbers: int) -> frozenset[str]:
        """Return the types of events that start a workflow of one of some plans.

        Args:
            numbers: of the plans; those that are not there are left out.
        """
        plans = self.of(numbers).values()
        versions = [one for plan in plans for one in plan.versions.values()]
        return frozenset(one.routing.row["starts_on"] for one in versions)

    def roles(self) -> dict[tuple[str, str], frozenset[str]]:
        """Return who may answer items, by workflow and task: by any of the newest plans, for their
        instances go on by them.
        """
        found: dict[tuple[str, str], frozenset[str]] = {}
        for one in self._writes.last(FORMER_PLANS):
            plan = self._plans.setdefault(one.number, Plan(one.number, one.plan))
            for name, version in plan.versions.items():
                for task in version.routing.tasks:
                    its = version.routing.roles(task)
                    found[name, task] = found.get((name, task), frozenset()) | its
        return found

    def becoming_due(self, number: int) -> frozenset[str]:
        """Return the event types of the items that become due, by a plan or one of those before
        it: their instances go on by them.

        Args:
            number: of the plan.
        """
        known, types = self._due
        if known < number:
            kept = [one for one in self._writes.last(FORMER_PLANS) if known < one.number <= number]
            found = (
                task_type(version.routing.workflow, task)
                for one in kept
                for version in Plan(one.number, one.plan).versions.values()
                for task, row in version.routing.tasks.items()
                if row["due_seconds"]
            )
            self._due = number, types | frozenset(found)
        return self._due[1]
