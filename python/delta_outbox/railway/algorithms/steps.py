"""What an algorithm asks for, one step at a time, and what it can be answered.

An algorithm is a generator. It yields a step, whoever runs it carries the step out and sends the
answer in, and its last step says how the attempt ends. Between two steps anything may happen: the
process may die, a lease may run out, somebody else may have a turn.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Generic, TypeVar

from delta_outbox.lifecycle.states import OUTCOME_REASONS, Reason
from delta_outbox.railway.compromises import AskHuman, AtLeastOnce, AtMostOnce, Compromise, UpTo
from delta_outbox.railway.outcomes import Decided
from delta_outbox.railway.tasks import (
    BlackBox,
    Category,
    FirstStep,
    Idempotent,
    PessimisticLock,
    State,
)

AnswerT = TypeVar("AnswerT")
Algorithm = Generator["Step[Any]", Any, None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What an algorithm needs to know of a task.

    Args:
        category: decides which algorithm it is.
        can_look_up: whether an idempotent task has a look-up too.
        compromise: of a black box.
    """

    category: Category
    can_look_up: bool = False
    compromise: Compromise | None = None

    @classmethod
    def of(cls, task: type[State[Any, Any]]) -> Rules:
        """Return the rules of a task.

        Args:
            task: the class.
        """
        return cls(
            category=task.category,
            can_look_up=issubclass(task, PessimisticLock)
            or (issubclass(task, Idempotent) and task.can_look_up()),
            compromise=task.compromise if issubclass(task, BlackBox) else None,
        )

    def may_act_again(self, executions: int) -> bool:
        """Say whether the compromise allows another attempt.

        Args:
            executions: attempts so far that may have acted.
        """
        match self.compromise:
            case AtLeastOnce():
                return True
            case UpTo(executions=most):
                return executions < most
            case AtMostOnce() | AskHuman() | None:
                return executions == 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What the log says of a task, seen with the lock of this attempt written.

    Args:
        decided: an outcome is on record.
        held_by_another: an older lock has neither ended nor run out; so it is in a plain store of
            locks only, for a task has one claim at a time (docs/railway/conditions.md).
        alone: no other lock at all has neither ended nor run out; with claims that is always so.
        executions: earlier attempts, now over, that may have acted and have no known result.
        settled: no request of an earlier attempt can take effect any more.
        key_alive: a request that is sent now arrives while the third party remembers the key.
        expired: the task has expired, or is needed no more.
        stopped: the back-off has said that this is not tried again.
    """

    decided: bool = False
    held_by_another: bool = False
    alone: bool = True
    executions: int = 0
    settled: bool = True
    key_alive: bool = True
    expired: bool = False
    stopped: bool = False

    @property
    def unsure(self) -> bool:
        """Say whether an earlier attempt may have acted."""
        return self.executions > 0

    @property
    def over(self) -> bool:
        """Say whether the task is to end without acting again."""
        return self.expired or self.stopped

    def resolved(self) -> Record:
        """Return the record, knowing that no earlier attempt has acted."""
        return replace(self, executions=0)


# --- answers of the third party --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Completed:
    """The third party has answered, and the task has decided."""

    decided: Decided[Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """The third party certainly has not acted, and will not act on this request."""

    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class FinalRefusal:
    """The same, and asking again will not help."""

    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Unsure:
    """Nobody knows whether the third party has acted or will."""

    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class NothingSent:
    """Nothing has left this process; it counts as no attempt."""

    error: Exception | None = None


AttemptResult = Completed | Fault | FinalRefusal | Unsure | NothingSent


@dataclass(frozen=True, slots=True)
class Found:
    """The look-up has found what an earlier attempt did."""

    decided: Decided[Any]


@dataclass(frozen=True, slots=True)
class NotDone:
    """The look-up says that nothing was done."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The look-up was not answered."""

    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """The first step was taken.

    Args:
        reference: by which the third party knows it.
    """

    reference: str


# --- how an attempt ends -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptEnding:
    """How an attempt ends.

    Args:
        reason: with those of `OUTCOME_REASONS` the task ends, PUBLISHED with an outcome; after the
            others it is PENDING again.
        decided: what was decided, where the reason is `completed`.
        pause: how long the task waits.
        settle: it waits until no request of this or an earlier attempt can take effect any more.
        last: what comes next finds out what happened, and does not act.
        error: what went wrong.
    """

    reason: Reason
    decided: Decided[Any] | None = None
    pause: timedelta | None = None
    settle: bool = False
    last: bool = False
    error: Exception | None = None

    @property
    def final(self) -> bool:
        """Say whether the task ends with it."""
        return self.reason in OUTCOME_REASONS


# --- steps -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step(Generic[AnswerT]):
    """Something that an algorithm asks for."""

    def ask(self) -> Generator[Step[Any], Any, AnswerT]:
        """Yield the step, and return its answer."""
        answer: AnswerT = yield self
        return answer


@dataclass(frozen=True, slots=True)
class WriteLock(Step[None]):
    """Write a lock for the task; with us, claim it."""


@dataclass(frozen=True, slots=True)
class ReadRecord(Step[Record]):
    """Read what is on record of the task."""


@dataclass(frozen=True, slots=True)
class LookUp(Step[Found | NotDone | NoAnswer]):
    """Ask the third party whether it has acted."""


@dataclass(frozen=True, slots=True)
class TakeFirstStep(Step[Begun | Fault | FinalRefusal | Unsure | NothingSent]):
    """Take the first of two steps."""


@dataclass(frozen=True, slots=True)
class ListFirstSteps(Step[tuple[FirstStep[Any], ...] | NoAnswer]):
    """Ask the third party for the first steps that it has for the task, the oldest first."""


@dataclass(frozen=True, slots=True)
class Undo(Step[bool]):
    """Undo a first step; the answer says whether it certainly is undone."""

    reference: str


@dataclass(frozen=True, slots=True)
class Attempt(Step[AttemptResult]):
    """Act: call the third party under the time limit.

    Args:
        reference: of the first step, where there are two.
    """

    reference: str | None = None


@dataclass(frozen=True, slots=True)
class AskBackOff(Step[timedelta | None]):
    """Ask the author how long to wait; None is not to try again."""

    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class End(Step[None]):
    """Record how the attempt ends. It is void if the lock has run out by then."""

    ending: AttemptEnding
