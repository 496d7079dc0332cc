"""The five categories of tasks, one class each; an author of a workflow subclasses them.

What a third party can promise decides the category. The attributes without a value here must be
written out in the subclass; `checks` says by name what is missing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeVar, get_args

from pydantic import BaseModel

from delta_outbox.railway.compromises import AtLeastOnce, Compromise, Concerns
from delta_outbox.railway.identifiers import DEFAULT_IDENTIFIER
from delta_outbox.railway.names import snake, title
from delta_outbox.railway.outcomes import DEFAULT_EXIT, Decided, Exit, Outcome, OutcomeT
from delta_outbox.railway.triggers import Item, ReadT, StartT, Trigger

ContractT = TypeVar("ContractT", bound=BaseModel)

FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(minutes=5)
MOST_ATTEMPTS = 10
SETTLES_WITHIN = timedelta(minutes=1)


def pause(attempts: int) -> timedelta:
    """Return a pause that doubles from one second up to five minutes.

    Args:
        attempts: so far.
    """
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempts - 1, 10))


def default_back_off(attempts: int, compromise: Compromise | None = None) -> timedelta | None:
    """Return how long to wait before the next attempt where no author has said otherwise.

    Args:
        attempts: so far.
        compromise: of a black box; under `AtLeastOnce` there is no last attempt but by expiry.
    """
    if attempts >= MOST_ATTEMPTS and not isinstance(compromise, AtLeastOnce):
        return None
    return pause(attempts)


class Category(StrEnum):
    """What the third party of a task can promise."""

    IDEMPOTENT = "idempotent"
    PESSIMISTIC_LOCK = "pessimistic_lock"
    OPTIMISTIC_LOCK = "optimistic_lock"
    BLACK_BOX = "black_box"
    TO_DO = "to_do"

    @property
    def business_name(self) -> str:
        """Return what people of the business call it."""
        return _BUSINESS_NAMES[self]


# In pages and drawings only; everywhere else a category has its own name.
_BUSINESS_NAMES = {
    Category.IDEMPOTENT: "Trivial",
    Category.PESSIMISTIC_LOCK: "Deterministic",
    Category.OPTIMISTIC_LOCK: "Deterministic",
    Category.BLACK_BOX: "Opaque",
    Category.TO_DO: "To Do",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Never:
    """Instead of a duration: it never comes, and somebody wrote down why.

    Args:
        why: in a sentence.
    """

    why: str


class Task(ABC, Generic[StartT, OutcomeT]):
    """A step of a workflow. It never fails: whatever happens to it has an outcome."""

    category: ClassVar[Category]
    title: ClassVar[str] = ""
    """Its name for people; made of the name of the class if empty."""
    identifier: ClassVar[str] = DEFAULT_IDENTIFIER
    """Template of the task identifier, the key by which the third party knows the task."""
    expires: timedelta | Never
    """How long after its trigger the task is of no use any more."""
    when_expired: OutcomeT | Exit = DEFAULT_EXIT

    @classmethod
    def task_name(cls) -> str:
        """Return the name of the task in rows and routes: that of its class in snake case."""
        return snake(cls.__name__)

    @classmethod
    def business_name(cls) -> str:
        """Return the name of the task for people."""
        return cls.title or title(cls.task_name())

    @classmethod
    def outcomes(cls) -> type[Outcome]:
        """Return the closed set of what the task may decide.

        Raises:
            TypeError: the class names no outcomes.
        """
        found = cls.parameter(Outcome)
        if found is None:
            raise TypeError(f"{cls.__name__} names no outcomes")
        return found

    @classmethod
    def parameter(cls, kind: type[Any]) -> type[Any] | None:
        """Return the first type in the brackets of the bases that is of a kind.

        Args:
            kind: a base class.
        """
        for one in cls.__mro__:
            for base in getattr(one, "__orig_bases__", ()):
                for argument in get_args(base):
                    if isinstance(argument, type) and issubclass(argument, kind):
                        return argument
        return None

    def still_needed(self, trigger: Trigger[StartT], task_id: str) -> bool:
        """Say whether the task is of use still; if not, it ends as if it had expired.

        Args:
            trigger: what triggered the task.
            task_id: its identifier.
        """
        return True


class State(Task[StartT, OutcomeT]):
    """A task that calls a third party and decides by its answer."""

    third_party: str
    """Whom it calls: a name in lower case, such as `warehouse`."""
    time_limit: timedelta
    """How long one attempt may take; it is ended then."""
    when_faulted: OutcomeT | Exit = DEFAULT_EXIT
    when_uncertain: OutcomeT | Exit
    """What is decided when nobody can say whether the third party has acted."""

    def back_off(
        self, attempts: int, trigger: Trigger[StartT], task_id: str, error: Exception | None
    ) -> timedelta | None:
        """Return how long to wait before the next attempt, None to try no more.

        Args:
            attempts: so far; those that were never sent are not counted.
            trigger: what triggered the task.
            task_id: its identifier.
            error: of the last attempt, None if it ended without a word.
        """
        return default_back_off(attempts)

    def on_fault(
        self, error: Exception | None, trigger: Trigger[StartT], task_id: str
    ) -> OutcomeT | Exit:
        """Return the outcome of a task that certainly was not done and is tried no more.

        Args:
            error: of the last attempt.
            trigger: what triggered the task.
            task_id: its identifier.
        """
        return self.when_faulted


class OneStep(State[StartT, OutcomeT]):
    """A task whose third party is called once per attempt."""

    @abstractmethod
    def attempt(
        self, trigger: Trigger[StartT], task_id: str
    ) -> Decided[OutcomeT] | Awaitable[Decided[OutcomeT]]:
        """Call the third party once, and decide by its answer.

        What is sent may depend on the arguments and on nothing else: it is sent again.

        Args:
            trigger: what triggered the task.
            task_id: its identifier, the key at the third party.

        Raises:
            CertainlyNot: the third party has not acted and will not.
            FinallyRefused: the same, and asking again will not help.
            NotDue: nothing was sent.
        """


class Idempotent(OneStep[StartT, OutcomeT]):
    """The third party takes a key, and acts once per key however often it is asked."""

    category = Category.IDEMPOTENT
    key_valid_for: timedelta | Never
    """How long the third party remembers a key, counted from the first claim of the task."""
    settles_within: timedelta = SETTLES_WITHIN
    """How long after the end of an attempt its request may take effect still."""

    def lookup(
        self, trigger: Trigger[StartT], task_id: str
    ) -> Decided[OutcomeT] | Awaitable[Decided[OutcomeT] | None] | None:
        """Return what an earlier attempt did, None if certainly nothing. Need not be overridden.

        Args:
            trigger: what triggered the task.
            task_id: its identifier.
        """
        raise NotImplementedError

    @classmethod
    def can_look_up(cls) -> bool:
        """Say whether the class has a look-up of its own."""
        return cls.lookup is not Idempotent.lookup


class PessimisticLock(OneStep[StartT, OutcomeT]):
    """The third party can be asked whether it has acted; one attempt at a time is let through."""

    category = Category.PESSIMISTIC_LOCK
    settles_within: timedelta
    """How long after the end of an attempt its request may take effect still."""

    @abstractmethod
    def lookup(
        self, trigger: Trigger[StartT], task_id: str
    ) -> Decided[OutcomeT] | Awaitable[Decided[OutcomeT] | None] | None:
        """Return what an earlier attempt did, None if certainly nothing.

        Args:
            trigger: what triggered the task.
            task_id: its identifier.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstStep(Generic[OutcomeT]):
    """A first step that the third party has on record for a task identifier.

    Args:
        reference: by which the third party knows the step, at most 1,024 characters.
        expired: whether it is past its own expiry.
        decided: what its second step has done, None if there was none.
    """

    reference: str
    expired: bool = False
    decided: Decided[OutcomeT] | None = None


class OptimisticLock(State[StartT, OutcomeT]):
    """The action has two steps; the first can be found and undone before the second is taken.

    The third party must refuse a second step whose first step was undone.
    """

    category = Category.OPTIMISTIC_LOCK
    why_not_pessimistic: str
    """The performance problem that was measured; without one, take a pessimistic lock."""

    @abstractmethod
    def first_step(self, trigger: Trigger[StartT], task_id: str) -> str | Awaitable[str]:
        """Take the first step, and return the third party's reference of it.

        Args:
            trigger: what triggered the task.
            task_id: its identifier; it is attached to the step.
        """

    @abstractmethod
    def lookup(
        self, trigger: Trigger[StartT], task_id: str
    ) -> Sequence[FirstStep[OutcomeT]] | Awaitable[Sequence[FirstStep[OutcomeT]]]:
        """Return the first steps of the task that were not undone, the oldest first.

        Args:
            trigger: what triggered the task.
            task_id: its identifier.
        """

    @abstractmethod
    def attempt(
        self, trigger: Trigger[StartT], task_id: str, reference: str
    ) -> Decided[OutcomeT] | Awaitable[Decided[OutcomeT]]:
        """Take the second step, and decide by its answer.

        Args:
            trigger: what triggered the task.
            task_id: its identifier.
            reference: of the first step.
        """

    @abstractmethod
    def undo(
        self, trigger: Trigger[StartT], task_id: str, reference: str
    ) -> Awaitable[None] | None:
        """Undo a first step; raise if that is not certain.

        Args:
            trigger: what triggered the task.
            task_id: its identifier.
            reference: of the first step.
        """


class BlackBox(OneStep[StartT, OutcomeT]):
    """The third party can neither tell attempts apart nor say whether it has acted."""

    category = Category.BLACK_BOX
    compromise: Compromise
    concerns: Concerns

    def back_off(
        self, attempts: int, trigger: Trigger[StartT], task_id: str, error: Exception | None
    ) -> timedelta | None:
        """Return how long to wait; under `AtLeastOnce` there is no last attempt but by expiry.

        Args:
            attempts: so far; those that were never sent are not counted.
            trigger: what triggered the task.
            task_id: its identifier.
            error: of the last attempt, None if it ended without a word.
        """
        return default_back_off(attempts, self.compromise)


class ToDo(Task[StartT, OutcomeT], Generic[StartT, OutcomeT, ContractT, ReadT]):
    """Somebody else continues the workflow: a person, or a message of a third party."""

    category = Category.TO_DO
    roles: frozenset[str]
    """Who may answer."""
    contract: type[ContractT]
    """What an answer must look like."""
    due: timedelta | None = None
    """When somebody should be reminded."""
    told_apart_by: str | None = None
    """On a loop: the field of the contract by which answers to different visits differ."""
    not_by: tuple[type[ToDo[Any, Any, Any, Any]], ...] = ()
    """Four eyes: whoever has answered one of these for an instance may not answer this one."""
    topic: str | None = None
    """The topic of Kafka by which answers may come, too."""

    @abstractmethod
    def read_model(self, trigger: Trigger[StartT]) -> ReadT:
        """Return all that whoever answers may see.

        Args:
            trigger: what triggered the task.
        """

    @abstractmethod
    def correlate(self, data: ContractT) -> str | None:
        """Return the identifier of the task that an answer is about. None if it is about none of
        ours, such as an event of a provider that tells more than was asked: it is passed over.

        Args:
            data: the answer.
        """

    @abstractmethod
    def decide(self, item: Item[ReadT], data: ContractT) -> Decided[OutcomeT]:
        """Decide by the read model and the answer, and by nothing else.

        Args:
            item: the open item.
            data: the answer.
        """


AnyTask = type[Task[Any, Any]]
"""The class of a task, whatever its start event and its outcomes."""
