"""What is said of an instance: what is not known, and what happens next."""

from __future__ import annotations

from typing import Any

import pytest

from delta_outbox.workflow_engine.instances import late_answers_of, next_of, unknown_of

SOON = "2026-11-27T12:00:00.000000Z"
INSTANCE = {"state": "running", "next_at": SOON, "problem": None}
TASK = {
    "task_id": "pay-1",
    "title": "Take the money",
    "task": "pay",
    "category": "black_box",
    "third_party": "bank",
    "cause": None,
    "delivery_state": "PENDING",
    "held_by": None,
    "roles": None,
    "due_at": None,
    "expires_at": SOON,
}
ITEM = {"category": "to_do", "third_party": None, "roles": "support|boss"}


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ({}, {"what": "attempt", "at": SOON, "expires_at": SOON}),
        (
            {"delivery_state": "CLAIMED", "held_by": "relay-1"},
            {"what": "attempt under way", "by": "relay-1"},
        ),
        (ITEM, {"what": "item opens"}),
        (
            {**ITEM, "delivery_state": "CLAIMED", "held_by": "todo"},
            {"what": "answer", "roles": ["support", "boss"], "at": None},
        ),
        ({"delivery_state": "PUBLISHED", "cause": "decided"}, {"what": "what follows is written"}),
    ],
)
def test_what_happens_next(task: dict[str, Any], expected: dict[str, Any]) -> None:
    """Who looks at an instance learns what happens next, when, and who must do something."""
    found = next_of(INSTANCE, [{**TASK, **task}])
    assert found is not None
    assert expected == {name: found[name] for name in expected}


def test_what_holds_an_instance_up_is_told() -> None:
    """Somebody has asked that its task ends, its third party is not asked, or a person has it."""
    kill = {"event_id": "pay-1", "actor": "ann", "reason": "rang", "command_id": "c1"}
    other = {**kill, "event_id": "pay-0"}
    found = next_of(INSTANCE, [TASK], kills=[other], held_back="paused")
    assert found is not None
    assert ("paused", "bank", None) == tuple(
        found[name] for name in ("held_back", "third_party", "assigned_to")
    )
    item = {**TASK, **ITEM, "delivery_state": "CLAIMED", "held_by": "todo"}
    found = next_of(INSTANCE, [item], held_back="paused", assigned_to="ben")
    assert found is not None
    assert (None, None, "ben") == tuple(
        found[name] for name in ("asked", "held_back", "assigned_to")
    )


@pytest.mark.parametrize(
    ("task", "what"),
    [
        ({}, "ends"),
        ({**ITEM, "delivery_state": "CLAIMED", "held_by": "todo"}, "ends"),
        ({"delivery_state": "CLAIMED", "held_by": "relay-1"}, "attempt under way"),
    ],
)
def test_what_is_to_end_is_not_attempted_any_more(task: dict[str, Any], what: str) -> None:
    """A kill ends it, also while its third party is paused; a call under way is finished."""
    kill = {"event_id": "pay-1", "actor": "ann", "reason": "rang", "command_id": "c1"}
    found = next_of(INSTANCE, [{**TASK, **task}], kills=[kill], held_back="paused")
    assert found is not None
    assert {"actor": "ann", "reason": "rang", "command_id": "c1"} == found["asked"]
    assert (what, None) == (found["what"], found["held_back"])


ASKED = {"task": "ask", "delivery_state": "PUBLISHED"}


@pytest.mark.parametrize(
    ("tasks", "offered"),
    [
        ([{"task_id": "ask-1", "cause": "expired"}], [0]),
        ([{"task_id": "ask-1", "cause": "uncertain"}], [0]),
        ([{"task_id": "ask-1", "cause": "decided"}], []),
        ([{"task_id": "ask-1", "cause": "expired"}, {"task_id": "ask-2", "cause": "expired"}], [2]),
        ([{"task_id": "ask-1", "cause": "expired"}, {"task_id": "ask-2", "cause": "decided"}], []),
        ([{"task_id": "ask-1", "cause": "expired"}, {"task_id": "ask-3", "cause": "expired"}], [0]),
    ],
)
def test_which_late_answers_may_be_accepted(
    tasks: list[dict[str, Any]], offered: list[int]
) -> None:
    """The first one to the last visit that nobody has decided, once, of an open instance."""
    answers = [{"task_id": name} for name in ("ask-1", "ask-1", "ask-2")]
    ended = [{**ASKED, **one} for one in tasks]

    def found(*open_: dict[str, Any]) -> list[int]:
        every = late_answers_of(answers, [*ended, *open_])
        return [place for place, one in enumerate(every) if one["may_be_accepted"]]

    assert offered == found({**TASK, "accepted": None})
    assert [] == found()
    assert [] == found({**TASK, "accepted": ["ask-1", "ask-2"]})


def test_nothing_happens_to_what_has_ended_and_somebody_must_look_at_what_is_stranded() -> None:
    """An end is the end, and a stranded instance says why."""
    assert next_of({**INSTANCE, "state": "ended"}, [TASK]) is None
    stranded = {**INSTANCE, "state": "stranded", "problem": "It has no outcome 'x'."}
    found = next_of(stranded, [{**TASK, "delivery_state": "PUBLISHED", "cause": "decided"}])
    assert found is not None
    assert ("person must look", "It has no outcome 'x'.") == (found["what"], found["problem"])


def test_what_is_not_known() -> None:
    """A task that ended as uncertain is not known for good, nor is one that an operator has ended
    after an attempt that may have acted; one that goes on after such an attempt, not yet. What was
    found out since is known.
    """
    uncertain = {**TASK, "delivery_state": "PUBLISHED", "cause": "uncertain"}
    found_out = {**TASK, "task_id": "pay-2", "delivery_state": "PUBLISHED", "cause": "decided"}
    goes_on = {**TASK, "task_id": "pay-3"}
    untried = {**TASK, "task_id": "pay-4"}
    killed = {**TASK, "task_id": "pay-5", "delivery_state": "DEAD", "cause": "killed"}
    unsent = {**killed, "task_id": "pay-6"}
    attempts = [{"task_id": f"pay-{number}", "known": "unsure"} for number in (1, 2, 3, 5)]
    found = unknown_of([uncertain, found_out, goes_on, untried, killed, unsent], attempts)
    assert [("pay-1", True), ("pay-3", False), ("pay-5", True)] == [
        (one["task_id"], one["is_final"]) for one in found
    ]
