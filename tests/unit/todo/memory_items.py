"""Items in memory, as `Items` answers about them, behind a real server of them on loopback."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tests.unit.todo.serving import serving

from delta_outbox.core.clock import SystemClock
from delta_outbox.core.errors import OutboxError
from delta_outbox.core.instants import iso_text
from delta_outbox.core.settings import TodoSettings
from delta_outbox.todo.app import create_app
from delta_outbox.todo.credentials import Credentials, KeyRing
from delta_outbox.todo.desk import Desk
from delta_outbox.todo.item_thread import ItemThread, OpenOutbox
from delta_outbox.todo.keys import Key, new_key
from delta_outbox.todo.tokens import TokenReader
from delta_outbox.workflow_engine.item_answers import (
    AnsweredAlready,
    AnsweredTooLate,
    Completion,
    GivenAnswer,
    KeyUsedAgain,
)
from delta_outbox.workflow_engine.item_decisions import (
    BadAnswer,
    Problem,
    UndecidedAnswer,
    canonical,
)
from delta_outbox.workflow_engine.item_deliveries import (
    UndecidedItem,
    UnknownItem,
    WaitingItem,
)
from delta_outbox.workflow_engine.item_history import Happening
from delta_outbox.workflow_engine.item_holds import HeldByAnother, HoldRequest, NotOpen
from delta_outbox.workflow_engine.items import ItemType


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Parcel(BaseModel):
    """What is sent."""

    model_config = ConfigDict(extra="forbid")

    number: int = Field(ge=1, le=1_000_000)
    size: Size = Size.SMALL


class Review(BaseModel):
    """What a person decides about an order."""

    model_config = ConfigDict(extra="forbid")

    order: str = Field(pattern=r"^(a+)+$|^o[0-9]{1,6}$", max_length=60)
    send: bool
    parcels: list[Parcel] = Field(default=[], max_length=5)


class Notice(BaseModel):
    """What a payment provider says."""

    order: str = Field(min_length=1, max_length=60)
    paid: bool


ELSEWHERE = "elsewhere"  # an order of somebody else, which a provider tells us of all the same

TYPES: dict[tuple[str, str], tuple[type[BaseModel], tuple[str, ...]]] = {
    ("orders", "review"): (Review, ("support",)),
    ("orders", "payment"): (Notice, ("provider",)),
}


def item(
    task_id: str, *, task: str = "review", due: timedelta | None = None, minutes: int = 60
) -> WaitingItem:
    """Return an open item of an order that its identifier ends with."""
    now = SystemClock().now()
    return WaitingItem(
        task_id=task_id,
        workflow="orders",
        instance=task_id.rsplit("-", 1)[-1],
        task=task,
        title=f"Do the {task}",
        visit=1,
        roles=TYPES["orders", task][1],
        opened_at=now,
        due_at=None if due is None else now + due,
        expires_at=now + timedelta(minutes=minutes),
    )


@dataclass
class MemoryItems:
    """Answers as `Items` does, of what is in memory. The first answer to an item counts."""

    open: dict[str, WaitingItem] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    undecided: set[str] = field(default_factory=set)  # their `read_model` fails
    answers: dict[str, tuple[str, str, str | None]] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)
    recorded: list[tuple[str, str]] = field(default_factory=list)  # item and actor
    calls: list[str] = field(default_factory=list)
    fails: Callable[[str], object] = lambda _: None  # may raise, or wait
    topics: dict[str, str] = field(default_factory=dict)  # by task
    is_behind: bool = False  # no relay has ended yet what is answered: lists have it
    refuses: OutboxError | None = None  # is told to whoever answers

    def add(self, *items: WaitingItem) -> None:
        self.open |= {one.task_id: one for one in items}

    def types(self) -> Sequence[ItemType]:
        return [
            ItemType(
                workflow=workflow,
                task=task,
                title=f"Do the {task}",
                roles=roles,
                outcomes=("yes", "no"),
                contract=contract.model_json_schema(),
                topic=self.topics.get(task),
            )
            for (workflow, task), (contract, roles) in TYPES.items()
        ]

    def show_many(self, task_ids: Sequence[str]) -> Sequence[Mapping[str, Any] | OutboxError]:
        self._called(f"show {len(task_ids)}")
        return [self._shown(one) for one in task_ids]

    def _shown(self, task_id: str) -> Mapping[str, Any] | OutboxError:
        found = self.open.get(task_id)
        if found is None:
            return UnknownItem(f"There is no item {task_id!r}.")
        if task_id in self.undecided:
            why = UndecidedAnswer(f"{task_id}: orders.{found.task}.read_model: ValueError.")
            return UndecidedItem(why, found)
        answer = self.answers.get(task_id)
        return {
            "task_id": task_id,
            "workflow": found.workflow,
            "instance": found.instance,
            "task": found.task,
            "title": found.title,
            "visit": found.visit,
            "state": "ended" if answer or task_id in self.late else "open",
            "outcome": answer and answer[0],
            "opened_at": iso_text(found.opened_at),
            "due_at": found.due_at and iso_text(found.due_at),
            "expires_at": found.expires_at and iso_text(found.expires_at),
            "roles": list(found.roles),
            "assigned_to": self.holders.get(task_id),
            "history": [asdict(Happening(at=iso_text(found.opened_at), what="opened"))],
            "read_model": {"order": found.instance},
            "outcomes": ["yes", "no"],
            "contract": TYPES[found.workflow, found.task][0].model_json_schema(),
        }

    def waiting(self, *, limit: int = 1000, of_each_task: bool = False) -> Sequence[WaitingItem]:
        self._called("waiting")
        found = [
            replace(one, assigned_to=self.holders.get(one.task_id))
            for one in self.open.values()
            if self.is_behind or one.task_id not in {*self.answers, *self.late}
        ]
        if not of_each_task:
            return found[:limit]
        tasks = dict.fromkeys(one.task for one in found)
        return [one for task in tasks for one in [o for o in found if o.task == task][:limit]]

    def warm_up(self) -> None:
        """Ask nothing: it is warm."""

    def correlated(self, workflow: str, task: str, data: Mapping[str, Any]) -> str | None:
        read: Any = _read(TYPES[workflow, task][0], data)
        return None if read.order == ELSEWHERE else f"{task}-{read.order}"

    def complete_many(
        self, answers: Sequence[GivenAnswer], *, actor: str, reason: str
    ) -> list[Completion | OutboxError]:
        self._called(f"complete {len(answers)}")
        return [self._complete(one) for one in answers]

    def hold_many(
        self, requests: Sequence[HoldRequest], *, reason: str
    ) -> list[str | OutboxError | None]:
        self._called(f"hold {len(requests)}")
        return [self._hold(one) for one in requests]

    def end_answered(self) -> bool:
        """End what is answered."""
        self._called("end")
        return False

    def _called(self, what: str) -> None:
        self.calls.append(what)
        self.fails(what)

    def _hold(self, asked: HoldRequest) -> str | OutboxError | None:
        found, holder = self.open.get(asked.task_id), self.holders.get(asked.task_id)
        if found is None or (asked.allowed and not asked.allowed(found)):
            return UnknownItem(f"There is no item {asked.task_id!r}.")
        if asked.task_id in {*self.answers, *self.late}:
            return NotOpen(f"{asked.task_id} is over, or answered.")
        if holder not in (None, asked.person):
            return HeldByAnother(task_id=asked.task_id, holder=str(holder))
        self.holders.pop(asked.task_id, None)
        if asked.gives_back:
            return None
        self.holders[asked.task_id] = asked.person
        return asked.person

    def _complete(self, given: GivenAnswer) -> Completion | OutboxError:
        found = self.open.get(given.task_id)
        if found is None or (given.allowed and not given.allowed(found)):
            return UnknownItem(f"There is no item {given.task_id!r}.")
        if self.refuses is not None:
            return self.refuses
        content = hashlib.sha256(canonical(given.data).encode()).hexdigest()
        winner = self.answers.get(given.task_id)
        if winner is not None:
            outcome, its_content, its_key = winner
            is_same_key = given.key is not None and given.key == its_key
            if content != its_content and not (is_same_key and given.is_message):
                if given.is_message:
                    self.recorded.append((given.task_id, given.actor or ""))
                kind = KeyUsedAgain if is_same_key else AnsweredAlready
                return kind(task_id=given.task_id, outcome=outcome)
            return _counted(given.task_id, outcome, repeated=True)
        try:
            read: Any = _read(TYPES[found.workflow, found.task][0], given.data)
        except BadAnswer as error:
            return error
        self.recorded.append((given.task_id, given.actor or ""))
        if given.task_id in self.late:
            return AnsweredTooLate(f"{given.task_id} is over: it has expired.")
        outcome = "yes" if getattr(read, "send", None) or getattr(read, "paid", None) else "no"
        self.answers[given.task_id] = (outcome, content, given.key)
        return _counted(given.task_id, outcome)


def _read(contract: type[BaseModel], data: Mapping[str, Any]) -> BaseModel:
    try:
        return contract.model_validate(data)
    except ValidationError as error:
        problems = [
            Problem(pointer="".join(f"/{part}" for part in one["loc"]), rule=one["type"])
            for one in error.errors()
        ]
        raise BadAnswer("The answer breaks the contract.", problems) from None


def _counted(task_id: str, outcome: str, *, repeated: bool = False) -> Completion:
    return Completion(
        task_id=task_id,
        outcome=outcome,
        command_id="c",
        status="done" if repeated else "waiting",
        repeated=repeated,
    )


@dataclass
class MemoryKeys:
    """Keys in memory, as `KeyLog` has them."""

    keys: dict[str, Key] = field(default_factory=dict)

    def add(self, person: str, *roles: str) -> str:
        key, token = new_key(person=person, roles=roles, at="2026-11-28T12:00:00Z", by="tests")
        self.keys[key.id] = key
        return token

    def current(self) -> Mapping[str, Key]:
        return dict(self.keys)


@dataclass
class Office:
    """A server of items in memory, and a client of it."""

    items: MemoryItems
    keys: MemoryKeys
    ring: KeyRing
    thread: ItemThread
    client: httpx.Client
    opened: list[int]

    def key(self, person: str = "ann", *roles: str) -> dict[str, str]:
        """Return the headers of somebody with roles (`support` if left out)."""
        token = self.keys.add(person, *(roles or ("support",)))
        self.ring.look()
        return {"Authorization": f"Bearer {token}"}


@contextmanager
def office(
    settings: TodoSettings | None = None,
    *,
    tokens: TokenReader | None = None,
    thread_seconds: float | None = None,
) -> Iterator[Office]:
    """Open an office for a block.

    Args:
        settings: `[todo]`; of a server that is never in a hurry if left out.
        tokens: reads JWTs.
        thread_seconds: how long the thread lets anybody wait; those of the settings if left out.
    """
    settings = settings or TodoSettings(rate_per_second=10_000, answer_seconds=60)
    items, keys, opened = MemoryItems(), MemoryKeys(), []
    here = threading.current_thread()

    @contextmanager
    def opening() -> Iterator[OpenOutbox]:
        assert threading.current_thread() is not here
        opened.append(1)
        yield OpenOutbox(items=items, keys=keys)

    thread = ItemThread(opening, answer_seconds=thread_seconds or settings.answer_seconds)
    thread.start()
    ring = KeyRing(lambda: keys)
    ring.start()
    desk = Desk(thread, clock=SystemClock())
    credentials = Credentials(ring, tokens, patience=settings.answer_seconds)
    try:
        app = create_app(desk, settings, credentials=credentials)
        with (
            serving(app, settings) as address,
            httpx.Client(base_url=address, timeout=30) as client,
        ):
            yield Office(items, keys, ring, thread, client, opened)
    finally:
        ring.stop()
        thread.stop()
