"""A small workflow that keeps every rule, for tests that break one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from delta_outbox.railway import (
    AskHuman,
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
    Route,
    ToDo,
    Trigger,
    Visibility,
)
from delta_outbox.railway.graph import Graph


@dataclass(frozen=True, kw_only=True)
class Parcel:
    parcel_id: str
    grams: int
    lines: tuple[str, ...] = ()


class Labelled(Outcome):
    LABELLED = "labelled"
    UNCLEAR = "unclear"


class Packed(Outcome):
    PACKED = "packed"
    BROKEN = "broken"


class Booked(Outcome):
    BOOKED = "booked"


class Told(Outcome):
    TOLD = "told"
    NOBODY_KNOWS = "nobody_knows"


class Checked(Outcome):
    SEND = "send"
    AGAIN = "again"


class Label(Idempotent[Parcel, Labelled]):
    third_party = "printer"
    time_limit = timedelta(seconds=10)
    key_valid_for = timedelta(hours=24)
    expires = timedelta(hours=1)
    when_uncertain = Labelled.UNCLEAR

    def attempt(self, trigger: Trigger[Parcel], task_id: str) -> Decided[Labelled]:
        return Decided(outcome=Labelled.LABELLED)


class Pack(PessimisticLock[Parcel, Packed]):
    third_party = "robot"
    time_limit = timedelta(seconds=10)
    settles_within = timedelta(seconds=30)
    expires = timedelta(hours=2)
    when_uncertain = Packed.BROKEN

    def attempt(self, trigger: Trigger[Parcel], task_id: str) -> Decided[Packed]:
        return Decided(outcome=Packed.PACKED)

    def lookup(self, trigger: Trigger[Parcel], task_id: str) -> Decided[Packed] | None:
        return None


class Book(OptimisticLock[Parcel, Booked]):
    third_party = "carrier"
    time_limit = timedelta(seconds=10)
    expires = timedelta(hours=3)
    when_uncertain = Booked.BOOKED
    why_not_pessimistic = "settling took 40 s of the 60 s that a booking may take"

    def first_step(self, trigger: Trigger[Parcel], task_id: str) -> str:
        return "hold"

    def lookup(self, trigger: Trigger[Parcel], task_id: str) -> list[FirstStep[Booked]]:
        return []

    def attempt(self, trigger: Trigger[Parcel], task_id: str, reference: str) -> Decided[Booked]:
        return Decided(outcome=Booked.BOOKED)

    def undo(self, trigger: Trigger[Parcel], task_id: str, reference: str) -> None:
        return None


class Tell(BlackBox[Parcel, Told]):
    third_party = "pager"
    time_limit = timedelta(seconds=10)
    expires = timedelta(hours=1)
    compromise = AskHuman()
    when_uncertain = Told.NOBODY_KNOWS
    concerns = Concerns(
        visibility=Visibility.TRACEABLE,
        necessity=Necessity.MUST,
        hurt=Hurt.CUSTOMER,
        risks=frozenset({Risk.REPUTATION}),
        decided_by="head of shipping, 2026-11-03",
        why="a parcel that nobody expects comes back",
    )

    def attempt(self, trigger: Trigger[Parcel], task_id: str) -> Decided[Told]:
        return Decided(outcome=Told.TOLD)


class Finding(BaseModel):
    task_id: str
    finding: str


class Shown(BaseModel):
    parcel_id: str


class Check(ToDo[Parcel, Checked, Finding, Shown]):
    roles = frozenset({"shipping"})
    contract = Finding
    told_apart_by = "task_id"
    due = timedelta(hours=1)
    expires = timedelta(days=1)
    when_expired = Checked.SEND

    def read_model(self, trigger: Trigger[Parcel]) -> Shown:
        return Shown(parcel_id=trigger.start.parcel_id)

    def correlate(self, data: Finding) -> str:
        return data.task_id

    def decide(self, item: Item[Shown], data: Finding) -> Decided[Checked]:
        return Decided(outcome=Checked(data.finding))


SENT = Event(event_type="parcel.sent")
LOST = Event(event_type="parcel.lost")

ROUTES: Mapping[type[Any], Mapping[Any, Any]] = {
    Label: {Labelled.LABELLED: Pack, Labelled.UNCLEAR: Check},
    Pack: {Packed.PACKED: Book, Packed.BROKEN: Check},
    Book: {Booked.BOOKED: Tell},
    Tell: {Told.TOLD: SENT, Told.NOBODY_KNOWS: Check},
    Check: {Checked.SEND: SENT, Checked.AGAIN: Label},
}


def graph(
    changes: Mapping[Any, Any] | None = None,
    routes: Mapping[Any, Any] | None = None,
    **arguments: Any,
) -> Graph[Any]:
    """Return the workflow, unchecked.

    Args:
        changes: tasks to put in place of others; None takes a route away.
        routes: of tasks, in place of the usual ones.
        arguments: of the graph.
    """
    swap = dict(changes or {})
    made = []
    for task, to in {**ROUTES, **(routes or {})}.items():
        if swap.get(task, task) is not None:
            there = {outcome: swap.get(one) or one for outcome, one in to.items()}
            made.append(Route(swap.get(task, task), there))
    first = arguments.pop("first", Label)
    given = {
        "name": "shipping",
        "starts_on": "parcel.ready",
        "start": Parcel,
        "first": swap.get(first) or first,
        "routes": tuple(made),
        "default_exit": LOST,
        "instance": "{parcel_id}",
    }
    return Graph(**{**given, **arguments})


def change(task: type[Any], **attributes: Any) -> dict[type[Any], type[Any]]:
    """Return a change of one task: a subclass of the same name with other attributes.

    Args:
        task: the class.
        attributes: of the subclass.
    """
    return {task: type(task.__name__, (task,), attributes)}


def without(task: type[Any], *names: str) -> dict[type[Any], type[Any]]:
    """Return a change of one task: a copy of its class that lacks attributes.

    Args:
        task: the class.
        names: of the attributes.
    """
    body = {name: value for name, value in vars(task).items() if name not in names}
    for name in ("__dict__", "__weakref__", "__abstractmethods__", "_abc_impl"):
        body.pop(name, None)
    metaclass: Any = type(task)
    return {task: metaclass(task.__name__, task.__bases__, body)}
