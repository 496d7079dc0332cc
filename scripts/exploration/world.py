"""The world that the algorithms are explored in: locks, requests in flight, a third party.

A state of the world is a tuple. The state of a generator, which cannot be copied, is the list of
answers it was given: from these it is run again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway import AtLeastOnce, Category, Decided, FirstStep, Outcome, UpTo
from delta_outbox.railway.algorithms import ALGORITHMS
from delta_outbox.railway.algorithms.attempt_endings import conclude
from delta_outbox.railway.algorithms.steps import (
    Algorithm,
    AskBackOff,
    Attempt,
    AttemptEnding,
    Begun,
    Completed,
    End,
    Fault,
    FinalRefusal,
    Found,
    ListFirstSteps,
    LookUp,
    NoAnswer,
    NotDone,
    NothingSent,
    ReadRecord,
    Record,
    Rules,
    Step,
    TakeFirstStep,
    Undo,
    Unsure,
    WriteLock,
)

Answer = Any
Table = Callable[[Any, Rules, Record, timedelta | None], AttemptEnding]


class Done(Outcome):
    """All that the explored task can decide."""

    DONE = "done"


class Attempted(NamedTuple):
    """One attempt: who runs it, what it was answered, and the request it waits for."""

    mode: str = "idle"  # runs, dead, gone
    answers: tuple[Answer, ...] = ()
    waits: Answer = None  # for a request that was sent
    late: bool = False  # the task was over when this one locked it


class World(NamedTuple):
    """All that counts, at one moment."""

    attempts: tuple[Attempted, ...]
    locks: tuple[str, ...]  # '', live, sure, unsure: what is known of an attempt that is over
    order: tuple[int, ...] = ()  # in which the locks were written
    flights: tuple[tuple[int, str], ...] = ()  # requests that may take effect still
    effects: tuple[int, ...] = ()  # whose request took effect
    steps: tuple[tuple[int, str], ...] = ()  # first steps at the third party: live, removed, done
    known: str = ""  # what the third party remembers of the key: acted, rejected
    key: str = "alive"  # late: by our clock; forgotten
    expired: bool = False
    stopped: bool = False
    outcomes: tuple[Reason, ...] = ()
    goes_on: bool = False  # the last attempt has ended, and the task has not


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """What the world promises; each can be taken away.

    Args:
        claims: the lock is a claim of ours: one at a time, and an ending without it is void.
            Otherwise it is a plain row in a store of locks.
        hard_limit: a lock runs out only after its process has ended.
        settles: nothing takes effect after the settling time.
        key_margin: the third party forgets a key only after the last request has arrived.
        refuses_undone: the third party refuses a second step whose first one was undone.
        faults_are_certain: an attempt that has timed out is not reported as a fault.
        stops: the back-off may say that it is enough. Where attempts race on a plain store
            nobody can end the task for the others, so there it must not.
    """

    claims: bool = True
    hard_limit: bool = True
    settles: bool = True
    key_margin: bool = True
    refuses_undone: bool = True
    faults_are_certain: bool = True
    stops: bool = True


@dataclass
class Explored:
    """Rules to explore under assumptions, with a number of attempts.

    Args:
        rules: of the task.
        attempts: made in all, beside each other where the locks allow.
        assumptions: of the world.
        algorithm: the generator; that of the category if left out.
        table: what follows from a result; that of the product if left out.
        traces: note the lines of the algorithms that are run, which takes its time.
    """

    rules: Rules
    attempts: int = 2
    assumptions: Assumptions = field(default_factory=Assumptions)
    algorithm: Callable[[Rules], Algorithm] | None = None
    table: Table = conclude
    traces: bool = False

    def __post_init__(self) -> None:
        self.algorithm = self.algorithm or ALGORITHMS[self.rules.category]
        self._steps: dict[tuple[Answer, ...], Step[Any] | None] = {}
        self.lines: set[tuple[str, int]] = set()

    def first(self) -> World:
        """Return the world before anything has happened."""
        return World((Attempted(),) * self.attempts, ("",) * self.attempts)

    def step(self, answers: tuple[Answer, ...]) -> Step[Any] | None:
        """Return what the generator asks after these answers; None if it is over.

        Args:
            answers: so far.
        """
        if answers not in self._steps:
            before = sys.gettrace()
            if self.traces:
                sys.settrace(self._trace)
            try:
                self._steps[answers] = self._run(answers)
            finally:
                sys.settrace(before)
        return self._steps[answers]

    def _run(self, answers: tuple[Answer, ...]) -> Step[Any] | None:
        assert self.algorithm is not None
        run = self.algorithm(self.rules)
        try:
            asked = next(run)
            for one in answers:
                asked = run.send(_spoken(one))
        except StopIteration:
            return None
        return asked

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Note the lines of the algorithms that are run."""
        file = frame.f_code.co_filename
        if "algorithms" not in file:
            return None
        if event == "line":
            self.lines.add((Path(file).name, frame.f_lineno))
        return self._trace

    # --- what may happen next ---------------------------------------------------------------

    def moves(self, now: World) -> Iterator[tuple[str, str, World]]:
        """Yield all that may happen: its kind, in words, and the world after it.

        Args:
            now: the world.
        """
        for i, one in enumerate(now.attempts):
            if one.mode == "idle":
                if self._may_start(now, i):
                    yield "go", f"attempt {i + 1} begins", self._set(now, i, mode="runs")
                break  # they begin in order: one is like the other
        for i, one in enumerate(now.attempts):
            if one.mode == "runs":
                yield from self._steps_of(now, i, one)
                if now.locks[i]:
                    yield (
                        "trouble",
                        f"attempt {i + 1} dies",
                        self._set(now, i, mode="dead", answers=(), waits=None),
                    )
            if now.locks[i] == "live" and (
                one.mode == "dead" or (one.mode == "runs" and not self.assumptions.hard_limit)
            ):
                yield from self._lock_runs_out(now, i)
        for flight in now.flights:
            yield from self._lands(now, flight)
        yield from self._time_passes(now)

    def _time_passes(self, now: World) -> Iterator[tuple[str, str, World]]:
        if not now.expired:
            yield "trouble", "the task expires", now._replace(expired=True)
        if self.rules.category is Category.IDEMPOTENT:
            if now.key == "alive":
                yield "trouble", "the key's life is over by our clock", now._replace(key="late")
            if now.key == "late" and self._may_forget(now):
                yield (
                    "trouble",
                    "the third party forgets the key",
                    now._replace(key="forgotten", known=""),
                )

    def _may_start(self, now: World, i: int) -> bool:
        if not self.assumptions.claims:
            return True
        about_to = any(
            one.mode == "runs" and not now.locks[j] for j, one in enumerate(now.attempts[:i])
        )
        return not about_to and "live" not in now.locks and not now.outcomes

    def _may_forget(self, now: World) -> bool:
        if not self.assumptions.key_margin:
            return True
        return not now.flights and not any(
            one.mode == "runs" and isinstance(self.step(one.answers), Attempt)
            for one in now.attempts
        )

    def _set(self, now: World, i: int, **changes: Any) -> World:
        attempts = list(now.attempts)
        attempts[i] = attempts[i]._replace(**changes)
        return now._replace(attempts=tuple(attempts))

    def _lock(self, now: World, i: int, state: str) -> World:
        locks = list(now.locks)
        locks[i] = state
        return now._replace(locks=tuple(locks))

    def _answer(self, now: World, i: int, answer: Answer) -> World:
        answers = (*now.attempts[i].answers, answer)
        mode = "runs" if self.step(answers) is not None else "gone"
        if mode == "gone":
            answers = ()
        return self._set(now, i, answers=answers, waits=None, mode=mode)

    def record(self, now: World, i: int) -> Record:
        """Return what an attempt reads.

        Args:
            now: the world.
            i: the attempt.
        """
        others = [j for j in range(len(now.locks)) if j != i]
        older = now.order[: now.order.index(i)] if i in now.order else now.order
        return Record(
            decided=bool(now.outcomes),
            held_by_another=any(now.locks[j] == "live" for j in older),
            alone=all(now.locks[j] != "live" for j in others),
            executions=sum(now.locks[j] == "unsure" for j in others),
            settled=not self.assumptions.settles or all(owner == i for owner, _ in now.flights),
            key_alive=now.key == "alive",
            expired=now.expired,
            stopped=now.stopped,
        )

    def _steps_of(self, now: World, i: int, one: Attempted) -> Iterator[tuple[str, str, World]]:
        step, who = self.step(one.answers), f"attempt {i + 1}"
        if isinstance(step, WriteLock):
            late = self.assumptions.claims and self.record(now, i).over
            locked = self._lock(now, i, "live")._replace(order=(*now.order, i))
            locked = self._set(locked, i, late=late)
            yield "go", f"{who} locks the task", self._answer(locked, i, None)
        elif isinstance(step, ReadRecord):
            seen = self.record(now, i)
            yield "go", f"{who} reads the record: {_shown(seen)}", self._answer(now, i, seen)
        elif isinstance(step, AskBackOff):
            yield "go", f"{who}: the back-off says wait", self._answer(now, i, timedelta(seconds=1))
            if self.assumptions.stops:
                yield "trouble", f"{who}: the back-off says stop", self._answer(now, i, "stop")
        elif isinstance(step, LookUp | ListFirstSteps):
            yield from self._asks(now, i, step, one.waits)
        elif isinstance(step, Undo):
            yield from self._undoes(now, i, step.reference)
        elif isinstance(step, Attempt | TakeFirstStep):
            yield from self._calls(now, i, step, one.waits)
        elif isinstance(step, End):
            yield "go", f"{who} records: {_ending(step.ending)}", self._ends(now, i, step.ending)

    # --- requests --------------------------------------------------------------------------

    def _asks(
        self, now: World, i: int, step: Step[Any], waits: Answer
    ) -> Iterator[tuple[str, str, World]]:
        who = f"attempt {i + 1}"
        if waits is not None:
            words = waits if isinstance(waits, str) else f"{len(waits[1])} first steps"
            yield "go", f"{who} is told: {words}", self._answer(now, i, waits)
            silent = self._answer(now, i, "no answer")
            yield "trouble", f"{who} gets no answer to its look-up", silent
            return
        if isinstance(step, LookUp):
            told: Answer = "found" if now.effects else "nothing"
        else:
            listed = tuple((j, state) for j, state in now.steps if state != "removed")
            lives = tuple(
                (j, state, now.locks[j] != "live" or now.attempts[j].mode == "dead")
                for j, state in listed
            )
            told = ("steps", lives)
        yield "go", f"{who} looks up", self._set(now, i, waits=told)

    def _undoes(self, now: World, i: int, reference: str) -> Iterator[tuple[str, str, World]]:
        owner, who = int(reference), f"attempt {i + 1}"
        state = dict(now.steps).get(owner)
        if state == "live":
            steps = tuple((j, "removed" if j == owner else at) for j, at in now.steps)
            undone = now._replace(steps=steps)
            what = f"{who} undoes the first step of attempt {owner + 1}"
            yield "go", what, self._answer(undone, i, True)
            yield "trouble", f"{what} and is not told", self._answer(undone, i, "unsure")
        yield (
            "go" if state != "live" else "trouble",
            f"{who} cannot undo the first step of attempt {owner + 1}",
            self._answer(now, i, True if state == "removed" else "unsure"),
        )

    def _calls(
        self, now: World, i: int, step: Step[Any], waits: Answer
    ) -> Iterator[tuple[str, str, World]]:
        who = f"attempt {i + 1}"
        kind = "first" if isinstance(step, TakeFirstStep) else "act"
        if waits is None:
            flights = tuple(sorted({*now.flights, (i, kind)}))
            sent = self._set(now, i, waits="sent")._replace(flights=flights)
            yield "go", f"{who} sends its request ({kind})", sent
            refused = self._answer(now, i, "failed")
            yield "trouble", f"{who} is refused a connection: certainly not done", refused
            if self.assumptions.claims:
                yield "trouble", f"{who} sends nothing", self._answer(now, i, "not sent")
            return
        if waits != "sent":
            words = waits if isinstance(waits, str) else waits[0]
            yield "go", f"{who} gets its answer: {words}", self._answer(now, i, waits)
        unheard = "silence" if self.assumptions.faults_are_certain else "failed"
        words = "" if self.assumptions.faults_are_certain else ", and calls that a fault"
        yield "trouble", f"{who} hears nothing in time{words}", self._answer(now, i, unheard)

    def _lands(self, now: World, flight: tuple[int, str]) -> Iterator[tuple[str, str, World]]:
        i, kind = flight
        who = f"the request of attempt {i + 1}"
        rest = now._replace(flights=tuple(one for one in now.flights if one != flight))

        def told(world: World, answer: Answer) -> World:
            waits = world.attempts[i].waits
            return self._set(world, i, waits=answer) if waits == "sent" else world

        yield "trouble", f"{who} is lost", rest
        if kind == "first":
            yield (
                "land",
                f"{who} makes a first step",
                told(rest._replace(steps=(*now.steps, (i, "live"))), ("begun", i)),
            )
            return
        if self.rules.category is Category.OPTIMISTIC_LOCK:
            yield from self._second_lands(rest, i, told)
            return
        if self.rules.category is Category.IDEMPOTENT and now.known:
            again = "done" if now.known == "acted" else "rejected"
            yield "land", f"{who} arrives: the key is known, {again} before", told(rest, again)
            return
        acts = rest._replace(effects=(*now.effects, i), known="acted")
        yield "land", f"{who} TAKES EFFECT", told(acts, "done")
        yield (
            "trouble",
            f"{who} is refused for good",
            told(rest._replace(known="rejected"), "rejected"),
        )

    def _second_lands(
        self, rest: World, i: int, told: Callable[[World, Answer], World]
    ) -> Iterator[tuple[str, str, World]]:
        who = f"the second step of attempt {i + 1}"
        state = dict(rest.steps).get(i, "removed")
        if state == "removed" and self.assumptions.refuses_undone:
            yield "land", f"{who} is refused: its first was undone", told(rest, "failed")
            return
        steps = tuple((j, "done" if j == i else at) for j, at in rest.steps)
        yield (
            "land",
            f"{who} TAKES EFFECT",
            told(rest._replace(effects=(*rest.effects, i), steps=steps), "done"),
        )

    # --- endings ---------------------------------------------------------------------------

    def _ends(self, now: World, i: int, ending: AttemptEnding) -> World:
        over = self._answer(now, i, None)
        if self.assumptions.claims and now.locks[i] != "live":
            return over
        return self._applied(over, i, ending)

    def _applied(self, now: World, i: int, ending: AttemptEnding) -> World:
        last = now.attempts[i].late and self.record(now, i).unsure
        now = self._set(now, i, late=False)
        waits = ending.reason is Reason.RELEASED and ending.settle
        if last and not ending.final and not waits:
            now = now._replace(goes_on=True)
        if ending.final:
            return self._lock(now, i, "sure")._replace(outcomes=(*now.outcomes, ending.reason))
        ended = self._lock(now, i, "unsure" if ending.reason is Reason.UNKNOWN else "sure")
        return ended._replace(stopped=now.stopped or ending.last)

    def _lock_runs_out(self, now: World, i: int) -> Iterator[tuple[str, str, World]]:
        who = f"the lock of attempt {i + 1} runs out"
        if not self.assumptions.claims:
            yield "land", who, self._lock(now, i, "unsure")
            return
        late = now.attempts[i].late
        began = replace(self.record(now, i), expired=late, stopped=False)
        for kind, words, pause in (
            ("land", "wait", timedelta(seconds=1)),
            ("trouble", "stop", None),
        ):
            ending = self.table(Unsure(), self.rules, began, pause)
            yield (
                kind,
                f"{who}, the back-off says {words}: {_ending(ending)}",
                self._applied(now, i, ending),
            )

    # --- what must not be --------------------------------------------------------------------

    def wrong(self, now: World) -> str | None:
        """Return what is wrong with a state of the world, None if nothing is.

        Args:
            now: the world.
        """
        most = self.most_effects()
        if most is not None and len(now.effects) > most:
            return f"{len(now.effects)} effects where at most {most} is promised"
        if now.effects and set(now.outcomes) & NOTHING_DONE:
            return "the outcome says that nothing was done, and it was"
        if Reason.COMPLETED in now.outcomes and not now.effects:
            return "the outcome says that it was done, and it was not"
        if len(set(now.outcomes)) > 1 or (self.assumptions.claims and len(now.outcomes) > 1):
            return "two outcomes"
        if now.goes_on:
            return "the task goes on after an attempt that was the last"
        return None

    def most_effects(self) -> int | None:
        """Return how many effects the category promises at most, None if it promises nothing."""
        match self.rules.compromise:
            case AtLeastOnce():
                return None
            case UpTo(executions=most):
                return most
            case _:
                return 1


NOTHING_DONE = {Reason.EXPIRED, Reason.EXHAUSTED, Reason.REJECTED}


def _spoken(answer: Answer) -> Any:
    """Return an answer as the generators know it."""
    if isinstance(answer, str):
        return _PLAIN[answer]
    if isinstance(answer, tuple) and answer[:1] == ("begun",):
        return Begun(str(answer[1]))
    if isinstance(answer, tuple) and answer[:1] == ("steps",):
        return tuple(
            FirstStep(reference=str(j), expired=over, decided=_DONE if state == "done" else None)
            for j, state, over in answer[1]
        )
    return answer


_DONE = Decided(outcome=Done.DONE)
_PLAIN: dict[str, Any] = {
    "done": Completed(_DONE),
    "failed": Fault(),
    "rejected": FinalRefusal(),
    "silence": Unsure(),
    "not sent": NothingSent(),
    "found": Found(_DONE),
    "nothing": NotDone(),
    "no answer": NoAnswer(),
    "stop": None,
    "unsure": False,
}


def _shown(record: Record) -> str:
    words = [
        ("decided", record.decided),
        ("held by another", record.held_by_another),
        (f"{record.executions} may have acted", record.unsure),
        ("not settled", not record.settled),
        ("key not alive", not record.key_alive),
        ("expired", record.expired),
        ("stopped", record.stopped),
    ]
    return ", ".join(word for word, holds in words if holds) or "nothing"


def _ending(ending: AttemptEnding) -> str:
    state = "PUBLISHED" if ending.final else "PENDING"
    return f"{state}, {ending.reason}{', once more' if ending.last else ''}"
