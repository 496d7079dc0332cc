"""Makes one attempt of a task: the algorithm of its category runs here, its calls in hosts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, Protocol

from delta_outbox.core.clock import Clock, boot_time
from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway.algorithms import ALGORITHMS
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
    Record,
    Rules,
    Step,
    TakeFirstStep,
    Undo,
    Unsure,
    WriteLock,
)
from delta_outbox.railway.author_decisions import DECISION_LIMIT
from delta_outbox.railway.outcomes import DEFAULT_EXIT, Decided, Exit
from delta_outbox.railway.tasks import FirstStep, default_back_off
from delta_outbox.workflow_engine.hosts.call import (
    ACTS,
    DECISIONS,
    Answered,
    Call,
    Lost,
    NotStarted,
    TaskFacts,
    Told,
    Word,
)
from delta_outbox.workflow_engine.hosts.host_process import HostProcess, RunningCall

DECISION_WAIT: Final = 10.0  # seconds, for a decision to begin
PAUSE: Final = timedelta(seconds=5)  # until a task is tried again that could not be attempted
ASKED_AGAIN: Final = 2  # times, if the host of a question is lost over something else


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptRequest:
    """One attempt that is to be made; the claim of the task is on record.

    Args:
        workflow: its name.
        task: its name.
        task_id: its identifier.
        instance: of the workflow.
        visit: of the task.
        start: the payload of the start event, JSON.
        facts: by task, the data of its latest decision.
        rules: of the task.
        limits: of the task; `time_limit` is that of each call.
        history: of the task, this claim included.
        deadline: by the boot-time clock; no call begins later. Until the end of the lease there
            must be time for the time limit and `host_process.GRACE`.
    """

    workflow: str
    task: str
    task_id: str
    instance: str
    visit: int = 1
    start: str
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rules: Rules
    limits: Limits
    history: History
    deadline: float


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptReport:
    """How an attempt has ended.

    Args:
        ending: its outcome is a text; its error, if there is one, is a `CallError`.
        on_fault: what `on_fault` has chosen, where the ending is a fault; None: `when_faulted`.
        remarks: decisions for which the default counts, and why.
        is_verdict: whether it says something of the third party: the last call of it was answered,
            or had its time.
    """

    ending: AttemptEnding
    on_fault: str | Exit | None = None
    remarks: tuple[str, ...] = ()
    is_verdict: bool = True


class CallError(Exception):
    """What may be known of an error: one line without content of the event, without secrets.

    Args:
        message: the line.
        told: as the host has told it, None if there was no word.
    """

    def __init__(self, message: str, told: Told | None = None) -> None:
        super().__init__(message)
        self.told = told


class HostSource(Protocol):
    """Where an attempt finds hosts."""

    async def host(
        self, *, alone: bool, until: float, wanted: Callable[[], bool]
    ) -> HostProcess | None:
        """Return a host that takes a call at once, None if there is none until a moment.

        Args:
            alone: it runs nothing else.
            until: by the boot-time clock.
            wanted: whether it still is.
        """


class _NotBegun(Exception):
    """No host has begun a call, and nothing has been done before."""

    def __init__(self, error: CallError | None) -> None:
        super().__init__()
        self.error = error


class AttemptRun:
    """One attempt under way.

    Args:
        request: what is to be done.
        facts: of the task.
        hosts: where its calls run.
        clock: for expiry and settling.
        alone: its attempt has a host to itself.
    """

    def __init__(
        self,
        request: AttemptRequest,
        facts: TaskFacts,
        hosts: HostSource,
        clock: Clock,
        *,
        alone: bool,
    ) -> None:
        self._request, self._facts, self._hosts = request, facts, hosts
        self._clock, self._alone = clock, alone
        self._remarks: list[str] = []
        self._now: RunningCall | None = None  # of the third party
        self._is_cut = False
        self._has_acted = False
        self._acts_until = math.inf  # by the boot-time clock
        self._is_verdict = False

    def cut(self) -> None:
        """Let no call of the third party begin, and end one that runs as if over its limit.

        Decisions are still asked for: each has its own second, and their defaults count for good.
        """
        self._is_cut = True
        if self._now is not None:
            self._now.cut()

    async def run(self) -> AttemptReport:
        """Run the algorithm, and return how the attempt has ended."""
        ending = AttemptEnding(reason=Reason.RELEASED, pause=PAUSE)
        if not self._is_late():
            try:
                ending = await self._follow()
            except _NotBegun as why:
                ending = replace(ending, error=why.error)
        chosen: str | Exit | None = None
        if ending.reason in {Reason.REJECTED, Reason.EXHAUSTED}:
            chosen = await self._on_fault(ending.error)
        return AttemptReport(
            ending=ending,
            on_fault=chosen,
            remarks=tuple(self._remarks),
            is_verdict=self._is_verdict,
        )

    async def _follow(self) -> AttemptEnding:
        rules = self._request.rules
        algorithm = ALGORITHMS[rules.category](rules)
        step = next(algorithm)
        while not isinstance(step, End):
            step = algorithm.send(await self._answer(step))
        algorithm.close()
        return step.ending

    async def _answer(self, step: Step[Any]) -> Any:
        match step:
            case WriteLock():
                return None
            case ReadRecord():
                return await self._read()
            case LookUp():
                return await self._look_up()
            case ListFirstSteps():
                return await self._first_steps()
            case TakeFirstStep():
                return await self._act("first_step")
            case Attempt(None):
                return await self._act("attempt")
            case Attempt(reference):
                return await self._act("attempt", reference)
            case Undo(reference):
                return isinstance(await self._call("undo", reference), Answered)
            case AskBackOff(error):
                return await self._back_off(error)
        raise TypeError(f"no answer to {type(step).__name__}")

    async def _read(self) -> Record:
        needed = await self._still_needed()
        history, limits, now = self._request.history, self._request.limits, self._clock.now()
        record = history.read(limits, now, needed=needed)
        if record.unsure and record.key_alive:  # its stored answer is asked for, or nothing at all
            self._acts_until = boot_time() + history.key_left(limits, now).total_seconds()
        return record

    # --- calls of the third party ----------------------------------------------------------------

    async def _act(self, function: str, *more: Any) -> AttemptResult | Begun:
        word = await self._call(function, *more)
        self._has_acted |= not isinstance(word, NotStarted)
        error = _error(word)
        match word:
            case Answered(value) if function == "first_step":
                return Begun(value)
            case Answered(value):
                return Completed(_decided(value))
            case Told(kind="refused"):
                return FinalRefusal(error)
            case Told(kind="certainly_not"):
                return Fault(error)
            case Told(kind="not_due") | NotStarted():
                return NothingSent(error)
        return Unsure(error)

    async def _look_up(self) -> Found | NotDone | NoAnswer:
        match await self._call("lookup"):
            case Answered(None):
                return NotDone()
            case Answered(value):
                return Found(_decided(value))
            case word:
                return NoAnswer(_error(word))

    async def _first_steps(self) -> tuple[FirstStep[Any], ...] | NoAnswer:
        match await self._call("lookup"):
            case Answered(steps):
                return tuple(
                    FirstStep(
                        reference=one["reference"],
                        expired=one["expired"],
                        decided=one["decided"] and _decided(one["decided"]),
                    )
                    for one in steps
                )
            case word:
                return NoAnswer(_error(word))

    async def _call(self, function: str, *more: Any) -> Word:
        """Call the third party. A call that no host has begun says nothing of it: an attempt that
        has not acted before is none, and is made again.
        """
        until = self._acts_until if function in ACTS else math.inf
        call = self._made(function, *more, deadline=min(self._request.deadline, until))
        limit = self._request.limits.time_limit.total_seconds()
        word = await self._ask(call, limit, alone=self._alone and function == "attempt")
        self._is_verdict = _had_its_time(word) and not (self._is_cut and isinstance(word, Lost))
        if isinstance(word, NotStarted) and not self._has_acted:
            raise _NotBegun(_error(word))
        return word

    def _is_late(self) -> bool:
        return self._is_cut or boot_time() >= self._request.deadline

    async def _ask(self, call: Call, limit: float, *, alone: bool = False) -> Word:
        acts, decides = call.function in ACTS, call.function in DECISIONS
        word: Word = NotStarted("no host was free in time")
        for _ in range(1 if acts else 1 + ASKED_AGAIN):
            host = await self._hosts.host(
                alone=alone, until=call.deadline, wanted=lambda: decides or not self._is_cut
            )
            if self._is_cut and not decides:
                return NotStarted("the attempt was cancelled")
            if host is None:
                break
            running = host.begin(call, limit=limit, acts=acts)
            self._now = None if decides else running
            word = await running.word
            self._now = None
            if not (isinstance(word, NotStarted) or (isinstance(word, Lost) and word.host_gone)):
                break
        return word

    def _made(
        self, function: str, *more: Any, deadline: float, error: Exception | None = None
    ) -> Call:
        request = self._request
        return Call(
            workflow=request.workflow,
            task=request.task,
            task_id=request.task_id,
            instance=request.instance,
            visit=request.visit,
            start=request.start,
            facts=request.facts,
            function=function,
            more=more,
            error=error.told if isinstance(error, CallError) else None,
            deadline=deadline,
        )

    # --- decisions of the author -----------------------------------------------------------------

    async def _decision(
        self, function: str, default: Any, *more: Any, error: Exception | None = None
    ) -> Any:
        """Return what the author decides, the default if that takes too long or goes wrong."""
        if function not in self._facts.decides:
            return default
        call = self._made(function, *more, deadline=boot_time() + DECISION_WAIT, error=error)
        word = await self._ask(call, DECISION_LIMIT.total_seconds())
        if isinstance(word, Answered):
            return word.value
        self._remarks.append(f"{function}: {_error(word)}; the default counts")
        return default

    async def _still_needed(self) -> bool:
        return bool(await self._decision("still_needed", True))

    async def _back_off(self, error: Exception | None) -> timedelta | None:
        attempts = self._request.history.attempts + 1
        default = default_back_off(attempts, self._request.rules.compromise)
        microseconds = default and default / timedelta(microseconds=1)
        found = await self._decision("back_off", microseconds, attempts, error=error)
        return None if found is None else timedelta(microseconds=found)

    async def _on_fault(self, error: Exception | None) -> str | Exit | None:
        found = await self._decision("on_fault", _DECLARED, error=error)
        if found is _DECLARED:
            return None
        return DEFAULT_EXIT if found is None else str(found)


_DECLARED: Final = object()


def _decided(value: Mapping[str, Any]) -> Decided[Any]:
    return Decided(outcome=value["outcome"], data=value["data"])


def _had_its_time(word: Word) -> bool:
    """Say whether a call was answered or was over its limit, and not cut short with its host."""
    match word:
        case Told(kind=kind):
            return kind != "not_due"
        case Lost(host_gone=host_gone):
            return not host_gone
    return isinstance(word, Answered)


def _error(word: Word) -> CallError | None:
    match word:
        case Told(message=message):
            return CallError(message, word)
        case NotStarted(why) | Lost(why):
            return CallError(why)
    return None
