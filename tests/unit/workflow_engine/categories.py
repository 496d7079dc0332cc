"""A workflow for each category and compromise, and one that goes through several of them.

What a task calls is a scripted third party (`scripted_parties.Party`); or a client with its methods
that asks one in another process, and is waited for where it is asked in an event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from inspect import isawaitable
from typing import Any, Literal

from pydantic import BaseModel

from delta_outbox.railway import (
    AskHuman,
    AtLeastOnce,
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
    State,
    ToDo,
    Trigger,
    UpTo,
    Visibility,
    Workflow,
    route,
)

LIMIT = timedelta(seconds=60)
SETTLES = timedelta(seconds=30)
CONCERNS = Concerns(
    visibility=Visibility.TRACEABLE,
    necessity=Necessity.NICE,
    hurt=Hurt.CUSTOMER,
    risks=frozenset({Risk.REPUTATION}),
    decided_by="a test",
    why="it is one",
)


@dataclass(frozen=True, kw_only=True)
class Start:
    name: str


class Came(Outcome):
    """What a call came to."""

    DONE = "done"
    FAULTED = "faulted"
    EXPIRED = "expired"
    UNCLEAR = "unclear"


class Looked(Outcome):
    """What a person has found."""

    FINE = "fine"
    AGAIN = "again"
    NOBODY = "nobody"


DONE = Decided(outcome=Came.DONE, data={"by": "attempt"})
FOUND = Decided(outcome=Came.DONE, data={"by": "lookup"})


class Calls:
    """What the tasks share."""

    time_limit: Any = LIMIT
    expires: Any = timedelta(hours=1)
    when_faulted: Any = Came.FAULTED
    when_expired: Any = Came.EXPIRED
    when_uncertain: Any = Came.UNCLEAR

    def __init__(self, party: Any) -> None:
        self.party = party

    def back_off(
        self, attempts: int, trigger: Trigger[Any], task_id: str, error: Exception | None
    ) -> timedelta | None:
        """Try six times: soon or slowly where the name says so, else when late acts are done."""
        pace = trigger.start.name.rpartition("-")[2]
        seconds = 1 if pace.endswith("quick") else 1500 if pace == "slow" else 15
        return timedelta(seconds=seconds) if attempts < 6 else None


class Keyed(Calls, Idempotent[Start, Came]):
    third_party = "keyed"
    identifier = "keyed-{name}"
    key_valid_for = timedelta(hours=24)

    async def attempt(self, trigger: Trigger[Start], task_id: str) -> Decided[Came]:
        answer = self.party.act(task_id, trigger.start.name, 1)
        if isawaitable(answer):
            await answer
        return DONE


class KeyedFound(Calls, Idempotent[Start, Came]):
    third_party = "keyed_found"
    identifier = "keyed_found-{name}"
    key_valid_for = timedelta(hours=24)

    def attempt(self, trigger: Trigger[Start], task_id: str) -> Decided[Came]:
        self.party.act(task_id, trigger.start.name, 1)
        return DONE

    def lookup(self, trigger: Trigger[Start], task_id: str) -> Decided[Came] | None:
        return None if self.party.find(task_id) is None else FOUND


class Locked(Calls, PessimisticLock[Start, Came]):
    third_party = "locked"
    identifier = "locked-{name}"
    settles_within = SETTLES

    def attempt(self, trigger: Trigger[Start], task_id: str) -> Decided[Came]:
        self.party.act(task_id, trigger.start.name, 1)
        return DONE

    def lookup(self, trigger: Trigger[Start], task_id: str) -> Decided[Came] | None:
        return None if self.party.find(task_id) is None else FOUND


class TwoSteps(Calls, OptimisticLock[Start, Came]):
    third_party = "two_steps"
    identifier = "two_steps-{name}"
    why_not_pessimistic = "a test of both"

    def first_step(self, trigger: Trigger[Start], task_id: str) -> str:
        hold: str = self.party.hold(task_id)
        return hold

    def attempt(self, trigger: Trigger[Start], task_id: str, reference: str) -> Decided[Came]:
        self.party.book(task_id, reference)
        return DONE

    def lookup(self, trigger: Trigger[Start], task_id: str) -> Sequence[FirstStep[Came]]:
        return [
            FirstStep(reference=hold, decided=FOUND if is_booked else None)
            for hold, is_booked in self.party.listed(task_id)
        ]

    def undo(self, trigger: Trigger[Start], task_id: str, reference: str) -> None:
        self.party.undo(task_id, reference)


class Opaque(Calls):
    concerns: Any = CONCERNS

    def attempt(self, trigger: Trigger[Start], task_id: str) -> Decided[Came]:
        self.party.act(task_id, trigger.start.name, 1)
        return DONE


class Once(Opaque, BlackBox[Start, Came]):
    third_party = "once"
    identifier = "once-{name}"
    compromise = AtMostOnce()


class Asked(Opaque, BlackBox[Start, Came]):
    third_party = "asked"
    identifier = "asked-{name}"
    compromise = AskHuman()


class Thrice(Opaque, BlackBox[Start, Came]):
    third_party = "thrice"
    identifier = "thrice-{name}"
    compromise = UpTo(3)


class Ever(Opaque, BlackBox[Start, Came]):
    third_party = "ever"
    identifier = "ever-{name}"
    compromise = AtLeastOnce()


class Finding(BaseModel):
    about: str
    finding: Literal["fine", "again"]


class Shown(BaseModel):
    name: str


class Look(ToDo[Start, Looked, Finding, Shown]):
    """Somebody looks at what nobody knows."""

    identifier = "look-{name}"
    roles = frozenset({"support"})
    contract = Finding
    expires = timedelta(days=1)
    when_expired = Looked.NOBODY

    def read_model(self, trigger: Trigger[Start]) -> Shown:
        return Shown(name=trigger.start.name)

    def correlate(self, data: Finding) -> str:
        return data.about

    def decide(self, item: Item[Shown], data: Finding) -> Decided[Looked]:
        return Decided(outcome=Looked(data.finding))


ENDS = {one: Event(event_type=f"call.{one}") for one in Came}
FINE, NOBODY = Event(event_type="look.fine"), Event(event_type="look.nobody")


def single(task: Any) -> Any:
    """Return the workflow of one task."""
    name = task.task_name()
    routes = [route(task, dict(ENDS))]
    if task is Asked:
        routes = [
            route(Asked, {**ENDS, Came.UNCLEAR: Look}),
            route(Look, {Looked.FINE: FINE, Looked.AGAIN: NOBODY, Looked.NOBODY: NOBODY}),
        ]
    return Workflow(
        name=name,
        starts_on=f"{name}.asked",
        start=Start,
        instance="{name}",
        first=task,
        routes=tuple(routes),
        default_exit=Event(event_type="call.left"),
    )


SINGLE: tuple[type[State[Start, Came]], ...] = (
    *(Keyed, KeyedFound, Locked, TwoSteps),
    *(Once, Asked, Thrice, Ever),
)
keyed, keyed_found, locked, two_steps, once, asked, thrice, ever = map(single, SINGLE)


# --- through several of them, and round again ----------------------------------------------------


class First(Keyed):
    third_party = "first"
    identifier = "first-{name}-{visit}"


class Second(Locked):
    third_party = "second"
    identifier = "second-{name}-{visit}"


class Third(Thrice):
    third_party = "third"
    identifier = "third-{name}-{visit}"


class Fourth(TwoSteps):
    third_party = "fourth"
    identifier = "fourth-{name}-{visit}"


class Check(Look):
    identifier = "check-{name}-{visit}"
    told_apart_by = "about"


TOUR: tuple[type[State[Start, Came]], ...] = (First, Second, Third, Fourth)


def step(task: Any, after: Any) -> Any:
    """Return the routes of a task: what is not done is looked at."""
    return route(task, {**dict.fromkeys(Came, Check), Came.DONE: after})


tour = Workflow(
    name="tour",
    starts_on="tour.asked",
    start=Start,
    instance="{name}",
    first=First,
    routes=(
        step(First, Second),
        step(Second, Third),
        step(Third, Fourth),
        step(Fourth, ENDS[Came.DONE]),
        route(Check, {Looked.FINE: FINE, Looked.AGAIN: First, Looked.NOBODY: NOBODY}),
    ),
    default_exit=Event(event_type="tour.left"),
)
