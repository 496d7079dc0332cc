"""Judges instances of the workflows of `categories.py` by their pictures, by what was told
to people, and by what third parties have really done; nothing of the engine is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from tests.unit.workflow_engine import categories
from tests.unit.workflow_engine.categories import Came, Looked

from delta_outbox.railway import BlackBox, Event, Idempotent, State
from delta_outbox.testing.workflows import Trouble
from delta_outbox.workflow_engine.derivation.moves import Move, OtherVersion

WORKFLOWS: Final = {
    one.name: one
    for one in (
        categories.tour,
        *(getattr(categories, task.task_name()) for task in categories.SINGLE),
    )
}
CAUSE: Final = {
    "completed": "decided",
    "rejected": "faulted",
    "exhausted": "faulted",
    "expired": "expired",
    "uncertain": "uncertain",
}
SAYS: Final = {
    "decided": Came.DONE,
    "faulted": Came.FAULTED,
    "expired": Came.EXPIRED,
    "uncertain": Came.UNCLEAR,
}
CERTAIN: Final = frozenset({Trouble.ANSWERS, Trouble.REFUSES, Trouble.REJECTS})
"""What a call comes to of which the relay then knows whether it has acted."""
MOST_EFFECTS: Final = {"thrice": 3, "third": 3, "ever": None}  # 1 of all others
IN_FLIGHT: Final = timedelta(minutes=5)  # from the claim of a task to its last call, at most
UNSURE: Final = frozenset({"unknown", "crashed", "lease_expired"})
"""How an attempt ends on record that may have acted."""


@dataclass
class Known:
    """An instance, as a model knows it.

    Args:
        workflow: its name.
        name: of the instance.
        starts: ids of its start events, the first one first.
        killed: by task that an operator has ended, where they first said that the instance goes on;
            None for the default exit.
        answers: by item, the outcome that was told to count.
    """

    workflow: str
    name: str
    starts: list[str] = field(default_factory=list)
    killed: dict[str, Move | None] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return its key among the instances of all workflows."""
        return f"workflow:{self.workflow}/{self.name}"

    def task_id(self, task: Any, visit: int) -> str:
        """Return the identifier of a task, as the picture has it."""
        return str(task.identifier.format(name=self.name, visit=visit))


def path_of(
    one: Known,
    transitions: Mapping[str, Sequence[Mapping[str, Any]]],
    told: Mapping[str, Mapping[str, Any]],
    created: Mapping[str, datetime],
) -> list[tuple[str, str]]:
    """Return the events that an instance must have, by the picture of its workflow and by how each
    of its tasks has ended; and demand that each has ended once, and as it may.

    Args:
        one: the instance.
        transitions: by task, in the order of the log.
        told: by key, what third parties have written down.
        created: by task, when it was triggered.
    """
    workflow = WORKFLOWS[one.workflow]
    routes = {route.task: route.to for route in workflow.routes}
    at: Any = workflow.first
    found, visits = [], dict.fromkeys(workflow.tasks, 0)
    while not isinstance(at, Event):
        visits[at] += 1
        task_id = one.task_id(at, visits[at])
        found.append((task_id, f"workflow:{one.workflow}/{at.task_name()}"))
        its = transitions.get(task_id, [])
        ends = [row for row in its if row["to_state"] in ("PUBLISHED", "DEAD")]
        assert 1 == len(ends), (task_id, its)
        if ends[0]["to_state"] == "DEAD":
            assert "operator" == ends[0]["reason"], its
            assert task_id in one.killed.keys() - one.answers.keys(), its
            at = _moved(one.killed[task_id], at, its, workflow)
            continue
        cause, outcome = CAUSE[ends[0]["reason"]], ends[0]["outcome"]
        if issubclass(at, State):
            assert outcome == SAYS[cause], its
            # Who takes a key may be asked once more after the expiry: that is how it is found out
            # what an attempt without a word has done (docs/railway/limits.md).
            asks_late = issubclass(at, Idempotent) and any(row["reason"] in UNSURE for row in its)
            asked_at = told[task_id]["first_at"] if task_id in told else None
            if asked_at and not asks_late:
                first = datetime.fromisoformat(asked_at)
                assert first < created[task_id] + at.expires + IN_FLIGHT, (task_id, its)
            _judge_call(at, cause, its, told.get(task_id, {"effects": [], "calls": []}))
        elif task_id in one.answers:
            assert ("decided", one.answers[task_id]) == (cause, outcome), its
        else:
            assert ("expired", Looked.NOBODY) == (cause, outcome), its
        at = routes[at][outcome]
    found.append((one.key, at.event_type))
    return found


def _moved(
    move: Move | None, at: type[Any], its: Sequence[Mapping[str, Any]], workflow: Any
) -> Any:
    """Return where the picture leads from a task that an operator has ended."""
    routes = {route.task: route.to for route in workflow.routes}
    tasks = {task.task_name(): task for task in workflow.tasks}
    if move is None:
        return workflow.default_exit
    if issubclass(at, State) and any(row["reason"] in UNSURE for row in its):
        return routes[at][SAYS["uncertain"]]
    if isinstance(move, OtherVersion):
        return tasks[move.task]
    return {str(outcome): to for outcome, to in routes[tasks[move.task]].items()}[move.outcome]


def _judge_call(
    task: type[Any], cause: str, its: Sequence[Mapping[str, Any]], told: Mapping[str, Any]
) -> None:
    """Judge how a task has ended that calls somebody, by what was really done."""
    effects = told["effects"]
    calls = [Trouble[name] for name, _ in told["calls"]]
    most = MOST_EFFECTS.get(task.third_party, 1)
    where = (task.third_party, cause, its, told)
    assert most is None or len(effects) <= most, where
    if cause == "decided":
        assert effects, where
    if cause in ("faulted", "expired"):
        assert not effects, where
    if cause == "uncertain":
        assert {*calls} - CERTAIN or any(row["reason"] in UNSURE for row in its), where
    if not issubclass(task, BlackBox):
        return
    # What the third party saw, and what is on record: nobody calls again beyond the compromise.
    unsure = [place for place, one in enumerate(calls) if one not in CERTAIN]
    if most is not None and len(unsure) >= most:
        assert len(calls) == unsure[most - 1] + 1, where
    before = 0
    for row in its:
        if most is not None and before >= most:
            assert row["reason"] not in ("completed", "failed", "unknown"), where
        if before:
            assert row["reason"] not in ("rejected", "exhausted", "expired"), where
        before += row["reason"] in UNSURE
