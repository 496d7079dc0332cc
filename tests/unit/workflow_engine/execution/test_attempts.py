"""What attempts are given, and what they are on record."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.railway.workflow import Label, Pack, Tell, change, graph
from tests.unit.workflow_engine.derived_log import NOW, DerivedLog, plan

from delta_outbox.core.reserved_names import NOBODY, TO_DO
from delta_outbox.lifecycle.endings import Attempted
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.policy_columns import Ordering
from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway.algorithms.history import History, Limits
from delta_outbox.railway.algorithms.steps import AttemptEnding, Rules
from delta_outbox.railway.compromises import (
    AskHuman,
    AtLeastOnce,
    AtMostOnce,
    Compromise,
    UpTo,
    compromise_of,
    written,
)
from delta_outbox.railway.outcomes import DEFAULT_EXIT, Decided
from delta_outbox.railway.routing import Place, TaskEnding
from delta_outbox.railway.tasks import State
from delta_outbox.workflow_engine.derivation.events import StartEvent, task_type
from delta_outbox.workflow_engine.execution.attempt_requests import attempt_request
from delta_outbox.workflow_engine.execution.attempt_results import attempted
from delta_outbox.workflow_engine.execution.task_policies import task_policies
from delta_outbox.workflow_engine.hosts.attempts import AttemptReport
from delta_outbox.workflow_engine.hosts.call import TaskFacts

WORKFLOW = graph()
PLAN = plan(1, WORKFLOW)
ROUTING = PLAN.versions[WORKFLOW.name].routing
HISTORY = History(triggered_at=NOW)


def test_tasks_have_policies_before_all_others() -> None:
    """A task goes to its third party, or to people, in no order; what looks so goes nowhere."""
    policies = replace(PolicySet.parse([{"event_type": "*"}]), tasks=task_policies([PLAN]))
    found = policies.match(f"workflow:{WORKFLOW.name}/label")
    assert (("printer",), Ordering.NONE) == (found.destinations, found.ordering)
    assert found.lease_seconds >= WORKFLOW.lease.total_seconds()
    assert (TO_DO,) == policies.match(f"workflow:{WORKFLOW.name}/check").destinations
    assert (NOBODY,) == policies.match("workflow:x/y").destinations
    assert ("default",) == policies.match("order.created").destinations


def test_the_lease_of_a_task_outlasts_its_call() -> None:
    """A call that takes all of its time limit ends while its claim lasts."""
    slow = plan(1, graph(lease=timedelta(seconds=11)))
    called = [one for one in task_policies([slow]) if one.destinations[0] != TO_DO]
    assert 4 == len(called)
    assert all(one.lease_seconds >= 20 for one in called)


def test_the_lease_of_a_task_outlasts_the_call_of_any_version() -> None:
    """A task that is open keeps to the time limit of its version, whatever newer rows say."""
    long = graph(change(Pack, time_limit=timedelta(minutes=5)), lease=timedelta(minutes=10))
    pack = task_type("shipping", "pack")
    for plans in ([plan(1, long), plan(2, graph())], [plan(1, graph()), plan(2, long)]):
        (lease,) = [one.lease_seconds for one in task_policies(plans) if one.event_type == pack]
        assert lease >= 2 * 300


@pytest.mark.parametrize("task", [Label, Pack, Tell])
def test_an_attempt_is_given_what_the_class_says(task: type[State[Any, Any]]) -> None:
    """Rules and durations that are read from rows are those of the class they were written from."""
    log = DerivedLog(PLAN)
    body = json.dumps({"parcel_id": "p1", "grams": 1}).encode()
    start = StartEvent(
        event_id="e1", event_type=WORKFLOW.starts_on, payload=body, since=NOW, arrival=1
    )
    (first,) = log.write([start]).rows
    facts = TaskFacts(
        category=str(task.category),
        third_party=task.third_party,
        asynchronous=False,
        can_look_up=Rules.of(task).can_look_up,
    )
    name = task.task_name()
    event = replace(
        log.task(first.row.event_id),
        place=Place(task=name, visits={name: 1}),
        expires_at=ROUTING.expires_at(name, NOW),
    )
    request = attempt_request(event, ROUTING, facts, HISTORY, until=100.0)
    assert (Rules.of(task), Limits.of(task)) == (request.rules, request.limits)
    assert request.deadline + task.time_limit.total_seconds() < 100.0
    assert body.decode() == request.start


COMPROMISES: list[Compromise] = [AtMostOnce(), AtLeastOnce(), AskHuman(), UpTo(3), UpTo(12)]


@pytest.mark.parametrize("compromise", COMPROMISES)
def test_a_compromise_is_read_as_it_was_written(compromise: Compromise) -> None:
    """What the business has decided survives its row."""
    assert compromise == compromise_of(written(compromise))
    assert compromise_of("") is None


def result(ending: AttemptEnding, task: str = "label", **report: object) -> Attempted:
    """Return what is on record of an attempt."""
    after = HISTORY.ended(ending, Limits(settles=timedelta(seconds=60)), NOW)
    made = AttemptReport(ending=ending, **report)  # type: ignore[arg-type]
    return attempted(made, ROUTING, task, after, now=NOW)


def test_an_outcome_is_on_record_with_its_data() -> None:
    """What was decided, what an author chose for a fault, else what the rows say."""
    decided = Decided(outcome="labelled", data={"at": 1})  # type: ignore[type-var]
    done = result(AttemptEnding(reason=Reason.COMPLETED, decided=decided))
    assert ("labelled", '{"at":1}') == (done.outcome, done.outcome_data)
    faulted = AttemptEnding(reason=Reason.REJECTED, error=Exception("too heavy"))
    assert ("unclear", "too heavy") == (
        (found := result(faulted, on_fault="unclear")).outcome,
        found.error,
    )
    assert DEFAULT_EXIT.value == result(faulted, on_fault=DEFAULT_EXIT).outcome
    said = ROUTING.outcome("label", TaskEnding(cause="faulted"))
    expected = DEFAULT_EXIT.value if said is DEFAULT_EXIT else str(said)
    assert expected == result(faulted).outcome


def test_what_goes_on_waits_as_long_as_the_algorithm_says() -> None:
    """A pause, or until earlier requests have settled, whichever is longer."""
    unsure = AttemptEnding(
        reason=Reason.UNKNOWN, pause=timedelta(seconds=5), settle=True, last=True
    )
    found = result(unsure)
    assert (Reason.UNKNOWN, 60.0, True, None) == (
        found.reason,
        found.wait,
        found.is_last,
        found.outcome,
    )
    not_due = result(AttemptEnding(reason=Reason.RELEASED, error=Exception("closed at night")))
    assert (1.0, "closed at night") == (not_due.wait, not_due.error)


@pytest.mark.parametrize("is_verdict", [True, False])
def test_what_says_nothing_of_a_third_party_is_told_so(*, is_verdict: bool) -> None:
    """Whether a failure is one of the third party goes with the ending, to whoever counts them."""
    for reason in (Reason.UNKNOWN, Reason.UNCERTAIN):
        assert is_verdict == result(AttemptEnding(reason=reason), is_verdict=is_verdict).is_verdict
