"""What people may do with items, whatever protocol they speak: list, look, take, answer."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from delta_outbox.core.errors import OutboxError
from delta_outbox.todo.people import Person
from delta_outbox.workflow_engine.four_eyes import is_same_person
from delta_outbox.workflow_engine.item_answers import Completion, GivenAnswer
from delta_outbox.workflow_engine.item_deliveries import UndecidedItem, UnknownItem, WaitingItem
from delta_outbox.workflow_engine.item_holds import HoldRequest
from delta_outbox.workflow_engine.items import ItemType

if TYPE_CHECKING:
    from delta_outbox.core.clock import Clock
    from delta_outbox.todo.item_thread import ItemThread

PAGE: Final = 50  # items
MOST_ON_PAGE: Final = 200
HeldBy = Literal["me", "nobody"]
HELD_BY: Final = get_args(HeldBy)
MOST_KEY: Final = 200  # characters of an Idempotency-Key


class NoSuchItem(OutboxError):
    """There is no such item for whoever asks: it is none, or another role's."""

    code = "NOT_FOUND"
    remedy = "List the items that you may answer."

    def __init__(self) -> None:
        super().__init__("There is no such item for you.")


class BadQuestion(OutboxError):
    """A list was asked for with a filter, a page or a key that breaks a rule."""

    code = "BAD_REQUEST"
    remedy = "Correct the request."


@dataclass(frozen=True, kw_only=True)
class ItemFilters:
    """Which items to list; what is None or empty does not matter.

    Args:
        workflow: its name.
        task: its name in the workflow.
        role: that may answer.
        text: a part of the identifier, of the instance or of the title, in any case.
        overdue: only those whose due date has passed.
        held_by: `me`: only those that whoever asks takes care of; `nobody`: those that nobody does.
    """

    workflow: str | None = None
    task: str | None = None
    role: str | None = None
    text: str = ""
    overdue: bool = False
    held_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class ItemSummary(WaitingItem):
    """An open item in a list.

    Args:
        is_overdue: its due date has passed.
    """

    is_overdue: bool


@dataclass(frozen=True, kw_only=True)
class ItemPage:
    """A page of open items: by due date, else by the date of expiry, those without one last.

    Args:
        items: of the page.
        page: its number, from 1.
        pages: how many there are, at least 1.
        total: items on all pages.
        is_cut: more items are open than are listed; those are left out that expire last.
    """

    items: tuple[ItemSummary, ...]
    page: int
    pages: int
    total: int
    is_cut: bool


@dataclass(frozen=True, kw_only=True)
class ItemDetail:
    """One item, open or not.

    Args:
        document: as `Items.show` returns it: task_id, workflow, instance, task, title, visit,
            state, outcome, opened_at, due_at, expires_at, roles, assigned_to, history, read_model,
            outcomes, contract.
    """

    document: Mapping[str, Any]

    @property
    def is_open(self) -> bool:
        """Say whether it can be answered."""
        return bool(self.document["state"] == "open")


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An answer that is on record and counts.

    Args:
        task_id: of the item.
        outcome: that was decided.
        is_repeat: the same answer was on record already.
    """

    task_id: str
    outcome: str
    is_repeat: bool


@dataclass(frozen=True, kw_only=True)
class Held:
    """Who takes care of an item now.

    Args:
        task_id: of the item.
        assigned_to: the person; None: nobody.
    """

    task_id: str
    assigned_to: str | None


@dataclass(frozen=True, kw_only=True)
class MayAnswer:
    """Says of an item whether a person may answer it. What equal ones say is the same.

    Args:
        person: who asks.
        of: workflow and task that the item must be of; None: any.
    """

    person: Person
    of: tuple[str, str] | None = None

    def __call__(self, item: WaitingItem) -> bool:
        """Say whether it is so."""
        return self.is_so(vars(item))

    def is_so(self, item: Mapping[str, Any]) -> bool:
        """Say whether it is so of an item as `Items.show` returns it."""
        its_type = item["workflow"], item["task"]
        is_meant = self.of in (None, its_type)
        return is_meant and self.person.may_answer(item["task_id"], item["roles"], of=its_type)


class Desk:
    """The items of one outbox, for those who answer them. Its methods are coroutines of one loop.

    What is wrong is an OutboxError: `NoSuchItem` for what is none and for what is not theirs,
    `BadQuestion`, and of an answer what `Items.complete` raises (`BadAnswer` with its problems,
    `AnsweredAlready` with the outcome that won, or `KeyUsedAgain`, which is one, `AnsweredTooLate`,
    `UndecidedAnswer`). `NotInTime`
    means that nothing is known yet: the same request, later, gets the true answer.

    Args:
        thread: asks the outbox.
        clock: the time.
    """

    def __init__(self, thread: ItemThread, *, clock: Clock) -> None:
        self._thread = thread
        self.clock = clock

    @property
    def types(self) -> Sequence[ItemType]:
        """Return the types of items, by workflow and task."""
        return self._thread.types

    async def items(
        self, person: Person, filters: ItemFilters, page: int = 1, size: int = PAGE
    ) -> ItemPage:
        """Return a page of the open items that a person may answer; it is some seconds old at most.

        Args:
            person: who asks.
            filters: which of them.
            page: its number, from 1; one beyond the last is the last.
            size: items on a page.

        Raises:
            BadQuestion: a number breaks a rule.
        """
        if page < 1 or not 1 <= size <= MOST_ON_PAGE:
            raise BadQuestion(
                f"`page` must be 1 or more, and `limit` from 1 to {MOST_ON_PAGE}. "
                f"Got: {page} and {size}."
            )
        if person.only is not None:
            return ItemPage(items=(), page=1, pages=1, total=0, is_cut=False)
        listed = await self._thread.waiting(person.roles)
        found = map(self._summary, listed.items)
        kept = sorted((one for one in found if _fits(one, filters, person)), key=_order)
        pages = max(1, math.ceil(len(kept) / size))
        page = min(page, pages)
        return ItemPage(
            items=tuple(kept[(page - 1) * size : page * size]),
            page=page,
            pages=pages,
            total=len(kept),
            is_cut=listed.is_cut,
        )

    async def item(
        self, person: Person, task_id: str, *, of: tuple[str, str] | None = None
    ) -> ItemDetail:
        """Return an item: its read model, its contract, and what has come of it.

        Args:
            person: who asks.
            task_id: the task identifier.
            of: workflow and task that the item must be of; None: any.

        Raises:
            NoSuchItem: there is none for this person.
            UndecidedAnswer: the author's `read_model` has failed.
            NotInTime: the outbox has not answered in time.
        """
        may_answer = MayAnswer(person=person, of=of)
        try:
            document = await self._thread.shown(task_id)
        except UnknownItem:
            raise NoSuchItem from None
        except UndecidedItem as error:
            if not may_answer(error.item):
                raise NoSuchItem from None
            raise
        if not may_answer.is_so(document):
            raise NoSuchItem
        return ItemDetail(document=document)

    async def answer(
        self,
        person: Person,
        task_id: str,
        data: Mapping[str, Any],
        idempotency_key: str | None = None,
        *,
        of: tuple[str, str] | None = None,
        is_message: bool = False,
    ) -> Answered:
        """Answer an item. The answer is on record when this returns, and is the one that counts.

        Args:
            person: who answers.
            task_id: the task identifier.
            data: the answer.
            idempotency_key: stands for the request, among those of this person.
            of: workflow and task that the item must be of; None: any.
            is_message: of a third party, and the key is the id of its message, as `GivenAnswer`
                says.

        Raises:
            NoSuchItem: there is none for this person.
            BadQuestion: the key breaks a rule.
            BadAnswer: the data breaks the contract, or is about another item.
            UndecidedAnswer: the author's code has failed; nothing was written.
            AnsweredAlready: another answer counts.
            KeyUsedAgain: it was given with the same key.
            AnsweredTooLate: the item is over.
            NotInTime: the answer may be on record or not.
        """
        given = GivenAnswer(
            task_id=task_id,
            data=data,
            actor=person.name,
            is_named=person.only is None and not is_message,
            key=_key(person, idempotency_key),
            is_message=is_message,
            allowed=MayAnswer(person=person, of=of),
        )
        try:
            done: Completion = await self._thread.answer(given)
        except UnknownItem:
            raise NoSuchItem from None
        return Answered(task_id=done.task_id, outcome=done.outcome, is_repeat=done.repeated)

    async def hold(
        self,
        person: Person,
        task_id: str,
        *,
        gives_back: bool = False,
        of: tuple[str, str] | None = None,
    ) -> Held:
        """Take an item, or give it back. Others may answer it all the same. Whoever holds it
        already, or gives back what nobody holds, changes nothing and is told so.

        Args:
            person: who asks.
            task_id: the task identifier.
            gives_back: the item; else it is taken.
            of: workflow and task that the item must be of; None: any.

        Raises:
            NoSuchItem: there is none for this person, or a link has led here.
            NotOpen: the item waits for nobody any more.
            HeldByAnother: somebody else holds it.
            NotInTime: it may be on record or not; the same request later tells.
        """
        if person.only is not None:  # who has a link has no name to hold anything by
            raise NoSuchItem
        request = HoldRequest(
            task_id=task_id,
            person=person.name,
            gives_back=gives_back,
            allowed=MayAnswer(person=person, of=of),
        )
        try:
            return Held(task_id=task_id, assigned_to=await self._thread.hold(request))
        except UnknownItem:
            raise NoSuchItem from None

    async def correlated(self, type_: ItemType, data: Mapping[str, Any]) -> str | None:
        """Return the identifier of the item that an answer is about, as its author says; None if it
        is about none.

        Args:
            type_: of the item.
            data: the answer.

        Raises:
            BadAnswer: the data breaks the contract.
            UndecidedAnswer: the author's code has failed.
        """
        return await self._thread.correlated(type_.workflow, type_.task, data)

    def _summary(self, item: WaitingItem) -> ItemSummary:
        is_overdue = item.due_at is not None and item.due_at <= self.clock.now()
        return ItemSummary(**vars(item), is_overdue=is_overdue)


def _key(person: Person, key: str | None) -> str | None:
    """Return what stands for an Idempotency-Key in the command log: it is a person's own."""
    if key is None:
        return None
    if not 0 < len(key) <= MOST_KEY or not key.isprintable():
        raise BadQuestion(
            f"`Idempotency-Key` must be one printable line of 1 to {MOST_KEY} characters. "
            f"Got: {len(key)} characters."
        )
    return hashlib.sha256(f"{person.name}\n{key}".encode()).hexdigest()


def _fits(item: ItemSummary, filters: ItemFilters, person: Person) -> bool:
    text = filters.text.casefold()
    return (
        filters.workflow in (None, "", item.workflow)
        and filters.task in (None, "", item.task)
        and (not filters.role or filters.role in item.roles)
        and (item.is_overdue or not filters.overdue)
        and _is_held_so(item.assigned_to, filters.held_by, person)
        and any(text in one.casefold() for one in (item.task_id, item.instance, item.title))
    )


def _is_held_so(holder: str | None, held_by: str | None, person: Person) -> bool:
    if held_by == "nobody":
        return holder is None
    return held_by != "me" or (holder is not None and is_same_person(holder, person.name))


def _order(item: ItemSummary) -> tuple[bool, datetime, datetime, str]:
    first = item.due_at or item.expires_at
    return (first is None, first or item.opened_at, item.opened_at, item.task_id)
