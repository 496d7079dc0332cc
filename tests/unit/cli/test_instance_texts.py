"""What a person reads of instances and items."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import pytest

from delta_outbox.cli import instances, todo
from delta_outbox.cli.render import console_for
from delta_outbox.workflow_engine.instances import DONE_BY

HOSTILE = "\x1b[2J\r\u202eevil\x07"
SOON = "2026-11-27T12:00:00.000000Z"
TASK: dict[str, Any] = {
    "task": "pay",
    "title": "Take the money",
    "task_id": "pay-1",
    "visit": 2,
    "delivery_state": "PENDING",
    "cause": None,
    "outcome": None,
    "attempts": 3,
    "triggered_at": SOON,
    "changed_at": SOON,
    "last_error": HOSTILE,
}
INSTANCE: dict[str, Any] = {
    "title": None,
    "workflow": "orders",
    "instance": HOSTILE,
    "version": 1,
    "started_at": SOON,
    "start_event_id": "e-1",
    "exit": None,
    "ended_at": None,
}
UNKNOWN = {"title": "Take the money", "task_id": "pay-1", "third_party": "bank", "is_final": False}
MOVE: dict[str, Any] = {
    "from_task": "ask",
    "from_version": 1,
    "to_task": "pay",
    "to_event": None,
    "to_version": 2,
    "is_uncertain": False,
    "late_task_id": None,
    "late_outcome": None,
    "actor": "ann",
    "reason": HOSTILE,
    "at": SOON,
}
NEXT: dict[str, Any] = {
    "title": "Take the money",
    "task_id": "pay-1",
    "at": SOON,
    "due_at": None,
    "expires_at": SOON,
    "by": "relay-1",
    "roles": ["support", "boss"],
    "problem": "It has no outcome 'x'.",
    "asked": None,
    "held_back": None,
    "third_party": "bank",
    "assigned_to": None,
}


def text_of(parts: Iterable[Any]) -> str:
    """Return what a person reads; nothing of it steers a terminal."""
    stream = io.StringIO()
    for part in parts:
        console_for(stream).print(part)
    found = stream.getvalue()
    assert not {char for char in found if not char.isprintable()} - {"\n"}
    return found


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("attempt", "A relay attempts 'Take the money', at 2026-11-27T12:00:00.000000Z or later"),
        ("attempt under way", "is under way, by relay-1, until"),
        ("answer", "waits for support or boss: `outbox todo show pay-1`"),
        ("item opens", "A relay opens 'Take the money' for an answer"),
        ("what follows is written", "A relay writes what follows"),
        ("person must look", "Stranded: It has no outcome 'x'. A person must look."),
    ],
)
def test_an_instance_is_told_on_one_screen(what: str, words: str) -> None:
    """What has happened, what is not known, and what happens next, in words."""
    document = {
        "instance": INSTANCE,
        "tasks": [TASK],
        "late_answers": [],
        "moves": [],
        "unknown": [UNKNOWN],
        "next": {**NEXT, "what": what},
    }
    found = text_of(instances.show_text(document))
    assert words in found
    assert "Take the money (2)" in found
    assert "Not known yet: whether bank has done 'Take the money' (pay-1)." in found


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({}, "Nobody need do anything."),
        ({"held_back": "paused"}, "Not yet: bank is paused. `outbox resume bank` lets it go on."),
        ({"held_back": "breaker"}, "Not yet: bank does not answer, and is asked again"),
        ({"what": "answer", "assigned_to": "ben"}, "ben takes care of it."),
        (
            {"what": "ends", "asked": {"actor": "ann", "reason": HOSTILE, "command_id": "c1"}},
            "ann has asked that 'Take the money' ends, or goes on elsewhere: ",
        ),
    ],
)
def test_what_holds_an_instance_up_is_told(after: dict[str, Any], words: str) -> None:
    """Nobody reads that all is well while somebody has to do something, or has done it."""
    late = {"answer": "yes", "task_id": "ask-1", "actor": HOSTILE, "requested_at": SOON}
    answers = [{**late, "may_be_accepted": may_be} for may_be in (True, False)]
    document = {
        "instance": INSTANCE,
        "tasks": [TASK],
        "late_answers": answers,
        "moves": [],
        "unknown": [],
        "next": {**NEXT, "what": "attempt", **after},
    }
    found = text_of(instances.show_text(document)).replace("\n", " ")
    assert words in found
    assert ("Nobody need do anything." in found) == (not {"held_back", "what"} & after.keys())
    assert 2 == found.count("Did not count: 'yes' to ask-1, by ")
    assert 1 == found.count("`outbox workflow accept-late` goes on by it.")
    assert ("A relay attempts" in found) == (after.get("what", "attempt") == "attempt")


@pytest.mark.parametrize(
    ("move", "words"),
    [
        ({}, "from ask to pay, from version 1 to 2; ann: "),
        ({"to_task": None, "to_version": None}, "to what is not written yet, from version 1 to an"),
        ({"is_uncertain": True}, "from ask to pay, as uncertain: its task was attempted meanwhile"),
        (
            {"to_task": None, "to_event": "paid", "late_task_id": "ask-1", "late_outcome": "yes"},
            "from ask to paid, by the late answer 'yes' to ask-1; ann: ",
        ),
    ],
)
def test_a_move_is_told(move: dict[str, Any], words: str) -> None:
    """Who looks reads where an operator has moved an instance from and to, by what and why."""
    document = {
        "instance": INSTANCE,
        "tasks": [TASK],
        "late_answers": [],
        "moves": [{**MOVE, **move}],
        "unknown": [],
        "next": {**NEXT, "what": "attempt"},
    }
    assert words in text_of(instances.show_text(document)).replace("\n", " ")


@pytest.mark.parametrize("kind", ["accept_late", "cancel", "extend", "migrate"])
def test_what_is_asked_of_open_tasks_is_told(kind: str) -> None:
    """A preview says that nothing was written; what is left out says why."""
    done_by = DONE_BY[kind]
    row: dict[str, Any] = {
        "workflow": "orders",
        "instance": HOSTILE,
        "state": "running",
        "task": "pay",
    }
    row |= {"third_party": "bank", "expires_at": "2026-11-27", "expires_then": "2026-11-28"}
    row |= {"late_task_id": "ask-1", "late_outcome": "yes", "goes_to": "pack"}
    row |= {"version": 1, "to_version": 2, "to_task": "pay", "to_task_id": "pay-2"}
    left_out = [{**row, "refusal": "has ended with order.sent"}] * 21
    shown = {"kind": kind, "dry_run": True, done_by: [row], "left_out": left_out}
    shown |= {"command_id": None, "reasons": {"has ended with order.sent": 21}}
    found = text_of(instances.report_text(shown))
    assert "nothing was written. Add --apply" in found
    assert "Left out: 21" in found
    assert "21: has ended with order.sent" in found
    assert (kind == "extend") == ("2026-11-28" in found)
    assert (kind == "accept_late") == ("ask-1" in found)
    assert (kind == "migrate") == ("pay-2" in found)
    done = {**shown, "dry_run": False, "command_id": "c0ffee"}
    assert f"{done_by} by command c0ffee" in text_of(instances.report_text(done))
    unknown = {"task_id": "pay-9", "instance": None, "refusal": "is no open task that is meant"}
    assert "pay-9" in text_of(
        instances.report_text({**shown, "left_out": [unknown, *left_out[:1]]})
    )
    nothing = {**shown, done_by: []}
    assert f"Nothing to {kind.replace('_', '-')}" in text_of(instances.report_text(nothing))


NO_MORE: dict[str, Any] = {"to": None, "until": None, "outcome": None}


def test_an_item_is_told() -> None:
    """What an item is about is shown, and how to answer it."""
    item = {
        "task_id": "review-1",
        "state": "open",
        "outcome": None,
        "read_model": {"order": HOSTILE},
        "contract": {"type": "object"},
        "outcomes": ["keep", "send"],
        "history": [{**NO_MORE, "at": SOON, "what": "taken", "by": HOSTILE}],
    }
    found = text_of(todo.show_text(item))
    assert "It may come to: keep, send." in found
    assert "outbox todo complete review-1" in found
    assert "taken" in found
    assert "Nothing waits for anybody." in text_of(todo.list_text({"items": [], "more": False}))


def test_items_that_nobody_can_answer_are_told_with_the_roles_that_somebody_has() -> None:
    """Whoever sees that nothing is an orphan sees by which roles that was judged."""
    found = text_of(todo.list_text({"items": [], "more": False, "known_roles": ["boss", "clerk"]}))
    assert "boss, clerk" in found
    assert "Nothing waits for a role that nobody has." in found
