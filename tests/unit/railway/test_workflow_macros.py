"""The rows of workflows: the same as the classes and the picture, and checked by dbt alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from order_compensation import order_compensation
from order_creation import order_creation
from pydantic import BaseModel, Field
from tests.unit.macro_namespace import Macros
from tests.unit.railway.drawn import graphs
from tests.unit.railway.workflow import Check, change, graph

from delta_outbox.railway import DEFAULT_EXIT, Hurt, Necessity, Risk, Visibility
from delta_outbox.railway.checks import problems_of
from delta_outbox.railway.checks.paths import warnings_of
from delta_outbox.railway.checks.seed_cells import not_read
from delta_outbox.railway.drawing import CAUSES, draw
from delta_outbox.railway.explanations import EXPLANATIONS
from delta_outbox.railway.identifiers import Template, can_meet
from delta_outbox.railway.names import title
from delta_outbox.railway.rows import (
    COLUMNS,
    Row,
    Rows,
    from_csv,
    hash_of,
    joined,
    rows_of,
    start_fields,
    to_csv,
)

ROOT = Path(__file__).resolve().parents[3]
CHECKS = ROOT / "python" / "delta_outbox" / "railway"
SENTENCE = re.compile(r"(?P<where>[\w.]+): \[(?P<rule>\w+)\] .+\. .+\.", re.DOTALL)


@pytest.fixture(scope="module")
def macros() -> Macros:
    """Return the macros as Jinja reads them."""
    return Macros("workflows", "policies")


def in_dbt(macros: Macros, rows: Rows) -> set[tuple[str, str]]:
    """Return whose rows break which rule, by the macros."""
    problems: list[str] = []
    macros.workflow_problems(rows, problems)
    found = [SENTENCE.fullmatch(one) for one in problems]
    assert all(found), problems
    return {(one["where"], one["rule"]) for one in found if one}


def in_python(workflow: Any) -> set[tuple[str, str]]:
    """Return which task breaks which rule, by the classes."""
    return {
        (f"{one.workflow}.{one.task}" if one.task else one.workflow, one.rule)
        for one in problems_of(workflow)
        if not one.warning
    }


def test_both_sides_have_the_same_columns(macros: Macros) -> None:
    """What is written is what is read."""
    assert {name: list(columns) for name, columns in COLUMNS.items()} == macros.workflow_columns()


@pytest.mark.parametrize("workflow", [graph(), order_creation, order_compensation])
def test_the_rows_of_a_good_workflow_have_no_problem(macros: Macros, workflow: Any) -> None:
    """What `outbox workflow build` writes passes every check of dbt."""
    assert set() == in_dbt(macros, rows_of(workflow))


class Renamed(BaseModel):
    task_id: str = Field(alias="taskId")
    finding: str


def test_a_field_has_the_name_that_it_has_in_an_answer(macros: Macros) -> None:
    """An alias in a contract is the name in its JSON Schema, and so in the row."""
    rows = rows_of(graph(change(Check, contract=Renamed)))
    (row,) = of(rows, "check")[:1]
    assert "taskId" == row["told_apart_by"]
    assert set() == in_dbt(macros, rows)


class RenamedParcel(BaseModel):
    parcel_id: str = Field(alias="parcelId")
    grams: int


def test_a_field_of_the_start_event_is_found_by_its_key(macros: Macros) -> None:
    """A template names the field of the class, and the row has the key that it has in JSON."""
    rows = rows_of(graph(start=RenamedParcel))
    (row,) = rows["railway_workflows"]
    assert "parcel_id=parcelId grams" == row["start_fields"]
    assert {"parcel_id": "parcelId", "grams": "grams"} == start_fields(row["start_fields"])
    assert ["parcel_id", "grams"] == macros.workflow_start_fields(row["start_fields"])
    assert set() == in_dbt(macros, rows)


def test_workflows_pass_together(macros: Macros) -> None:
    """The rows of several workflows in one set pass, in whatever order they are."""
    every: list[Any] = [order_creation, order_compensation, graph()]
    rows = joined(map(rows_of, every))
    assert set() == in_dbt(macros, {seed: found[::-1] for seed, found in rows.items()})


@given(workflow=graphs())
def test_both_sides_find_the_same_in_any_graph(macros: Macros, workflow: Any) -> None:
    """Where tasks lead is judged alike over classes and over rows."""
    assert in_python(workflow) == in_dbt(macros, rows_of(workflow))


@given(workflow=graphs())
def test_both_sides_warn_of_the_same(macros: Macros, workflow: Any) -> None:
    """What is allowed, and somebody should know, is named over classes and over rows."""
    found = {
        (f"{workflow.name}.{one.task_name()}", rule)
        for one in workflow.tasks
        for rule, _, _ in warnings_of(workflow, one)
    }
    warned: list[str] = []
    macros.workflow_warnings(rows_of(workflow), warned)
    told = [SENTENCE.fullmatch(one) for one in warned]
    assert found == {(one["where"], one["rule"]) for one in told if one}


@pytest.mark.parametrize(
    ("rule", "task_", "changes"),
    [
        ("at_least_once_for_ever", "tell", {"compromise": "at_least_once"}),
        ("uncertainty_expires", "label", {}),
    ],
)
def test_each_warning_is_given_over_rows(
    macros: Macros, rule: str, task_: str, changes: dict[str, str]
) -> None:
    """A task that is tried without end, and an uncertainty that expires, are named."""
    rows = rows_of(graph(change(Check, when_expired=DEFAULT_EXIT)))
    if changes:
        task(task_, never_expires_why="so", **changes)(rows)
    warned: list[str] = []
    macros.workflow_warnings(rows, warned)
    assert [one for one in warned if one.startswith(f"shipping.{task_}: [{rule}] ")]


@given(workflow=graphs())
def test_rows_picture_and_classes_say_the_same(workflow: Any) -> None:
    """Each way out of a task is a row, and an arrow of the picture with its word."""
    rows = rows_of(workflow)
    told = set()
    for row in rows["railway_routes"]:
        if not row["to_task"] and not row["to_event"]:
            continue
        word = title(row["outcome"]).lower() if row["cause"] == "decided" else CAUSES[row["cause"]]
        end = row["to_task"] or f"event_{row['to_event'].replace('.', '_')}"
        told.add((row["task"], end, word))
    drawing = draw(workflow)
    drawn = {(arrow.start, arrow.end, word) for arrow in drawing.arrows for word in arrow.words}
    assert drawn == told
    legs = [leg for task in workflow.tasks for leg in workflow.legs(task)]
    assert [(leg.task.task_name(), leg.cause, leg.outcome or "") for leg in legs] == [
        (row["task"], row["cause"], row["outcome"]) for row in rows["railway_routes"]
    ]
    boxes = [box.name for box in drawing.boxes if box.kind != "event"]
    assert boxes == [row["task"] for row in rows["railway_tasks"]]
    assert drawing.first == rows["railway_workflows"][0]["first_task"]


@given(workflow=graphs())
def test_both_sides_hash_the_same(macros: Macros, workflow: Any) -> None:
    """Rows that nobody has touched are recognised by dbt."""
    rows = rows_of(workflow)
    assert rows["railway_workflows"][0]["hash"] == macros.workflow_hash(rows, workflow.name)
    assert hash_of(rows) == macros.workflow_hash(rows)


@pytest.mark.parametrize("seed", COLUMNS)
@given(cell=st.text("a'\"\\,;|{}$%\n é😀", max_size=8))
def test_a_seed_reads_as_it_was_written(seed: str, cell: str) -> None:
    """Quotes, apostrophes, backslashes and braces survive the file."""
    row = dict.fromkeys(COLUMNS[seed], cell)
    assert [row] == from_csv(to_csv(seed, [row]))


@given(cell=st.text("nulNUL \t\r\n\xa0\"',a1", max_size=6) | st.text(max_size=6))
def test_dbt_reads_each_cell_that_is_taken_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, cell: str
) -> None:
    """The reader of seeds that dbt has gives back every cell but those that are refused."""
    from dbt_common.clients.agate_helper import from_csv as read_by_dbt

    seed, columns = "railway_contracts", COLUMNS["railway_contracts"]
    file = tmp_path_factory.getbasetemp() / f"{seed}.csv"
    row = {**dict.fromkeys(columns, "x"), "contract": cell}
    file.write_text(to_csv(seed, [row]), encoding="utf-8", newline="")
    found = [
        {name: one[name] or "" for name in columns} for one in read_by_dbt(str(file), columns).rows
    ]
    assert (not_read(cell) is None) == ([row] == found)


# --- each rule of rows ------------------------------------------------------------------------


def cells(seed: str, where: dict[str, str], **changes: str) -> Callable[[Rows], None]:
    """Return a function that changes cells of the rows that have some others."""

    def change(rows: Rows) -> None:
        found = [row for row in rows[seed] if where.items() <= row.items()]
        assert found, where
        for row in found:
            row.update(changes)

    return change


def task(name: str, **changes: str) -> Callable[[Rows], None]:
    """Return a function that changes cells of a task."""
    return cells("railway_tasks", {"task": name}, **changes)


def workflow(**changes: str) -> Callable[[Rows], None]:
    """Return a function that changes cells of the workflow."""
    return cells("railway_workflows", {}, **changes)


def both(*changes: Callable[[Rows], None]) -> Callable[[Rows], None]:
    """Return a function that makes several changes."""

    def make(rows: Rows) -> None:
        for one in changes:
            one(rows)

    return make


def leg(task_: str, cause_: str, outcome_: str, **changes: str) -> Callable[[Rows], None]:
    """Return a function that changes cells of a row of a route."""
    where = {"task": task_, "cause": cause_, "outcome": outcome_}
    return cells("railway_routes", where, **changes)


def without(seed: str, **where: str) -> Callable[[Rows], None]:
    """Return a function that takes rows away."""

    def change(rows: Rows) -> None:
        left = [row for row in rows[seed] if not where.items() <= row.items()]
        assert len(left) < len(rows[seed])
        rows[seed] = left

    return change


def twice(seed: str, **where: str) -> Callable[[Rows], None]:
    """Return a function that repeats rows."""

    def change(rows: Rows) -> None:
        rows[seed] += [dict(row) for row in rows[seed] if where.items() <= row.items()]

    return change


def added(seed: str, **cells_: str) -> Callable[[Rows], None]:
    """Return a function that adds a row."""

    def change(rows: Rows) -> None:
        rows[seed].append({**dict.fromkeys(COLUMNS[seed], ""), "workflow": "shipping", **cells_})

    return change


# By rule: what is changed, and of which task it is said.
CASES: dict[str, list[tuple[Callable[[Rows], Any], str]]] = {
    "workflow_name": [(lambda rows: renamed(rows, "Shipping"), "")],
    "workflow_twice": [(twice("railway_workflows"), "")],
    "no_such_workflow": [(added("railway_tasks", workflow="nowhere", task="x"), "nowhere.x")],
    "no_such_task": [
        (added("railway_routes", task="x"), "x"),
        (added("railway_contracts", task="x"), "x"),
    ],
    "task_name_twice": [(twice("railway_tasks", task="pack"), "")],
    "version": [(workflow(version="0"), ""), (workflow(version=""), "")],
    "starts_on": [(workflow(starts_on="workflow:a/b"), ""), (workflow(starts_on=" "), "")],
    "event_type": [
        (workflow(default_exit="workflow:a/b"), ""),
        (leg("tell", "decided", "told", to_event="workflow:a/b"), "tell"),
    ],
    "lease": [(workflow(lease_seconds="soon"), ""), (workflow(lease_seconds=""), "")],
    "start_fields": [(workflow(start_fields="parcel_id task"), "")],
    "start_no_schema": [(workflow(start_contract="[]"), ""), (workflow(start_contract="{"), "")],
    "instance_malformed": [(workflow(instance="{parcel_id"), ""), (workflow(instance=" "), "")],
    "instance_unknown_field": [(workflow(instance="{parcel}"), "")],
    "routes": [
        (
            lambda rows: rows.update({seed: [] for seed in COLUMNS if seed != "railway_workflows"}),
            "",
        )
    ],
    "first_without_route": [(workflow(first_task="nobody"), "")],
    "task_name": [(lambda rows: [row.update(task="Pack!") for row in of(rows, "pack")], "Pack!")],
    "no_category": [(task("pack", category="patient"), "pack")],
    "expires_missing": [(task("pack", expires_seconds=""), "pack")],
    "expires_no_duration": [(task("pack", expires_seconds="2 h"), "pack")],
    "expires_out_of_range": [(task("pack", expires_seconds="0"), "pack")],
    "expires_and_never": [(task("pack", never_expires_why="so"), "pack")],
    "third_party_missing": [(task("pack", third_party=""), "pack")],
    "third_party_name": [(task("pack", third_party="The robot"), "pack")],
    "time_limit_missing": [(task("pack", time_limit_seconds=""), "pack")],
    "time_limit_no_duration": [(task("pack", time_limit_seconds="-1"), "pack")],
    "time_limit_out_of_range": [(task("pack", time_limit_seconds="400000000"), "pack")],
    "time_limit_too_long": [
        (task("pack", time_limit_seconds="120"), "pack"),
        (both(workflow(lease_seconds="99999"), task("pack", time_limit_seconds="39601")), "pack"),
    ],
    "settles_within_missing": [(task("pack", settles_within_seconds=""), "pack")],
    "settles_within_out_of_range": [(task("pack", settles_within_seconds="0"), "pack")],
    "performance_reason_missing": [(task("book", why_not_pessimistic=" "), "book")],
    "key_valid_for_missing": [(task("label", key_valid_for_seconds=""), "label")],
    "key_valid_for_and_never": [(task("label", key_never_forgotten_why="so"), "label")],
    "key_valid_too_short": [(task("label", key_valid_for_seconds="70"), "label")],
    "compromise_missing": [(task("tell", compromise=""), "tell")],
    "compromise_no_object": [(task("tell", compromise="often"), "tell")],
    "up_to_too_few": [(task("tell", compromise="up_to_1"), "tell")],
    "concerns_missing": [
        (task("tell", visibility=""), "tell"),
        (task("tell", necessity=""), "tell"),
        (task("tell", hurt=""), "tell"),
    ],
    "concerns_no_members": [
        (task("tell", visibility="some"), "tell"),
        (task("tell", necessity="some"), "tell"),
        (task("tell", hurt="some"), "tell"),
        (task("tell", risks="legal|some"), "tell"),
    ],
    "concerns_incomplete": [
        (task("tell", risks=""), "tell"),
        (task("tell", decided_by=""), "tell"),
        (task("tell", why=" "), "tell"),
    ],
    "roles_missing": [(task("check", roles=""), "check")],
    "role_name": [
        (task("check", roles="office||desk"), "check"),
        (task("check", roles="|"), "check"),
    ],
    "due_out_of_range": [(task("check", due_seconds="0"), "check")],
    "due_after_expiry": [(task("check", due_seconds="86400"), "check")],
    "neither_yes_nor_no": [
        (task("check", tells_opened="no"), "check"),
        (task("check", sends_link="true"), "check"),
    ],
    "link_in_no_event": [(task("check", due_seconds="", sends_link="yes"), "check")],
    "contract_missing": [
        (without("railway_contracts"), "check"),
        (twice("railway_contracts"), "check"),
        (cells("railway_contracts", {}, contract="[]"), "check"),
        (cells("railway_contracts", {}, contract="{"), "check"),
    ],
    "contract_of_another_version": [(cells("railway_contracts", {}, version="2"), "check")],
    "attribute_of_another_category": [
        (task("pack", roles="office"), "pack"),
        (task("check", third_party="robot"), "check"),
        (added("railway_contracts", task="pack", version="1", contract="{}"), "pack"),
    ],
    "identifier_reserved": [
        (task("pack", identifier="workflow:other/{parcel_id}-{visit}"), "pack")
    ],
    "identifier_malformed": [(task("pack", identifier="{visit!r}"), "pack")],
    "identifier_unknown_field": [(task("pack", identifier="{parcel}-{visit}"), "pack")],
    "no_cause": [(leg("pack", "faulted", "", cause="failed"), "pack")],
    "never_happens": [(added("railway_routes", task="check", cause="faulted"), "check")],
    "route_twice": [
        (twice("railway_routes", task="pack", cause="faulted"), "pack"),
        (twice("railway_routes", task="pack", cause="decided", outcome="packed"), "pack"),
    ],
    "outcome_name": [(leg("pack", "decided", "packed", outcome="Packed well"), "pack")],
    "outcome_leads_nowhere": [(leg("pack", "decided", "packed", to_task=""), "pack")],
    "two_targets": [(leg("pack", "decided", "packed", to_event="parcel.sent"), "pack")],
    "target_without_route": [(leg("pack", "decided", "packed", to_task="nobody"), "pack")],
    "no_outcomes": [(without("railway_routes", task="pack", cause="decided"), "pack")],
    "fault_leads_nowhere": [(without("railway_routes", task="pack", cause="faulted"), "pack")],
    "expiry_leads_nowhere": [(without("railway_routes", task="pack", cause="expired"), "pack")],
    "uncertainty_leads_nowhere": [
        (without("railway_routes", task="pack", cause="uncertain"), "pack")
    ],
    "wrong_outcome": [
        (leg("pack", "uncertain", "broken", outcome="told"), "pack"),
        (leg("pack", "uncertain", "broken", to_task="book"), "pack"),
    ],
    "wrong_exit": [(leg("pack", "faulted", "", to_event="parcel.gone"), "pack")],
    "human_without_to_do": [
        (
            cells(
                "railway_routes",
                {"task": "tell", "outcome": "nobody_knows"},
                to_task="",
                to_event="parcel.lost",
            ),
            "tell",
        )
    ],
    "nothing_leads_here": [
        (
            lambda rows: [
                workflow(first_task="pack")(rows),
                leg("check", "decided", "again", to_task="pack")(rows),
            ],
            "label",
        )
    ],
    "no_way_out": [
        (
            lambda rows: [
                cells("railway_routes", where, to_task="label", to_event="")(rows)
                for where in (
                    {"task": "tell", "outcome": "told"},
                    {"task": "check", "outcome": "send"},
                )
            ],
            "pack",
        ),
        (
            lambda rows: [
                leg("check", "expired", "send", outcome="again", to_task="label", to_event="")(
                    rows
                ),
                cells("railway_routes", {"task": "label", "cause": "decided"}, to_task="check")(
                    rows
                ),
                cells("railway_routes", {"task": "label", "cause": "uncertain"}, to_task="check")(
                    rows
                ),
            ],
            "check",
        ),
        (
            lambda rows: [
                leg("label", "decided", "unclear", to_task="label")(rows),
                leg("label", "uncertain", "unclear", to_task="label")(rows),
            ],
            "label",
        ),
    ],
    "loop_without_visit": [(task("pack", identifier="pack-{parcel_id}"), "pack")],
    "loop_never_expires": [
        (
            lambda rows: [
                task("check", expires_seconds="", due_seconds="", never_expires_why="so")(rows),
                without("railway_routes", task="check", cause="expired")(rows),
            ],
            "check",
        )
    ],
    "loop_answers_look_alike": [(task("check", told_apart_by="parcel"), "check")],
    "identifiers_collide": [(task("pack", identifier="{instance}-{visit}"), "tell")],
    "rows_changed": [
        (task("pack", time_limit_seconds="11"), ""),
        (cells("railway_contracts", {}, contract='{"properties": {"task_id": {}}}'), ""),
    ],
}


def of(rows: Rows, name: str) -> list[Row]:
    """Return the rows of a task."""
    return [row for found in rows.values() for row in found if row.get("task") == name]


def renamed(rows: Rows, name: str) -> None:
    """Give the workflow another name."""
    for found in rows.values():
        for row in found:
            row["workflow"] = name


@pytest.mark.parametrize(
    ("rule", "change", "where"),
    [(rule, *case) for rule, cases in CASES.items() for case in cases],
    ids=[f"{rule}-{number}" for rule, cases in CASES.items() for number in range(len(cases))],
)
def test_each_rule_is_checked_over_rows(
    macros: Macros, rule: str, change: Callable[[Rows], None], where: str
) -> None:
    """Rows that break a rule, also such as somebody wrote by hand, are named with the rule."""
    rows = rows_of(graph())
    change(rows)
    (name,) = {row["workflow"] for row in rows["railway_workflows"]}
    expected = where if "." in where else f"{name}.{where}" if where else name
    problems: list[str] = []
    macros.workflow_problems(rows, problems)
    assert [one for one in problems if one.startswith(f"{expected}: [{rule}] ")], problems


def test_no_rule_of_rows_is_without_a_test_and_an_explanation() -> None:
    """The rules that the macros name are broken by a test each, and can be explained."""
    call = re.compile(r'workflow_problem\(\s*problems,(?:[^",]|"\w+"\]|"\.")*,\s*"(\w+)",')
    text = "".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "macros" / "workflows").glob("*.sql")
    )
    named = set(call.findall(text)) | set(re.findall(r'"needed": "(\w+)"', text))
    assert len(named) > 30
    elsewhere = {"workflows_go_in_circles", "no_such_column", "type_guessed", "open_instances"}
    named -= {"at_least_once_for_ever", "uncertainty_expires"}
    assert named - elsewhere <= set(CASES)
    assert {*CASES, *elsewhere} <= set(EXPLANATIONS)


def test_no_rule_is_explained_that_nobody_checks() -> None:
    """What is explained is said somewhere: of classes, or of rows."""
    files = [*CHECKS.glob("checks/*.py"), *(ROOT / "macros" / "workflows").glob("*.sql")]
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    made = r"(instance|identifier)_|_(no_duration|out_of_range|never_why|leads_nowhere|and_never)$"
    assert [] == [
        rule for rule in EXPLANATIONS if f'"{rule}"' not in text and not re.search(made, rule)
    ]


def test_rows_that_strand_open_instances_are_refused(macros: Macros) -> None:
    """A task that is gone, or has another category, is named, with how many open instances stand
    there or may come there by the routes of the version that they have started with; what they have
    behind them may go, also where the next task is not written yet.
    """
    routes = [
        {"number": number, "workflow": "w", "task": one, "to_task": other}
        for number, one, other in [(1, "a", "b"), (1, "b", "c"), (1, "c", ""), (2, "a", "d")]
    ]
    rows = {
        "railway_tasks": [
            {"workflow": "w", "task": one, "category": "idempotent"} for one in ("a", "c", "d")
        ]
    }
    categories = [
        {"number": number, "workflow": "w", "task": one, "category": category}
        for number, one, category in [
            (1, "a", "idempotent"),
            (1, "b", "to_do"),
            (1, "c", "idempotent"),
            (2, "a", "black_box"),
            (2, "d", "idempotent"),
            (3, "a", "idempotent"),
            (3, "d", "to_do"),
        ]
    ]
    routes += [{"number": 3, "workflow": "w", "task": "a", "to_task": "d"}]

    def refused(*open_tasks: tuple[int, str, int], stands: int = 1) -> list[str]:
        problems: list[str] = []
        found = [
            {"number": number, "workflow": "w", "task": one, "stands": stands, "instances": count}
            for number, one, count in open_tasks
        ]
        macros.workflow_open_problems(found, routes, categories, rows, problems)
        return problems

    assert [] == refused((1, "c", 7), (2, "d", 5))
    (problem,) = refused((1, "a", 3), (1, "b", 4), (1, "c", 5), (2, "d", 6))
    assert problem.startswith("w.b: [open_instances] it is gone, and 7 open instance(s)")
    assert [] == refused((1, "b", 4), (2, "a", 2), stands=0)
    (problem,) = refused((1, "a", 3), stands=0)
    assert problem.startswith("w.b: [open_instances] it is gone, and 3 open instance(s)")
    changed = refused((2, "a", 4), (3, "a", 2), (3, "d", 1))
    assert ["w.a: [open_instances] it has another category, and 4 open instance(s)"] == [
        one[:69] for one in changed[:1]
    ]
    assert ["w.d: [open_instances] it has another category, and 3 open instance(s)"] == [
        one[:69] for one in changed[1:]
    ]
    other = [{"number": 1, "workflow": "v", "task": "x", "stands": 1, "instances": 1}]
    problems: list[str] = []
    macros.workflow_open_problems(other, routes, categories, rows, problems)
    assert ["v.x: [open_instances]"] == [one[:21] for one in problems]


def test_a_hand_written_workflow_needs_no_hash(macros: Macros) -> None:
    """Rows without a hash are judged by the rules alone."""
    rows = rows_of(graph())
    workflow(hash="")(rows)
    task("pack", time_limit_seconds="11")(rows)
    assert set() == in_dbt(macros, rows)


@pytest.mark.parametrize("members", [Visibility, Necessity, Hurt, Risk])
def test_both_sides_have_the_same_closed_lists(macros: Macros, members: Any) -> None:
    """Every member of the checklist may stand in a row."""
    name = "risks" if members is Risk else members.__name__.lower()
    for member in members:
        rows = rows_of(graph())
        workflow(hash="")(rows)
        task("tell", **{name: str(member)})(rows)
        assert set() == in_dbt(macros, rows)


def test_identifiers_of_two_workflows_do_not_meet_in_rows(macros: Macros) -> None:
    """Two workflows whose tasks can have the same identifier do not pass together."""
    mine, theirs = rows_of(graph()), rows_of(graph(name="returns", starts_on="parcel.back"))
    for rows in (mine, theirs):
        workflow(hash="")(rows)
        task("pack", identifier="pack-{parcel_id}-{visit}")(rows)
    assert {("returns.pack", "identifiers_collide")} == in_dbt(macros, joined([mine, theirs]))


def test_workflows_that_start_each_other_do_not_pass_in_rows(macros: Macros) -> None:
    """A circle of workflows is named once."""
    there = rows_of(graph(starts_on="parcel.lost", name="search"))
    workflow(default_exit="parcel.sent", hash="")(there)
    for row in there["railway_routes"]:
        row["to_event"] = row["to_event"] and "parcel.sent"
    back = rows_of(graph(starts_on="parcel.sent", name="receipt"))
    workflow(default_exit="parcel.lost", hash="")(back)
    for row in back["railway_routes"]:
        row["to_event"] = row["to_event"] and "parcel.lost"
    assert {("receipt", "workflows_go_in_circles")} == in_dbt(macros, joined([there, back]))


# --- templates ----------------------------------------------------------------------------------

TEMPLATE = st.text("ab{}_1é", max_size=8) | st.sampled_from(["{a}-{b}", "{{x}}{a}", "", "{a!r}"])


@given(text=TEMPLATE)
def test_both_sides_read_a_template_the_same(macros: Macros, text: str) -> None:
    """A template is well formed for both or for none, and then of the same parts."""
    here, there = Template(text), macros.workflow_template(text, {"a": "A"})
    assert (here.problem is None) == (there["problem"] is None)
    if here.problem is None:
        assert here.fields == frozenset(there["fields"])
        assert here.pieces({"a": "A"}) == there["pieces"]


PIECES = st.lists(st.text("ab", max_size=2), min_size=1, max_size=3)
WORDS = ["".join(word) for length in range(13) for word in product("ab", repeat=length)]


@given(one=PIECES, other=PIECES)
def test_templates_meet_if_there_is_a_text_of_both(
    macros: Macros, one: list[str], other: list[str]
) -> None:
    """Two templates collide exactly where some text is made by both."""
    forms = [re.compile(".*".join(pieces)) for pieces in (one, other)]
    needed = sum(map(len, [*one, *other]))
    there = any(
        all(form.fullmatch(word) for form in forms) for word in WORDS if len(word) <= needed
    )
    assert there == can_meet(one, other) == macros.workflow_templates_meet(one, other)
