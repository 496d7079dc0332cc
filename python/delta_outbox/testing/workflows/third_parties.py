"""Third parties with a ledger that follow a script of troubles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from delta_outbox.railway import CertainlyNot, FinallyRefused
from delta_outbox.testing.workflows.clock import VirtualClock
from delta_outbox.testing.workflows.errors import KitError
from delta_outbox.testing.workflows.troubles import Trouble

A = TypeVar("A")
LATE = timedelta(seconds=10)
"""How long after its call an effect comes that comes late; keep settling times above it."""


class WorkerDied(BaseException):
    """Our worker is gone, in the middle of a call; no code of a task may catch it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """Something that a third party has done.

    Args:
        key: by which it was asked.
        what: it has done.
        at: when.
    """

    key: str
    what: Any
    at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A call as the third party has seen it.

    Args:
        key: that was sent.
        what: was asked for.
        trouble: what went wrong with it.
        acting: whether it asked for an effect; else it was a look-up.
    """

    key: str
    what: Any
    trouble: Trouble
    acting: bool


class ThirdParty:
    """The base of a third party for tests: a ledger, and a script of troubles.

    A subclass has the methods that the task calls; each of them calls `act` or `find` once.

    Args:
        script: what goes wrong with each call, in order; what comes after it is answered.
        remembers_keys: whether it acts once per key.
        remembers_for: how long it remembers a key, None for ever.

    Raises:
        KitError: the script holds something else than members of `Trouble`.
    """

    name = ""
    """For traces; made of the name of the class if empty."""

    def __init__(
        self,
        script: Sequence[Trouble] = (),
        *,
        remembers_keys: bool = False,
        remembers_for: timedelta | None = None,
    ) -> None:
        self.script = self._checked(script)
        self.remembers_keys = remembers_keys
        self.remembers_for = remembers_for
        self.clock = VirtualClock()
        self.ledger: list[Effect] = []
        self.calls: list[Call] = []
        self._by_key: dict[str, list[Effect]] = {}
        self._answers: dict[str, tuple[datetime, Any]] = {}
        self._rehearsed: list[tuple[str, Any]] | None = None

    @property
    def title(self) -> str:
        """Return its name for people."""
        return self.name or type(self).__name__

    def act(self, key: str, what: Any, answer: A) -> A:
        """Do something, as the script has it, and answer.

        Args:
            key: by which the task asks.
            what: to write into the ledger.
            answer: to give.

        Raises:
            CertainlyNot: the script says so.
            TimeoutError: no answer came.
        """
        if self._rehearsed is not None:
            self._rehearsed.append((key, what))
            return answer
        trouble = self._next(key, what, acting=True)
        if trouble is Trouble.DIES_BEFORE:
            raise WorkerDied
        if trouble is Trouble.REFUSES:
            raise CertainlyNot("refused")
        if trouble is Trouble.FORGETS_KEY:
            self._answers.pop(key, None)
        known = self._known(key)
        if trouble is Trouble.REJECTS and known is None:
            known = FinallyRefused("refused for good")
            if self.remembers_keys:
                self._answers[key] = (self.clock.now, known)
            raise known
        if trouble is Trouble.ACTS_LATE:
            self.clock.at(self.clock.now + LATE, lambda: self._do(key, what, answer))
        elif trouble is not Trouble.STAYS_SILENT:
            self._do(key, what, answer)
        if trouble is Trouble.DIES_AFTER:
            raise WorkerDied
        if trouble in {Trouble.ACTS_SILENTLY, Trouble.STAYS_SILENT, Trouble.ACTS_LATE}:
            raise TimeoutError("no answer")
        return self._stored(known, answer)

    def _stored(self, known: Any, answer: A) -> A:
        if isinstance(known, Exception):
            raise known
        stored: A = answer if known is None or known is True else known
        return stored

    def find(self, key: str) -> Any | None:
        """Look up what was done for a key, as the script has it; None if nothing.

        Args:
            key: by which the task asked.

        Raises:
            TimeoutError: no answer came.
        """
        trouble = self._next(key, None, acting=False)
        if trouble is Trouble.DIES_BEFORE:
            raise WorkerDied
        if trouble is Trouble.LOOKS_UP_LATE:
            return None
        if trouble not in {Trouble.ANSWERS, Trouble.FORGETS_KEY}:
            raise TimeoutError("no answer")
        return next(iter(self.effects(key)), None)

    def effects(self, key: str) -> list[Any]:
        """Return all that was done for a key.

        Args:
            key: by which the task asked.
        """
        return [one.what for one in self._by_key.get(key, ())]

    @contextmanager
    def rehearsal(self) -> Iterator[list[tuple[str, Any]]]:
        """Let calls have no effect for a block, and collect what was sent."""
        self._rehearsed = []
        try:
            yield self._rehearsed
        finally:
            self._rehearsed = None

    def _checked(self, script: object) -> list[Trouble]:
        given = [script]
        if is_list := isinstance(script, Iterable) and not isinstance(script, str):
            given = [*script]
        troubles = [one for one in given if isinstance(one, Trouble)]
        if not is_list or len(troubles) < len(given):
            wrong = next((one for one in given if not isinstance(one, Trouble)), script)
            raise KitError(
                f"{self.title}: a script is a list of members of Trouble, such as "
                f"`[Trouble.ACTS_SILENTLY]`. Got: {wrong!r}."
            )
        return troubles

    def _next(self, key: str, what: Any, *, acting: bool) -> Trouble:
        trouble = self.script.pop(0) if self.script else Trouble.ANSWERS
        self.calls.append(Call(key=key, what=what, trouble=trouble, acting=acting))
        return trouble

    def _known(self, key: str) -> Any | None:
        if not self.remembers_keys or key not in self._answers:
            return None
        since, answer = self._answers[key]
        if self.remembers_for is not None and self.clock.now >= since + self.remembers_for:
            return None
        return answer

    def _do(self, key: str, what: Any, answer: Any) -> None:
        if self._known(key) is None:
            done = Effect(key=key, what=what, at=self.clock.now)
            self.ledger.append(done)
            self._by_key.setdefault(key, []).append(done)
            self._answers[key] = (self.clock.now, answer if answer is not None else True)
