"""Random workflows of every category, for properties."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from tests.unit.railway.workflow import Finding, Parcel, Shown, Tell

from delta_outbox.railway import (
    DEFAULT_EXIT,
    AskHuman,
    AtLeastOnce,
    AtMostOnce,
    BlackBox,
    Decided,
    Event,
    FirstStep,
    Idempotent,
    Never,
    OptimisticLock,
    Outcome,
    PessimisticLock,
    Route,
    ToDo,
    UpTo,
)
from delta_outbox.railway.graph import Graph
from delta_outbox.railway.identifiers import DEFAULT_IDENTIFIER
from delta_outbox.testing.workflows import ThirdParty, Trouble

ENDS = (Event(event_type="good.end"), Event(event_type="bad.end"))


class Way(Outcome):
    LEFT = "left"
    RIGHT = "right"


def way(trigger: Any) -> Decided[Way]:
    """Decide by turns, so that every way out of a loop is taken at some time."""
    return Decided(outcome=Way.LEFT if trigger.visit % 2 else Way.RIGHT)


class Again(list[Trouble]):
    """A script that repeats its last trouble for ever."""

    def pop(self, _index: Any = -1) -> Trouble:
        return super().pop(0) if len(self) > 1 else self[0]


class Holds(ThirdParty):
    """A third party of any category."""

    def __init__(self, script: Any, kind: str) -> None:
        super().__init__(script, remembers_keys=kind == "idempotent")
        self.held: dict[str, list[str]] = {}


def attempt(self, trigger, task_id, *reference):
    """Act, by the reference of a first step where there is one."""
    self.party.act(task_id, reference, None)
    return way(trigger)


def lookup(self, trigger, task_id):
    """Find what was done."""
    return None if self.party.find(task_id) is None else way(trigger)


def first_step(self, trigger, task_id):
    """Hold something."""
    held = self.party.held.setdefault(task_id, [])
    held.append(f"{task_id}/{len(held)}")
    return held[-1]


def list_steps(self, trigger, task_id):
    """List what is held, and what was done with it."""
    done = {one[0] for one in self.party.effects(task_id)}
    return [
        FirstStep(reference=one, decided=way(trigger) if one in done else None)
        for one in self.party.held.get(task_id, [])
    ]


def undo(self, trigger, task_id, reference):
    """Let go of something."""
    self.party.held[task_id].remove(reference)


def init(self, party=None):
    """Keep the third party."""
    self.party = party


BODIES: dict[Any, dict[str, Any]] = {
    Idempotent: {"key_valid_for": timedelta(hours=24), "attempt": attempt},
    PessimisticLock: {
        "settles_within": timedelta(seconds=30),
        "attempt": attempt,
        "lookup": lookup,
    },
    OptimisticLock: {
        "why_not_pessimistic": "measured",
        "first_step": first_step,
        "lookup": list_steps,
        "attempt": attempt,
        "undo": undo,
    },
    BlackBox: {"concerns": Tell.concerns, "attempt": attempt},
    ToDo: {
        "roles": frozenset({"somebody"}),
        "contract": Finding,
        "told_apart_by": "task_id",
        "read_model": lambda self, trigger: Shown(parcel_id=trigger.start.parcel_id),
        "correlate": lambda self, data: data.task_id,
        "decide": lambda self, item, data: Decided(outcome=Way(data.finding)),
    },
}


IDENTIFIERS = (DEFAULT_IDENTIFIER, "{task}-{instance}", "{instance}-{visit}", "drawn-{parcel_id}")


@st.composite
def graphs(draw_: st.DrawFn, *, odd: bool = True) -> Graph[Any]:
    """Draw a workflow whose tasks are each right by themselves.

    Args:
        draw_: of hypothesis.
        odd: draw also what keeps no rule of paths and identifiers.
    """
    tasks: list[Any] = []
    for number in range(draw_(st.integers(1, 5))):
        kind = draw_(st.sampled_from(list(BODIES)))
        body = {
            **BODIES[kind],
            "__init__": init,
            "expires": timedelta(hours=draw_(st.integers(1, 30))),
            "when_expired": draw_(st.sampled_from(Way)),
        }
        if odd:
            body["identifier"] = draw_(st.sampled_from(IDENTIFIERS))
            body["when_expired"] = draw_(st.sampled_from([*Way, DEFAULT_EXIT]))
            if draw_(st.integers(0, 4)) == 0:
                body["expires"] = Never(why="somebody must look")
            if kind is ToDo:
                body["told_apart_by"] = draw_(st.sampled_from(["task_id", "no_field", None]))
        if kind is not ToDo:
            body |= {
                "third_party": "party",
                "time_limit": timedelta(seconds=10),
                "when_uncertain": draw_(st.sampled_from(Way)),
            }
        if kind is BlackBox:
            every = [AtMostOnce(), UpTo(2), AtLeastOnce(), AskHuman()]
            body["compromise"] = draw_(st.sampled_from(every))
        brackets: Any = ToDo[Parcel, Way, Finding, Shown] if kind is ToDo else kind[Parcel, Way]
        tasks.append(
            type(
                f"Task{'ABCDE'[number]}",
                (kind,),
                {**body, "__orig_bases__": (brackets,)},
            )
        )
    targets = st.sampled_from([*tasks, *(ENDS if odd else ENDS * 2)])
    to: dict[Any, Any] = {task: {one: draw_(targets) for one in Way} for task in tasks}
    if not odd:
        to = {task: to[task] for task in _reached(tasks[0], to)}
    made: Graph[Any] = Graph(
        name="drawn",
        starts_on="parcel.ready",
        start=Parcel,
        first=tasks[0],
        routes=tuple(Route(task, legs) for task, legs in to.items()),
        default_exit=draw_(st.sampled_from([ENDS[1], None])) if odd else ENDS[1],
        instance="{parcel_id}",
    )
    return made


def _reached(first: Any, to: dict[Any, Any]) -> list[Any]:
    """Return the tasks that an instance may come to, in an order of its way."""
    found = [first]
    for task in found:
        found += [one for one in to[task].values() if one in to and one not in found]
    return list(dict.fromkeys(found))
