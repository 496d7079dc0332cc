"""Workflows that stand still at once: at an item, or at a third party that has no time today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from delta_outbox.railway import (
    CertainlyNot,
    Decided,
    Event,
    Idempotent,
    Item,
    Never,
    Outcome,
    Task,
    ToDo,
    Trigger,
    Workflow,
    route,
)


@dataclass(frozen=True, kw_only=True)
class Case:
    case: str


class Said(Outcome):
    YES = "yes"
    GONE = "gone"


class Answer(BaseModel):
    case: str


class Ask(ToDo[Case, Said, Answer, Answer]):
    """Somebody is asked."""

    identifier = "ask-{case}"
    roles = frozenset({"clerk"})
    contract = Answer
    expires = timedelta(hours=1)
    when_expired = Said.GONE

    def read_model(self, trigger: Trigger[Case]) -> Answer:
        return Answer(case=trigger.start.case)

    def correlate(self, data: Answer) -> str:
        return f"ask-{data.case}"

    def decide(self, item: Item[Answer], data: Answer) -> Decided[Said]:
        return Decided(outcome=Said.YES)


class Wait(ToDo[Case, Said, Answer, Answer]):
    """Somebody is asked who may take for ever."""

    identifier = "wait-{case}"
    roles = frozenset({"clerk"})
    contract = Answer
    expires = Never(why="nobody is in a hurry")

    def read_model(self, trigger: Trigger[Case]) -> Answer:
        return Answer(case=trigger.start.case)

    def correlate(self, data: Answer) -> str:
        return f"wait-{data.case}"

    def decide(self, item: Item[Answer], data: Answer) -> Decided[Said]:
        return Decided(outcome=Said.YES)


class Propose(Ask):
    """Somebody proposes something."""

    identifier = "propose-{case}"

    def correlate(self, data: Answer) -> str:
        return f"propose-{data.case}"


class Approve(Ask):
    """Somebody else approves it."""

    identifier = "approve-{case}"
    not_by = (Propose,)

    def correlate(self, data: Answer) -> str:
        return f"approve-{data.case}"


class Call(Idempotent[Case, Said]):
    """A bank is called that has no time."""

    third_party = "bank"
    identifier = "call-{case}"
    time_limit = timedelta(seconds=5)
    key_valid_for = Never(why="it keeps them")
    expires = timedelta(hours=1)
    when_faulted = Said.GONE
    when_expired = Said.GONE
    when_uncertain = Said.GONE

    def attempt(self, trigger: Trigger[Case], task_id: str) -> Decided[Said]:
        raise CertainlyNot("nobody has time")

    def back_off(
        self, attempts: int, trigger: Trigger[Case], task_id: str, error: Exception | None
    ) -> timedelta | None:
        return timedelta(minutes=80)


class Confirm(Ask):
    """Somebody confirms, and is often late."""

    identifier = "confirm-{case}"

    def correlate(self, data: Answer) -> str:
        return f"confirm-{data.case}"

    def decide(self, item: Item[Answer], data: Answer) -> Decided[Said]:
        return Decided(outcome=Said.YES, data={"said": "at last"})


class Search(Call):
    """The bank is asked for who has not confirmed."""

    identifier = "search-{case}-{visit}"


class Remind(Call):
    """The bank reminds who has not proposed."""

    identifier = "remind-{case}"


class Thank(Call):
    """The bank thanks who has confirmed."""

    identifier = "thank-{case}"


done = Event(event_type="case.done")
gone = Event(event_type="case.gone")

asked = Workflow(
    name="asked",
    starts_on="case.asked",
    start=Case,
    instance="{case}",
    first=Ask,
    routes=(route(Ask, {Said.YES: done, Said.GONE: gone}),),
    default_exit=gone,
)
waiting = Workflow(
    name="waiting",
    starts_on="case.waiting",
    start=Case,
    instance="{case}",
    first=Wait,
    routes=(route(Wait, {Said.YES: done, Said.GONE: gone}),),
    default_exit=None,
)
proposed = Workflow(
    name="proposed",
    starts_on="case.proposed",
    start=Case,
    instance="{case}",
    first=Propose,
    routes=(
        route(Propose, {Said.YES: Approve, Said.GONE: Remind}),
        route(Approve, {Said.YES: done, Said.GONE: gone}),
        route(Remind, {Said.YES: done, Said.GONE: gone}),
    ),
    default_exit=gone,
)
called = Workflow(
    name="called",
    starts_on="case.called",
    start=Case,
    instance="{case}",
    first=Call,
    routes=(route(Call, {Said.YES: done, Said.GONE: gone}),),
    default_exit=gone,
)
late = Workflow(
    name="late",
    starts_on="case.late",
    start=Case,
    instance="{case}",
    first=Confirm,
    routes=(
        route(Confirm, {Said.YES: Thank, Said.GONE: Search}),
        route(Search, {Said.YES: done, Said.GONE: gone}),
        route(Thank, {Said.YES: done, Said.GONE: gone}),
    ),
    default_exit=gone,
)


def provide(settings: Mapping[str, Any]) -> list[Task[Any, Any]]:
    """Return the tasks."""
    del settings
    return [Ask(), Wait(), Propose(), Approve(), Call(), Confirm(), Search(), Remind(), Thank()]
