"""Instances that operators let go on elsewhere: by a late answer, or by another version."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.railway.workflow import Check, Pack, change, graph
from tests.unit.workflow_engine.derived_log import NOW, DerivedLog, plan
from tests.unit.workflow_engine.test_derivation import HOUR, ended, parcel, started

from delta_outbox.railway.routing import LeadsNowhere
from delta_outbox.workflow_engine.derivation.events import TaskEvent
from delta_outbox.workflow_engine.derivation.follow_ups import Ended
from delta_outbox.workflow_engine.derivation.moves import (
    LateAnswer,
    Move,
    OtherVersion,
    move_of,
)
from delta_outbox.workflow_engine.instances import moves_of

LATE = LateAnswer(
    task_id="shipping-label-p-1-1", task="label", outcome="labelled", data='{"number": "7"}'
)


def killed(task: TaskEvent, move: Move | None, *, may_have_acted: bool = False) -> Ended:
    """Return the ending of a task that an operator has ended."""
    return replace(ended(task, "killed"), move=move, may_have_acted=may_have_acted)


def at_check() -> tuple[DerivedLog, TaskEvent]:
    """Return a log with an instance whose label is uncertain, so that somebody checks."""
    log, label = started(graph())
    log.write(ended=[ended(label, "uncertain")])
    return log, log.task("shipping-check-p-1-1")


def test_an_instance_goes_on_by_a_late_answer() -> None:
    """What follows is what the answer would have led to in time: with its data as facts, the next
    visit, the expiry of the new task, and what came before: a task that was moved.
    """
    log, check = at_check()
    move = replace(LATE, outcome="unclear")
    (made,) = log.write(ended=[killed(check, move)]).rows
    again = log.task(made.row.event_id)
    assert ("shipping-check-p-1-2", 2) == (again.task_id, again.place.visit)
    assert {"label": {"number": "7"}} == again.place.facts
    assert ("shipping-label-p-1-1",) == again.accepted
    assert again.before is not None
    assert ("check", check.task_id, "killed", "moved") == (
        again.before.task,
        again.before.task_id,
        again.before.cause,
        again.before.outcome,
    )
    sent = replace(LATE, task_id=check.task_id, task="check", outcome="send")
    log.write(ended=[killed(again, sent)])
    end = log.rows[check.key]
    assert ("parcel.sent", "moved") == (end.event_type, (end.metadata or {})["outcome"])


def test_a_late_answer_is_accepted_once() -> None:
    """An instance that goes on by an answer does not go on by it again, whoever asks."""
    log, check = at_check()
    move = replace(LATE, outcome="labelled")
    log.write(ended=[killed(check, move)])
    pack = log.task("shipping-pack-p-1-1")
    log.write(ended=[ended(pack, "uncertain")])
    again = log.task("shipping-check-p-1-2")
    assert ("shipping-label-p-1-1",) == again.accepted
    told = [one.message for one in log.write(ended=[killed(again, move)]).stranded]
    assert ["The late answer to 'shipping-label-p-1-1' was accepted before."] == told


@pytest.mark.parametrize(
    ("move", "message"),
    [
        (replace(LATE, outcome="flown"), "shipping.label has no outcome 'flown'."),
        (replace(LATE, outcome="\ud800"), r"shipping.label has no outcome '\ud800'."),
        (replace(LATE, task="\ud800"), r"The instance has never come to '\ud800'."),
        (OtherVersion(plan=1, task="\ud800"), r"Plan 1 of shipping has no task '\ud800'."),
        (replace(LATE, task="fly"), "The instance has never come to 'fly'."),
        (replace(LATE, task="tell", outcome="told"), "The instance has never come to 'tell'."),
        (replace(LATE, outcome="unclear", data="[]"), "Its data is no JSON object."),
        (OtherVersion(plan=7, task="label"), "Plan 7 of shipping is not there."),
        (OtherVersion(plan=1, task="fly"), "Plan 1 of shipping has no task 'fly'."),
    ],
)
def test_a_move_that_leads_nowhere_is_told(move: Move, message: str) -> None:
    """A command by hand that cannot be followed moves nothing: a person must look. What is told can
    be written, whatever texts the command has.
    """
    log, check = at_check()
    derived = log.write(ended=[killed(check, move)])
    assert [message] == [one.message for one in derived.stranded]
    assert () == derived.rows


def test_a_moved_task_that_may_have_acted_is_uncertain() -> None:
    """A task that was attempted after the operator had looked, without a known result, leads where
    its uncertainty does, and not where the operator wanted.
    """
    log, label = started(graph())
    move = OtherVersion(plan=1, task="pack")
    (made,) = log.write(ended=[killed(label, move, may_have_acted=True)]).rows
    check = log.task(made.row.event_id)
    assert "check" == check.place.task, "where its uncertainty leads"
    assert check.before is not None
    assert ("uncertain", "unclear") == (check.before.cause, check.before.outcome)


def later_version(**arguments: Any) -> tuple[DerivedLog, TaskEvent]:
    """Return a log with an instance of the first version that waits at a check, and a second."""
    second = graph(change(Check, identifier="look-{parcel_id}-{visit}"), version=2, **arguments)
    log = DerivedLog(plan(1, graph()), plan(2, second))
    log.newest = 1
    log.write([parcel()])
    (label,) = log.tasks()
    log.write(ended=[ended(label, "uncertain")])
    return log, log.task("shipping-check-p-1-1")


def test_an_instance_goes_on_by_another_version() -> None:
    """It goes on at the task that is named, by the routes and identifiers of that version, and its
    visits are counted on.
    """
    log, check = later_version()
    log.write(ended=[killed(check, OtherVersion(plan=2, task="label"))])
    label = log.task("shipping-label-p-1-2")
    assert (2, 2, {"label": 2, "check": 1}) == (label.plan, label.version, label.place.visits)
    log.write(ended=[ended(label, "uncertain")])
    assert 2 == log.task("look-p-1-2").plan


def test_an_instance_that_another_version_cannot_name_is_told() -> None:
    """A version whose identifiers use what the start event lacks cannot take the instance."""
    second = graph(change(Pack, identifier="pack-{grams}"), version=2)
    log = DerivedLog(plan(1, graph()), plan(2, second))
    log.newest = 1
    log.write([parcel(grams=20)])
    (label,) = log.tasks()
    light = replace(label, origin=replace(label.origin, payload='{"parcel_id": "p-1"}'))
    (stranded,) = log.write(ended=[killed(light, OtherVersion(plan=2, task="label"))]).stranded
    assert stranded.message.startswith("The payload is refused: ")


def test_what_a_kill_says_of_where_to_go() -> None:
    """A kill that says nothing of it is a plain one; one that says it badly cannot be followed."""
    plain = (None, "", "{", "[]", "1", "{}", '{"state": "PENDING"}', '{"late": null}')
    assert [None] * len(plain) == [move_of(one) for one in plain]
    assert LATE == move_of(
        json.dumps(
            {
                "state": "CLAIMED",
                "late": {
                    "task_id": LATE.task_id,
                    "task": LATE.task,
                    "outcome": LATE.outcome,
                    "data": LATE.data,
                },
            }
        )
    )
    assert OtherVersion(plan=2, task="pay") == move_of('{"to": {"plan": 2, "task": "pay"}}')
    for bad in (
        '{"late": {}}',
        '{"late": 1}',
        '{"to": {"plan": "2", "task": "pay"}}',
        '{"to": {"plan": true, "task": "pay"}}',
        '{"to": {"plan": 0, "task": "pay"}}',
        f'{{"to": {{"plan": {2**63}, "task": "pay"}}}}',
        '{"to": {"plan": 2}}',
        '{"to": ' + "[" * 9999 + "]" * 9999 + "}",
        '{"late": {"task_id": "a", "task": "b", "outcome": "c", "data": "{}"}, "to": {}}',
    ):
        with pytest.raises(LeadsNowhere):
            move_of(bad)


def test_a_kill_that_says_it_badly_strands() -> None:
    """What a kill by hand says badly does not end an instance by its default exit."""
    log, check = at_check()
    one = Ended.read(check, "operator", None, None, NOW + HOUR, (0, 0, 9), command='{"to": 7}')
    told = [one.message for one in log.follows(ended=[one]).stranded]
    assert ["The command does not say where the instance goes on."] == told
    plain = Ended.read(check, "operator", None, None, NOW + HOUR, (0, 0, 9), command="{}")
    assert "parcel.lost" == log.write(ended=[plain]).rows[0].row.event_type


def test_who_looks_learns_of_moves() -> None:
    """By whom, why, from where and where to; also where a call in between has made it uncertain."""
    tasks: list[dict[str, Any]] = [
        {"task_id": "a", "task": "ask", "version": 1, "cause": "killed", "changed_at": "now"},
        {"task_id": "b", "task": "pay", "version": 2, "cause": "killed", "changed_at": "then"},
    ]
    for one, last, cause in zip(tasks, (None, "a"), (None, "killed"), strict=True):
        one |= {"last_task_id": last, "last_cause": cause}
    instance = {"exit": "paid", "version": 2, "last_task_id": "b", "last_cause": "uncertain"}
    who: dict[str, Any] = {"actor": "ann", "reason": "why not"}
    kills: list[dict[str, Any]] = [
        {"command_id": "k1", "event_id": "a", "arguments": '{"to": {"plan": 2, "task": "pay"}}'},
        {"command_id": "void", "event_id": "a", "arguments": "{}"},
        {
            "command_id": "k2",
            "event_id": "b",
            "arguments": '{"late": {"task_id": "x", "task": "y", "outcome": "z", "data": "{}"}}',
        },
    ]
    attempts: list[dict[str, Any]] = [
        {"command_id": "k1"},
        {"command_id": "k2"},
        {"command_id": None},
    ]
    for one in kills:
        one |= who
    first, second = moves_of(instance, tasks, attempts, kills)
    names = ("from_task", "to_task", "to_event", "is_uncertain", "actor", "reason")
    assert ["ask", "pay", None, False, "ann", "why not"] == [first[name] for name in names]
    assert (1, 2, None) == (first["from_version"], first["to_version"], first["late_task_id"])
    assert ["pay", None, "paid", True, "ann", "why not"] == [second[name] for name in names]
    assert ("x", "z") == (second["late_task_id"], second["late_outcome"])
    (alone,) = moves_of({**instance, "exit": None, "last_task_id": "a"}, tasks, attempts, kills[:1])
    assert ("pay", None) == (alone["to_task"], alone["to_event"])
