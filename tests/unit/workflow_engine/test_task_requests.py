"""Requests about open tasks: what is accepted and refused, and that dbt keeps the same rules."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.macro_namespace import Macros

from delta_outbox.core.errors import WrongUsage
from delta_outbox.core.instants import micros
from delta_outbox.workflow_engine.task_requests import command_of, task_request

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
WHO = {"actor": "ann", "reason": "the bank is closed"}
SELECTED = ("instances", "task_ids", "workflow", "task", "third_party", "role", "since", "until")
NAMES = {
    "accept_late": (*SELECTED, "late_task"),
    "cancel": SELECTED,
    "extend": (*SELECTED, "to", "by_seconds"),
    "assign": (*SELECTED, "only_items", "assignee", "only_unassigned"),
}
EVERY = sorted({name for names in NAMES.values() for name in names})
MACROS = Macros("requests", "policies")


def by_python(kind: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what Python makes of arguments, in the words of the macro, or its problems."""
    try:
        request = task_request(kind, **arguments)
    except WrongUsage as error:
        problems = str(error).removeprefix(f"{command_of(kind)}: ").removesuffix(".")
        return {}, problems.split("; `")
    checked = asdict(request)
    del checked["kind"]
    for name in ("since", "until", "to"):
        checked[name] = None if checked[name] is None else micros(checked[name])
    for name in ("instances", "task_ids"):
        checked[name] = None if checked[name] is None else list(checked[name])
    return checked, []


def by_dbt(kind: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what the macro makes of arguments, or its problems."""
    checked: dict[str, Any] = {}
    problems: list[str] = []
    flags = {"dry_run": True, "only_items": False, "only_unassigned": False}
    given_ = dict.fromkeys((*EVERY, "actor", "reason")) | flags | arguments
    MACROS.check_task_request(kind, given_, checked, problems)
    return ({}, "; ".join(problems).split("; `")) if problems else (checked, [])


GOOD: list[tuple[str, dict[str, Any]]] = [
    ("cancel", {"instances": ["a", "a", "b"]}),
    ("cancel", {"workflow": "orders", "task": "pay", "dry_run": False}),
    ("cancel", {"third_party": "bank", "since": NOON, "until": NOON + timedelta(seconds=1)}),
    ("accept_late", {"workflow": "orders", "late_task": "pay"}),
    ("extend", {"third_party": "bank", "by_seconds": 1}),
    ("extend", {"workflow": "orders", "to": NOON}),
    ("extend", {"task_ids": ["ask-1"], "by_seconds": 1}),
    ("assign", {"task_ids": ["ask-1"], "assignee": " ann "}),
    ("assign", {"role": "support", "assignee": "", "only_items": True}),
]

# Each with the argument that is named first.
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("cancel", {}, "instances"),
    ("cancel", {"instances": []}, "instances"),
    ("cancel", {"since": NOON}, "instances"),
    ("cancel", {"instances": ["a"], "task": "pay"}, "workflow"),
    ("cancel", {"workflow": ""}, "workflow"),
    ("cancel", {"workflow": "orders", "since": NOON, "until": NOON}, "until"),
    ("cancel", {"workflow": "orders", "actor": ""}, "actor"),
    ("cancel", {"workflow": "orders", "dry_run": "yes"}, "dry_run"),
    ("accept_late", {"late_task": "pay"}, "instances"),
    ("accept_late", {"workflow": "orders", "late_task": ""}, "late_task"),
    ("extend", {"workflow": "orders"}, "to"),
    ("extend", {"workflow": "orders", "to": NOON, "by_seconds": 1}, "to"),
    ("extend", {"workflow": "orders", "to": NOON.replace(tzinfo=None)}, "to"),
    ("extend", {"workflow": "orders", "by_seconds": 0}, "by_seconds"),
    ("extend", {"workflow": "orders", "by_seconds": True}, "by_seconds"),
    ("extend", {"workflow": "orders", "by_seconds": 1.5}, "by_seconds"),
    ("extend", {"workflow": "orders", "by_seconds": 1_000_000_001}, "by_seconds"),
    ("assign", {"assignee": "ann"}, "instances"),
    ("assign", {"task_ids": [], "assignee": "ann"}, "task_ids"),
    ("assign", {"role": "", "assignee": "ann"}, "role"),
    ("assign", {"role": "support", "only_items": 1, "assignee": "ann"}, "only_items"),
    ("assign", {"role": "support"}, "assignee"),
    ("assign", {"role": "support", "assignee": " "}, "assignee"),
    ("assign", {"role": "support", "assignee": "a\nb"}, "assignee"),
    ("assign", {"role": "support", "assignee": "ann", "only_unassigned": 1}, "only_unassigned"),
]


@pytest.mark.parametrize(("kind", "arguments"), GOOD)
def test_what_is_meant(kind: str, arguments: dict[str, Any]) -> None:
    """What Python accepts, dbt accepts, and both mean the same."""
    checked, problems = by_python(kind, {**WHO, **arguments})
    assert ([], checked) == (problems, by_dbt(kind, {**WHO, **arguments})[0])


@pytest.mark.parametrize(("kind", "arguments", "first"), BAD)
def test_what_is_refused(kind: str, arguments: dict[str, Any], first: str) -> None:
    """A bad argument is refused by name, with its rule and what came, in the same words by dbt."""
    problems = by_python(kind, {**WHO, **arguments})[1]
    assert problems[0].lstrip("`").startswith(f"{first}` ")
    assert ". Got: " in problems[0]
    assert problems == by_dbt(kind, {**WHO, **arguments})[1]


ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text("a.'\"{}\n\x1b\ud800", max_size=4)
    | st.datetimes(timezones=st.sampled_from([UTC, None]))
    | st.lists(st.text(max_size=3) | st.none(), max_size=3)
)


@given(data=st.data(), kind=st.sampled_from(sorted(NAMES)))
def test_dbt_keeps_the_same_rules(data: st.DataObject, kind: str) -> None:
    """Whatever comes, Python and dbt accept the same and refuse the same, in the same words."""
    names = [*NAMES[kind], *WHO, "dry_run"]
    drawn = data.draw(st.dictionaries(st.sampled_from(names), ANYTHING))
    arguments = {**WHO, "workflow": "orders", **drawn}
    assert by_python(kind, arguments) == by_dbt(kind, arguments)


class Operations(Macros):
    """The operations of dbt, of which each request is checked and goes no further."""

    def perform_task_request(self, kind: str, given: dict[str, Any]) -> None:
        """Check a request."""
        problems: list[str] = []
        self.check_task_request(kind, given, {}, problems)
        assert [] == problems


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("accept_late", {}),
        ("assign_items", {"to": "ann"}),
        ("cancel_instances", {}),
        ("extend_tasks", {"by_seconds": 1}),
    ],
)
def test_operations_of_dbt_name_every_argument(name: str, arguments: dict[str, Any]) -> None:
    """What an operation does not take is none for the rules, and not what breaks one."""
    operations = Operations("operations", "requests", "policies")
    getattr(operations, name)(workflow="orders", **WHO, **arguments)
