"""Which open instances are moved to another version, to which task, under which identifier."""

from __future__ import annotations

import json
from typing import Any

import pytest
from order_creation import order_creation
from tests.unit.railway.workflow import Check, Label, Pack, change, graph
from tests.unit.workflow_engine.derived_log import DerivedLog, plan
from tests.unit.workflow_engine.test_derivation import ended, parcel

from delta_outbox.core.errors import WrongUsage
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.workflow_engine.derivation.plans import Plan
from delta_outbox.workflow_engine.migrations import (
    Migration,
    UnknownVersion,
    is_meant,
    judged,
    migration,
    plan_of,
    refused_names,
    tasks_again,
)

FIRST = plan(1, graph())
SECOND = plan(2, graph(change(Check, identifier="look-{parcel_id}-{visit}"), version=2))
ASKED = Migration(workflow="shipping", to_version=2, tasks={"check": "label", "label": "check"})


def found(asked: Migration = ASKED, plan: Plan = SECOND, **row: Any) -> dict[str, Any]:
    """Return what is said of an open check of the first version."""
    log = DerivedLog(FIRST)
    log.write([parcel()])
    (label,) = log.tasks()
    log.write(ended=[ended(label, "uncertain")])
    check = log.task("shipping-check-p-1-1")
    given = {
        "event_id": check.task_id,
        "arrival": 7,
        "task": "check",
        "version": 1,
        "arguments": '{"state":"CLAIMED"}',
        "refusal": None,
        **row,
    }
    (made,) = judged([given], asked, plan, {(check.task_id, 7): check})
    return made


def test_an_instance_goes_on_at_the_mapped_task() -> None:
    """The command names the plan and the task; the preview says version, task and identifier."""
    made = found()
    assert (None, 2, "label", "shipping-label-p-1-2") == (
        made["refusal"],
        made["to_version"],
        made["to_task"],
        made["to_task_id"],
    )
    assert {"state": "CLAIMED", "to": {"plan": 2, "task": "label"}} == json.loads(made["arguments"])


@pytest.mark.parametrize(
    ("row", "refusal"),
    [
        ({"task": "pack"}, "stands at 'pack', for which no task is mapped"),
        ({"version": 2}, "goes by version 2"),
        ({"refusal": "is attempted right now"}, "is attempted right now"),
        ({"arrival": 8}, "was made by no numbered write"),
    ],
)
def test_who_is_left_out_is_told_why(row: dict[str, Any], refusal: str) -> None:
    """Whoever stands elsewhere, goes by the version already, or was refused before, stays."""
    assert refusal == found(**row)["refusal"]


def test_who_cannot_go_by_the_version_is_left_out() -> None:
    """A version whose contract refuses the start event takes no such instance."""
    other = plan(2, graph(change(Label, identifier="l-{parcel_id}-{visit}"), version=2))
    row = other.versions["shipping"].routing.row | {"start_contract": '{"required": ["height"]}'}
    rows = {
        "railway_workflows": [row],
        "railway_tasks": [*other.versions["shipping"].routing.tasks.values()],
        "railway_routes": [],
    }
    refusal = found(plan=Plan(2, {"rows": rows}))["refusal"]
    assert refusal.startswith("cannot go by version 2: The payload is refused: ")


def test_an_identifier_is_used_once() -> None:
    """Who would get an identifier that is known is left out, with what to do about it; so are two
    that would get the same one.
    """
    routing = SECOND.versions["shipping"].routing
    made = found()
    assert None is refused_names([made], set(), routing)[0]["refusal"]
    (again,) = refused_names([made], {"shipping-label-p-1-2"}, routing)
    assert "would get the identifier 'shipping-label-p-1-2' of another event" == again["refusal"]
    twice = refused_names([made, made], set(), routing)
    assert {again["refusal"]} == {one["refusal"] for one in twice}
    plain = plan(2, graph(change(Pack, identifier="pack-{parcel_id}"), version=2))
    asked = Migration(workflow="shipping", to_version=2, tasks={"check": "pack"})
    to_pack = found(asked, plain)
    (named,) = refused_names([to_pack], {"pack-p-1"}, plain.versions["shipping"].routing)
    assert (
        "would get the identifier 'pack-p-1' of another event: give the identifier of 'pack' a "
        "{visit}, and build that version" == named["refusal"]
    )


def test_who_may_come_to_a_task_again_is_left_out() -> None:
    """A move leaves the routes of a version, so the instance may come again to a task that lies on
    no loop: at once, or later. Where its identifier has no visit, nothing could follow there.
    """
    plain = plan(2, graph(change(Check, identifier="check-{parcel_id}-{{visit}}"), version=2))
    for tasks in ({"check": "check"}, {"check": "tell"}):
        asked = Migration(workflow="shipping", to_version=2, tasks=tasks)
        assert found(asked)["refusal"] is None
        made = found(asked, plain)
        assert (
            "may come again to check, whose identifier has no {visit}, and would be stranded "
            "there: migrate it to a version whose identifier has one, or answer or cancel its task"
        ) == made["refusal"]
        assert made["to_task_id"] is None


def test_an_order_may_come_to_its_review_again() -> None:
    """Of the orders of the example: a payment has expired, support looks, and the payment comes
    after all. To capture the money may lead to support again, whose identifier has no visit; a
    task to which an order has not come yet is new to it.
    """
    routing = plan(1, order_creation).versions["order_creation"].routing
    visits = ["create_payment_attempt", "receive_payment", "customer_support_review"]
    assert ["customer_support_review"] == tasks_again(routing, "payment_successful", visits)
    assert ["customer_support_review"] == tasks_again(routing, "customer_support_review", visits)
    assert [] == tasks_again(routing, "payment_successful", visits[:2])


def test_instances_of_the_version_itself_are_not_meant() -> None:
    """Only those of the version that is left are meant; who is named is told in any case."""
    only = Migration(workflow="shipping", to_version=3, from_version=2, tasks={"check": "label"})
    for asked, version, expected in ((ASKED, 1, True), (ASKED, 2, False), (only, 1, False)):
        assert expected is is_meant({"version": version}, asked, is_named=False)
        assert is_meant({"version": version}, asked, is_named=True)


def test_the_newest_rows_of_a_version_count() -> None:
    """Of several plans with a version the newest one counts; it must have the tasks, and lead to
    none that nobody has the code of any more.
    """
    newer = plan(3, graph(version=2))
    assert 3 == plan_of(ASKED, [newer, SECOND, FIRST]).number
    back = Migration(workflow="shipping", to_version=1, tasks={"check": "label"})
    assert 1 == plan_of(back, [SECOND, FIRST]).number
    with pytest.raises(UnknownVersion):
        plan_of(ASKED, [FIRST])
    with pytest.raises(WrongUsage, match="has no task fly"):
        plan_of(Migration(workflow="shipping", to_version=2, tasks={"check": "fly"}), [SECOND])
    without = plan(4, graph(name="other"))
    with pytest.raises(WrongUsage, match="leads on to book, check, label, pack, tell, which"):
        plan_of(back, [without, FIRST])


def test_nobody_is_moved_to_rows_of_another_category() -> None:
    """The code in force would be run by the rules of another category: after a call without a word
    a black box would be called again, as if its third party knew the key.
    """
    rows = joined([rows_of(graph(version=2))])
    for row in rows["railway_tasks"]:
        if row["task"] == "tell":
            row["category"] = "idempotent"
    other = Plan(2, {"version": "2", "rows": rows})
    newest = plan(3, graph(version=3))
    with pytest.raises(WrongUsage, match=r"leads on to tell, which .* have in another category"):
        plan_of(ASKED, [newest, other])
    assert 2 == plan_of(ASKED, [newest, SECOND]).number


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"workflow": None}, "workflow"),
        ({"to_version": None}, "to_version"),
        ({"to_version": 0}, "to_version"),
        ({"to_version": True}, "to_version"),
        ({"from_version": 2}, "from_version"),
        ({"tasks": {}}, "tasks"),
        ({"tasks": {"a": ""}}, "tasks"),
        ({"tasks": "a=b"}, "tasks"),
    ],
)
def test_bad_arguments_are_refused_by_name(given: dict[str, Any], name: str) -> None:
    """What is wrong is named, with its rule and what came."""
    good: dict[str, Any] = {"workflow": "shipping", "to_version": 2, "tasks": {"check": "label"}}
    assert ASKED.workflow == migration(**good).workflow
    with pytest.raises(WrongUsage, match=rf"workflow migrate: `{name}` .*Got: "):
        migration(**(good | given))
