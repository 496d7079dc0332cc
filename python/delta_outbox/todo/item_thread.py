"""The thread that owns the session of a To-Do server: it batches answers, and reads for many."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

from delta_outbox.core.errors import OutboxError, ServerUnreachable, WrongUsage
from delta_outbox.core.redaction import describe
from delta_outbox.todo.keys import Key
from delta_outbox.workflow_engine.item_answers import (
    MOST_ANSWERS,
    AnsweredAlready,
    AnsweredTooLate,
    Completion,
    GivenAnswer,
)
from delta_outbox.workflow_engine.item_decisions import UndecidedAnswer
from delta_outbox.workflow_engine.item_deliveries import UnknownItem, WaitingItem
from delta_outbox.workflow_engine.item_holds import HoldRequest
from delta_outbox.workflow_engine.items import ItemType

logger = logging.getLogger(__name__)

G = TypeVar("G")
T = TypeVar("T")

# How long what was read is shown; or as long as reading it took, if that is longer, so that half of
# the time is left for those who answer.
CACHE_SECONDS: Final = 1.0
MOST_QUEUED: Final = 10_000  # questions and answers that wait
ANSWERED_SECONDS: Final = 60.0  # until a relay has ended what was answered, as a rule
REOPEN_SECONDS: Final = 1.0  # between two attempts to reach the outbox
MOST_LISTED: Final = 1000  # open items of one task, those that expire first
MOST_SHOWN: Final = 50  # items that are read at once: each may take its author's code a second
_ALL_WAITING: Final = ("waiting", "")
_ARE_OVER: Final = (AnsweredAlready, AnsweredTooLate)
_OF_THE_QUESTION: Final = (UnknownItem, UndecidedAnswer, WrongUsage)
BY: Final = {"actor": "outbox todo serve", "reason": "answered at the To-Do server"}
HELD: Final = "taken or given back at the To-Do server"


class NotInTime(OutboxError):
    """The outbox has not answered in time; whether an answer is on record is not known.

    Args:
        why: for the log.
    """

    code = "NOT_IN_TIME"
    retryable = True
    remedy = "Send the same request again: it is told what has become of it."
    retry_after: Final = 2  # seconds

    def __init__(self, why: str) -> None:
        super().__init__("The outbox has not answered in time.")
        self.why = why


class ItemSource(Protocol):
    """What is asked of `Items`."""

    def types(self) -> Sequence[ItemType]:
        """Return the types of items."""

    def show_many(self, task_ids: Sequence[str]) -> Sequence[Mapping[str, Any] | OutboxError]:
        """Return items, or what is wrong with each."""

    def waiting(self, *, limit: int = ..., of_each_task: bool = ...) -> Sequence[WaitingItem]:
        """Return the items that are open, those first that expire first."""

    def correlated(self, workflow: str, task: str, data: Mapping[str, Any]) -> str | None:
        """Return the identifier of the item that an answer is about, None if it is about none."""

    def complete_many(
        self, answers: Sequence[GivenAnswer], *, actor: str, reason: str
    ) -> Sequence[Completion | OutboxError]:
        """Answer items."""

    def hold_many(
        self, requests: Sequence[HoldRequest], *, reason: str
    ) -> Sequence[str | OutboxError | None]:
        """Take items and give them back; return who holds each then."""

    def end_answered(self) -> bool:
        """End the items whose answers are on record."""

    def warm_up(self) -> None:
        """Ask once what an answer asks."""


class KeySource(Protocol):
    """What is asked of `KeyLog`."""

    def current(self) -> Mapping[str, Key]:
        """Return the keys that count."""


@dataclass(frozen=True, kw_only=True)
class OpenOutbox:
    """An outbox that is open.

    Args:
        items: its items.
        keys: its API keys.
    """

    items: ItemSource
    keys: KeySource


@dataclass(frozen=True, kw_only=True)
class WaitingList:
    """The open items of some roles.

    Args:
        items: those that expire first, in that order.
        is_cut: there may be more.
    """

    items: Sequence[WaitingItem]
    is_cut: bool


class ItemThread:
    """Asks an outbox, one question after the other. Its coroutines are of one event loop.

    Answers that come while others are written go together in the next append, and so do requests
    to hold items. Of several who ask the same, one question is asked.

    Args:
        opened: opens the outbox; called anew where it was lost.
        answer_seconds: how long anybody waits.
    """

    def __init__(
        self, opened: Callable[[], AbstractContextManager[OpenOutbox]], *, answer_seconds: float
    ) -> None:
        self._opened = opened
        self._answer_seconds = answer_seconds
        self._answers: deque[tuple[GivenAnswer, Future[Completion]]] = deque()
        self._holds: deque[tuple[HoldRequest, Future[str | None]]] = deque()
        self._questions: dict[tuple[str, str], list[Future[Any]]] = {}
        self._known: dict[tuple[str, str], tuple[float, Any]] = {}  # and until when it is shown
        self._answered: dict[str, float] = {}  # items that a list may still have, and since when
        self._changed = threading.Condition()
        self._is_ending = False
        self._began: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="items", daemon=True)
        self.types: Sequence[ItemType] = ()
        self.outbox: OpenOutbox | None = None

    def start(self) -> None:
        """Open the outbox, and return when that is done.

        Raises:
            OutboxError: it cannot be opened.
        """
        self._thread.start()
        self._began.result()

    def stop(self) -> None:
        """End after what is being written, and close the outbox."""
        with self._changed:
            self._is_ending = True
            self._changed.notify_all()
        self._thread.join()

    async def waiting(self, roles: Collection[str]) -> WaitingList:
        """Return the open items of some roles, some seconds old at most; none that was answered
        here within the last minute.

        Args:
            roles: that may answer.

        Raises:
            NotInTime: the outbox has not answered in time.
        """
        found: Sequence[WaitingItem] = await self._asked(_ALL_WAITING)
        asked = frozenset(roles)
        its = [one for one in found if not asked.isdisjoint(one.roles)]
        since = time.monotonic() - ANSWERED_SECONDS
        shown = [one for one in its if self._answered.get(one.task_id, since) <= since]
        counts = Counter((one.workflow, one.task) for one in found)
        is_cut = any(
            counts[one.workflow, one.task] >= MOST_LISTED and not asked.isdisjoint(one.roles)
            for one in self.types
        )
        return WaitingList(items=shown, is_cut=is_cut)

    async def shown(self, task_id: str) -> Mapping[str, Any]:
        """Return an item, some seconds old at most; not older than its last answer here.

        Args:
            task_id: the task identifier.

        Raises:
            UnknownItem: there is none.
            UndecidedAnswer: the author's code has failed.
            NotInTime: the outbox has not answered in time.
        """
        found: Mapping[str, Any] = await self._asked(("show", task_id))
        return found

    async def answer(self, given: GivenAnswer) -> Completion:
        """Answer an item; the answer is on record when this returns.

        Args:
            given: the answer.

        Raises:
            OutboxError: as `Items.complete` does.
            NotInTime: the answer may be on record or not.
        """
        return await self._written(self._answers, given)

    async def hold(self, request: HoldRequest) -> str | None:
        """Take an item, or give it back; return who holds it then.

        Args:
            request: what somebody asks.

        Raises:
            UnknownItem: there is none for this person.
            NotOpen: it waits for nobody any more.
            HeldByAnother: somebody else holds it.
            NotInTime: it may be on record or not.
        """
        return await self._written(self._holds, request)

    async def correlated(self, workflow: str, task: str, data: Mapping[str, Any]) -> str | None:
        """Return the identifier of the item that an answer is about, None if it is about none. Only
        the author's code is asked, in a thread of its own.

        Args:
            workflow: whose.
            task: its name in the workflow.
            data: the answer.

        Raises:
            OutboxError: as `Items.correlated` does.
            NotInTime: the outbox is not open.
        """
        if self.outbox is None:
            raise NotInTime("the outbox is not open")
        return await asyncio.to_thread(self.outbox.items.correlated, workflow, task, data)

    async def _written(self, waiting: deque[tuple[G, Future[T]]], given: G) -> T:
        future: Future[T] = Future()
        with self._changed:
            self._check_room()
            waiting.append((given, future))
            self._changed.notify_all()
        return await self._awaited(future)

    async def _asked(self, question: tuple[str, str]) -> Any:
        future: Future[Any] = Future()
        with self._changed:
            until, found = self._known.get(question, (float("-inf"), None))
            if time.monotonic() <= until:
                return found
            self._check_room()
            self._questions.setdefault(question, []).append(future)
            self._changed.notify_all()
        return await self._awaited(future)

    def _check_room(self) -> None:
        if len(self._answers) + len(self._holds) + len(self._questions) >= MOST_QUEUED:
            raise NotInTime("too many wait")

    async def _awaited(self, future: Future[T]) -> T:
        try:
            # What is not begun by then is cancelled, and never written.
            return await asyncio.wait_for(asyncio.wrap_future(future), self._answer_seconds)
        except TimeoutError:
            raise NotInTime("it takes longer") from None

    def _run(self) -> None:
        while not self._is_ending:
            try:
                with self._opened() as outbox:
                    self.types, self.outbox = outbox.items.types(), outbox
                    if not self._began.done():
                        self._warm_up(outbox.items)
                        self._began.set_result(None)
                    try:
                        while self._serve(outbox.items):
                            pass
                    finally:
                        self.outbox = None
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                if not self._began.done():
                    self._began.set_exception(error)
                    return
                logger.warning("items_unreachable", extra={"error": describe(error)})
                with self._changed:
                    self._changed.wait_for(lambda: self._is_ending, REOPEN_SECONDS)

    def _warm_up(self, items: ItemSource) -> None:
        """Let the first answer not wait for what is done once in a Spark."""
        try:
            items.warm_up()
        except Exception as error:  # noqa: BLE001 - whoever answers or asks learns of it
            logger.warning("items_not_warm", extra={"error": describe(error)})

    def _serve(self, items: ItemSource) -> bool:
        """Do what has waited longest of each kind; return whether there may be more."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._answers or self._holds or self._questions or self._is_ending
            )
            is_over = not (self._answers or self._holds or self._questions)
        # Each kind is taken just before its turn: what is not begun outlives a lost outbox.
        if answers := self._begun(self._answers):
            self._write(
                lambda given: items.complete_many(given, **BY), answers, told=self._note_answers
            )
            self._end(items)
        if holds := self._begun(self._holds):
            self._write(
                lambda asked: items.hold_many(asked, reason=HELD), holds, told=self._note_holds
            )
        if asked := self._begun_questions():
            self._read(items, asked)
        return not is_over

    def _begun_questions(self) -> dict[tuple[str, str], list[Future[Any]]]:
        """Return the question that has waited longest, with those like it: to read many items takes
        hardly longer than to read one. Without those for which nobody waits any more.
        """
        with self._changed:
            kind = next(iter(self._questions), ("", ""))[0]
            alike = [one for one in self._questions if one[0] == kind][:MOST_SHOWN]
            asked = {one: self._questions.pop(one) for one in alike}
        waiting = {
            one: [future for future in asking if future.set_running_or_notify_cancel()]
            for one, asking in asked.items()
        }
        return {one: asking for one, asking in waiting.items() if asking}

    def _begun(self, waiting: deque[tuple[G, Future[T]]]) -> list[tuple[G, Future[T]]]:
        """Return the first of those that wait, without those that nobody waits for any more."""
        with self._changed:
            first = _first(waiting)
        return [pair for pair in first if pair[1].set_running_or_notify_cancel()]

    def _write(
        self,
        write: Callable[[Sequence[G]], Sequence[T | OutboxError]],
        begun: Sequence[tuple[G, Future[T]]],
        *,
        told: Callable[[Sequence[G], Sequence[T | OutboxError]], None],
    ) -> None:
        asked = [given for given, _ in begun]
        try:
            results = write(asked)
        except Exception as error:
            if not isinstance(error, OutboxError) and len(begun) > 1:
                # One of them may be the reason. What is on record is recognised as a repeat.
                for pair in begun:
                    with contextlib.suppress(Exception):
                        self._write(write, [pair], told=told)
                return
            with self._changed:
                self._known.clear()
            for _, future in begun:
                future.set_exception(_told(error))
            if _is_lost(error):
                raise
            logger.error("writing_failed", extra={"error": describe(error)})
            return
        with self._changed:
            told(asked, results)
        for (_, future), result in zip(begun, results, strict=True):
            if isinstance(result, OutboxError):
                future.set_exception(NotInTime(str(result)) if result.retryable else result)
            else:
                future.set_result(result)

    def _note_answers(
        self, given: Sequence[GivenAnswer], results: Sequence[Completion | OutboxError]
    ) -> None:
        """Show what has become of items to those who have answered them."""
        now = time.monotonic()
        answered = {name: at for name, at in self._answered.items() if now - at < ANSWERED_SECONDS}
        for one, result in zip(given, results, strict=True):
            self._known.pop(("show", one.task_id), None)
            if not isinstance(result, OutboxError) or isinstance(result, _ARE_OVER):
                answered[one.task_id] = now
        self._answered = answered

    def _note_holds(
        self, asked: Sequence[HoldRequest], results: Sequence[str | OutboxError | None]
    ) -> None:
        """Show who holds items now."""
        holders: dict[str, str | None] = {}
        for one, result in zip(asked, results, strict=True):
            self._known.pop(("show", one.task_id), None)
            if isinstance(result, OutboxError):
                self._known.pop(_ALL_WAITING, None)
            else:
                holders[one.task_id] = result
        if _ALL_WAITING in self._known:
            until, found = self._known[_ALL_WAITING]
            held = [
                replace(one, assigned_to=holders[one.task_id]) if one.task_id in holders else one
                for one in found
            ]
            self._known[_ALL_WAITING] = until, held

    def _end(self, items: ItemSource) -> None:
        """End what is answered, after whoever has answered was told: nobody waits for that. What
        is left undone here, the next answer, command or relay does.
        """
        try:
            items.end_answered()
        except Exception as error:
            logger.warning("items_not_ended", extra={"error": describe(error)})
            if _is_lost(error):
                raise

    def _read(
        self, items: ItemSource, asked: Mapping[tuple[str, str], Sequence[Future[Any]]]
    ) -> None:
        began = time.monotonic()
        try:
            found: Sequence[Any] = (
                [items.waiting(limit=MOST_LISTED, of_each_task=True)]
                if _ALL_WAITING in asked
                else items.show_many([name for _, name in asked])
            )
        except Exception as error:
            if not isinstance(error, OutboxError) and len(asked) > 1:
                for one, asking in asked.items():  # one of them may be the reason
                    with contextlib.suppress(Exception):
                        self._read(items, {one: asking})
                return
            for future in (one for asking in asked.values() for one in asking):
                future.set_exception(_told(error))
            if _is_lost(error):
                raise
            logger.error("reading_failed", extra={"error": describe(error)})
            return
        now = time.monotonic()
        until = now + max(CACHE_SECONDS, now - began)
        answers = dict(zip(asked, found, strict=True))
        with self._changed:
            fresh = {one: kept for one, kept in self._known.items() if now <= kept[0]}
            known = {
                one: (until, its)
                for one, its in answers.items()
                if not isinstance(its, OutboxError)
            }
            self._known = {**fresh, **known}
        for one, its in answers.items():
            for future in asked[one]:
                if isinstance(its, OutboxError):
                    future.set_exception(_told(its))
                else:
                    future.set_result(its)


def _first(waiting: deque[T]) -> list[T]:
    """Take out those that one append writes."""
    return [waiting.popleft() for _ in range(min(len(waiting), MOST_ANSWERS))]


def _is_lost(error: Exception) -> bool:
    """Say whether the outbox is to be opened anew: its server has gone, or nobody knows."""
    return isinstance(error, ServerUnreachable) or not isinstance(error, OutboxError)


def _told(error: Exception) -> Exception:
    """Return what those who wait are told of an error: unless it is about what they have asked,
    that nothing is known, also of what may be on record.
    """
    return error if isinstance(error, _OF_THE_QUESTION) else NotInTime(describe(error))
