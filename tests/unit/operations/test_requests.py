"""Requests of an operator: what is accepted, what is refused, and that dbt keeps the same rules."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.macro_namespace import Macros

from delta_outbox.cli.arguments import instant
from delta_outbox.core.errors import WrongUsage
from delta_outbox.core.instants import micros
from delta_outbox.lifecycle.states import State
from delta_outbox.operations.requests import Request, kill_request, release_request, replay_request

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
WHO = {"actor": "ann", "reason": "fixed"}
HOSTILE = (
    "x' or '1'='1\"; drop table `y` -- \\ \\' {{ 7*7 }} {% raw %} ${env:HOME} :id ü \U0001f600"
)
MAKERS: dict[str, Callable[..., Request]] = {
    "replay": replay_request,
    "kill": kill_request,
    "release": release_request,
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "replay": dict.fromkeys(("state", "event_type", "since", "until", "event_ids", "error"))
    | {"everything": False},
    "kill": {"event_ids": None},
    "release": {"event_ids": None, "claim_ids": None},
}
MACROS = Macros("requests", "policies")


def by_python(kind: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what Python makes of arguments, in the words of the macro, or its problems."""
    try:
        request = MAKERS[kind](**arguments)
    except WrongUsage as error:
        return {}, str(error).removeprefix(f"{kind}: ").removesuffix(".").split("; `")
    checked: dict[str, Any] = {
        "event_ids": None if request.event_ids is None else list(request.event_ids),
        "actor": request.actor,
        "reason": request.reason,
        "dry_run": request.dry_run,
    }
    if kind == "replay":
        checked |= {
            "state": request.state,
            "event_type_regex": request.event_type_regex,
            "since": None if request.since is None else micros(request.since),
            "until": None if request.until is None else micros(request.until),
            "error": request.error,
            "everything": arguments.get("everything", False),
        }
    if kind == "release":
        checked["claim_ids"] = None if request.claim_ids is None else list(request.claim_ids)
    return checked, []


def by_dbt(kind: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what the macro makes of arguments, or its problems."""
    checked: dict[str, Any] = {}
    problems: list[str] = []
    all_ = {**ARGUMENTS[kind], "actor": None, "reason": None, "dry_run": True, **arguments}
    MACROS.check_request(kind, all_, checked, problems)
    return ({}, "; ".join(problems).split("; `")) if problems else (checked, [])


GOOD: list[tuple[str, dict[str, Any]]] = [
    ("replay", {"state": "DEAD", **WHO}),
    ("replay", {"state": State.DEAD, **WHO, "dry_run": False}),
    ("replay", {"state": "dead", "everything": True, **WHO}),
    ("replay", {"state": "PUBLISHED", "everything": True, **WHO}),
    ("replay", {"state": "PUBLISHED", "event_type": "order.[a-c]*[!x]?", **WHO}),
    ("replay", {"state": "PUBLISHED", "since": NOON, **WHO}),
    ("replay", {"state": "DEAD", "since": NOON, "until": NOON + timedelta(microseconds=1), **WHO}),
    ("replay", {"state": "DEAD", "until": NOON.astimezone(timezone(timedelta(hours=-9))), **WHO}),
    ("replay", {"state": "PUBLISHED", "event_ids": ["b", "a", "b", HOSTILE, "B"], **WHO}),
    ("replay", {"state": "DEAD", "error": HOSTILE, **WHO}),
    ("replay", {"state": "DEAD", "error": "\n", **WHO}),
    ("replay", {"state": "DEAD", "actor": " ann ", "reason": "直した\u3000済み"}),
    ("replay", {"state": "DEAD", "actor": "a" * 200, "reason": "r" * 500}),
    ("kill", {"event_ids": ["a"], **WHO}),
    ("kill", {"event_ids": ("x" * 1000,), "actor": HOSTILE, "reason": HOSTILE}),
    ("release", WHO),
    ("release", {"event_ids": ["a"], "claim_ids": ["c", "c"], **WHO, "dry_run": False}),
]

# Each with the argument that is named first.
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("replay", {**WHO}, "state"),
    ("replay", {"state": "FOO", **WHO}, "state"),
    ("replay", {"state": "PENDING", **WHO}, "state"),
    ("replay", {"state": ["DEAD"], **WHO}, "state"),
    ("replay", {"state": "PUBLISHED", **WHO}, "state"),
    ("replay", {"state": "PUBLISHED", "everything": True, "error": "x", **WHO}, "everything"),
    ("replay", {"state": "DEAD", "everything": "yes", **WHO}, "everything"),
    ("replay", {"state": "DEAD", "everything": 1, **WHO}, "everything"),
    ("replay", {"state": "DEAD", "event_type": "", **WHO}, "event_type"),
    ("replay", {"state": "DEAD", "event_type": "order.[a", **WHO}, "event_type"),
    ("replay", {"state": "DEAD", "event_type": "[z-a]", **WHO}, "event_type"),
    ("replay", {"state": "DEAD", "event_type": 7, **WHO}, "event_type"),
    ("replay", {"state": "DEAD", "event_type": "x" * 501, **WHO}, "event_type"),
    ("replay", {"state": "DEAD", "since": NOON.replace(tzinfo=None), **WHO}, "since"),
    ("replay", {"state": "DEAD", "since": NOON.date(), **WHO}, "since"),
    ("replay", {"state": "DEAD", "since": 1, **WHO}, "since"),
    ("replay", {"state": "DEAD", "since": NOON, "until": NOON, **WHO}, "until"),
    ("replay", {"state": "DEAD", "event_ids": [], **WHO}, "event_ids"),
    ("replay", {"state": "DEAD", "event_ids": "abc", **WHO}, "event_ids"),
    ("replay", {"state": "DEAD", "event_ids": {"a": 1}, **WHO}, "event_ids"),
    ("replay", {"state": "DEAD", "event_ids": ["a", ""], **WHO}, "event_ids"),
    ("replay", {"state": "DEAD", "event_ids": ["a", 12], **WHO}, "event_ids"),
    ("replay", {"state": "DEAD", "event_ids": ["a", None], **WHO}, "event_ids"),
    ("replay", {"state": "DEAD", "event_ids": ["\ud800"], **WHO}, "event_ids"),
    ("replay", {"state": "DEAD", "event_ids": ["x" * 1001], **WHO}, "event_ids"),
    ("replay", {"state": "DEAD", "event_ids": ["x"] * 10_001, **WHO}, "event_ids"),
    ("replay", {"state": "DEAD", "error": "", **WHO}, "error"),
    ("replay", {"state": "DEAD", "error": "e" * 501, **WHO}, "error"),
    ("replay", {"state": "DEAD", "error": "\udfff", **WHO}, "error"),
    ("replay", {"state": "DEAD", "actor": "ann"}, "reason"),
    ("replay", {"state": "DEAD", "reason": "fixed"}, "actor"),
    ("replay", {"state": "DEAD", "actor": "ann", "reason": " \t\u3000"}, "reason"),
    ("replay", {"state": "DEAD", "actor": "ann", "reason": "two\nlines"}, "reason"),
    ("replay", {"state": "DEAD", "actor": "ann", "reason": "\x1b[31mred"}, "reason"),
    ("replay", {"state": "DEAD", "actor": "ann", "reason": "\u202etfel"}, "reason"),
    ("replay", {"state": "DEAD", "actor": "ann", "reason": "r" * 501}, "reason"),
    ("replay", {"state": "DEAD", "actor": "a" * 201, "reason": "r"}, "actor"),
    ("replay", {"state": "DEAD", "actor": 7, "reason": "r"}, "actor"),
    ("replay", {"state": "DEAD", **WHO, "dry_run": "false"}, "dry_run"),
    ("replay", {"state": "DEAD", **WHO, "dry_run": None}, "dry_run"),
    ("kill", {**WHO}, "event_ids"),
    ("kill", {"event_ids": [], **WHO}, "event_ids"),
    ("kill", {"event_ids": ["a"], "reason": "r"}, "actor"),
    ("kill", {"event_ids": ["a"], **WHO, "dry_run": 0}, "dry_run"),
    ("release", {"event_ids": [], **WHO}, "event_ids"),
    ("release", {"claim_ids": [], **WHO}, "claim_ids"),
    ("release", {"actor": "ann", "reason": ""}, "reason"),
]


@pytest.mark.parametrize(("kind", "arguments"), GOOD)
def test_what_is_meant(kind: str, arguments: dict[str, Any]) -> None:
    """What Python accepts, dbt accepts, and both mean the same."""
    checked, problems = by_python(kind, arguments)
    assert ([], checked) == (problems, by_dbt(kind, arguments)[0])


@pytest.mark.parametrize(("kind", "arguments", "first"), BAD)
def test_what_is_refused(kind: str, arguments: dict[str, Any], first: str) -> None:
    """A bad argument is refused by name, with its rule and what came, in the same words by dbt."""
    problems = by_python(kind, arguments)[1]
    assert problems[0].lstrip("`").startswith(f"{first}` ")
    assert ". Got: " in problems[0]
    assert problems == by_dbt(kind, arguments)[1]


ALPHABET = "ab.*?[]!- \n\t\x1b\u3000\u202e\ud800{}'\"\\$\u00e9"
TEXT = st.text(ALPHABET, max_size=6) | st.sampled_from([HOSTILE, "DEAD", "PUBLISHED", "order.*"])
INSTANTS = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5)), None]))
ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | TEXT
    | INSTANTS
    | st.lists(TEXT | st.none(), max_size=3)
)


@given(data=st.data(), kind=st.sampled_from(sorted(MAKERS)))
def test_dbt_keeps_the_same_rules(data: st.DataObject, kind: str) -> None:
    """Whatever comes, Python and dbt accept the same and refuse the same, in the same words."""
    names = [*ARGUMENTS[kind], "actor", "reason", "dry_run"]
    good = {"state": "DEAD", "event_ids": ["a"], **WHO, "dry_run": True}
    fallback = {name: good[name] for name in names if name in good}
    arguments = {**fallback, **data.draw(st.dictionaries(st.sampled_from(names), ANYTHING))}
    assert by_python(kind, arguments) == by_dbt(kind, arguments)


def test_every_problem_is_named() -> None:
    """One refusal names everything that is wrong."""
    with pytest.raises(WrongUsage, match=r"^replay: `state` must be DEAD or PUBLISHED\. Got: 'FO"):
        replay_request(state="FOO", **WHO)
    with pytest.raises(WrongUsage, match=r"`state`.*`event_ids`.*`reason`.*`actor`"):
        replay_request(state="FOO", event_ids=[])


def test_everything_that_was_ever_delivered_is_no_default() -> None:
    """A replay of PUBLISHED without a filter has to be asked for in so many words."""
    with pytest.raises(WrongUsage, match=r"PUBLISHED needs a filter .* or `everything`"):
        replay_request(state="PUBLISHED", **WHO)
    assert replay_request(state="PUBLISHED", everything=True, **WHO).dry_run


INSTANT_TEXTS = [
    "2026-11-01T12:00:00Z",
    "2026-11-01 12:00+01:30",
    "2024-02-29T23:59:59.123456-08:00",
    "0001-01-02T00:00:00.5+05:00",
    "2026-11-01T12:00:00",
    "2026-11-01",
    "2026-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "2026-01-01T24:00:01Z",
    "2026-01-01T12:60:00Z",
    "2026-01-01T12:00:00+24:00",
    "2026-01-01T12:00:00Z'; drop table x",
    "yesterday",
    "",
    "\u0662\u0660\u0662\u0666-11-01T12:00:00Z",
]


@pytest.mark.parametrize("text", INSTANT_TEXTS)
def test_instants_as_text(text: str) -> None:
    """A text that dbt takes for an instant is the same instant on the command line."""
    checked, problems = by_dbt("replay", {"state": "DEAD", "since": text, **WHO})
    try:
        expected = micros(instant(text))
    except ArgumentTypeError:
        assert problems
    else:
        assert expected == checked["since"], problems
