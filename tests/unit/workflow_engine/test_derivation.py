"""What follows a start event and the ending of a task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from order_compensation import order_compensation
from order_creation import (
    Decision,
    Notice,
    Order,
    ReceivePayment,
    WaitingForUserOnPayment,
    order_creation,
)
from pydantic import BaseModel, Field
from scripted import Town
from tests.unit.railway.workflow import Book, Check, Label, Labelled, Pack, change, graph
from tests.unit.workflow_engine.derived_log import NOW, DerivedLog, plan

from delta_outbox.core.instants import iso_text
from delta_outbox.lifecycle.states import OUTCOME_REASONS, Reason
from delta_outbox.railway import DEFAULT_EXIT
from delta_outbox.railway.graph import Event, Graph
from delta_outbox.railway.routing import CAUSES, TaskEnding
from delta_outbox.railway.rows import rows_of
from delta_outbox.testing.workflows import Answer, run_workflow
from delta_outbox.workflow_engine.derivation.events import StartEvent, TaskEvent
from delta_outbox.workflow_engine.derivation.follow_ups import Ended, admit, derive
from delta_outbox.workflow_engine.derivation.plans import Plan
from delta_outbox.workflow_engine.derivation.starts import WhyIgnored

HOUR = timedelta(hours=1)


def parcel(
    event_id: str = "e-1", arrival: int = 1, text: bytes | None = None, **fields: Any
) -> StartEvent:
    """Return the event that a parcel is ready; a field that is None is left out."""
    body = {"parcel_id": "p-1", "grams": 20, **fields}
    given = json.dumps({name: one for name, one in body.items() if one is not None}).encode()
    return StartEvent(
        event_id=event_id,
        event_type="parcel.ready",
        payload=given if text is None else text,
        since=NOW,
        arrival=arrival,
        ordering_key="customer-3",
        partition_key="north",
    )


def ended(task: TaskEvent, cause: str, outcome: Any = None, **data: Any) -> Ended:
    """Return the ending of a task, an hour after it was triggered."""
    ending = TaskEnding(cause=cause, outcome=outcome, data=data)
    return Ended(task=task, ending=ending, at=task.created_at + HOUR, position=(0, 0, 1))


def started(workflow: Graph[Any]) -> tuple[DerivedLog, TaskEvent]:
    """Return a log with an instance at its first task."""
    log = DerivedLog(plan(1, workflow))
    log.write([parcel()])
    (first,) = log.tasks()
    return log, first


def test_a_start_event_begins_an_instance() -> None:
    """The first task is named by its template, keyed by its instance, and has its instants."""
    log, first = started(graph())
    (row,) = log.rows.values()
    assert ("shipping-label-p-1-1", "workflow:shipping/label") == (row.event_id, row.event_type)
    assert ("workflow:shipping/p-1", NOW) == (row.ordering_key, row.created_at)
    assert NOW + HOUR == first.expires_at
    assert (parcel().payload.decode(), iso_text(NOW)) == (
        first.origin.payload,
        first.origin.started_at,
    )
    assert first.before is None
    assert {"label": 1} == first.place.visits


def test_an_instance_is_named_by_its_event_if_nothing_else_is_said() -> None:
    """Without a template of its own, each start event begins an instance."""
    log = DerivedLog(plan(1, graph(instance="{event_id}")))
    log.write([parcel("e-1"), parcel("e-2", arrival=2)])
    assert ["shipping-label-e-1-1", "shipping-label-e-2-1"] == list(log.rows)


def test_facts_and_visits_travel_with_the_instance() -> None:
    """A task is told what earlier ones have decided, and how often its instance has come to it."""
    log, label = started(graph())
    log.write(ended=[ended(label, "decided", "unclear", error="smudged")])
    check = log.task("shipping-check-p-1-1")
    assert {"label": {"error": "smudged"}} == check.place.facts
    assert check.before is not None
    assert ("shipping-label-p-1-1", "decided", "unclear") == (
        check.before.task_id,
        check.before.cause,
        check.before.outcome,
    )
    assert (NOW + 2 * HOUR, NOW + 25 * HOUR) == (check.due_at, check.expires_at)
    log.write(ended=[ended(check, "decided", "again")])
    again = log.task("shipping-label-p-1-2")
    assert 2 == again.place.visit
    log.write(ended=[ended(again, "uncertain")])
    assert {"label": {"error": "smudged"}, "check": {}} == log.task(
        "shipping-check-p-1-2"
    ).place.facts


@pytest.mark.parametrize(
    ("cause", "outcome", "to"),
    [
        ("faulted", None, "parcel.lost"),
        ("expired", None, "parcel.lost"),
        ("uncertain", None, "workflow:shipping/check"),
        ("faulted", "unclear", "workflow:shipping/check"),
        ("faulted", DEFAULT_EXIT, "parcel.lost"),
        ("uncertain", "unclear", "workflow:shipping/check"),
        ("killed", None, "parcel.lost"),
    ],
)
def test_what_is_not_decided_leads_where_the_rows_say(cause: str, outcome: Any, to: str) -> None:
    """A fault, an expiry and an uncertainty lead to their outcome or to the default exit, unless
    another outcome was chosen; a task that an operator kills leads to the default exit.
    """
    log, label = started(graph())
    log.write(ended=[ended(label, cause, outcome)])
    assert to == list(log.rows.values())[-1].event_type


@pytest.mark.parametrize(
    ("reason", "outcome", "data", "expected"),
    [
        ("completed", "labelled", '{"a":1}', ("decided", "labelled", {"a": 1})),
        ("rejected", "unclear", None, ("faulted", "unclear", {})),
        ("exhausted", "default exit", None, ("faulted", DEFAULT_EXIT, {})),
        ("expired", "default exit", None, ("expired", DEFAULT_EXIT, {})),
        ("uncertain", "unclear", None, ("uncertain", "unclear", {})),
        ("operator", None, None, ("killed", None, {})),
    ],
)
def test_an_ending_is_read_from_its_transition(
    reason: str, outcome: str | None, data: str | None, expected: Any
) -> None:
    """Each reason that has an outcome, and a kill, says what has happened to the task."""
    assert OUTCOME_REASONS | {Reason.OPERATOR} == CAUSES.keys()
    _, label = started(graph())
    ending = Ended.read(label, reason, outcome, data, NOW, (0, 0, 1)).ending
    assert expected == (ending.cause, ending.outcome, ending.data)


def test_an_instance_ends_with_an_ordinary_event() -> None:
    """The event that ends it has the key and the payload of the one that began it."""
    log, label = started(graph())
    log.write(ended=[ended(label, "expired")])
    end = log.rows["workflow:shipping/p-1"]
    assert ("parcel.lost", "customer-3", "north") == (
        end.event_type,
        end.ordering_key,
        end.partition_key,
    )
    assert (parcel().payload, NOW + HOUR) == (end.payload, end.created_at)
    assert {
        "workflow": "shipping",
        "version": "1",
        "plan": "1",
        "instance": "p-1",
        "start_event_id": "e-1",
        "started_at": iso_text(NOW),
        "task": "label",
        "task_id": "shipping-label-p-1-1",
        "cause": "expired",
        "outcome": "default exit",
    } == end.metadata


def test_the_event_that_ends_a_workflow_starts_another() -> None:
    """A cancelled order begins its compensation, whose instance is the same order."""
    log = DerivedLog(plan(1, order_creation, order_compensation))
    payload = b'{"order_id":"o7","customer":"c1","products":["tea"],"cents":10}'
    order = replace(parcel(), event_type="order.requested", payload=payload)
    log.write([order])
    log.write(ended=[ended(log.task("make-order-o7"), "faulted")])
    end = log.rows["workflow:order_creation/o7"]
    assert "order.cancelled" == end.event_type
    log.write([replace(order, event_id=end.event_id, event_type=end.event_type)])
    assert "order_compensation" == log.task("release-stock-o7").workflow


def test_a_task_that_is_followed_already_is_followed_by_nothing() -> None:
    """The same news again adds no row, and another ending of the same task neither."""
    log, label = started(graph())
    news = ended(label, "decided", "labelled")
    log.write(ended=[news])
    before = dict(log.rows)
    other = ended(label, "decided", "unclear")
    assert () == log.write([parcel()], [news, replace(other, at=news.at + HOUR)]).rows
    assert before == log.rows


def test_an_instance_keeps_its_version() -> None:
    """What began by one plan goes on by it, although the newest plan has other routes."""
    other = graph(routes={Label: {Labelled.LABELLED: Book, Labelled.UNCLEAR: Check}}, version=2)
    log = DerivedLog(plan(1, graph()))
    log.write([parcel()])
    log.plans[4], log.newest = plan(4, other), 4
    log.write([parcel("e-2", 2, parcel_id="p-2")])
    for task in log.tasks():
        log.write(ended=[ended(task, "decided", "labelled")])
    assert (1, 1) == (log.task("shipping-pack-p-1-1").plan, log.task("shipping-pack-p-1-1").version)
    assert (4, 2) == (log.task("shipping-book-p-2-1").plan, log.task("shipping-book-p-2-1").version)


def by_hand(contract: str) -> Plan:
    """Return a plan whose contract of the start event was written by hand."""
    rows = rows_of(graph())
    rows["railway_workflows"][0]["start_contract"] = contract
    return Plan(1, {"rows": rows})


AS_GIVEN = plan(1, graph(change(Pack, identifier="{parcel_id}")))
# Why a start event begins nothing, and part of what is said.
IGNORED = [
    (WhyIgnored.PAYLOAD_REFUSED, plan(1, graph()), parcel(text=b"\xff"), "it is no JSON."),
    (WhyIgnored.PAYLOAD_REFUSED, plan(1, graph()), parcel(text=b"[]"), "it is no JSON object."),
    (WhyIgnored.PAYLOAD_REFUSED, plan(1, graph()), parcel(grams=None), "it breaks required: grams"),
    (WhyIgnored.PAYLOAD_REFUSED, plan(1, graph()), parcel(grams="9"), "breaks properties/grams/"),
    (WhyIgnored.FIELD_MISSING, by_hand(""), parcel(parcel_id=None), "'parcel_id', which is"),
    (WhyIgnored.FIELD_MISSING, by_hand(""), parcel(parcel_id=True), "neither text nor a whole"),
    (WhyIgnored.FIELD_MISSING, by_hand(""), parcel(parcel_id=7.5), "neither text nor a whole"),
    (WhyIgnored.IDENTIFIER_REFUSED, plan(1, graph()), parcel(parcel_id=" "), "of the instance"),
    (WhyIgnored.IDENTIFIER_REFUSED, plan(1, graph()), parcel(parcel_id="a\nb"), "the instance"),
    (WhyIgnored.IDENTIFIER_REFUSED, plan(1, graph()), parcel(parcel_id="é" * 244), "of label"),
    (WhyIgnored.IDENTIFIER_REFUSED, AS_GIVEN, parcel(parcel_id="workflow:a/b"), "of pack would"),
]


@pytest.mark.parametrize(("why", "made", "event", "says"), IGNORED)
def test_why_a_start_event_begins_nothing(
    why: WhyIgnored, made: Plan, event: StartEvent, says: str
) -> None:
    """A payload, a field or an identifier that will not do is on record, and stops nobody else."""
    log = DerivedLog(made)
    derived = log.write([event, parcel("e-2", 2, parcel_id="p-2")])
    (ignored,) = derived.ignored
    assert ("e-1", 1, "shipping", None, why) == (
        ignored.event_id,
        ignored.arrival,
        ignored.workflow,
        ignored.instance,
        ignored.why,
    )
    assert says in ignored.message
    assert ["shipping-label-p-2-1"] == list(log.rows)


@pytest.mark.parametrize(
    ("contract", "says"),
    [
        *((one, "is no JSON Schema") for one in ('{"type":"text"}', "true", "[]", "{", "null")),
        *((one, "cannot be applied") for one in ('{"$ref":"https://a.b"}', '{"$ref":"#"}')),
    ],
)
def test_a_contract_that_cannot_be_read_begins_nothing(contract: str, says: str) -> None:
    """Rows by hand may have a contract that only its reader finds to be none, or that is elsewhere:
    nothing is fetched.
    """
    (ignored,) = DerivedLog(by_hand(contract)).write([parcel()]).ignored
    assert WhyIgnored.PAYLOAD_REFUSED == ignored.why
    assert says in ignored.message


class Nested(BaseModel):
    parcel_id: str
    grams: Annotated[float, Field(multiple_of=0.01)] = 1.0
    inner: Nested | None = None


@pytest.mark.parametrize(
    "fields", [b'"grams":1e999', b'"inner":' + b'{"inner":' * 185 + b"null" + b"}" * 185]
)
def test_a_payload_that_cannot_be_judged_stops_nobody(fields: bytes) -> None:
    """A number or a nesting for which the validator has no answer begins nothing; others begin."""
    log = DerivedLog(plan(1, graph(start=Nested)))
    derived = log.write([parcel(text=b'{"parcel_id":"p-1",' + fields + b"}"), parcel("e-2", 2)])
    assert [("e-1", "The payload is refused: its contract cannot be applied.")] == [
        (one.event_id, one.message) for one in derived.ignored
    ]
    assert ["shipping-label-p-1-1"] == list(log.rows)


def test_a_contract_by_hand_needs_no_defaults() -> None:
    """A field that may be anything is read as it is, and has no default."""
    made = by_hand('{"properties":{"parcel_id":true}}')
    derived = DerivedLog(made).write([parcel(), parcel("e-2", 2, parcel_id=None)])
    assert ["e-2"] == [one.event_id for one in derived.ignored]
    assert 1 == len(derived.rows)


@pytest.mark.parametrize("together", [True, False])
def test_a_second_start_begins_nothing(together: bool) -> None:
    """Of two start events of one instance the first in the log counts, also long after its end."""
    log = DerivedLog(plan(1, graph()))
    first, second = parcel("e-9", 1), parcel("e-2", 2)
    if together:
        derived = log.write([second, first])
    else:
        log.write([first])
        log.write(ended=[ended(log.task("shipping-label-p-1-1"), "expired")])
        derived = log.write([second])
    (ignored,) = derived.ignored
    assert ("e-2", "p-1", WhyIgnored.SECOND_START) == (
        ignored.event_id,
        ignored.instance,
        ignored.why,
    )
    assert "'e-9' has begun this instance" in ignored.message
    assert "e-9" == log.task("shipping-label-p-1-1").origin.event_id


def test_a_start_whose_identifier_is_taken_begins_nothing() -> None:
    """An event of somebody else, or of another instance, that has the id of the first task."""
    named = graph(change(Label, identifier="label-{grams}"))
    log = DerivedLog(plan(1, named))
    derived = log.write([parcel(), parcel("e-2", 2, parcel_id="p-2")])
    (ignored,) = derived.ignored
    assert ("e-2", "p-2", WhyIgnored.IDENTIFIER_TAKEN) == (
        ignored.event_id,
        ignored.instance,
        ignored.why,
    )
    assert ["label-20"] == list(log.rows)
    foreign = DerivedLog(plan(1, graph()))
    (row,) = foreign.follows([parcel()]).rows
    foreign.rows[row.row.event_id] = replace(row.row, event_type="label.made")
    (ignored,) = foreign.write([parcel()]).ignored
    assert WhyIgnored.IDENTIFIER_TAKEN == ignored.why


def test_an_instance_that_nobody_can_lead_on_is_stranded() -> None:
    """A later identifier that is taken, or an outcome that its version does not know, is told; no
    other instance stands still for it.
    """
    named = graph(change(Pack, identifier="pack-{grams}"))
    log = DerivedLog(plan(1, named))
    log.write([parcel(), parcel("e-2", 2, parcel_id="p-2"), parcel("e-3", 3, parcel_id="p-3")])
    one, other, third = log.tasks()
    news = [ended(each, "decided", "labelled") for each in (one, other)]
    derived = log.write(ended=[*news, ended(third, "decided", "shredded")])
    assert ["workflow:shipping/p-1"] == [each.task.key for each in derived.rows]
    assert {
        ("workflow:shipping/p-2", "Another event has the id 'pack-20'."),
        ("workflow:shipping/p-3", "shipping.label has no outcome 'shredded'."),
    } == {(each.key, each.message) for each in derived.stranded}


@pytest.mark.parametrize("data", ["{", "[1]", "null"])
def test_data_that_is_no_object_leads_nowhere(data: str) -> None:
    """An ending whose data nobody can hand on strands its instance, and no other."""
    log, label = started(graph())
    read = Ended.read(label, "completed", "labelled", data, NOW, (0, 0, 1))
    (stranded,) = log.write(ended=[read]).stranded
    assert ("Its data is no JSON object.", label.key) == (stranded.message, stranded.key)


@pytest.mark.parametrize("levels", [64, 65, 900, 100_000])
def test_data_that_is_nested_too_deep_leads_nowhere(levels: int) -> None:
    """It is told of its instance, and stops no other."""
    log = DerivedLog(plan(1, graph()))
    log.write([parcel(), parcel("e-2", 2, parcel_id="p-2")])
    one, other = log.tasks()
    data = '{"[{[":' + '{"\\"{":' * (levels - 1) + "1" + "}" * levels
    deep = Ended.read(one, "completed", "labelled", data, NOW, (0, 0, 1))
    derived = log.write(ended=[deep, ended(other, "decided", "labelled")])
    told = "Its data is nested deeper than 64 levels."
    assert ([] if levels == 64 else [told]) == [each.message for each in derived.stranded]
    assert "shipping-pack-p-2-1" in log.rows


def test_the_plan_of_an_instance_that_has_ended_may_be_gone() -> None:
    """An ending that was followed already is passed over; an open instance without its plan is
    stranded, and no other stands still for it.
    """
    log = DerivedLog(plan(1, graph()))
    log.write([parcel(), parcel("e-2", 2, parcel_id="p-2")])
    first, second = (ended(one, "expired") for one in log.tasks())
    log.write(ended=[first])
    log.plans, log.newest = {2: plan(2, graph(version=2))}, 2
    derived = log.write([parcel("e-3", 3, parcel_id="p-3")], [first, second])
    assert [("workflow:shipping/p-2", "Plan 1 of shipping is not there.")] == [
        (one.key, one.message) for one in derived.stranded
    ]
    assert "shipping-label-p-3-1" in log.rows


def test_what_started_a_workflow_before_a_build_is_ignored_by_name() -> None:
    """An event of the type by which a workflow started until the newest plan, and starts no more,
    begins nothing, and that is kept, once; what starts it by the newest plan does.
    """
    packed = graph(version=2, starts_on="parcel.packed")
    plans = {1: plan(1, graph()), 2: plan(2, graph()), 3: plan(3, packed)}
    new = replace(parcel("e-2", 2), event_type="parcel.packed")
    derived = derive([parcel(), new], [], plans, 3, former=(1, 2))
    assert ["e-2"] == [one.start.event_id for one in derived.rows if one.start]
    assert [("e-1", "shipping", WhyIgnored.STARTS_ON_CHANGED)] == [
        (one.event_id, one.workflow, one.why) for one in derived.ignored
    ]
    assert () == derive([parcel()], [], plans, 2, former=(1,)).ignored
    assert () == derive([new], [], plans, 3, former=(1, 2)).ignored


def test_a_row_whose_earlier_ones_are_not_there_is_not_written() -> None:
    """Of an instance of which the log has nothing, or too little, nothing is made up."""
    log, label = started(graph())
    derived = derive([], [ended(label, "decided", "labelled")], log.plans, log.newest)
    admitted = admit(derived, {}, set())
    assert () == admitted.rows
    assert ["Event 2 would follow, and the log has 0 of the instance."] == [
        one.message for one in admitted.stranded
    ]


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_endings_the_first_in_the_log_counts(turned: bool) -> None:
    """In whatever order they are read, and also if they went on record at one instant."""
    log, label = started(graph())
    first = ended(label, "decided", "unclear")
    second = replace(ended(label, "decided", "labelled"), position=(0, 0, 2))
    log.write(ended=[second, first] if turned else [first, second])
    assert ["shipping-label-p-1-1", "shipping-check-p-1-1"] == list(log.rows)


class Renamed(BaseModel):
    parcel_id: str = Field(alias="parcelId")
    grams: int = 30


def test_a_field_is_read_by_its_key_and_has_its_default() -> None:
    """A field with an alias is found, one that may be left out counts as the class has it, and
    whole numbers have one text however they are written.
    """
    made = graph(change(Label, identifier="label-{parcel_id}-{grams}"), start=Renamed)
    log = DerivedLog(plan(1, made))
    payloads = (b'{"parcelId":"a"}', b'{"parcelId":"b","grams":2.0}')
    for arrival, payload in enumerate(payloads):
        log.write([replace(parcel(f"e-{arrival}", arrival), payload=payload)])
    assert ["label-a-30", "label-b-2"] == list(log.rows)


def test_a_row_comes_back_as_it_was_made() -> None:
    """Facts of any JSON, half a surrogate pair too, and the payload of the start are kept."""
    payload = b'{ "parcel_id" : "p-1", "grams": 20, "price": 0.1000000000000000000001 }'
    log = DerivedLog(plan(1, graph()))
    log.write([replace(parcel(), payload=payload)])
    facts = {"half": "\ud800", "é": [None, 1.5, {"a": "b"}]}
    log.write(ended=[ended(log.task("shipping-label-p-1-1"), "decided", "labelled", **facts)])
    pack = log.task("shipping-pack-p-1-1")
    assert {"label": facts} == pack.place.facts
    assert payload == pack.origin.payload.encode()
    assert pack.row() == log.rows[pack.task_id]
    log.rows[pack.task_id].payload.decode()


def test_no_instant_lies_beyond_the_last_one() -> None:
    """What is triggered at the end of the year 9999 expires then."""
    log = DerivedLog(plan(1, graph()))
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    log.write([replace(parcel(), since=last)])
    assert last == log.task("shipping-label-p-1-1").expires_at


@pytest.mark.parametrize("year", [1, 999, 9999])
def test_a_task_of_any_year_can_be_read(year: int) -> None:
    """When it was triggered, expires and becomes due comes back from its row."""
    since = datetime(year, 1, 1, tzinfo=UTC)
    log = DerivedLog(plan(1, graph(first=Check)))
    log.write([replace(parcel(), since=since)])
    check = log.task("shipping-check-p-1-1")
    assert (since, since + HOUR) == (check.created_at, check.due_at)
    assert since + timedelta(days=1) == check.expires_at


def routes_to(workflow: Graph[Any]) -> Iterator[list[Any]]:
    """Yield, for each route of a workflow, a way from its first task that ends with it."""
    ways: dict[Any, list[Any]] = {workflow.first: []}
    todo = [workflow.first]
    for task in todo:
        for leg in workflow.legs(task):
            way = [*ways[task], leg]
            yield way
            if leg.target not in ways and isinstance(leg.target, type):
                ways[leg.target] = way
                todo.append(leg.target)


@pytest.mark.parametrize("workflow", [order_creation, order_compensation])
def test_every_route_of_the_example_is_followed(workflow: Graph[Any]) -> None:
    """Along each line of the picture derivation makes the task or the event to which it leads."""
    payload = b'{"order_id":"o7","customer":"c1","products":["tea"]}'
    event = replace(parcel(), event_type=workflow.starts_on, payload=payload)
    ways = list(routes_to(workflow))
    assert len(ways) == sum(len(list(workflow.legs(task))) for task in workflow.tasks)
    for way in ways:
        log = DerivedLog(plan(1, workflow))
        log.write([event])
        for leg in way:
            task = list(log.tasks())[-1]
            assert leg.task.task_name() == task.place.task
            log.write(ended=[ended(task, leg.cause, leg.outcome)])
        last = list(log.rows.values())[-1].event_type
        to = leg.target
        name = (
            to.event_type if isinstance(to, Event) else f"workflow:{workflow.name}/{to.task_name()}"
        )
        assert name == last


def test_the_kit_goes_the_same_way() -> None:
    """An order that runs in the kit passes the tasks that derivation makes of its outcomes."""
    order = Order(order_id="o7", customer="c1", products=("tea",))
    refused: Any = "insufficient_funds"
    notices = [Notice(order_id="o7", attempt=n, status=refused) for n in (1, 2)]
    choices: Any = [(1, "try_again"), (2, "cancel")]
    town = Town()
    run = run_workflow(
        order_creation,
        town.tasks(),
        order,
        people=[
            *(Answer(task=ReceivePayment, data=one) for one in notices),
            *(
                Answer(
                    task=WaitingForUserOnPayment,
                    data=Decision(order_id="o7", attempt=n, decision=decision),
                )
                for n, decision in choices
            ),
        ],
        third_parties=town.parties,
    )
    log = DerivedLog(plan(1, order_creation))
    payload = b'{"order_id":"o7","customer":"c1","products":["tea"]}'
    log.write([replace(parcel(), event_type="order.requested", payload=payload)])
    for passed in run.passed:
        log.write(ended=[ended(log.task(passed.task_id), passed.cause, passed.outcome)])
    assert [one.task_id for one in run.passed] == [one.task_id for one in log.tasks()]
    assert run.end == log.rows["workflow:order_creation/o7"].event_type
