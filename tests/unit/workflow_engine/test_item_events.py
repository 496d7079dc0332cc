"""What tells that items are open and due: once each, with a link where their class asks for it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.unit.railway.workflow import Check, change, graph
from tests.unit.workflow_engine.derived_log import NOW, open_task, plan

from delta_outbox.core.errors import BadSettings
from delta_outbox.core.instants import iso_text
from delta_outbox.core.settings import MAX_ID_BYTES
from delta_outbox.railway.routing import Place
from delta_outbox.workflow_engine.derivation.events import NewEvent, StartEvent, TaskEvent
from delta_outbox.workflow_engine.derivation.follow_ups import derive
from delta_outbox.workflow_engine.derivation.item_events import (
    DueItem,
    DueMark,
    told_of_due,
    told_of_new,
)
from delta_outbox.workflow_engine.derivation.starts import MOST_VISITS, WhyIgnored
from delta_outbox.workflow_engine.execution.link_check import demand_secret, warn_of_links

MINUTE = timedelta(minutes=1)
DUE = NOW + timedelta(hours=1)  # when the items here are due
END = NOW + timedelta(days=1)


def link(task_id: str) -> str:
    """Return what stands for a link."""
    return f"/todo/link?id={task_id}"


def item(task: str = "check", task_id: str = "check-1") -> TaskEvent:
    """Return a task of plan 1."""
    return open_task(
        workflow="shipping",
        instance="p-1",
        place=Place(task=task, visits={task: 2}),
        task_id=task_id,
        expires_at=END,
        due_at=DUE if task == "check" else None,
    )


def told_at_once(
    *tasks: TaskEvent, mark: DueMark | None = None, at: datetime = NOW, **changes: Any
) -> list[NewEvent]:
    """Return what is told of tasks that are written now.

    Args:
        tasks: that are.
        mark: of the write; without one, of its instant.
        at: when it was planned.
        changes: to the class of the items.
    """
    plans = {1: plan(1, graph(change(Check, **changes)))}
    return list(told_of_new(tasks, plans, mark or DueMark(at=at), at, link))


def body(event: NewEvent) -> dict[str, Any]:
    """Return the payload of an event."""
    found: dict[str, Any] = json.loads(event.payload)
    return found


def test_an_event_says_what_whoever_reminds_must_know() -> None:
    """It names the item, who may answer it, until when, and nothing of its read model; both events
    of an item have its key, and are in order.
    """
    opened, due = told_at_once(item(), at=DUE, tells_opened=True, sends_link=True)
    assert (
        {
            "task_id": "check-1",
            "workflow": "shipping",
            "version": 1,
            "instance": "p-1",
            "task": "check",
            "title": "Check",
            "visit": 2,
            "roles": ["shipping"],
            "opened_at": iso_text(NOW),
            "due_at": iso_text(DUE),
            "expires_at": iso_text(END),
            "assigned_to": None,
            "link": "/todo/link?id=check-1",
        }
        == body(opened)
        == body(due)
    )
    assert ("workflow:todo.opened/check-1", "todo.opened") == (opened.event_id, opened.event_type)
    assert ("workflow:todo.due/check-1", "todo.due") == (due.event_id, due.event_type)
    assert ("check-1", "check-1") == (opened.ordering_key, due.ordering_key)
    assert (NOW, DUE) == (opened.created_at, due.created_at)


@pytest.mark.parametrize(
    ("changes", "at", "expected"),
    [
        ({}, NOW, []),
        ({}, DUE, ["todo.due"]),
        ({"tells_opened": True}, NOW, ["todo.opened"]),
        ({"tells_opened": True}, DUE, ["todo.opened", "todo.due"]),
        ({"tells_opened": True}, END, []),  # it is over when it is written
    ],
)
def test_an_item_that_is_due_already_is_told_with_its_beginning(
    changes: dict[str, Any], at: datetime, expected: list[str]
) -> None:
    """What is due when it is written is told to be by the same write; that it is open is told where
    its class says so; and nothing is told of an item that nobody can answer any more.
    """
    assert expected == [one.event_type for one in told_at_once(item(), at=at, **changes)]


def test_nothing_is_told_of_other_tasks() -> None:
    """A task of a third party is no item, and one whose plan is not there leads nowhere."""
    lost = replace(item(), plan=2)
    assert [] == told_at_once(item("pack", "pack-1"), lost, at=DUE, tells_opened=True)


@pytest.mark.parametrize("secret", ["there is one", None])
@pytest.mark.parametrize("asks", [True, False])
def test_a_link_is_sent_if_the_class_asks_for_it(secret: str | None, asks: bool) -> None:
    """A class that asks for a link gets one, as long as there is a secret that signs it."""
    plans = {1: plan(1, graph(change(Check, sends_link=asks)))}
    makes = None if secret is None else link
    found = [
        *told_of_new([item()], plans, DueMark(at=DUE), DUE, makes),
        *told_of_due([(DueItem(task_id="check-1", arrival=7), item())], plans, DUE, makes),
    ]
    expected = "/todo/link?id=check-1" if secret and asks else None
    assert [expected, expected] == [body(one)["link"] for one in found]


def test_a_reminder_names_the_holder_and_the_end_as_they_are_now() -> None:
    """An item that was extended, or given to somebody, is told of as it stands; one that is over by
    its claim is not.
    """
    plans = {1: plan(1, graph())}
    later = END + MINUTE
    held = DueItem(task_id="check-1", arrival=7, expires_at=later, assigned_to="ann")
    over = replace(held, expires_at=DUE)
    found = told_of_due([(held, item()), (over, item())], plans, DUE, link)
    assert [("ann", iso_text(later))] == [
        (body(one)["assigned_to"], body(one)["expires_at"]) for one in found
    ]
    endless = replace(item(), expires_at=None)  # its claim lasts until the year 2261
    (one,) = told_of_due([(held, endless)], plans, DUE, link)
    assert body(one)["expires_at"] is None


def test_an_identifier_that_events_cannot_carry_begins_nothing() -> None:
    """Where an event of an item would have too long an id, that is said when nothing is done yet;
    without such events the same identifier is as good as any.
    """
    long = "x" * (MAX_ID_BYTES - len(f"workflow:todo.due/-{MOST_VISITS}") + 1)

    def why(**changes: Any) -> list[WhyIgnored]:
        workflow = graph(change(Check, identifier=f"{long}-{{visit}}", **changes))
        event = StartEvent(
            event_id="e-1",
            event_type="parcel.ready",
            payload=b'{"parcel_id":"p-1","grams":20}',
            since=NOW,
            arrival=1,
        )
        derived = derive([event], [], {1: plan(1, workflow)}, 1)
        return [one.why for one in derived.ignored]

    assert [WhyIgnored.IDENTIFIER_REFUSED] == why()
    assert [] == why(due=None)


def test_a_relay_that_cannot_sign_links_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """Where items ask for links, the settings must have a secret, else nobody asks for one; a relay
    that runs already says so and goes on.
    """
    asking = plan(1, graph(change(Check, sends_link=True)))
    with pytest.raises(BadSettings, match=r"shipping\.check") as refused:
        demand_secret(asking, None)
    assert "${ENV}" in refused.value.remedy
    warn_of_links(asking, None)
    demand_secret(asking, "x" * 32)
    warn_of_links(asking, "x" * 32)
    demand_secret(plan(1, graph()), None)
    assert ["links_unsigned"] == [one.message for one in caplog.records]
