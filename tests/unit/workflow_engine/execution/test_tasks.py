"""What becomes of tasks that a relay has claimed and cannot attempt."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from tests.unit.railway.workflow import Label, change, graph
from tests.unit.workflow_engine.derived_log import NOW, DerivedLog, plan

from delta_outbox.core.clock import boot_time
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.core.tables import Tables
from delta_outbox.lifecycle.endings import Attempted, Crashed
from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway.tasks import Category
from delta_outbox.testing.conformance.clock import ManualClock
from delta_outbox.workflow_engine.derivation.events import StartEvent
from delta_outbox.workflow_engine.execution.histories import Histories, Transition
from delta_outbox.workflow_engine.execution.hosts_in_force import RETRY_SECONDS
from delta_outbox.workflow_engine.execution.task_policies import task_policies
from delta_outbox.workflow_engine.execution.tasks import TOLD_SECONDS, Tasks
from delta_outbox.workflow_engine.hosts.attempts import AttemptRequest
from delta_outbox.workflow_engine.hosts.call import TaskFacts
from delta_outbox.workflow_engine.hosts.host_process import GRACE

WORKFLOW = graph()
PLAN = plan(1, WORKFLOW)
FACTS = TaskFacts(category=str(Label.category), third_party="printer", asynchronous=False)


class Log(Histories):
    """Histories that note what is read of the log."""

    def __init__(self) -> None:
        super().__init__(None, Tables(schema="s"), clock=ManualClock(NOW))  # type: ignore[arg-type]
        self.asked: list[str] = []

    def _read(self, asked: list[str], **_: object) -> dict[str, list[Transition]]:
        self.asked += asked
        return {}


class Claimed:
    """A relay that claims one task again and again, and does not attempt it by itself."""

    def __init__(
        self,
        *,
        may_run: bool = True,
        routing: Callable[[Any], Any] = lambda _: PLAN.versions[WORKFLOW.name].routing,
        known: bool = True,
        category: Category = Label.category,
    ) -> None:
        log = DerivedLog(PLAN)
        body = json.dumps({"parcel_id": "p1", "grams": 1}).encode()
        start = StartEvent(
            event_id="e1", event_type=WORKFLOW.starts_on, payload=body, since=NOW, arrival=1
        )
        (first,) = log.write([start]).rows
        self.row = first.row
        task = log.task(self.row.event_id)
        self.log, self.submitted = Log(), list[AttemptRequest]()
        facts = replace(FACTS, category=str(category))
        tasks = {f"{task.workflow}/{task.place.task}": facts} if known else {}
        hosts = SimpleNamespace(tasks=tasks, submit=self._submit, problem=None)
        taken = SimpleNamespace(hosts=hosts, may_run=lambda *_: may_run)
        in_force = SimpleNamespace(taken=taken, hosts=hosts, problem=None, follow=lambda _: None)
        self.tasks = cast("Any", object.__new__(Tasks))
        self.tasks._clock, self.tasks._histories = ManualClock(NOW), self.log
        self.tasks._in_force, self.tasks._plans = in_force, SimpleNamespace(routing=routing)
        self.tasks._newest = SimpleNamespace(of=lambda _: None)
        self.tasks._policies = task_policies([PLAN])
        self.tasks._reader = SimpleNamespace(read=lambda _: {(self.row.event_id, 1): task})
        self.tasks._deadlines = SimpleNamespace(in_force=lambda read: read)
        self.tasks._readers = SimpleNamespace(submit=lambda begin, claims: begin(claims))
        self.tasks._unread, self.tasks._lock, self.tasks._waits = Counter(), Lock(), {}

    def _submit(self, request: AttemptRequest) -> Any:
        self.submitted.append(request)
        return Future[Any]()

    def claimed(self, *, before: int, until: float = 100.0) -> Future[Any]:
        """Begin an attempt of the task, and return what will have become of it.

        Args:
            before: claims of it before this one.
            until: by the boot-time clock.
        """
        counted = {"attempts": before, "publish_attempts": 0, "crashes": 0}
        row = {"event_id": self.row.event_id, "event_type": self.row.event_type}
        delivery = {**row, "arrival": 1, "created_at": NOW, **counted}
        policies = {one.event_type: one for one in self.tasks.policies()}
        claim = SimpleNamespace(
            deliveries=pa.Table.from_pylist([delivery]),
            claimed_at=NOW,
            lease_seconds=policies[self.row.event_type].lease_seconds,
        )
        (answer,) = self.tasks.start([(claim, until)])
        found: Future[Any] = answer
        return found


@pytest.mark.parametrize(
    "why",
    [
        {"may_run": False},
        {"routing": lambda _: None},
        {"known": False},
        {"category": Category.BLACK_BOX},
    ],
    ids=["rows", "plan", "code", "category"],
)
def test_what_waits_for_other_code_costs_little(why: dict[str, Any]) -> None:
    """A task whose rows this code was not made for waits as long as until other code is tried, and
    nothing is read of it, however often it was claimed.
    """
    relay = Claimed(**why)
    for before in (0, 1, 2):
        (ended,) = relay.claimed(before=before).result(0)
        assert isinstance(ended, Attempted)
        assert (Reason.RELEASED, RETRY_SECONDS) == (ended.reason, ended.wait)
    assert ([], []) == (relay.log.asked, relay.submitted)


@pytest.mark.parametrize("category", sorted(set(Category) - {Label.category}))
def test_a_task_is_not_attempted_by_the_rules_of_another_category(category: Category) -> None:
    """The rows of an instance say what may be done after a call that may have acted; code of
    another category is not called by them, and the relay says so as long as the task waits.
    """
    relay = Claimed(category=category)
    answer = relay.claimed(before=0)
    assert [] == relay.submitted
    (ended,) = answer.result(0)
    assert ended.error in relay.tasks.problem
    relay.tasks._clock.sleep(TOLD_SECONDS)
    assert relay.tasks.problem is None


def test_an_item_whose_code_is_a_call_by_now_waits() -> None:
    """Where the rows of an instance wait for a person, and the code calls a third party by now,
    nothing is called, and the relay says so.
    """
    item = SimpleNamespace(is_to_do=lambda _: True, tasks={"label": {"category": "to_do"}})
    relay = Claimed(routing=lambda _: item)
    (ended,) = relay.claimed(before=0).result(0)
    assert (Reason.RELEASED, RETRY_SECONDS, []) == (ended.reason, ended.wait, relay.submitted)
    assert ended.error in relay.tasks.problem


@dataclass(frozen=True, kw_only=True)
class ToHandOver:
    """A claim that is to be made."""

    deliveries: pa.Table
    held_by: str | None = None
    held_until: datetime | None = None


@pytest.mark.parametrize("is_item", [True, False])
def test_what_is_a_call_by_the_rows_of_its_instance_is_handed_to_nobody(*, is_item: bool) -> None:
    """A task that only the newest rows call an item stays with the relay; people hold items."""
    relay = Claimed(routing=lambda _: SimpleNamespace(is_to_do=lambda _: is_item))
    delivery = {"event_id": relay.row.event_id, "arrival": 1}
    claim = ToHandOver(deliveries=pa.Table.from_pylist([delivery]))
    (made,) = relay.tasks.handed_over([claim])
    assert (TO_DO if is_item else None) == made.held_by


class Panic(BaseException):
    """Stands for that of an engine in another language, which is no usual exception."""


def panic(*_: object) -> Any:
    """Raise one."""
    raise Panic


def test_every_claim_ends_whatever_is_raised() -> None:
    """A relay that stops waits for each claim: one whose event, rows or report make an engine panic
    ends too, and counts as an attempt only if a call may have been made.
    """
    unread, unfit, ended = Claimed(), Claimed(), Claimed()
    unread.tasks._reader = SimpleNamespace(read=panic)
    unfit.tasks._in_force.hosts.submit = panic
    for relay in (unread, unfit):
        (found,) = relay.claimed(before=0).result(0)
        assert Reason.RELEASED == found.reason
    report = Future[Any]()
    ended.tasks._in_force.hosts.submit = lambda _: report
    answer = ended.claimed(before=0)
    report.set_exception(Panic())
    assert [Crashed(error="Panic: ")] == answer.result(0)


def test_hosts_run_what_they_were_asked_about() -> None:
    """Where other hosts are taken while a task is read, those by whose code it was judged attempt
    it, or release it because they close: the others may have other code.
    """
    relay, others = Claimed(), Claimed()
    read = relay.tasks._reader.read

    def taken_meanwhile(places: object) -> object:
        relay.tasks._in_force = others.tasks._in_force
        return read(places)

    relay.tasks._reader = SimpleNamespace(read=taken_meanwhile)
    assert not relay.claimed(before=0).done()
    assert (1, 0) == (len(relay.submitted), len(others.submitted))


def test_what_is_attempted_is_read_about() -> None:
    """Of a task that others have claimed before the log says what became of that; its call begins
    early enough to end with its claim.
    """
    relay = Claimed()
    assert not relay.claimed(before=1, until=100.0).done()
    assert [relay.row.event_id] == relay.log.asked
    (request,) = relay.submitted
    assert 100.0 - Label.time_limit.total_seconds() - GRACE == request.deadline


def test_a_claim_that_is_too_short_is_followed_by_one_that_lasts() -> None:
    """An instance may have begun by rows that are older than those of which leases are made. Its
    task keeps to their time limit: a claim that is shorter makes no call, and the next one lasts.
    """
    limit = timedelta(minutes=5)
    old = plan(1, graph(change(Label, time_limit=limit), lease=timedelta(minutes=6)))
    relay = Claimed(routing=lambda _: old.versions[WORKFLOW.name].routing)
    others = [one for one in relay.tasks.policies() if one.event_type != relay.row.event_type]
    (ended,) = relay.claimed(before=0).result(0)
    assert (Reason.RELEASED, []) == (ended.reason, relay.submitted)
    policies = relay.tasks.policies()
    assert not relay.claimed(before=1, until=boot_time() + 2 * limit.total_seconds()).done()
    (request,) = relay.submitted
    assert boot_time() < request.deadline
    assert policies is relay.tasks.policies()
    assert others == [one for one in policies if one.event_type != relay.row.event_type]


@pytest.mark.parametrize(
    ("of_rows", "of_hosts", "told"),
    [(None, None, None), (None, "no host", "no host"), ("other rows", "no host", "other rows")],
)
def test_what_keeps_tasks_waiting_is_told(
    of_rows: str | None, of_hosts: str | None, told: str | None
) -> None:
    """A relay tells that it goes on by former workflows, or that no host can be started."""
    tasks = object.__new__(Tasks)
    hosts = SimpleNamespace(problem=of_hosts)
    tasks._in_force = cast("Any", SimpleNamespace(problem=of_rows, hosts=hosts))
    tasks._clock, tasks._waits = ManualClock(NOW), {}
    assert told == tasks.problem


def test_what_cannot_be_closed_leaves_nothing_else_open() -> None:
    """Each part of what runs tasks is ended in its order, whatever goes wrong with another; the
    relay that ends is told.
    """
    closed = list[str]()

    def part(name: str) -> Callable[[], None]:
        return lambda: closed.append(name)

    def fails() -> None:
        closed.append("derived")
        raise OSError("derived")

    tasks = cast("Any", object.__new__(Tasks))
    tasks._loop = SimpleNamespace(close=part("loop"))
    tasks._derived = SimpleNamespace(close=fails)
    tasks._readers = SimpleNamespace(shutdown=part("readers"))
    tasks._in_force = SimpleNamespace(close=part("hosts"))
    with pytest.raises(OSError, match="derived"):
        tasks.close()
    assert ["loop", "derived", "readers", "hosts"] == closed
