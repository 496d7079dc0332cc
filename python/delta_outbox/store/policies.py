"""The delivery policies in force: the seed's table, or the last good version of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.core.clock import Clock
from delta_outbox.core.errors import BadPolicy, OutboxError, UnknownDestination
from delta_outbox.core.settings import Settings
from delta_outbox.core.tables import Tables
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.commits import Commit
from delta_outbox.delta.numbered_writes import NumberedWrite, NumberedWrites
from delta_outbox.lifecycle.policy import DeliveryPolicy, PolicySet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 30.0  # until policies that could not be put into force are tried again
VERSIONS_LOOKED_AT: Final = 10  # a version that an older release wrote may no longer be readable

Check = Callable[[PolicySet], None]

# Columns of policy_rows that are derived from others.
_DERIVED: Final = ("position", "event_type_regex")


class Policies:
    """The policies that one worker works by.

    A new version is put into force when its rows keep the rules and the worker can serve it; its
    rows are then kept as a numbered write of `policy`. Otherwise the former ones stay, and after
    a restart the last version that was kept: `problem` says why.

    `current` are the policies in force, None before they were asked for.

    `of_tasks` returns those of the tasks of workflows, the same object as long as they stay as
    they are.

    Args:
        spark: the session.
        tables: the names of the relations.
        settings: where the destinations are described.
        clock: the time.
        worker_id: who puts them into force, for the record.
    """

    def __init__(
        self,
        spark: SparkSession,
        tables: Tables,
        *,
        settings: Settings,
        clock: Clock,
        worker_id: str,
    ) -> None:
        self._spark = spark
        self._table = tables["policy_rows"]
        self._settings = settings
        self._clock = clock
        self._worker_id = worker_id
        self._plans = NumberedWrites(spark, tables, writer="policy", clock=clock)
        self.of_tasks: Callable[[], tuple[DeliveryPolicy, ...]] = tuple
        self._tasks: tuple[DeliveryPolicy, ...] = ()
        self._check: Check | None = None
        self._seen: Commit | None = None  # the commit that was looked at last
        self._read: tuple[Commit | None, PolicySet] | None = None  # a commit, and its rows
        self._recorded: tuple[Commit | None, str] | None = None  # what was kept last, and where
        self._retry_at = float("inf")  # monotonic seconds
        self.current: PolicySet | None = None
        self.problem: str | None = None

    def watch(self, check: Check) -> PolicySet:
        """Name what a new version must pass before it is put into force, and return the policies.

        Args:
            check: raises an OutboxError if the worker cannot serve them; it is called once for
                each new version, and again after a while for one that did not pass.

        Raises:
            OutboxError: they do not pass, and there are no earlier ones in this process.
        """
        self._check = check
        self._seen = self.current = None
        return self.in_force()

    def in_force(self) -> PolicySet:
        """Return the policies; costs one look at the table's history if nothing has changed.

        Raises:
            BadPolicy: the rows break a rule and no earlier version is known.
        """
        commit, tasks = self._commit(), self.of_tasks()
        unchanged = commit is not None and commit == self._seen and tasks is self._tasks
        if self.current and unchanged and self._clock.monotonic() < self._retry_at:
            return self.current
        self._seen, self._tasks = commit, tasks
        self._retry_at = float("inf")
        try:
            found = self._found_at(commit)
        except BadPolicy as error:
            return self._keep(error)
        if self.current is None or found.version != self.current.version:
            try:
                self._put_into_force(found)
            except OutboxError as error:
                self._retry_at = self._clock.monotonic() + RETRY_SECONDS
                if self.current is None:
                    raise
                return self._keep(error)
        self.problem = None
        return found

    def status(self) -> dict[str, str | None]:
        """Return the version in force and what is wrong with the newest rows; writes nothing."""
        try:
            found = self._found_at(None)
            for name in sorted(found.destinations - set(self._settings.publishers)):
                raise UnknownDestination(destination=name, known=self._settings.publishers)
        except OutboxError as error:
            kept = self._last_good()
            return {"version": kept.version if kept else None, "problem": str(error)}
        return {"version": found.version, "problem": None}

    def _keep(self, error: OutboxError) -> PolicySet:
        """Stay with the former policies, and say so."""
        if self.current is None:
            kept = self._last_good()
            if kept is None:
                raise error
            self._put_into_force(kept, record=False)
        assert self.current is not None
        self.problem = str(error)
        logger.error(
            "policy_kept", extra={"version": self.current.version, "problem": self.problem}
        )
        return self.current

    def _put_into_force(self, policies: PolicySet, *, record: bool = True) -> None:
        if self._check:
            self._check(policies)
        if record:
            self._record(policies)
        logger.info("policy_in_force", extra={"version": policies.version})
        self.current = policies

    def _record(self, policies: PolicySet) -> None:
        """Keep the rows of a version; policy_version of a transition leads to them."""
        if self._seen is not None and self._recorded == (self._seen, policies.version):
            return  # others may have kept another one meanwhile, but not without a commit
        plan = {
            "version": policies.version,
            "rows": [policy.as_row() for policy in policies.policies],
            "tasks": [policy.as_row() for policy in policies.tasks],
        }

        def next_plan(last: NumberedWrite | None) -> dict[str, Any] | None:
            return None if last and last.plan["version"] == policies.version else plan

        self._plans.append(next_plan, planned_by=self._worker_id)
        self._recorded = self._seen, policies.version

    def _last_good(self) -> PolicySet | None:
        for kept in self._plans.last(VERSIONS_LOOKED_AT):
            try:
                return replace(PolicySet.parse(kept.plan["rows"]), tasks=self._tasks)
            except BadPolicy:
                logger.warning("policy_version_unreadable", extra={"number": kept.number})
        return None

    def _found_at(self, commit: Commit | None) -> PolicySet:
        """Return the policies of the table; read once for each commit that is known."""
        if self._read is None or commit is None or commit != self._read[0]:
            self._read = commit, self._rows()
        return replace(self._read[1], tasks=self._tasks)

    def _rows(self) -> PolicySet:
        from pyspark.errors import AnalysisException

        try:
            rows = self._spark.sql(f"select * from {self._table} order by position").toArrow()
        except AnalysisException as error:
            first = str(error).strip().splitlines()[0]
            raise BadPolicy([f"{self._table} cannot be read: {first}"]) from error
        kept = [name for name in rows.column_names if name not in _DERIVED]
        return PolicySet.parse(rows.select(kept).to_pylist())

    def _commit(self) -> Commit | None:
        """Return the newest commit of the table, None if there is none."""
        from pyspark.errors import AnalysisException

        try:
            return CommitHistory(self._spark).newest(self._table)
        except AnalysisException:
            return None
