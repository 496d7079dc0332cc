"""The thread that owns the session of a To-Do server: it batches answers, and reads for many."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

from delta_outbox.core.errors import OutboxError, ServerUnreachable, WrongUsage
from delta_outbox.core.redaction import describe
from delta_outbox.runtime.session import lost_server
from delta_outbox.todo.keys import Key
from delta_outbox.todo.patience import within
from delta_outbox.todo.questions import Question, Questions
from delta_outbox.workflow_engine.item_answers import (
    DONE,
    MOST_ANSWERS,
    AnsweredAlready,
    AnsweredTooLate,
    Completion,
    GivenAnswer,
)
from delta_outbox.workflow_engine.item_decisions import UndecidedAnswer, canonical
from delta_outbox.workflow_engine.item_deliveries import UnknownItem, WaitingItem
from delta_outbox.workflow_engine.item_holds import HoldRequest
from delta_outbox.workflow_engine.items import ItemType

logger = logging.getLogger(__name__)

A = TypeVar("A", GivenAnswer, HoldRequest)
G = TypeVar("G")
T = TypeVar("T")

# How long what was read is shown; or as long as reading it took, if that is longer, so that half of
# the time is left for those who answer.
CACHE_SECONDS: Final = 1.0
MOST_WAITERS: Final = 10_000
MOST_BYTES: Final = 64 * 1024**2  # of answers of which nothing is known yet
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
        answer_seconds: how long anybody waits; a request waits so long for all that it asks.
        monotonic: seconds.
    """

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[OpenOutbox]],
        *,
        answer_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._opened = opened
        self._answer_seconds = answer_seconds
        self._monotonic = monotonic
        self._answers: Questions[GivenAnswer, Completion] = Questions()
        self._holds: Questions[HoldRequest, str | None] = Questions()
        self._questions: Questions[tuple[str, str], Any] = Questions()
        self._kinds: tuple[Questions[Any, Any], ...] = self._answers, self._holds, self._questions
        self._answered: dict[str, float] = {}  # items that a list may still have, and since when
        self._is_to_end = False  # an item is answered, and has not ended
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
        since = self._monotonic() - ANSWERED_SECONDS
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
            NotInTime: the answer may be on record or not; who gives it again is told.
        """
        text = canonical(given.data)
        told, is_repeat = await self._result(
            self._answers,
            Question(stands_for=_stands_for(given, text), given=given, size=len(text)),
        )
        return replace(told, repeated=True) if is_repeat else told

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
        told, _ = await self._result(self._holds, Question(stands_for=request, given=request))
        return told

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

    async def _asked(self, question: tuple[str, str]) -> Any:
        told, _ = await self._result(self._questions, Question(stands_for=question, given=question))
        return told

    async def _result(self, asked: Questions[G, T], question: Question[G, T]) -> tuple[T, bool]:
        """Return what came of a question, and whether it was asked before."""
        with self._changed:
            told = asked.told(question.stands_for, self._monotonic())
            if told is not None:
                return told.value(), True
            self._check_room(question.size)
            its, waiter = asked.attach(question)
            self._changed.notify_all()
        try:
            result = await within(self._answer_seconds, asyncio.wrap_future(waiter))
        except TimeoutError:
            raise NotInTime("it takes longer") from None
        finally:
            with self._changed:  # what nobody waits for and is not begun is never written
                asked.detach(its, waiter)
        return result, its is not question

    def _check_room(self, size: int) -> None:
        waiters = sum(one.waiters for one in self._kinds)
        if waiters >= MOST_WAITERS or self._answers.size + size > MOST_BYTES:
            raise NotInTime("too many wait")

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
                    except Exception as error:
                        for kind in self._kinds:
                            self._tell(kind, dict.fromkeys(kind.begun, _told(error)))
                        raise
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
            self._changed.wait_for(lambda: any(map(len, self._kinds)) or self._is_ending)
            is_over = not any(map(len, self._kinds))
        # Each kind is taken just before its turn: what is not begun outlives a lost outbox.
        if answers := self._begun(self._answers, MOST_ANSWERS):
            self._write(
                lambda given: items.complete_many(given, **BY),
                self._answers,
                answers,
                note=self._note_answers,
            )
        if holds := self._begun(self._holds, MOST_ANSWERS):
            self._write(
                lambda asked: items.hold_many(asked, reason=HELD),
                self._holds,
                holds,
                note=self._note_holds,
            )
        # To read many items takes hardly longer than to read one.
        if asked := self._begun(self._questions, MOST_SHOWN, alike=lambda one: one[0]):
            self._read(items, asked)
        if self._is_to_end:
            self._is_to_end = False
            self._end(items)
        return not is_over

    def _begun(
        self,
        asked: Questions[G, T],
        most: int,
        *,
        alike: Callable[[G], object] = lambda _: None,
    ) -> list[Question[G, T]]:
        with self._changed:
            return asked.begin(most, alike=alike)

    def _tell(
        self,
        asked: Questions[G, T],
        results: Mapping[Question[G, T], T | Exception],
        *,
        until: float | None = None,
    ) -> None:
        with self._changed:
            asked.end(results, now=self._monotonic(), until=until)

    def _failed(
        self,
        error: Exception,
        asked: Questions[G, T],
        begun: Sequence[Question[G, T]],
        *,
        again: Callable[[Question[G, T]], None],
    ) -> None:
        """Tell those who wait that nothing is known. Where nobody foresaw the error, one of the
        questions may be the reason, so each is asked by itself.

        Raises:
            Exception: the reason is the outbox, which is to be opened anew.
        """
        if isinstance(error, OutboxError) and not _has_gone(error):
            logger.error("asking_failed", extra={"error": describe(error)})
            self._tell(asked, dict.fromkeys(begun, _told(error)))
            return
        if len(begun) == 1 or _has_gone(error):
            raise error
        failed = 0
        for one in begun:
            try:
                again(one)
            except Exception as its_error:
                failed += 1
                if failed == len(begun) or _has_gone(its_error):
                    raise
                self._tell(asked, {one: _told(its_error)})

    def _write(
        self,
        write: Callable[[Sequence[A]], Sequence[T | OutboxError]],
        asked: Questions[A, T],
        begun: Sequence[Question[A, T]],
        *,
        note: Callable[[Sequence[A], Sequence[T | OutboxError]], None],
    ) -> None:
        given = [one.given for one in begun]
        items = {one.task_id for one in given}
        with self._changed:  # whatever comes of it
            self._questions.forget(lambda name: name[1] in items)
        try:
            results = write(given)
        except Exception as error:  # noqa: BLE001 - what it is decides
            # What is on record is recognised as a repeat.
            self._failed(
                error, asked, begun, again=lambda one: self._write(write, asked, [one], note=note)
            )
            return
        with self._changed:
            note(given, results)
        told = [NotInTime(str(one)) if _is_trouble(one) else one for one in results]
        self._tell(asked, dict(zip(begun, told, strict=True)))

    def _note_answers(
        self, given: Sequence[GivenAnswer], results: Sequence[Completion | OutboxError]
    ) -> None:
        """Show what has become of items to those who have answered them."""
        now = self._monotonic()
        answered = {name: at for name, at in self._answered.items() if now - at < ANSWERED_SECONDS}
        for one, result in zip(given, results, strict=True):
            if not isinstance(result, OutboxError) or isinstance(result, _ARE_OVER):
                answered[one.task_id] = now
            if isinstance(result, Completion) and result.status != DONE:
                self._is_to_end = True
        self._answered = answered

    def _note_holds(
        self, asked: Sequence[HoldRequest], results: Sequence[str | OutboxError | None]
    ) -> None:
        """Show who holds items now."""
        if any(isinstance(one, OutboxError) for one in results):
            self._questions.forget(lambda name: name == _ALL_WAITING)
        holders = {one.task_id: result for one, result in zip(asked, results, strict=True)}
        self._holds.forget(lambda request: request.task_id in holders)
        self._questions.amend(
            _ALL_WAITING,
            lambda found: [
                replace(one, assigned_to=holders[one.task_id]) if one.task_id in holders else one
                for one in found
            ],
        )

    def _end(self, items: ItemSource) -> None:
        """End what is answered, after whoever has answered was told: nobody waits for that. What
        is left undone here, the next answer, command or relay does.
        """
        try:
            items.end_answered()
        except Exception as error:
            logger.warning("items_not_ended", extra={"error": describe(error)})
            if _has_gone(error) or not isinstance(error, OutboxError):
                raise

    def _read(self, items: ItemSource, asked: Sequence[Question[tuple[str, str], Any]]) -> None:
        began = self._monotonic()
        try:
            found: Sequence[Any] = (
                [items.waiting(limit=MOST_LISTED, of_each_task=True)]
                if asked[0].given == _ALL_WAITING
                else items.show_many([one.given[1] for one in asked])
            )
        except Exception as error:  # noqa: BLE001 - what it is decides
            self._failed(error, self._questions, asked, again=lambda one: self._read(items, [one]))
            return
        now = self._monotonic()
        told = [_told(one) if isinstance(one, OutboxError) else one for one in found]
        until = now + max(CACHE_SECONDS, now - began)
        self._tell(self._questions, dict(zip(asked, told, strict=True)), until=until)


def _stands_for(given: GivenAnswer, text: str) -> Hashable:
    """Return what is the same of an answer and its repeat: who gives it, as what, and the data."""
    others = (value for name, value in vars(given).items() if name != "data")
    return (*others, hashlib.sha256(text.encode()).digest())


def _has_gone(error: Exception) -> bool:
    """Say whether the server of the outbox has gone, whatever was asked."""
    return isinstance(error, ServerUnreachable) or lost_server(error) is not None


def _is_trouble(result: object) -> bool:
    """Say whether a result means that nothing is known yet."""
    return isinstance(result, OutboxError) and result.retryable


def _told(error: Exception) -> Exception:
    """Return what those who wait are told of an error: unless it is about what they have asked,
    that nothing is known, also of what may be on record.
    """
    return error if isinstance(error, _OF_THE_QUESTION) else NotInTime(describe(error))
