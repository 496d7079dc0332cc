"""The hosts of a relay, and the workflows that they were held against."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from delta_outbox.core.clock import Clock
from delta_outbox.core.errors import OutboxError
from delta_outbox.core.redaction import describe
from delta_outbox.delta.numbered_writes import NumberedWrite
from delta_outbox.railway.routing import Routing
from delta_outbox.workflow_engine.derivation.plans import Plan
from delta_outbox.workflow_engine.execution.code_check import check_code
from delta_outbox.workflow_engine.execution.task_policies import LONGEST_LEASE
from delta_outbox.workflow_engine.hosts.call import Setup, TaskFacts
from delta_outbox.workflow_engine.hosts.pool import HostPool

logger: Final = logging.getLogger(__name__)

RETRY_SECONDS: Final = 30.0  # until workflows are tried again that could not be taken

_Begun = tuple[NumberedWrite, Future[tuple[Plan, HostPool]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """Hosts, and the workflows that they were held against.

    Args:
        hosts: that run.
        number: of the plan.
    """

    hosts: HostPool
    number: int

    def may_run(self, plan: int, routing: Routing, facts: TaskFacts) -> bool:
        """Say whether it is known that the code is made for the rows of an instance.

        Args:
            plan: with which it has started.
            routing: of the workflow, by that plan.
            facts: what the hosts say of the task.
        """
        return plan <= self.number or routing.row["hash"] in {"", facts.hash}


class HostsInForce:
    """Hosts that have the workflows in force.

    At the start of a relay its code must be that of the workflows. Later ones are taken beside its
    work: hosts are started anew on a thread, and where these have another code the relay goes on
    with those that it has.

    Args:
        setup: what hosts are started with.
        clock: the time.
        start_hosts: starts them.
    """

    def __init__(
        self, setup: Setup, *, clock: Clock, start_hosts: Callable[[Setup], HostPool] = HostPool
    ) -> None:
        self._setup, self._clock, self._start_hosts = setup, clock, start_hosts
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="start of hosts")
        self._starter.submit(int)  # has its thread begin: later there may be none for it
        self._is_first = True
        self._begun: _Begun | None = None
        self._refused = 0  # number of the plan that was tried last, and could not be taken
        self._retry_at = 0.0  # monotonic seconds; until it is tried again
        self.taken: Taken | None = None
        self._former: list[HostPool] = []  # what they run ends there
        self.problem: str | None = None  # why they are not those of the newest plan

    def follow(self, newest: NumberedWrite | None) -> Plan | None:
        """Take the newest workflows; return them if hosts for them are there since just now.

        Args:
            newest: plan of `workflows`.

        Raises:
            OutboxError: the first time: hosts cannot load the workflows.
            WorkflowsDiffer: the first time: their code is another one.
        """
        if newest is None:
            self._is_first = False
            return None
        if self._is_first:
            plan, hosts = self._start(newest)
            self._is_first = False
            return self._take(plan, hosts)
        if self._begun is None:
            waits = newest.number == self._refused and self._clock.monotonic() < self._retry_at
            is_new = self.taken is None or newest.number != self.taken.number
            if is_new and not waits:
                self._begun = newest, self._starter.submit(self._start, newest)
            return None
        begun, started = self._begun
        if not started.done():
            return None
        self._begun = None
        error = started.exception()
        if error is None:
            return self._take(*started.result())
        # Whatever it is, this machine may have no room for them just now: hosts that run go on.
        self._refused = begun.number
        self._retry_at = self._clock.monotonic() + RETRY_SECONDS
        self.problem = (
            f"{error} {error.remedy}" if isinstance(error, OutboxError) else describe(error)
        )
        logger.error("workflows_kept", extra={"number": begun.number, "problem": self.problem})
        return None

    @property
    def hosts(self) -> HostPool | None:
        """Return the hosts that run, None if none were taken yet."""
        return None if self.taken is None else self.taken.hosts

    def close(self) -> None:
        """End the hosts, and cancel what runs, in former ones too."""
        self._starter.shutdown()
        hosts = [*self._former]
        if self._begun is not None and self._begun[1].exception() is None:
            hosts.append(self._begun[1].result()[1])
        if self.hosts is not None:
            hosts.append(self.hosts)
        for one in hosts:
            one.begin_to_close(0.0)
        for one in hosts:
            one.close()

    def _start(self, newest: NumberedWrite) -> tuple[Plan, HostPool]:
        plan = Plan(newest.number, newest.plan)
        hosts = self._start_hosts(self._setup)
        try:
            check_code(plan, hosts.tasks)
        except BaseException:
            hosts.close()
            raise
        return plan, hosts

    def _take(self, plan: Plan, hosts: HostPool) -> Plan:
        before, self.taken = self.hosts, Taken(hosts=hosts, number=plan.number)
        if before is not None:
            before.begin_to_close(LONGEST_LEASE)
            self._former = [one for one in (*self._former, before) if not one.is_closed]
        self.problem = None
        return plan
