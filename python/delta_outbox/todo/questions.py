"""What people have asked and nobody has told yet. A result stays with its question."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from delta_outbox.core.errors import OutboxError

G = TypeVar("G")
T = TypeVar("T")

KEPT_SECONDS: Final = 60.0  # for whoever asks again


@dataclass(frozen=True, kw_only=True, eq=False)
class Question(Generic[G, T]):
    """What is asked, by one or by many.

    Args:
        stands_for: what is the same of a question and its repeat.
        given: that is asked.
        size: its bytes.
        waiters: those who wait for the result.
    """

    stands_for: Hashable
    given: G
    size: int = 0
    waiters: set[Future[T]] = field(default_factory=set)


@dataclass(frozen=True, kw_only=True)
class Told(Generic[T]):
    """A result that is kept.

    Args:
        result: of a question.
        until: `time.monotonic()` seconds until which it is told.
        is_for_all: who ask; else for the first of them.
    """

    result: T | Exception
    until: float
    is_for_all: bool

    def value(self) -> T:
        """Return it, or raise it."""
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class Questions(Generic[G, T]):
    """Questions of one kind, in the order in which they were asked first.

    Who asks attaches to a question, and whoever waits no longer detaches. One that nobody waits for
    is withdrawn, unless it was begun: then its result is kept for who asks the same next.

    Whoever calls holds a lock.
    """

    def __init__(self) -> None:
        self._waiting: dict[Hashable, Question[G, T]] = {}
        self._begun: dict[Hashable, Question[G, T]] = {}
        self._told: dict[Hashable, Told[T]] = {}

    def __len__(self) -> int:
        """Return how many are not begun."""
        return len(self._waiting)

    @property
    def waiters(self) -> int:
        """Return how many wait."""
        return sum(len(one.waiters) for one in self._unanswered())

    @property
    def size(self) -> int:
        """Return the bytes of what is asked."""
        return sum(one.size for one in self._unanswered())

    def _unanswered(self) -> Sequence[Question[G, T]]:
        return [*self._waiting.values(), *self._begun.values()]

    @property
    def begun(self) -> Sequence[Question[G, T]]:
        """Return those that are begun, and not told."""
        return [*self._begun.values()]

    def told(self, stands_for: Hashable, now: float) -> Told[T] | None:
        """Return the result of what somebody has asked before, None if none is kept.

        Args:
            stands_for: of the question.
            now: `time.monotonic()` seconds.
        """
        found = self._told.get(stands_for)
        if found is None or found.until < now:
            return None
        if not found.is_for_all:
            del self._told[stands_for]
        return found

    def forget(self, is_meant: Callable[[Any], bool]) -> None:
        """Keep results no longer.

        Args:
            is_meant: says so of what stands for a question.
        """
        self._told = {name: one for name, one in self._told.items() if not is_meant(name)}

    def amend(self, stands_for: Hashable, change: Callable[[T], T]) -> None:
        """Change the result of a question, if it is kept.

        Args:
            stands_for: of the question.
            change: returns the new one.
        """
        found = self._told.get(stands_for)
        if found is not None:
            self._told[stands_for] = replace(found, result=change(found.value()))

    def attach(self, asked: Question[G, T]) -> tuple[Question[G, T], Future[T]]:
        """Return what is asked already, if somebody does, and what becomes of whoever waits for it.

        Args:
            asked: a new question.
        """
        name = asked.stands_for
        question = self._begun.get(name) or self._waiting.setdefault(name, asked)
        waiter: Future[T] = Future()
        question.waiters.add(waiter)
        return question, waiter

    def detach(self, question: Question[G, T], waiter: Future[T]) -> None:
        """Let somebody wait no longer.

        Args:
            question: that was asked.
            waiter: that was returned with it.
        """
        question.waiters.discard(waiter)
        if not question.waiters and self._waiting.get(question.stands_for) is question:
            del self._waiting[question.stands_for]

    def begin(
        self, most: int, *, alike: Callable[[G], object] = lambda _: None
    ) -> list[Question[G, T]]:
        """Begin the question that has waited longest, with those like it.

        Args:
            most: at once.
            alike: what is the same of those that are begun together.
        """
        first = next(iter(self._waiting.values()), None)
        if first is None:
            return []
        kind = alike(first.given)
        its = (one for one in self._waiting.values() if alike(one.given) == kind)
        begun = [*islice(its, most)]
        for one in begun:
            self._begun[one.stands_for] = self._waiting.pop(one.stands_for)
        return begun

    def end(
        self,
        results: Mapping[Question[G, T], T | Exception],
        *,
        now: float,
        until: float | None = None,
    ) -> None:
        """Tell everybody who waits what came of questions that were begun.

        Args:
            results: of each.
            now: `time.monotonic()` seconds.
            until: those until which what is no error is told to everybody who asks; None: it is
                told to whoever waits, or else to the first who asks again, as every error is.
        """
        self._told = {name: one for name, one in self._told.items() if now <= one.until}
        for question, result in results.items():
            self._end(question, result, now, None if isinstance(result, Exception) else until)

    def _end(
        self, question: Question[G, T], result: T | Exception, now: float, until: float | None
    ) -> None:
        del self._begun[question.stands_for]
        waiting = [one for one in question.waiters if one.set_running_or_notify_cancel()]
        is_final = not (isinstance(result, OutboxError) and result.retryable)
        if until is not None or (is_final and not waiting):
            self._told[question.stands_for] = Told(
                result=result,
                until=now + KEPT_SECONDS if until is None else until,
                is_for_all=until is not None,
            )
        for one in waiting:
            if isinstance(result, Exception):
                one.set_exception(result)
            else:
                one.set_result(result)
