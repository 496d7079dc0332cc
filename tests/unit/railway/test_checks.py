"""Every rule of a declaration is checked, with a message that names task, rule and remedy."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, fields, make_dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field
from tests.unit.railway.workflow import (
    LOST,
    ROUTES,
    SENT,
    Book,
    Booked,
    Check,
    Checked,
    Finding,
    Label,
    Labelled,
    Pack,
    Packed,
    Parcel,
    Tell,
    Told,
    change,
    graph,
    without,
)

from delta_outbox.railway import (
    DEFAULT_EXIT,
    AskHuman,
    AtLeastOnce,
    AtMostOnce,
    BadWorkflow,
    BlackBox,
    Event,
    Hurt,
    Idempotent,
    Necessity,
    Never,
    OptimisticLock,
    Outcome,
    PessimisticLock,
    Risk,
    Route,
    Task,
    ToDo,
    UpTo,
    Visibility,
    Workflow,
    checks,
)
from delta_outbox.railway.checks import problems_among, problems_of
from delta_outbox.railway.explanations import EXPLANATIONS
from delta_outbox.railway.graph import Graph
from delta_outbox.railway.rows import COLUMNS


class NoOutcome(Outcome):
    pass


class Odd(Outcome):
    ODD = "Not a name"


class Other(Task):
    pass


class Approve(Check):
    identifier = "approve-{parcel_id}-{visit}"
    not_by = (Check,)
    sends_link = True


class Elsewhere(Label):
    identifier = "elsewhere-{parcel_id}-{visit}"


@dataclass(frozen=True, kw_only=True)
class Refund:
    refund_id: str


class Unspeakable(BaseModel):
    task_id: Callable[[], str]


class Returned(Idempotent[Refund, Labelled]):
    pass


ROOT = Path(__file__).resolve().parents[3]
NOWHERE = timedelta(0)
SHOULD: dict[str, Any] = {"necessity": "should"}
LONELY: dict[Any, Any] = {**ROUTES, Elsewhere: {Labelled.LABELLED: SENT, Labelled.UNCLEAR: SENT}}
WARNINGS = {"at_least_once_for_ever", "uncertainty_expires"}
STRANGE = make_dataclass("Strange", [("parcel_id", str), ("task", str)])

# What is wrong, the task it is said of, the rule, and part of what is said.
CASES = {
    "workflow_name": (graph(name="Shipping!"), None, "'Shipping!' is no name"),
    "wrong_kind": (graph(lease=60), None, "`lease` is 60"),
    "first_no_task": (graph(first="label"), None, "`first` is 'label', which is no class"),
    "route_no_task": (
        replace(graph(), routes=(Route(Pack(), ROUTES[Pack]),)),  # type: ignore[arg-type]
        None,
        "Pack object",
    ),
    "version": (graph(version=0), None, "version is 0"),
    "starts_on": (graph(starts_on="workflow:other/task"), None, "type of a start event"),
    "event_type": (graph(default_exit=Event(event_type=" ")), None, "type of a domain event"),
    "start": (graph(start=str), None, "has no fields"),
    "start_fields": (graph(start=STRANGE), None, "['task']"),
    "start_no_schema": (
        graph(start=make_dataclass("Odd", [("parcel_id", str), ("odd", Callable[[], None])])),
        None,
        "the start event cannot be told to others: ",
    ),
    "instance_malformed": (graph(instance="{parcel_id"), None, "it is no template"),
    "instance_unknown_field": (graph(instance="{parcel}"), None, "uses parcel, which"),
    "instance_no_text": (graph(instance="{lines}"), None, "neither text nor a whole number"),
    "routes": (graph(dict.fromkeys(ROUTES)), None, "it has no routes"),
    "route_twice": (
        replace(graph(), routes=(*graph().routes, Route(Label, ROUTES[Label]))),
        None,
        "label has 2 routes",
    ),
    "task_name_twice": (
        graph(routes={type("Label", (Label,), {}): ROUTES[Label]}),
        None,
        "two classes are called label",
    ),
    "first_without_route": (graph(first=Elsewhere), None, "begins with elsewhere"),
    "no_outcomes": (
        graph(change(Label, outcomes=classmethod(lambda cls: NoOutcome))),
        "label",
        "names no outcomes",
    ),
    "outcome_leads_nowhere": (
        graph(routes={Pack: {Packed.PACKED: Book}}),
        "pack",
        "outcome 'broken' leads nowhere",
    ),
    "outcome_name": (
        graph(
            change(Book, outcomes=classmethod(lambda cls: Odd), when_uncertain=Odd.ODD),
            routes={Book: {Odd.ODD: Tell}},
        ),
        "book",
        "'Not a name' is no name",
    ),
    "unknown_outcome": (
        graph(routes={Book: {Booked.BOOKED: Tell, Told.TOLD: SENT}}),
        "book",
        "names 'told', which it cannot decide",
    ),
    "target_without_route": (graph({Book: None}), "pack", "leads to Book, which has no route"),
    "target_no_task": (
        graph(routes={Pack: {Packed.PACKED: "parcel.sent", Packed.BROKEN: LOST}}),
        "pack",
        "leads to 'parcel.sent', neither a task's class nor an event",
    ),
    "target_of_another_workflow": (
        graph(routes={Pack: {Packed.PACKED: Returned, Packed.BROKEN: LOST}}),
        "pack",
        f"{__name__}.Returned, a task whose start event is Refund, not Parcel",
    ),
    "no_category": (graph({Book: Other}), "other", "it has no category"),
    "functions_missing": (graph(without(Pack, "lookup")), "pack", "it lacks lookup"),
    "attribute_misspelt": (
        graph(change(Pack, when_expire=Packed.BROKEN)),
        "pack",
        "`when_expire` has no effect",
    ),
    "attribute_of_another_category": (
        graph(change(Pack, key_valid_for=timedelta(hours=1))),
        "pack",
        "`key_valid_for` has no effect on a task of category pessimistic_lock",
    ),
    "expires_missing": (graph(without(Pack, "expires")), "pack", "when it expires"),
    "expires_no_duration": (graph(change(Pack, expires=60)), "pack", "expires is 60"),
    "expires_out_of_range": (graph(change(Pack, expires=NOWHERE)), "pack", "is 0 seconds"),
    "expires_never_why": (
        graph(change(Pack, expires=Never(why=" "))),
        "pack",
        "Never without a reason",
    ),
    "third_party_missing": (graph(without(Pack, "third_party")), "pack", "whom it calls"),
    "third_party_name": (
        graph(change(Pack, third_party="The robot")),
        "pack",
        "it calls 'The robot', which is no name",
    ),
    "time_limit_missing": (graph(without(Pack, "time_limit")), "pack", "how long an attempt"),
    "time_limit_no_duration": (graph(change(Pack, time_limit=3)), "pack", "time_limit is 3"),
    "time_limit_out_of_range": (
        graph(change(Pack, time_limit=NOWHERE)),
        "pack",
        "time_limit is 0 seconds",
    ),
    "time_limit_too_long": (
        graph(change(Pack, time_limit=timedelta(minutes=2))),
        "pack",
        "its time limit is 2 minutes, and the lease 2 minutes",
    ),
    "uncertainty_leads_nowhere": (
        graph(without(Pack, "when_uncertain")),
        "pack",
        "when nobody knows",
    ),
    "settles_within_missing": (
        graph(without(Pack, "settles_within")),
        "pack",
        "how late a request may take effect",
    ),
    "settles_within_out_of_range": (
        graph(change(Pack, settles_within=NOWHERE)),
        "pack",
        "settles_within is 0 seconds",
    ),
    "performance_reason_missing": (
        graph(without(Book, "why_not_pessimistic")),
        "book",
        "a performance problem that was measured",
    ),
    "key_valid_for_missing": (graph(without(Label, "key_valid_for")), "label", "remembers a key"),
    "key_valid_for_never_why": (
        graph(change(Label, key_valid_for=Never(why=""))),
        "label",
        "key_valid_for is Never without a reason",
    ),
    "key_valid_too_short": (
        graph(change(Label, key_valid_for=timedelta(minutes=1))),
        "label",
        "a key is valid for 1 minute, and one attempt may need 70 seconds",
    ),
    "compromise_missing": (graph(without(Tell, "compromise")), "tell", "needs a compromise"),
    "compromise_no_object": (
        graph(change(Tell, compromise=UpTo)),
        "tell",
        "`compromise` is the class UpTo",
    ),
    "up_to_too_few": (graph(change(Tell, compromise=UpTo(1))), "tell", "up to 1 executions"),
    "concerns_missing": (graph(without(Tell, "concerns")), "tell", "filled in the checklist"),
    "concerns_no_members": (
        graph(change(Tell, concerns=replace(Tell.concerns, **SHOULD))),
        "tell",
        "`necessity` of its concerns is 'should'",
    ),
    "concerns_incomplete": (
        graph(change(Tell, concerns=replace(Tell.concerns, why=""))),
        "tell",
        "lack who decided, why, or every risk",
    ),
    "roles_no_set": (graph(change(Check, roles="office")), "check", "`roles` is 'office'"),
    "roles_missing": (graph(without(Check, "roles")), "check", "nobody may answer"),
    "role_name": (
        graph(change(Check, roles=frozenset({"office|desk"}))),
        "check",
        "a role is 'office|desk'",
    ),
    "contract_missing": (graph(change(Check, contract=dict)), "check", "what an answer looks"),
    "contract_no_schema": (
        graph(change(Check, contract=Unspeakable)),
        "check",
        "its contract cannot be told to others: ",
    ),
    "not_by_no_to_dos": (graph(change(Check, not_by=(Tell,))), "check", "other To-Do classes"),
    "not_by_no_names": (
        graph(routes={Approve: {Checked.SEND: SENT, Checked.AGAIN: Check}}),
        "approve",
        "`sends_link` lets it be answered without a name",
    ),
    "topic_name": (graph(change(Check, topic="a b")), "check", "'a b', which is no name"),
    "due_out_of_range": (graph(change(Check, due=NOWHERE)), "check", "due is 0 seconds"),
    "due_after_expiry": (
        graph(change(Check, due=timedelta(days=1))),
        "check",
        "due after 1 day, when it has expired",
    ),
    "neither_yes_nor_no": (
        graph(change(Check, tells_opened="no")),
        "check",
        "`tells_opened` is 'no'",
    ),
    "link_in_no_event": (
        graph(change(Check, due=None, sends_link=True)),
        "check",
        "no event tells of its items",
    ),
    "identifier_reserved": (
        graph(change(Pack, identifier="workflow:other/{parcel_id}-{visit}")),
        "pack",
        "begins with 'workflow:'",
    ),
    "identifier_malformed": (graph(change(Pack, identifier="{visit!r}")), "pack", "has a format"),
    "identifier_unknown_field": (
        graph(change(Pack, identifier="pack-{parcel}-{visit}")),
        "pack",
        "uses parcel, which the start event does not have",
    ),
    "identifier_no_text": (
        graph(change(Pack, identifier="pack-{lines}-{visit}")),
        "pack",
        "uses lines, which is neither text nor a whole number",
    ),
    "fault_leads_nowhere": (graph(default_exit=None), "label", "its fault leads nowhere"),
    "expiry_leads_nowhere": (graph(default_exit=None), "label", "its expiry leads nowhere"),
    "wrong_outcome": (
        graph(change(Pack, when_uncertain=Told.TOLD)),
        "pack",
        "when_uncertain is 'told', which it cannot decide",
    ),
    "human_without_to_do": (
        graph(routes={Tell: {Told.TOLD: SENT, Told.NOBODY_KNOWS: LOST}}),
        "tell",
        "its uncertainty does not lead to a To-Do item",
    ),
    "nothing_leads_here": (graph(routes=LONELY), "elsewhere", "nothing leads to it"),
    "no_way_out": (
        graph(
            {
                **change(Label),
                **dict.fromkeys((Pack, Book, Tell, Check)),
            },
            routes={Label: {Labelled.LABELLED: Label, Labelled.UNCLEAR: Label}},
        ),
        "label",
        "an instance may go round for ever: label (decided, nobody knows).",
    ),
    "loop_without_visit": (
        graph(change(Pack, identifier="pack-{parcel_id}")),
        "pack",
        "every visit has the identifier 'pack-{parcel_id}'",
    ),
    "loop_never_expires": (
        graph(change(Check, expires=Never(why="somebody must look"))),
        "check",
        "lies on a loop and never expires",
    ),
    "loop_answers_look_alike": (
        graph(change(Check, told_apart_by=None)),
        "check",
        "no field that tells the visits apart",
    ),
    "identifiers_collide": (
        graph(change(Pack, identifier="{instance}-{visit}")),
        "tell",
        "can be the same as that of shipping.pack",
    ),
    "cell_not_kept": (
        graph(change(Pack, identifier="pack\r-{instance}-{visit}")),
        "pack",
        "its `identifier` has a carriage return",
    ),
}


def checked(graph):
    """Return the same graph as a workflow."""
    return Workflow(**{one.name: getattr(graph, one.name) for one in fields(graph)})


def test_a_good_workflow_has_no_problem() -> None:
    """A workflow that keeps every rule is taken without a word."""
    assert [] == list(problems_of(graph()))
    assert "shipping" == checked(graph()).name


@pytest.mark.parametrize("rule", CASES)
def test_each_rule_is_checked(rule: str) -> None:
    """Whoever breaks a rule is told workflow, task, rule, what is wrong, and what to do."""
    workflow, task, says = CASES[rule]
    found = [one for one in problems_of(workflow) if one.rule == rule]
    assert found, [str(one) for one in problems_of(workflow)]
    assert task in {one.task for one in found}
    one = next(one for one in found if one.task == task)
    assert workflow.name == one.workflow
    assert says in one.says
    assert one.says.endswith(".")
    assert one.remedy.endswith(".")
    assert not one.warning


def test_a_call_that_no_claim_can_hold_is_refused() -> None:
    """However long the lease is: a claim lasts a day at most."""
    long = change(Pack, time_limit=timedelta(hours=12))
    (found,) = problems_of(graph(long, lease=timedelta(days=3)))
    assert ("time_limit_too_long", "pack") == (found.rule, found.task)
    assert "more than 11 hours" in found.says
    assert [] == [
        *problems_of(graph(change(Pack, time_limit=timedelta(hours=11)), lease=timedelta(hours=12)))
    ]


def test_a_pattern_that_only_pydantic_reads_is_refused() -> None:
    """Whoever judges payloads by the schema could not, and every start event would be refused."""

    class Lettered(BaseModel):
        parcel_id: str = Field(pattern=r"^\p{L}+$")

    found = problems_of(graph(start=Lettered))
    assert ["start_no_schema"] == [one.rule for one in found if not one.warning]


def test_no_rule_is_without_a_test_and_an_explanation() -> None:
    """The rules that the code names are broken by a test each, and can be explained."""
    names = {
        element.value
        for file in Path(checks.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple)
        for element in node.value.elts[:1]
        if isinstance(element, ast.Constant)
    }
    assert names - WARNINGS <= set(CASES)
    assert {*CASES, *WARNINGS, "workflow_twice", "workflows_go_in_circles"} <= set(EXPLANATIONS)


def test_the_docs_say_of_each_rule_what_explain_says() -> None:
    """The table of the rules is that of `outbox workflow explain`."""
    page = (ROOT / "docs" / "railway" / "tasks.md").read_text(encoding="utf-8")
    rows = [f"| `{rule}` | {why} | {remedy} |" for rule, (why, remedy) in EXPLANATIONS.items()]
    head = "| rule | why | what to do |\n|---|---|---|\n"
    assert page.endswith(head + "".join(f"{row}\n" for row in rows))


def only(workflow):
    """Return what is said of the only problem of a workflow, and its remedy."""
    (one,) = problems_of(workflow)
    return one.says, one.remedy


@pytest.mark.parametrize(
    ("compromise", "says", "remedy"),
    [
        (UpTo, "the class UpTo", "`UpTo(2)`"),
        (AskHuman, "the class AskHuman", "`AskHuman()`"),
        (AtMostOnce, "the class AtMostOnce", "`AtMostOnce()`"),
        (AtLeastOnce, "the class AtLeastOnce", "`AtLeastOnce()`"),
        (
            "at_most_once",
            "'at_most_once'",
            "`AtMostOnce()`, `AtLeastOnce()`, `UpTo(2)`, `AskHuman()`",
        ),
    ],
)
def test_the_class_of_a_compromise_is_none(compromise, says: str, remedy: str) -> None:
    """Whoever names the class of a compromise, or a word, is told the object to write."""
    expected = f"`compromise` is {says}.", f"Write {remedy}."
    assert expected == only(graph(change(Tell, compromise=compromise)))


@pytest.mark.parametrize("number", ["3", 2.5, True])
def test_a_number_of_executions_is_a_whole_number(number) -> None:
    """What is no whole number is refused by name, not by an error of Python."""
    says, _ = only(graph(change(Tell, compromise=UpTo(number))))
    assert f"up to {number!r} executions." == says


@pytest.mark.parametrize(
    ("name", "value", "members"),
    [
        ("visibility", "traceable", Visibility),
        ("necessity", "should", Necessity),
        ("hurt", "customer", Hurt),
        ("risks", frozenset({"reputation"}), Risk),
        ("risks", Risk.LEGAL, Risk),
        ("risks", "legal", Risk),
    ],
)
def test_words_in_place_of_members_are_refused(name: str, value, members) -> None:
    """Whoever fills in the checklist with words is told every member, also for the right word."""
    bad = change(Tell, concerns=replace(Tell.concerns, **{name: value}))
    says, remedy = only(graph(bad))
    assert f"`{name}` of its concerns is {value!r}." == says
    assert all(f"{members.__name__}.{one.name}" in remedy for one in members)


@pytest.mark.parametrize(
    ("roles", "written"),
    [
        ("office", '"office"'),
        (["office", "desk"], '"desk", "office"'),
        (frozenset({"office", 7}), '"office"'),
        (7, "..."),
    ],
)
def test_roles_are_a_set_of_names(roles, written: str) -> None:
    """Roles as text would be read letter by letter: the set to write is named."""
    _, remedy = only(graph(change(Check, roles=roles)))
    assert f"Write `roles = frozenset({{{written}}})`." == remedy


MISSPELT = [
    (Label, "when_fault", "when_faulted"),
    (Label, "look_up", "lookup"),
    (Pack, "backoff", "back_off"),
    (Pack, "on_faults", "on_fault"),
    (Pack, "still_neded", "still_needed"),
    (Pack, "titel", "title"),
    (Check, "dues", "due"),
    (Check, "when_expires", "when_expired"),
]


@pytest.mark.parametrize(("task", "name", "meant"), MISSPELT)
def test_a_misspelt_attribute_is_named_with_the_right_one(task, name: str, meant: str) -> None:
    """A name without effect that resembles one with an effect is refused, value or function."""
    (there,) = without(task, meant).values()
    says, remedy = only(graph({task: type(task.__name__, (there,), {name: None})}))
    assert f"`{name}` has no effect." == says
    assert remedy.startswith(f"Did you mean `{meant}`?")


OWN = ["attempts", "warehouse", "currency", "expired_orders", "_when_expire", "LIMIT"]


@pytest.mark.parametrize("name", OWN)
def test_an_author_may_add_attributes(name: str) -> None:
    """Names of one's own, private ones, and those like a name that is written too, are taken."""
    assert [] == list(problems_of(graph(change(Pack, **{name: "x"}))))


@pytest.mark.parametrize("target", ["parcel.sent", None, Event, Pack(), {}])
def test_a_target_is_a_class_or_an_event(target) -> None:
    """What is neither is refused with how to write an event."""
    routes = [one for one in graph().routes if one.task is not Pack]
    routes.append(Route(Pack, {Packed.PACKED: target, Packed.BROKEN: LOST}))
    problems = problems_of(replace(graph(), routes=tuple(routes)))
    (one,) = [each for each in problems if each.rule == "target_no_task"]
    assert "Write the class of a task, or `Event(event_type=...)`." == one.remedy


def test_a_task_of_another_workflow_is_named_with_its_module() -> None:
    """A class of the same name, or of another module, is told apart; an Event hands over."""
    namesake = type("Book", (Book,), {"__module__": "returns"})
    stranger = type("Stranger", (Book,), {"__module__": "returns"})
    for task, says in (
        (namesake, f"returns.Book, and the route is of {Book.__module__}.Book, another class."),
        (stranger, "returns.Stranger, a task of another module than those with routes."),
    ):
        routes = {Pack: {Packed.PACKED: task, Packed.BROKEN: Check}}
        (one,) = [
            each
            for each in problems_of(graph(routes=routes))
            if each.rule == "target_of_another_workflow"
        ]
        assert one.says.endswith(says)
        assert "an Event that it starts on" in one.remedy


def test_the_docs_list_every_member_of_the_checklist_and_both_names_of_a_category() -> None:
    """Whoever fills in a checklist, or chooses a category, finds every word that there is."""
    tasks = (ROOT / "docs" / "railway" / "tasks.md").read_text(encoding="utf-8")
    for members in (Visibility, Necessity, Hurt, Risk):
        row = ", ".join(f"`{members.__name__}.{one.name}`" for one in members)
        assert f" | {row} |" in tasks
    readme = (ROOT / "docs" / "railway" / "README.md").read_text(encoding="utf-8")
    rows = [line for line in readme.splitlines() if line.startswith("| **")]
    for kind in (Idempotent, PessimisticLock, OptimisticLock, BlackBox, ToDo):
        named = f"| **{kind.category.business_name}** |"
        assert [named] == [
            line[: len(named)] for line in rows if f"`{kind.__name__}`" in line.split("|")[2]
        ]


def test_a_bad_workflow_is_refused_where_it_is_made() -> None:
    """A workflow that breaks rules raises at once, with a line for each."""
    bad = graph({**without(Pack, "expires"), **without(Label, "third_party")})
    with pytest.raises(BadWorkflow) as error:
        checked(bad)
    assert 2 == len(str(error.value).splitlines())
    assert "shipping.pack: [expires_missing]" in str(error.value)
    assert "shipping.label: [third_party_missing]" in str(error.value)


def test_at_least_once_without_end_is_warned_of() -> None:
    """A task that may be tried without end is named, and not refused."""
    routes = {Tell: {Told.TOLD: SENT, Told.NOBODY_KNOWS: SENT}}
    straight = {
        Label: {Labelled.LABELLED: Pack, Labelled.UNCLEAR: LOST},
        Pack: {Packed.PACKED: Book, Packed.BROKEN: LOST},
    }
    endless: dict[Any, Any] = change(
        Tell, compromise=AtLeastOnce(), expires=Never(why="until it is done")
    )
    workflow = graph({**endless, Check: None}, routes={**routes, **straight})
    (one,) = problems_of(workflow)
    assert ("at_least_once_for_ever", "tell", True) == (one.rule, one.task, one.warning)
    assert workflow.tasks == checked(workflow).tasks


ROUND: dict[str, tuple[dict[Any, Any], Any, str]] = {
    "a third party that always refuses": (
        {"when_faulted": Labelled.UNCLEAR, "when_uncertain": DEFAULT_EXIT},
        Label,
        "label (not possible)",
    ),
    "a third party that never answers": ({}, Label, "label (nobody knows)"),
    "a task that is always too late": (
        {"when_expired": Labelled.UNCLEAR, "when_uncertain": DEFAULT_EXIT},
        Label,
        "label (expired)",
    ),
    "a refusal, and people who do not answer": (
        {"when_faulted": Labelled.UNCLEAR, "when_uncertain": DEFAULT_EXIT},
        Check,
        "label (not possible), check (expired)",
    ),
}


@pytest.mark.parametrize("name", ROUND)
def test_what_goes_wrong_again_and_again_does_not_go_round_for_ever(name: str) -> None:
    """A loop that an instance never leaves while the same goes wrong is named with all of it."""
    attributes, asked, loop = ROUND[name]
    swap = {**change(Label, **attributes), **change(Check, when_expired=Checked.AGAIN)}
    there = [Label, Check] if asked is Check else [Label]
    routes = {Label: {Labelled.LABELLED: SENT, Labelled.UNCLEAR: asked}}
    workflow = graph({**swap, **{one: None for one in ROUTES if one not in there}}, routes=routes)
    found = list(problems_of(workflow))
    assert {("no_way_out", one.__name__.lower()) for one in there} == {
        (one.rule, one.task) for one in found
    }
    assert {f"an instance may go round for ever: {loop}."} == {one.says for one in found}


def test_a_loop_that_one_of_its_causes_leaves_is_taken() -> None:
    """A refusal that is asked about ends where nobody answers, and however `on_fault` chooses."""
    asks = {"when_faulted": Labelled.UNCLEAR, "on_fault": lambda *_: Labelled.UNCLEAR}
    assert [] == list(problems_of(graph(change(Label, **asks))))


@pytest.mark.parametrize("never", [True, False])
def test_an_uncertainty_that_expires_is_warned_of(never: bool) -> None:
    """Where nobody knows, and nobody answers who was asked, the default exit is no decision."""
    asked: dict[Any, Any] = change(Check, when_expired=DEFAULT_EXIT)
    if never:
        asked = change(Check, expires=Never(why="somebody must look"), when_expired=DEFAULT_EXIT)
    straight = {Check: {Checked.SEND: SENT, Checked.AGAIN: LOST}}
    found = [
        one
        for one in problems_of(graph(asked, routes=straight))
        if one.rule == "uncertainty_expires"
    ]
    assert ([] if never else ["label", "pack", "tell"]) == [one.task for one in found]
    for one in found:
        assert one.warning
        assert "check asks; and if nobody answers within 1 day, the default exit" in one.says


def only_label(task: type[Any] = Label, **attributes: Any) -> Graph[Any]:
    """Return a workflow of one task, whose outcomes all end it."""
    others: dict[Any, Any] = dict.fromkeys(one for one in ROUTES if one is not task)
    routes: dict[Any, Any] = {task: dict.fromkeys(Labelled, SENT)}
    return graph({**others, **change(task, **attributes)}, routes=routes, first=task)


class Null(Label):
    """A task of this name."""


class Nulls(Outcome):
    NULL = "null"


NULLS: dict[str, tuple[Graph[Any], str | None]] = {
    "workflow": (graph(name="null"), None),
    "title": (graph(title="Null"), None),
    "starts_on": (graph(starts_on="null"), None),
    "start_fields": (
        graph(start=make_dataclass("One", [("null", str)]), instance="{null}"),
        None,
    ),
    "instance": (graph(instance="null"), None),
    "default_exit": (graph(default_exit=Event(event_type="NULL")), None),
    "first_task": (only_label(Null), None),
    "task": (only_label(Null), "null"),
    "outcome": (
        graph(
            change(Book, outcomes=classmethod(lambda cls: Nulls), when_uncertain=Nulls.NULL),
            routes={Book: {Nulls.NULL: Tell}},
        ),
        "book",
    ),
    "to_event": (
        graph(routes={Tell: {Told.TOLD: Event(event_type=" null "), Told.NOBODY_KNOWS: Check}}),
        "tell",
    ),
    "identifier": (only_label(identifier="null"), "label"),
    "third_party": (graph(change(Pack, third_party="null")), "pack"),
    "never_expires_why": (only_label(expires=Never(why="null")), "label"),
    "key_never_forgotten_why": (graph(change(Label, key_valid_for=Never(why="null"))), "label"),
    "why_not_pessimistic": (graph(change(Book, why_not_pessimistic="null")), "book"),
    "decided_by": (
        graph(change(Tell, concerns=replace(Tell.concerns, decided_by="null"))),
        "tell",
    ),
    "why": (graph(change(Tell, concerns=replace(Tell.concerns, why="null"))), "tell"),
    "roles": (graph(change(Check, roles=frozenset({"null"}))), "check"),
}


@pytest.mark.parametrize("column", NULLS)
def test_what_dbt_would_read_as_empty_is_refused(column: str) -> None:
    """A name or a text that is `null` would be lost in a seed, whatever it is the name of."""
    workflow, task = NULLS[column]
    found = [one for one in problems_of(workflow) if one.rule == "cell_not_kept"]
    assert (task, f"`{column}`") in {(one.task, one.says.split()[1]) for one in found}, found
    assert all("which dbt reads as an empty cell" in one.says for one in found)


def test_every_text_of_a_row_is_tried_as_null() -> None:
    """No column of text is left out above; numbers and closed lists cannot be `null`."""
    closed = {"version", "category", "compromise", "visibility", "necessity", "hurt", "risks"}
    closed |= {"hash", "cause", "contract", "start_contract", "to_task", "told_apart_by"}
    closed |= {"tells_opened", "sends_link"}
    texts = {
        name
        for columns in COLUMNS.values()
        for name in columns
        if not name.endswith("_seconds") and name not in closed
    }
    assert texts == set(NULLS)


@pytest.mark.parametrize("text", ["None", "nan", "true", "1e5", "NA", "n/a", ".", "2026-11-03"])
def test_what_dbt_keeps_is_taken(text: str) -> None:
    """Texts that look like nothing, a number, a date or a truth come back as they were."""
    assert [] == list(problems_of(graph(title=text, starts_on=text)))


def test_a_cell_that_is_longer_than_dbt_reads_is_refused() -> None:
    """A contract of more characters than a cell may have is named before a build fails."""
    large = type("Large", (Finding,), {"__doc__": "x" * 140_000})
    (one,) = problems_of(graph(change(Check, contract=large)))
    assert ("cell_not_kept", "check") == (one.rule, one.task)
    assert "characters, and dbt reads 131072 of a cell" in one.says


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"first": Label()}, "Label object at"),
        ({"routes_": [Route(Label, ROUTES[Label])]}, "`routes` is [Route("),
        ({"routes_": ("pack",)}, "'pack' is no route"),
        ({"routes_": (Route("pack", {}),)}, "a route is of 'pack'"),  # type: ignore[arg-type]
        ({"routes_": (Route(Pack, None),)}, "the route of Pack is None"),  # type: ignore[arg-type]
        ({"default_exit": "parcel.lost"}, "`default_exit` is 'parcel.lost'"),
        ({"default_exit": Event(event_type=None)}, "'None' cannot be the type"),  # type: ignore[arg-type]
        ({"name": None}, "`name` is None"),
        ({"starts_on": 7}, "`starts_on` is 7"),
    ],
)
def test_arguments_of_another_kind_end_in_a_sentence(arguments: dict[str, Any], says: str) -> None:
    """Whoever gives a text or an object where a class is asked for is told what to write."""
    routes = arguments.pop("routes_", None)
    made = graph(**arguments)
    problems = list(problems_of(made if routes is None else replace(made, routes=routes)))
    assert any(says in one.says for one in problems), problems
    assert all(one.remedy.endswith(".") for one in problems)


def test_workflows_with_one_name_are_refused() -> None:
    """Two workflows of one name are told apart by nobody."""
    (problem,) = problems_among([graph(), graph()])
    assert "workflow_twice" == problem.rule
    assert "in tests.unit.railway.workflow and tests.unit.railway.workflow." in problem.says


def test_a_text_in_place_of_an_outcome_is_named_with_its_member() -> None:
    """The text of an outcome is no outcome, and the remedy is the member to write."""
    (problem,) = problems_of(graph(change(Pack, when_uncertain="broken")))
    assert problem.says == "when_uncertain is the text 'broken'."
    assert problem.remedy == "Write the member, `Packed.BROKEN`."


def test_identifiers_of_two_workflows_do_not_meet() -> None:
    """A task identifier that two workflows can make is refused, naming both tasks."""
    mine = graph(change(Pack, identifier="pack-{parcel_id}-{visit}"))
    theirs = graph(
        change(Book, identifier="pack-{instance}-{visit}"), name="returns", starts_on="parcel.back"
    )
    (one,) = problems_among([mine, theirs])
    assert ("returns", "book", "identifiers_collide") == (one.workflow, one.task, one.rule)
    assert "shipping.pack" in one.says


def test_workflows_that_start_each_other_without_end_are_refused() -> None:
    """A circle of workflows is named with all its members, once."""
    to_sent: dict[Any, Any] = {**dict.fromkeys((Pack, Book, Tell, Check)), **change(Label)}
    ends = {"routes": {Label: dict.fromkeys(Labelled, SENT)}}
    there = graph(to_sent, starts_on="parcel.lost", name="search", default_exit=SENT, **ends)
    ends = {"routes": {Label: dict.fromkeys(Labelled, LOST)}}
    back = graph(to_sent, starts_on="parcel.sent", name="receipt", **ends)
    found = list(problems_among([there, back]))
    assert ["receipt"] == [one.workflow for one in found]
    assert "receipt -> search -> receipt" in found[0].says


def test_a_start_event_is_parsed() -> None:
    """The payload of a start event becomes the declared class."""
    start = graph().parse(b'{"parcel_id": "p-1", "grams": 20}')
    assert Parcel(parcel_id="p-1", grams=20) == start


def test_the_second_outcome_of_a_check_is_a_loop() -> None:
    """A task on a loop reaches itself; a task before it does not."""
    assert Check in graph().reachable(Check)
    assert Checked.AGAIN in graph().table[Check]
