"""Workflows that wait for somebody at once: with time, and in a hurry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import BaseModel, Field

from delta_outbox.railway import (
    Decided,
    Event,
    Item,
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
    NO = "no"
    NOTHING = "nothing"


class Shown(BaseModel):
    case: str


class Answer(BaseModel):
    """What is answered."""

    case: str = Field(max_length=50)
    agreed: bool
    remark: str = Field(default="", max_length=200)


class Ask(ToDo[Case, Said, Answer, Shown]):
    """Somebody is asked."""

    identifier = "ask-{case}"
    roles = frozenset({"clerk"})
    contract = Answer
    due: timedelta | None = timedelta(minutes=30)
    expires = timedelta(hours=1)
    when_expired = Said.NOTHING
    topic: str | None = "visits.answers"

    def read_model(self, trigger: Trigger[Case]) -> Shown:
        return Shown(case=trigger.start.case)

    def correlate(self, data: Answer) -> str:
        return f"ask-{data.case}"

    def decide(self, item: Item[Shown], data: Answer) -> Decided[Said]:
        return Decided(outcome=Said.YES if data.agreed else Said.NO)


class Hurry(Ask):
    """Somebody is asked who must be quick."""

    identifier = "hurry-{case}"
    roles = frozenset({"courier"})
    due = None
    topic = None
    expires = timedelta(minutes=3)

    def correlate(self, data: Answer) -> str:
        return f"hurry-{data.case}"


ended = Event(event_type="visit.ended")
visits = Workflow(
    name="visits",
    starts_on="visit.asked",
    start=Case,
    instance="{case}",
    first=Ask,
    routes=(route(Ask, {Said.YES: ended, Said.NO: ended, Said.NOTHING: ended}),),
    default_exit=ended,
)
hurries = Workflow(
    name="hurries",
    starts_on="hurry.asked",
    start=Case,
    instance="{case}",
    first=Hurry,
    routes=(route(Hurry, {Said.YES: ended, Said.NO: ended, Said.NOTHING: ended}),),
    default_exit=ended,
)


def provide(settings: Mapping[str, Any]) -> list[Task[Any, Any]]:
    """Return the tasks."""
    del settings
    return [Ask(), Hurry()]
