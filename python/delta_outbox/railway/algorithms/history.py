"""What the log says of the attempts of one task, and what an attempt reads of it at a moment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway.algorithms.steps import AttemptEnding, Record
from delta_outbox.railway.tasks import Idempotent, Never, PessimisticLock, Task, pause


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """The durations of a task; None where it has none.

    Args:
        expires: after its trigger.
        time_limit: of an attempt.
        settles: after an attempt that may have acted.
        key_valid: after the first claim.
    """

    expires: timedelta | None = None
    time_limit: timedelta = timedelta(0)
    settles: timedelta = timedelta(0)
    key_valid: timedelta | None = None

    @classmethod
    def of(cls, task: type[Task[Any, Any]]) -> Limits:
        """Return the durations of a task.

        Args:
            task: the class.
        """
        settles = task.settles_within if issubclass(task, Idempotent | PessimisticLock) else None
        return cls(
            expires=_span(task.expires),
            time_limit=getattr(task, "time_limit", timedelta(0)),
            settles=settles or timedelta(0),
            key_valid=_span(task.key_valid_for) if issubclass(task, Idempotent) else None,
        )


def _span(value: timedelta | Never) -> timedelta | None:
    return None if isinstance(value, Never) else value


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """What has become of the attempts of a task so far.

    Args:
        triggered_at: when the task was triggered.
        first_claim_at: when it was claimed first, None if never.
        attempts: that were made; what was not sent is not counted.
        executions: attempts that may have acted, without a known result.
        unsure_at: when the last of these ended.
        available_at: before it nobody makes another attempt.
        stopped: the back-off has said that it is enough.
        released: claims in a row that were released, and count as no attempts.
    """

    triggered_at: datetime
    first_claim_at: datetime | None = None
    attempts: int = 0
    executions: int = 0
    unsure_at: datetime | None = None
    available_at: datetime | None = None
    stopped: bool = False
    released: int = 0

    def claimed(self, now: datetime) -> History:
        """Return the history with one more claim.

        Args:
            now: when.
        """
        return replace(self, first_claim_at=self.first_claim_at or now)

    def read(self, limits: Limits, now: datetime, *, needed: bool = True) -> Record:
        """Return what an attempt reads that holds the claim.

        The claim proves the rest: there is no outcome and no other lock, so `decided`,
        `held_by_another` and `alone` stay as they are where nothing is said.

        Args:
            limits: of the task.
            now: when.
            needed: whether the task is of use still.
        """
        return Record(
            executions=self.executions,
            settled=now >= self.settles_at(limits, now),
            key_alive=self.key_left(limits, now) >= timedelta(0),
            expired=not needed or self.has_expired(limits, now),
            stopped=self.stopped,
        )

    def key_left(self, limits: Limits, now: datetime) -> timedelta:
        """Return for how long a request may still be sent that is to arrive while the third party
        remembers the key.

        Args:
            limits: of the task.
            now: when.
        """
        if limits.key_valid is None or self.first_claim_at is None:
            return timedelta.max
        return self.first_claim_at + limits.key_valid - limits.time_limit - limits.settles - now

    def has_expired(self, limits: Limits, now: datetime) -> bool:
        """Say whether the task has expired.

        Args:
            limits: of the task.
            now: when.
        """
        return limits.expires is not None and now >= self.triggered_at + limits.expires

    def settles_at(self, limits: Limits, now: datetime) -> datetime:
        """Return when no earlier request can take effect any more.

        Args:
            limits: of the task.
            now: what to return if there is none.
        """
        return now if self.unsure_at is None else self.unsure_at + limits.settles

    def ended(self, ending: AttemptEnding, limits: Limits, now: datetime) -> History:
        """Return the history with an attempt that has ended and is not the last.

        One that has sent nothing waits longer each time. One that could not be made has a pause of
        its own, which the expiry does not shorten: it could not be made then either.

        Args:
            ending: of the attempt.
            limits: of the task.
            now: when.
        """
        unsure = ending.reason is Reason.UNKNOWN
        counted = ending.reason is not Reason.RELEASED
        after = replace(
            self,
            attempts=self.attempts + counted,
            executions=self.executions + unsure,
            unsure_at=now if unsure else self.unsure_at,
            stopped=self.stopped or ending.last,
            released=0 if counted else self.released + 1,
        )
        wait = ending.pause or timedelta(0)
        if not (counted or ending.settle) and ending.pause is None:
            wait = pause(after.released)
        waits = now + wait
        if (counted or ending.pause is None) and limits.expires is not None:  # by then it ends
            waits = max(now, min(waits, self.triggered_at + limits.expires))
        if ending.settle:
            waits = max(waits, after.settles_at(limits, now))
        return replace(after, available_at=waits)
