"""The workflows that are measured: one of three steps, one for each category, one that waits."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from delta_outbox.railway import (
    AtMostOnce,
    BlackBox,
    Concerns,
    Decided,
    Event,
    FirstStep,
    Hurt,
    Idempotent,
    Item,
    Necessity,
    OptimisticLock,
    Outcome,
    PessimisticLock,
    Risk,
    Task,
    ToDo,
    Trigger,
    Visibility,
    Workflow,
    route,
)

sys.path.append(str(Path(__file__).resolve().parents[2]))  # hosts begin without the benchmarks

from benchmarks.third_party import ThirdParty

LIMIT = timedelta(seconds=60)


@dataclass(frozen=True, kw_only=True)
class Start:
    number: int


class Came(Outcome):
    """What a call came to."""

    DONE = "done"
    FAULTED = "faulted"
    EXPIRED = "expired"
    UNCLEAR = "unclear"


DONE = Decided(outcome=Came.DONE)


class Calls:
    """What the tasks share."""

    time_limit: Any = LIMIT
    expires: Any = timedelta(hours=1)
    when_faulted: Any = Came.FAULTED
    when_expired: Any = Came.EXPIRED
    when_uncertain: Any = Came.UNCLEAR

    def __init__(self, party: ThirdParty) -> None:
        self.party = party

    def back_off(
        self, attempts: int, trigger: Trigger[Any], task_id: str, error: Exception | None
    ) -> timedelta | None:
        """Try three times."""
        return timedelta(seconds=1) if attempts < 3 else None


class Keyed(Calls, Idempotent[Start, Came]):
    third_party = "keyed"
    identifier = "keyed-{number}"
    key_valid_for = timedelta(hours=24)

    def attempt(self, trigger: Trigger[Start], task_id: str) -> Decided[Came]:
        self.party.act(task_id)
        return DONE


class Locked(Calls, PessimisticLock[Start, Came]):
    third_party = "locked"
    identifier = "locked-{number}"
    settles_within = LIMIT

    def attempt(self, trigger: Trigger[Start], task_id: str) -> Decided[Came]:
        self.party.act(task_id)
        return DONE

    def lookup(self, trigger: Trigger[Start], task_id: str) -> Decided[Came] | None:
        return DONE if self.party.find(task_id) else None


class TwoSteps(Calls, OptimisticLock[Start, Came]):
    third_party = "two_steps"
    identifier = "two-steps-{number}"
    why_not_pessimistic = "to be measured"

    def first_step(self, trigger: Trigger[Start], task_id: str) -> str:
        self.party.act(f"hold-{task_id}")
        return task_id

    def attempt(self, trigger: Trigger[Start], task_id: str, reference: str) -> Decided[Came]:
        self.party.act(task_id)
        return DONE

    def lookup(self, trigger: Trigger[Start], task_id: str) -> Sequence[FirstStep[Came]]:
        if not self.party.find(f"hold-{task_id}"):
            return []
        is_done = self.party.find(task_id)
        return [FirstStep(reference=task_id, decided=DONE if is_done else None)]

    def undo(self, trigger: Trigger[Start], task_id: str, reference: str) -> None:
        raise NotImplementedError("nothing is undone here")


class Opaque(Calls, BlackBox[Start, Came]):
    third_party = "opaque"
    identifier = "opaque-{number}"
    compromise = AtMostOnce()
    concerns = Concerns(
        visibility=Visibility.TRACEABLE,
        necessity=Necessity.NICE,
        hurt=Hurt.CUSTOMER,
        risks=frozenset({Risk.REPUTATION}),
        decided_by="a benchmark",
        why="to be measured",
    )

    def attempt(self, trigger: Trigger[Start], task_id: str) -> Decided[Came]:
        self.party.act(task_id)
        return DONE


class First(Keyed):
    third_party = "steps"
    identifier = "first-{number}"


class Second(Keyed):
    third_party = "steps"
    identifier = "second-{number}"


class Third(Keyed):
    third_party = "steps"
    identifier = "third-{number}"


class Answer(BaseModel):
    number: int


class Shown(BaseModel):
    number: int


class Wait(ToDo[Start, Came, Answer, Shown]):
    """Somebody is waited for."""

    identifier = "wait-{number}"
    roles = frozenset({"support"})
    contract = Answer
    expires = timedelta(days=30)
    when_expired = Came.EXPIRED

    def read_model(self, trigger: Trigger[Start]) -> Shown:
        return Shown(number=trigger.start.number)

    def correlate(self, data: Answer) -> str:
        return f"wait-{data.number}"

    def decide(self, item: Item[Shown], data: Answer) -> Decided[Came]:
        return DONE


ENDS: dict[Any, Any] = {one: Event(event_type=f"measured.{one}") for one in Came}


def workflow(name: str, *tasks: Any) -> Any:
    """Return the workflow of tasks that follow each other."""
    after = [*tasks[1:], ENDS[Came.DONE]]
    return Workflow(
        name=name,
        starts_on=f"{name}.asked",
        start=Start,
        instance="{number}",
        first=tasks[0],
        routes=tuple(
            route(task, {**ENDS, Came.DONE: then}) for task, then in zip(tasks, after, strict=True)
        ),
        default_exit=Event(event_type="measured.left"),
    )


steps = workflow("steps", First, Second, Third)
keyed = workflow("keyed", Keyed)
locked = workflow("locked", Locked)
two_steps = workflow("two_steps", TwoSteps)
opaque = workflow("opaque", Opaque)
waits = workflow("waits", Wait)


def provide(settings: Mapping[str, Mapping[str, Any]]) -> list[Task[Any, Any]]:
    """Return the tasks; their third party is a process."""
    party = ThirdParty(int(settings["steps"]["port"]))
    calling: list[Any] = [First, Second, Third, Keyed, Locked, TwoSteps, Opaque]
    return [*(one(party) for one in calling), Wait()]
