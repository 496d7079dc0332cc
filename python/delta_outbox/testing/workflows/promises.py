"""What each category may never do, checked against the ledgers of the third parties alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from typing import Any

from delta_outbox.railway import (
    AtLeastOnce,
    BlackBox,
    Exit,
    Idempotent,
    OptimisticLock,
    Outcome,
    State,
    Trigger,
    UpTo,
)
from delta_outbox.railway.graph import Graph
from delta_outbox.testing.workflows.clock import VirtualClock
from delta_outbox.testing.workflows.errors import KitError
from delta_outbox.testing.workflows.inputs import check_given_task, check_third_parties, held_by
from delta_outbox.testing.workflows.task_run import TaskRun, _finished, run_task
from delta_outbox.testing.workflows.third_parties import ThirdParty, WorkerDied
from delta_outbox.testing.workflows.troubles import TROUBLES, Trouble

MOST_SCRIPTS = 20_000
_FORGETS = " (remembers no keys: it was made without `remembers_keys=True`)"


class BrokenPromise(AssertionError):
    """A task did what its category may never do; the message has the shortest trace."""


@dataclass(frozen=True, kw_only=True)
class Explored:
    """What came of all scripts.

    Args:
        runs: one per script.
    """

    runs: tuple[TaskRun, ...]

    def __repr__(self) -> str:
        outcomes = ", ".join(sorted(one.value for one in self.outcomes))
        return f"<Explored {len(self.runs)} scripts: {outcomes}>"

    @property
    def outcomes(self) -> set[Outcome | Exit]:
        """Return every outcome that the task can come to."""
        return {run.outcome for run in self.runs}

    @property
    def causes(self) -> set[str]:
        """Return what can happen to the task: `decided`, `faulted`, `expired`, `uncertain`."""
        return {run.cause for run in self.runs}


def most_effects(task: State[Any, Any]) -> int | None:
    """Return how many effects a task may have at most, None if any number.

    Args:
        task: of any category but To Do.
    """
    if isinstance(task, BlackBox):
        match task.compromise:
            case AtLeastOnce():
                return None
            case UpTo(executions=most):
                return most
            case _:
                return 1
    return 1


def broken_promises(run: TaskRun, third_parties: Sequence[ThirdParty]) -> Iterator[str]:
    """Yield what a task did that its category may never do.

    Args:
        run: of the task.
        third_parties: whose ledgers are read.
    """
    effects = [one for party in third_parties for one in party.effects(run.task_id)]
    most = most_effects(run.task)
    if most is not None and len(effects) > most:
        yield f"{len(effects)} effects where at most {most} is promised: {effects}"
    if effects and run.cause in {"faulted", "expired"}:
        yield f"it ended as {run.cause}, as if nothing had been done, and {effects} was done"


def rehearse(
    workflow: Graph[Any],
    task: State[Any, Any],
    trigger: Trigger[Any],
    third_parties: Sequence[ThirdParty],
) -> Iterator[str]:
    """Call the attempt twice without effect, and yield in what the calls differed.

    What is sent must depend on the trigger alone: it is sent again, and good third parties refuse
    a key that comes back with other content.

    Args:
        workflow: to which the task belongs.
        task: with its clients.
        trigger: of the attempt.
        third_parties: that see what is sent.
    """
    task_id = workflow.task_id(type(task), trigger)
    sent = []
    for _ in range(2):
        with ExitStack() as stack:
            seen = [stack.enter_context(party.rehearsal()) for party in third_parties]
            _once(task, trigger, task_id)
        sent.append([call for calls in seen for call in calls])
    if sent[0] != sent[1]:
        yield f"two attempts sent different things: {sent[0]}, then {sent[1]}"
    calls = sent[0]
    if len(calls) > 1:
        yield f"an attempt made {len(calls)} calls; what comes between them is lost: {calls}"


def _once(task: State[Any, Any], trigger: Trigger[Any], task_id: str) -> None:
    try:
        if isinstance(task, OptimisticLock):
            value: Any = task.first_step(trigger, task_id)
        else:
            value = task.attempt(trigger, task_id)  # type: ignore[attr-defined]
        if hasattr(value, "__await__"):
            _finished(value)
    except (Exception, WorkerDied):  # noqa: BLE001 - what was sent counts
        return


def check_task(
    workflow: Graph[Any],
    task: State[Any, Any],
    trigger: Trigger[Any],
    third_parties: Sequence[ThirdParty],
) -> TaskRun:
    """Run a task, and fail if it does what its category may never do.

    Args:
        workflow: to which it belongs.
        task: with its clients.
        trigger: what triggers it.
        third_parties: scripted ones, whose ledgers are read.

    Raises:
        BrokenPromise: with the trace.
        KitError: the task calls nobody, or somebody whose ledger was not given; it raises
            before it has called anybody; or a script has troubles to which no call came.
    """
    check_given_task(workflow, task, trigger)
    check_third_parties([task], third_parties)
    before = _calls(third_parties)
    run = _checked(workflow, task, trigger, third_parties)
    if run.cause == "decided" and _calls(third_parties) == before:
        raise KitError(
            f"{run.task_id}: no call came to {_titles(third_parties)}, so nothing was tested. Mend "
            "the task; one that may decide without a call is run by `run_task`."
            f"\n{run.trace}"
        )
    for party in third_parties:
        if party.script:
            raise KitError(
                f"{run.task_id}: {party.title} was not called for the rest of its script: "
                f"{'; '.join(party.script)}. Shorten it, or see by the trace why no call came."
                f"\n{run.trace}"
            )
    return run


def _checked(
    workflow: Graph[Any],
    task: State[Any, Any],
    trigger: Trigger[Any],
    third_parties: Sequence[ThirdParty],
) -> TaskRun:
    clock = VirtualClock()
    scripts = [list(one.script) for one in third_parties]
    differences = list(rehearse(workflow, task, trigger, third_parties))
    run = run_task(workflow, task, trigger, third_parties, clock=clock)
    clock.pass_everything()
    broken = [*differences, *broken_promises(run, third_parties)]
    if broken:
        raise BrokenPromise(_message(run, broken, third_parties, scripts))
    return run


def explore(
    workflow: Graph[Any],
    build: Callable[[Sequence[Trouble]], tuple[State[Any, Any], ThirdParty]],
    trigger: Trigger[Any],
    *,
    depth: int = 2,
    troubles: Sequence[Trouble] = TROUBLES,
) -> Explored:
    """Run a task against every script, the shortest first.

    Args:
        workflow: to which it belongs.
        build: returns the task and its third party, which follows the script.
        trigger: what triggers it.
        depth: of the longest script.
        troubles: that a script may have.

    Raises:
        BrokenPromise: with the trace of the shortest script that breaks one.
        KitError: there are too many scripts, or no script has led to a call.
    """
    number = sum(len(troubles) ** length for length in range(depth + 1))
    if number > MOST_SCRIPTS:
        raise KitError(f"{number} scripts are more than {MOST_SCRIPTS}: choose a smaller depth.")
    runs = []
    called, parties = 0, ""
    for length in range(depth + 1):
        for script in product(troubles, repeat=length):
            task, party = build(script)
            check_given_task(workflow, task, trigger)
            others = [one for _, one in held_by(task) if one is not party]
            check_third_parties([task], [party, *others])
            every = [party, *others]
            before = _calls(every)
            runs.append(_checked(workflow, task, trigger, every))
            called, parties = called + _calls(every) - before, _titles(every)
    if not called:
        raise KitError(
            f"{workflow.name}: no script has led to a call of {parties}, so nothing was tested. "
            f"Mend the task.\n{runs[0].trace}"
        )
    return Explored(runs=tuple(runs))


def _calls(third_parties: Sequence[ThirdParty]) -> int:
    return sum(len(one.calls) for one in third_parties)


def _titles(third_parties: Sequence[ThirdParty]) -> str:
    return " or ".join(one.title for one in third_parties)


def _message(
    run: TaskRun,
    broken: Sequence[str],
    third_parties: Sequence[ThirdParty],
    scripts: Sequence[Sequence[Trouble]],
) -> str:
    lines = [f"{run.task_id} ({run.task.category.business_name}):", *broken, ""]
    for party, script in zip(third_parties, scripts, strict=True):
        words = "; ".join(script) or "answers every call"
        forgets = isinstance(run.task, Idempotent) and not party.remembers_keys
        lines.append(f"{party.title}{_FORGETS if forgets else ''}: {words}")
    return "\n".join([*lines, "", run.trace])
