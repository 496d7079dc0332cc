"""Items that are kept in a dictionary: what a desk asks, without an outbox."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ValidationError

from delta_outbox.core.instants import iso_text
from delta_outbox.todo.item_thread import NotInTime, WaitingList
from delta_outbox.workflow_engine.item_answers import (
    AnsweredAlready,
    AnsweredTooLate,
    Completion,
    GivenAnswer,
    KeyUsedAgain,
)
from delta_outbox.workflow_engine.item_decisions import BadAnswer, Problem
from delta_outbox.workflow_engine.item_deliveries import UnknownItem, WaitingItem
from delta_outbox.workflow_engine.item_history import Happening
from delta_outbox.workflow_engine.item_holds import HeldByAnother, HoldRequest, NotOpen
from delta_outbox.workflow_engine.items import ItemType


@dataclass
class PlainItem:
    """An item: what it is, and what has come of it."""

    waiting: WaitingItem
    contract: type[BaseModel]
    read_model: Mapping[str, Any]
    outcome: str | None = None
    won: str | None = None
    key: str | None = None
    is_expired: bool = False
    history: list[Happening] = field(default_factory=list)


@dataclass
class PlainItems:
    """What `ItemThread` is for a desk. An answer means the value of its first field.

    Args:
        items: by identifier.
        trouble: is raised instead of the next answers, one after the other.
        unshown: so many of the next looks at items end without an answer in time.
        counted: answers that were written.
    """

    items: dict[str, PlainItem] = field(default_factory=dict)
    trouble: list[Exception] = field(default_factory=list)
    unshown: int = 0
    counted: list[tuple[str, str | None, Mapping[str, Any]]] = field(default_factory=list)

    def forget(self) -> None:
        """Forget all that was."""
        for held in (self.items, self.trouble, self.counted):
            held.clear()

    def add(
        self,
        task_id: str,
        contract: type[BaseModel],
        read_model: Mapping[str, Any],
        *,
        opened_at: datetime,
        task: str = "customer_support_review",
        title: str = "Customer support review",
        instance: str = "A-1001",
        roles: tuple[str, ...] = ("support",),
        due_at: datetime | None = None,
        expires_at: datetime | None = None,
    ) -> PlainItem:
        """Open an item."""
        waiting = WaitingItem(
            task_id=task_id,
            workflow="order_creation",
            instance=instance,
            task=task,
            title=title,
            visit=1,
            roles=roles,
            opened_at=opened_at,
            due_at=due_at,
            expires_at=expires_at,
        )
        opened = Happening(at=iso_text(opened_at), what="opened")
        self.items[task_id] = PlainItem(waiting, contract, read_model, history=[opened])
        return self.items[task_id]

    @property
    def types(self) -> list[ItemType]:
        found = {one.waiting.task: one for one in self.items.values()}
        return [
            ItemType(
                workflow=one.waiting.workflow,
                task=task,
                title=one.waiting.title,
                roles=one.waiting.roles,
                outcomes=(),
                contract=one.contract.model_json_schema(),
            )
            for task, one in sorted(found.items())
        ]

    async def waiting(self, roles: Collection[str]) -> WaitingList:
        its = [
            one.waiting
            for one in self.items.values()
            if one.outcome is None and not {*roles}.isdisjoint(one.waiting.roles)
        ]
        return WaitingList(items=its, is_cut=False)

    async def shown(self, task_id: str) -> dict[str, Any]:
        if self.unshown:
            self.unshown -= 1
            raise NotInTime("a test says so")
        one = self.items.get(task_id)
        if one is None:
            raise UnknownItem("none")
        waiting = one.waiting
        return {
            "task_id": task_id,
            "workflow": waiting.workflow,
            "instance": waiting.instance,
            "task": waiting.task,
            "title": waiting.title,
            "visit": 1,
            "state": "open" if one.outcome is None else "ended",
            "outcome": one.outcome,
            "opened_at": iso_text(waiting.opened_at),
            "due_at": waiting.due_at and iso_text(waiting.due_at),
            "expires_at": waiting.expires_at and iso_text(waiting.expires_at),
            "roles": sorted(waiting.roles),
            "assigned_to": waiting.assigned_to,
            "history": [asdict(happening) for happening in one.history],
            "read_model": one.read_model,
            "outcomes": [],
            "contract": one.contract.model_json_schema(),
        }

    async def hold(self, asked: HoldRequest) -> str | None:
        if self.trouble:
            raise self.trouble.pop(0)
        one = self.items.get(asked.task_id)
        if one is None or (asked.allowed is not None and not asked.allowed(one.waiting)):
            raise UnknownItem("none")
        holder = one.waiting.assigned_to
        if one.won is not None:
            raise NotOpen("it is answered")
        if holder not in (None, asked.person):
            raise HeldByAnother(task_id=asked.task_id, holder=str(holder))
        holder = None if asked.gives_back else asked.person
        one.waiting = replace(one.waiting, assigned_to=holder)
        what = "released" if asked.gives_back else "taken"
        one.history.append(Happening(at=one.history[0].at, what=what, by=asked.person))
        return holder

    async def answer(self, given: GivenAnswer) -> Completion:
        if self.trouble:
            raise self.trouble.pop(0)
        one = self.items.get(given.task_id)
        if one is None or (given.allowed is not None and not given.allowed(one.waiting)):
            raise UnknownItem("none")
        content = json.dumps(given.data, sort_keys=True)
        if one.is_expired:
            raise AnsweredTooLate("it has expired")
        if one.won is not None:
            if content != one.won:
                is_same_key = given.key is not None and given.key == one.key
                kind = KeyUsedAgain if is_same_key else AnsweredAlready
                raise kind(task_id=given.task_id, outcome=one.outcome or "")
            return self._done(given.task_id, one, repeated=True)
        try:
            answer = one.contract.model_validate(given.data)
        except ValidationError as error:
            problems = [
                Problem(
                    pointer="".join(f"/{part}" for part in found["loc"]),
                    rule=found["type"].replace("_", " "),
                )
                for found in error.errors()
            ]
            raise BadAnswer("it does not fit", problems) from None
        one.won, one.key = content, given.key
        one.outcome = str(next(iter(answer.model_dump(mode="json").values())))
        self.counted.append((given.task_id, given.actor, given.data))
        at = one.history[0].at
        one.history.append(Happening(at=at, what="answered", by=given.actor, outcome=one.outcome))
        return self._done(given.task_id, one, repeated=False)

    def _done(self, task_id: str, one: PlainItem, *, repeated: bool) -> Completion:
        return Completion(
            task_id=task_id,
            outcome=one.outcome or "",
            command_id="c1",
            status="done",
            repeated=repeated,
        )
