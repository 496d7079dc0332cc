"""Runs one task to its outcome, by the algorithm of its category and against scripted parties."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from inspect import isawaitable
from typing import Any

from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway import (
    CertainlyNot,
    Decided,
    Exit,
    FinallyRefused,
    NotDue,
    Outcome,
    State,
    Trigger,
)
from delta_outbox.railway.algorithms import ALGORITHMS
from delta_outbox.railway.algorithms.attempt_endings import conclude
from delta_outbox.railway.algorithms.history import History, Limits
from delta_outbox.railway.algorithms.steps import (
    AskBackOff,
    Attempt,
    AttemptEnding,
    AttemptResult,
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
    Rules,
    Step,
    TakeFirstStep,
    Undo,
    Unsure,
    WriteLock,
)
from delta_outbox.railway.author_decisions import asked
from delta_outbox.railway.graph import Graph
from delta_outbox.railway.modules import where_raised
from delta_outbox.railway.names import duration
from delta_outbox.railway.routing import CAUSES
from delta_outbox.railway.tasks import default_back_off
from delta_outbox.testing.workflows.clock import VirtualClock
from delta_outbox.testing.workflows.errors import KitError
from delta_outbox.testing.workflows.inputs import check_given_task, check_third_parties, held_by
from delta_outbox.testing.workflows.third_parties import ThirdParty, WorkerDied
from delta_outbox.testing.workflows.trace import Line, table

ANSWERED = timedelta(milliseconds=100)
"""How long a call takes that is answered, or fails in another way than by its time limit."""
MOST_STEPS = 10_000


@dataclass(kw_only=True)
class TaskRun:
    """What became of a task.

    Args:
        task: that was run.
        task_id: its identifier.
        trigger: what triggered it.
        reason: why it ended, as the log has it.
        outcome: what was decided; DEFAULT_EXIT where that counts.
        data: of the decision.
        attempts: that were made.
        lines: what happened.
    """

    task: State[Any, Any]
    task_id: str
    trigger: Trigger[Any]
    reason: Reason
    outcome: Outcome | Exit
    data: dict[str, Any] = field(default_factory=dict)
    attempts: int = 0
    lines: list[Line] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<TaskRun {self.task_id}: {self.outcome.value} ({self.cause})>"

    @property
    def cause(self) -> str:
        """Return `decided`, or what happened instead: `faulted`, `expired`, `uncertain`."""
        return CAUSES[self.reason]

    @property
    def trace(self) -> str:
        """Return what happened, as a table."""
        return table(self.lines)


def run_task(
    workflow: Graph[Any],
    task: State[Any, Any],
    trigger: Trigger[Any],
    third_parties: Sequence[ThirdParty] = (),
    *,
    clock: VirtualClock | None = None,
) -> TaskRun:
    """Run a task until it has an outcome.

    Args:
        workflow: to which it belongs.
        task: with its clients.
        trigger: what triggers it.
        third_parties: scripted ones, which follow the clock.
        clock: one that others use too; a new one if left out.

    Raises:
        KitError: the task never ends, decides what is not among its outcomes, calls nobody,
            raises before it has called anybody, or holds a scripted third party that was not
            given.
    """
    check_given_task(workflow, task, trigger)
    check_third_parties([task], third_parties, needed=False)
    clock = clock or VirtualClock()
    for one in third_parties:
        one.clock = clock
    return _Running(workflow, task, trigger, clock, third_parties).run()


class _Running:
    def __init__(
        self,
        workflow: Graph[Any],
        task: State[Any, Any],
        trigger: Trigger[Any],
        clock: VirtualClock,
        third_parties: Sequence[ThirdParty],
    ) -> None:
        self.workflow, self.task, self.trigger, self.clock = workflow, task, trigger, clock
        self.task_id = workflow.task_id(type(task), trigger)
        self.rules, self.limits = Rules.of(type(task)), Limits.of(type(task))
        self.history = History(triggered_at=clock.now)
        self.lines: list[Line] = []
        self.error: Exception | None = None
        held = [party for _, party in held_by(task)]
        # A client that the kit cannot see through may fail before its call comes.
        self.parties = [*held, *third_parties] if held else []

    def run(self) -> TaskRun:
        for _ in range(MOST_STEPS):
            if self.history.available_at is not None:
                self.clock.pass_until(self.history.available_at)
            ending = self.attempt()
            if ending.final:
                return self.ended(ending)
            self.history = self.history.ended(ending, self.limits, self.clock.now)
        raise KitError(
            f"{self.task_id} has no outcome after {MOST_STEPS} attempts. Its back-off must stop or "
            f"wait longer, or the task expire earlier.\n{table(self.lines[-10:])}"
        )

    def say(self, what: str) -> None:
        self.lines.append(Line(at=self.clock.elapsed, task=self.task.business_name(), what=what))

    def attempt(self) -> AttemptEnding:
        """Run the algorithm once, and return how it ended."""
        self.history = self.history.claimed(self.clock.now)
        began = self.history.read(self.limits, self.clock.now)
        algorithm = ALGORITHMS[self.rules.category](self.rules)
        answer: Any = None
        try:
            step = next(algorithm)
            while not isinstance(step, End):
                answer = self.answer(step)
                step = algorithm.send(answer)
        except WorkerDied:
            self.say("our worker dies; its lease runs out")
            self.clock.pass_for(self.workflow.lease)
            ending = conclude(Unsure(), self.rules, began, self.back_off(None))
            self.say(_words(ending))
            return ending
        algorithm.close()
        self.error = step.ending.error
        if step.ending.reason is not Reason.COMPLETED:
            self.say(_words(step.ending))
        return step.ending

    def answer(self, step: Step[Any]) -> Any:
        match step:
            case WriteLock():
                return None
            case ReadRecord():
                return self.history.read(self.limits, self.clock.now, needed=self.needed())
            case LookUp():
                return self.look_up()
            case ListFirstSteps():
                return self.ask("lists first steps", "lookup", NoAnswer, as_tuple=True)
            case TakeFirstStep():
                return self.call("takes the first step", "first_step", Begun)
            case Attempt(None):
                return self.call("calls", "attempt", Completed)
            case Attempt(reference):
                return self.call("takes the second step", "attempt", Completed, reference)
            case Undo(reference):
                return self.undo(reference)
            case AskBackOff(error):
                return self.back_off(error)
        raise KitError(f"no answer to {step}")

    # --- calls -----------------------------------------------------------------------------

    def invoke(self, function: str, *more: Any) -> Any:
        calls, took = self.calls(), ANSWERED
        try:
            value = getattr(self.task, function)(self.trigger, self.task_id, *more)
            if isawaitable(value):
                value = _finished(value)
        except (CertainlyNot, ConnectionRefusedError, NotDue, KitError):
            raise
        except Exception as error:
            if isinstance(error, TimeoutError):
                took = self.task.time_limit
            if self.parties and calls == self.calls():
                raise KitError(
                    f"{self.task_id}: `{function}` raised {_named(error)} "
                    f"({where_raised(error)}) before it had called {self.task.third_party}. Mend "
                    "it; where nothing shall be sent, raise CertainlyNot or FinallyRefused."
                ) from error
            raise
        finally:
            self.clock.pass_for(took)
        return value

    def calls(self) -> int:
        """Return how many calls have come to scripted third parties, if the task holds one."""
        return sum(len(one.calls) for one in self.parties)

    def call(self, words: str, function: str, wrap: Any, *more: Any) -> AttemptResult | Begun:
        whom = self.task.third_party
        try:
            value = self.invoke(function, *more)
        except FinallyRefused as error:
            self.say(f"{words} {whom}: refused for good ({error})")
            return FinalRefusal(error)
        except (CertainlyNot, ConnectionRefusedError) as error:
            self.say(f"{words} {whom}: certainly not done ({error})")
            return Fault(error)
        except NotDue as error:
            self.say(f"{words} {whom}: nothing was sent ({error})")
            return NothingSent(error)
        except KitError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody knows what was done
            self.say(f"{words} {whom}: {_named(error)}; nobody knows whether it was done")
            return Unsure(error)
        if wrap is Completed:
            self.check(value)
            self.say(f"{words} {whom}: {value.outcome}")
        else:
            self.say(f"{words} {whom}: done")
        made: AttemptResult | Begun = wrap(value)
        return made

    def check(self, value: Any) -> None:
        """Refuse what is no decision of this task."""
        known = type(self.task).outcomes()
        if not isinstance(value, Decided) or not isinstance(value.outcome, known):
            raise KitError(
                f"{self.task_id}: an attempt returned {value!r}. "
                f"It must return Decided with one of {', '.join(known)}."
            )

    def ask(self, words: str, function: str, silent: Any, *, as_tuple: bool = False) -> Any:
        whom = self.task.third_party
        try:
            value = self.invoke(function)
        except KitError:
            raise
        except Exception as error:  # noqa: BLE001 - a look-up may fail in any way
            self.say(f"{words} at {whom}: no answer ({_named(error)})")
            return silent(error)
        if as_tuple:
            self.say(f"{words} at {whom}: {len(value)}")
            return tuple(value)
        return value

    def look_up(self) -> Found | NotDone | NoAnswer:
        found = self.ask("looks up", "lookup", NoAnswer)
        if isinstance(found, NoAnswer):
            return found
        if found is None:
            self.say(f"looks up at {self.task.third_party}: nothing was done")
            return NotDone()
        self.check(found)
        self.say(f"looks up at {self.task.third_party}: {found.outcome}")
        return Found(found)

    def undo(self, reference: str) -> bool:
        try:
            self.invoke("undo", reference)
        except KitError:
            raise
        except Exception as error:  # noqa: BLE001 - a step that may stand still is not undone
            self.say(f"undoes {reference}: not certain ({_named(error)})")
            return False
        self.say(f"undoes {reference}")
        return True

    # --- decisions of the author ---------------------------------------------------------

    def back_off(self, error: Exception | None) -> timedelta | None:
        attempts = self.history.attempts + 1
        try:
            wait: object = asked(self.task, "back_off", attempts, self.trigger, self.task_id, error)
        except Exception as raised:  # noqa: BLE001 - the default counts then
            self.say(f"back_off raised {_named(raised)}: the default counts")
            return default_back_off(attempts, self.rules.compromise)
        if wait is None or (isinstance(wait, timedelta) and wait >= timedelta(0)):
            return wait
        raise KitError(
            f"{self.task_id}: back_off returned {wait!r}. "
            "It must return a timedelta that is not negative, or None to try no more."
        )

    def needed(self) -> bool:
        try:
            return bool(asked(self.task, "still_needed", self.trigger, self.task_id))
        except Exception as raised:  # noqa: BLE001 - the default counts then
            self.say(f"still_needed raised {_named(raised)}: the default counts")
            return True

    def fault(self) -> Outcome | Exit:
        try:
            chosen: Outcome | Exit = asked(
                self.task, "on_fault", self.error, self.trigger, self.task_id
            )
        except Exception as raised:  # noqa: BLE001 - the default counts then
            self.say(f"on_fault raised {_named(raised)}: the default counts")
            chosen = self.task.when_faulted
        if not isinstance(chosen, (type(self.task).outcomes(), Exit)):
            raise KitError(f"{self.task_id}: on_fault returned {chosen!r}, which it cannot decide.")
        return chosen

    def ended(self, ending: AttemptEnding) -> TaskRun:
        outcome: Outcome | Exit
        match CAUSES[ending.reason]:
            case "decided":
                assert ending.decided is not None
                outcome = ending.decided.outcome
            case "faulted":
                outcome = self.fault()
            case "expired":
                outcome = self.task.when_expired
            case _:
                outcome = self.task.when_uncertain
        self.say(f"ends: {outcome.value} ({CAUSES[ending.reason]})")
        return TaskRun(
            task=self.task,
            task_id=self.task_id,
            trigger=self.trigger,
            reason=ending.reason,
            outcome=outcome,
            data=dict(ending.decided.data) if ending.decided else {},
            attempts=self.history.attempts + 1,
            lines=self.lines,
        )


def _words(ending: AttemptEnding) -> str:
    match ending.reason:
        case Reason.RELEASED:
            return "steps back, and waits for what is under way" if ending.settle else "steps back"
        case Reason.FAILED | Reason.UNKNOWN:
            wait = f" in {duration(ending.pause)}" if ending.pause else ""
            after = ", after what is under way has settled" if ending.settle else ""
            return f"{'finds out' if ending.last else 'tries again'}{wait}{after}"
        case Reason.UNCERTAIN:
            return "nobody can say whether it was done"
        case Reason.EXPIRED:
            return "is of no use any more, and certainly was not done"
        case _:
            return "is not tried again, and certainly was not done"


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _finished(value: Any) -> Any:
    async def wait() -> Any:
        return await value

    return asyncio.run(wait())


def moment(clock: VirtualClock, span: timedelta | None) -> datetime | None:
    """Return when a span from now is over, None if there is none.

    Args:
        clock: of the test.
        span: a duration.
    """
    return None if span is None else clock.now + span
