"""Runs the tasks of one relay: reads what they are, has them attempted, and says how they ended."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import Mask
from delta_outbox.core.redaction import describe
from delta_outbox.core.reserved_names import FORMER_PLANS, RESERVED, TO_DO, WORKFLOWS
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.lifecycle.endings import Attempted, Crashed
from delta_outbox.lifecycle.policy import DeliveryPolicy
from delta_outbox.lifecycle.results import Rejected
from delta_outbox.lifecycle.states import Reason
from delta_outbox.operations.command_log import append_commands
from delta_outbox.railway.routing import Routing
from delta_outbox.relay.destinations.task_runner import AT_ONCE, Answer, Followed, TaskRunner
from delta_outbox.store.store import Store
from delta_outbox.store.unknown_results import PublishResult
from delta_outbox.workflow_engine.deadlines import Deadlines
from delta_outbox.workflow_engine.derivation.events import TaskEvent
from delta_outbox.workflow_engine.derivation.plans import Plan
from delta_outbox.workflow_engine.derived_events import DerivedEvents
from delta_outbox.workflow_engine.execution.attempt_requests import attempt_request
from delta_outbox.workflow_engine.execution.attempt_results import (
    attempted,
    expired,
    late_answer,
)
from delta_outbox.workflow_engine.execution.derivation_loop import DerivationLoop
from delta_outbox.workflow_engine.execution.histories import Histories
from delta_outbox.workflow_engine.execution.hosts_in_force import RETRY_SECONDS, HostsInForce, Taken
from delta_outbox.workflow_engine.execution.link_check import demand_secret, warn_of_links
from delta_outbox.workflow_engine.execution.task_policies import (
    lease_needed,
    task_policies,
    with_lease,
)
from delta_outbox.workflow_engine.hosts.attempts import PAUSE, AttemptReport, AttemptRequest
from delta_outbox.workflow_engine.hosts.call import Setup, TaskFacts
from delta_outbox.workflow_engine.hosts.places import kind_of
from delta_outbox.workflow_engine.hosts.pool import HostPool
from delta_outbox.workflow_engine.workflow_plans import NewestWrites, WorkflowPlans

logger: Final = logging.getLogger(__name__)

# twin: macros/requests/task_refusal.sql::task_refusal
NEVER: Final = datetime(2261, 12, 31, tzinfo=UTC)  # nanoseconds reach into the year 2262
READERS: Final = 2  # threads that read what was claimed
MOST_TOLD: Final = 3  # reasons why tasks wait
TOLD_SECONDS: Final = 2 * RETRY_SECONDS  # a task that waits for other code is claimed within them


@dataclass(frozen=True, kw_only=True, slots=True)
class _Claimed:
    claim: Claim
    until: float
    answer: Future[Sequence[PublishResult]]
    event_id: str
    event_type: str

    def end(self, result: PublishResult) -> None:
        self.answer.set_result([result])


def _later(error: str, *, wait: float = PAUSE.total_seconds()) -> Attempted:
    """Return how the claim of a task ends that was not attempted."""
    return Attempted(reason=Reason.RELEASED, wait=wait, error=error)


_NOT_READ: Final = _later("its event could not be read")
_TOO_SHORT: Final = _later("its claim was too short for its time limit; the next one will not be")


class Tasks(TaskRunner):
    """The tasks of one relay.

    As long as no workflows are in force, no host is started.

    Args:
        outbox: the store.
        setup: what hosts are started with.
        start_hosts: starts them.

    Raises:
        BadSettings: items of the workflows in force ask for links, and nothing signs them.
    """

    def __init__(
        self,
        outbox: Store,
        setup: Setup,
        *,
        start_hosts: Callable[[Setup], HostPool] = HostPool,
    ) -> None:
        self._outbox, self._clock = outbox, outbox.clock
        self._newest = NewestWrites(
            outbox.spark, outbox.tables, writers=(WORKFLOWS,), clock=outbox.clock
        )
        self._plans = WorkflowPlans(self._newest.writes[WORKFLOWS])
        self._derived = DerivedEvents(outbox)
        self._reader = self._derived.tasks  # it knows what was just written
        self._deadlines = Deadlines(outbox.spark, outbox.tables, clock=outbox.clock)
        self._histories = Histories(outbox.spark, outbox.tables, clock=outbox.clock)
        self._in_force = HostsInForce(setup, clock=outbox.clock, start_hosts=start_hosts)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="tasks")
        self._policies: tuple[DeliveryPolicy, ...] = ()
        self._third_parties = frozenset[str]()
        self._items: set[str] = set()  # event types of what waits for a person
        self._unread: Counter[str] = Counter()  # by event type; claimed and not submitted yet
        self._lock = Lock()
        self._waits: dict[str, float] = {}  # for other code, and until when that is told
        in_force = self._newest.of(WORKFLOWS)
        if in_force is not None:
            demand_secret(Plan(in_force.number, in_force.plan), outbox.settings.todo.link_secret)
        self._loop = DerivationLoop(self._derive)

    # --- what may be claimed -----------------------------------------------------------------

    def policies(self) -> tuple[DeliveryPolicy, ...]:
        """Return the delivery policies of tasks; the same object as long as nothing changes.

        Raises:
            OutboxError: the first time: hosts cannot load the workflows in force.
            WorkflowsDiffer: the first time: the code is another one.
        """
        plan = self._in_force.follow(self._newest.of(WORKFLOWS))
        if plan is not None:
            warn_of_links(plan, self._outbox.settings.todo.link_secret)
            self._waits.clear()
            kept = self._newest.writes[WORKFLOWS].last(FORMER_PLANS)
            former = [Plan(one.number, one.plan) for one in kept if one.number < plan.number]
            with self._lock:
                self._policies = task_policies([*reversed(former), plan])
            self._items = {one.event_type for one in self._policies if one.destinations == (TO_DO,)}
            self._third_parties = frozenset(
                to for policy in self._policies for to in policy.destinations
            )
        return self._policies

    @property
    def problem(self) -> str | None:
        """Return why tasks go on by former workflows, have no hosts or wait for other code; None if
        all is well.
        """
        hosts = self._in_force.hosts
        problem = self._in_force.problem or (None if hosts is None else hosts.problem)
        if problem is not None:
            return problem
        now = self._clock.monotonic()
        waits = sorted(why for why, until in self._waits.copy().items() if now < until)
        if not waits:
            return None
        more = f"; and {len(waits) - MOST_TOLD} more" if len(waits) > MOST_TOLD else ""
        return f"Tasks wait: {'; '.join(waits[:MOST_TOLD])}{more}."

    @property
    def third_parties(self) -> Collection[str]:
        """Return the destinations that it serves."""
        return self._third_parties

    @property
    def is_starting(self) -> bool:
        """Say whether there is no room for any task, and will be within a second or two."""
        hosts = self._in_force.hosts
        return hosts is not None and hosts.is_starting

    def allowed(self, deliveries: pa.Table) -> Mask:
        """Say which tasks of a third party there is room for; those that run in the same places
        share it, and the first come first.

        Args:
            deliveries: columns of `claims.DELIVERIES`, in order.
        """
        types = deliveries["event_type"].to_numpy(zero_copy_only=False)
        found = np.zeros(len(types), dtype=np.bool_)
        sharing: dict[str, list[str]] = {}
        for name in np.unique(types).tolist():
            sharing.setdefault(self._places_of(name), []).append(name)
        for places, names in sharing.items():
            unread = sum(n for name, n in self._unread.items() if self._places_of(name) == places)
            its = np.flatnonzero(np.isin(types, names))
            found[its[: max(0, self._room(names[0]) - unread)]] = True
        return found

    def _places_of(self, event_type: str) -> str:
        """Return where tasks run, by a name that all have that run there."""
        hosts = self._in_force.hosts
        task = hosts and hosts.tasks.get(event_type.removeprefix(RESERVED))
        return event_type if event_type in self._items or not task else kind_of(task)

    def handed_over(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """Return claims of what waits for people as they are to be made: `todo` holds each until
        its item expires. What is over already stays with the relay, which ends it; so does what is
        an item only by the newest rows, and not by those of its instance.

        Args:
            claims: of one item each; not on record yet.
        """
        deliveries = pa.concat_tables([one.deliveries for one in claims])
        try:
            expiries = {
                event_id: task.expires_at or NEVER
                for (event_id, _), task in self._reader.read(_places(deliveries)).items()
                if self._is_item(task)
            }
        except Exception as error:  # noqa: BLE001 - whatever it was, they are tried again
            logger.warning("tasks_unread", extra={"size": len(claims), "error": describe(error)})
            return claims
        now = self._clock.now()
        untils = [expiries.get(_event_id(one), now) for one in claims]
        return [
            replace(one, held_by=TO_DO, held_until=until) if until > now else one
            for one, until in zip(claims, untils, strict=True)
        ]

    def _is_item(self, task: TaskEvent) -> bool:
        routing = self._plans.routing(task)
        return routing is None or routing.is_to_do(task.place.task)

    def _room(self, event_type: str) -> int:
        if event_type in self._items:
            return AT_ONCE
        name = event_type.removeprefix(RESERVED)
        hosts = self._in_force.hosts
        if hosts is None:
            return 0
        if name not in hosts.tasks:
            self._tell(_gone(*name.split("/", 1)))
            return 0
        return hosts.room(*name.split("/", 1))

    # --- attempts ----------------------------------------------------------------------------

    def start(self, claims: Sequence[tuple[Claim, float]]) -> Sequence[Answer]:
        """Begin an attempt of each task, and return what will have become of it.

        Args:
            claims: of one task each, read back from the log, and the seconds of `boot_time` after
                which nothing of it may be sent.
        """
        if not claims:
            return ()
        made = [
            _Claimed(
                claim=claim,
                until=until,
                answer=Future(),
                event_id=_event_id(claim),
                event_type=claim.deliveries["event_type"][0].as_py(),
            )
            for claim, until in claims
        ]
        with self._lock:
            self._unread.update(one.event_type for one in made)
        self._readers.submit(self._begin, made)
        return [one.answer for one in made]

    def _begin(self, claims: Sequence[_Claimed]) -> None:
        taken = self._in_force.taken  # others may be taken meanwhile: these judge, and these run
        assert taken is not None
        try:
            requests = self._requests(claims, taken)
        except BaseException as error:  # noqa: BLE001 - whatever it was, no call was made
            logger.warning("tasks_unread", extra={"size": len(claims), "error": describe(error)})
            requests = {}
        for one in claims:
            with self._lock:
                self._unread[one.event_type] -= 1
            found = requests.get(one.event_id, _NOT_READ)
            if isinstance(found, tuple):
                self._submit(one, taken.hosts, *found)
            else:
                one.end(found)

    def _requests(
        self, claims: Sequence[_Claimed], taken: Taken
    ) -> Mapping[str, tuple[AttemptRequest, Routing] | PublishResult]:
        deliveries = pa.concat_tables([one.claim.deliveries for one in claims])
        read = self._deadlines.in_force(self._reader.read(_places(deliveries)))
        tasks = {event_id: task for (event_id, _), task in read.items()}
        found: dict[str, tuple[AttemptRequest, Routing] | PublishResult] = {}
        runs: dict[str, tuple[TaskEvent, Routing, TaskFacts]] = {}
        for one in claims:
            judged = self._judged(tasks.get(one.event_id), taken)
            if isinstance(judged, tuple) and not self._lasts(one, *judged[:2]):
                judged = _TOO_SHORT
            if isinstance(judged, tuple):
                runs[one.event_id] = judged
            else:
                found[one.event_id] = judged
        # Only of what is attempted: the history of any other may have to be read at each claim.
        known = deliveries.filter(pa.array([i in runs for i in deliveries["event_id"].to_pylist()]))
        histories = self._histories.of(
            known, {event_id: task.created_at for event_id, (task, *_) in runs.items()}
        )
        for one in claims:
            if one.event_id in runs:
                task, routing, facts = runs[one.event_id]
                history = histories[one.event_id].claimed(one.claim.claimed_at)
                request = attempt_request(task, routing, facts, history, until=one.until)
                found[one.event_id] = request, routing
        return found

    def _judged(
        self, task: TaskEvent | None, taken: Taken
    ) -> tuple[TaskEvent, Routing, TaskFacts] | PublishResult:
        """Return what an attempt of a task goes by, or how its claim ends without one."""
        if task is None:
            return Rejected(error="no numbered write has made it")
        name, routing = task.place.task, self._plans.routing(task)
        facts = taken.hosts.tasks.get(f"{task.workflow}/{name}")
        if routing is not None and routing.is_to_do(name):
            if task.expires_at is not None and task.expires_at <= self._clock.now():
                return expired(routing, name)
            if facts is None:
                return _NOT_READ
        if routing is None or facts is None:
            return self._waiting(_gone(task.workflow, name))
        # The rows say what may be done after an attempt that may have acted, and the code acts.
        if routing.tasks[name]["category"] != facts.category:
            return self._waiting(
                f"{task.workflow}.{name} has another category in the rows of its instance"
            )
        if not taken.may_run(task.plan, routing, facts):
            return self._waiting(f"the rows of {task.workflow} are not of this code")
        return task, routing, facts

    def _lasts(self, one: _Claimed, task: TaskEvent, routing: Routing) -> bool:
        """Say whether a claim lasts as long as an attempt may by the rows of its instance, which
        may be older than those that leases are made of; where it does not, the next ones will.
        """
        needed = lease_needed(routing.tasks[task.place.task])
        if one.claim.lease_seconds >= needed:
            return True
        with self._lock:
            self._policies = with_lease(self._policies, one.event_type, needed)
        return False

    def _waiting(self, why: str) -> Attempted:
        """Return how the claim of a task ends that waits: until other code is tried nothing changes
        here.
        """
        self._tell(why)
        return _later(why, wait=RETRY_SECONDS)

    def _tell(self, why: str) -> None:
        """Note that tasks wait for other code."""
        self._waits[why] = self._clock.monotonic() + TOLD_SECONDS

    def _submit(
        self, one: _Claimed, hosts: HostPool, request: AttemptRequest, routing: Routing
    ) -> None:
        try:
            report = hosts.submit(request)
        except BaseException as error:  # noqa: BLE001 - whatever it was, no call was made
            logger.warning("task_not_begun", extra={"error": describe(error)})
            one.end(_later("it could not be attempted"))
            return
        report.add_done_callback(partial(self._end, one, request, routing))

    def _end(
        self,
        one: _Claimed,
        request: AttemptRequest,
        routing: Routing,
        report: Future[AttemptReport],
    ) -> None:
        try:
            ended, now = report.result(), self._clock.now()
            after = request.history.ended(ended.ending, request.limits, now)
            if not ended.ending.final:
                self._histories.keep(one.claim.deliveries, ended.ending.reason, after)
            one.end(attempted(ended, routing, request.task, after, now=now))
        except BaseException as error:
            logger.exception("task_crashed")
            one.end(Crashed(error=describe(error)))

    def too_late(self, endings: pa.Table) -> None:
        """Put outcomes on record that do not count, for others have ended their claims meanwhile:
        they may be all that anybody knows of a call.

        Args:
            endings: as `claims.ending_rows` makes them.
        """
        decided = pc.equal(endings["reason"].cast(pa.string()), str(Reason.COMPLETED))
        late = endings.filter(decided).to_pylist()
        if not late:
            return
        told = {"task_ids": [one["event_id"] for one in late]}
        commands = [late_answer(one, by=self._outbox.worker_id) for one in late]
        try:
            append_commands(self._outbox, commands)
        except Exception as error:  # noqa: BLE001 - it changes nothing, so the relay goes on
            logger.warning("late_answer_lost", extra={**told, "error": describe(error)})
        else:
            logger.warning("answered_too_late", extra=told)

    # --- what follows ------------------------------------------------------------------------

    def _derive(self) -> Followed:
        written = self._derived.step()
        return Followed(wrote=written.events > 0, more=written.more)

    def check(self) -> None:
        """Raise what keeps workflows from going on.

        Raises:
            Exception: of what writes what follows.
        """
        self._loop.check()

    def follow(self) -> Future[Followed]:
        """Have what is on record read from now on, and what follows from it written; return what
        will have come of that.
        """
        return self._loop.ask()

    def close(self) -> None:
        """End what runs, whatever goes wrong with a part of it. All that was started has an answer
        when this returns.
        """
        with ExitStack() as parts:
            parts.callback(self._in_force.close)  # the last first
            parts.callback(self._readers.shutdown)
            parts.callback(self._derived.close)
            parts.callback(self._loop.close)


def _event_id(claim: Claim) -> str:
    event_id: str = claim.deliveries["event_id"][0].as_py()
    return event_id


def _gone(workflow: str, task: str) -> str:
    return f"{workflow}.{task} is not there"


def _places(deliveries: pa.Table) -> list[tuple[str, int]]:
    columns = (deliveries[name].to_pylist() for name in ("event_id", "arrival"))
    return list(zip(*columns, strict=True))
