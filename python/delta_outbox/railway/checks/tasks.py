"""Rules of one task: is all there that every task needs?"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from inspect import get_annotations, isabstract
from typing import Any, Final, Generic, get_args

from delta_outbox.core.reserved_names import RESERVED
from delta_outbox.railway.checks.shared_checks import AnyWorkflow, Finding, has_text, span, template
from delta_outbox.railway.graph import Event, fields_of
from delta_outbox.railway.identifiers import OF_TASKS, Template
from delta_outbox.railway.names import duration, is_plain
from delta_outbox.railway.outcomes import Outcome
from delta_outbox.railway.tasks import (
    AnyTask,
    BlackBox,
    Idempotent,
    OneStep,
    OptimisticLock,
    PessimisticLock,
    State,
    Task,
    ToDo,
)

# twin: macros/workflows/workflow_time_problems.sql::workflow_time_problems
LONGEST_TIME_LIMIT: Final = timedelta(hours=11)
"""A claim lasts a day at most, and has to hold a look-up and a call of this length each."""
ALIKE: Final = 0.8
"""From this likeness of two names (difflib, 0 to 1) on, one is taken for the other misspelt."""


def outcomes(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """A task has outcomes, each leads somewhere, and its route names no others."""
    try:
        members = [str(one) for one in task.outcomes()]
    except TypeError:
        members = []
    if not members:
        yield (
            "no_outcomes",
            "it names no outcomes.",
            "Put a subclass of Outcome with members into the brackets of its base class.",
        )
        return
    to = workflow.table[task]
    for one in members:
        if one not in to:
            yield (
                "outcome_leads_nowhere",
                f"outcome '{one}' leads nowhere.",
                "Add it to the route of the task.",
            )
        elif not is_plain(one):
            yield "outcome_name", f"'{one}' is no name.", "Use lower-case words joined by `_`."
    for one in to:
        if one not in members:
            yield (
                "unknown_outcome",
                f"its route names '{one}', which it cannot decide.",
                f"Its outcomes are {', '.join(members)}.",
            )


def targets(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """What an outcome leads to is an event or a task with a route."""
    to: Mapping[str, object] = workflow.table[task]
    for outcome, target in to.items():
        if isinstance(target, Event):
            continue
        if not (isinstance(target, type) and issubclass(target, Task)):
            yield (
                "target_no_task",
                f"outcome '{outcome}' leads to {target!r}, neither a task's class nor an event.",
                "Write the class of a task, or `Event(event_type=...)`.",
            )
        elif target not in workflow.table and (why := _elsewhere(workflow, target)):
            yield (
                "target_of_another_workflow",
                f"outcome '{outcome}' leads to {target.__module__}.{target.__name__}, {why}.",
                (
                    "Use the class that has a route here. One hands over to another workflow by "
                    "ending with an Event that it starts on: `Event(event_type=...)`."
                ),
            )
        elif target not in workflow.table:
            name = target.__name__
            yield (
                "target_without_route",
                f"outcome '{outcome}' leads to {name}, which has no route.",
                f"Add `route({name}, {{...}})`.",
            )


def _elsewhere(workflow: AnyWorkflow, target: AnyTask) -> str | None:
    """Say by what a task without a route seems to belong to another workflow."""
    start = _start_of(target)
    if start is not None and start is not workflow.start:
        name = getattr(workflow.start, "__name__", repr(workflow.start))
        return f"a task whose start event is {start.__name__}, not {name}"
    for one in workflow.table:
        if one.task_name() == target.task_name():
            return f"and the route is of {one.__module__}.{one.__name__}, another class"
    if all(one.__module__ != target.__module__ for one in workflow.table):
        return "a task of another module than those with routes"
    return None


def _start_of(task: AnyTask) -> type[Any] | None:
    """Return the class of the start event in the brackets of a task, None if there is none."""
    for one in task.__mro__:
        for base in getattr(one, "__orig_bases__", ()):
            for argument in get_args(base)[:1]:
                if isinstance(argument, type) and not issubclass(argument, Outcome):
                    return argument
    return None


def concrete(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """A task is of a category and overrides what the category asks for."""
    if not hasattr(task, "category"):
        yield (
            "no_category",
            "it has no category.",
            "Subclass Idempotent, PessimisticLock, OptimisticLock, BlackBox or ToDo.",
        )
    elif isabstract(task):
        missing = ", ".join(sorted(task.__abstractmethods__))
        yield (
            "functions_missing",
            f"it lacks {missing}.",
            f"A task of category {task.category} must define them.",
        )


def attributes(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """What an author writes into a task has an effect: no misspelt name, none of another kind."""
    own = [one for one in task.__mro__ if one not in _OURS and one not in _BASES]
    written = {name: None for one in own for name in vars(one) if not name.startswith("_")}
    theirs = [one for one in task.__mro__ if one in _OURS]
    usable = {
        name
        for one in theirs
        for name in (*vars(one), *get_annotations(one))
        if not name.startswith("_")
    }
    for name in written:
        if name in usable:
            continue
        if name in _DECLARED:
            yield (
                "attribute_of_another_category",
                f"`{name}` has no effect on a task of category {task.category}.",
                "Remove it, or choose the category that it belongs to.",
            )
            continue
        not_written = sorted(usable - set(written))
        for near in get_close_matches(name, not_written, n=1, cutoff=ALIKE):
            yield (
                "attribute_misspelt",
                f"`{name}` has no effect.",
                f"Did you mean `{near}`? Else choose a name that differs more.",
            )


def expiry(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """When a task expires is written out."""
    expires = getattr(task, "expires", None)
    if expires is None:
        yield (
            "expires_missing",
            "it does not say when it expires.",
            "Write `expires = timedelta(...)`, or `Never(why=...)`.",
        )
    else:
        yield from span("expires", expires, never=True)


def limits(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """A task that calls somebody says whom, and for how long."""
    if not issubclass(task, State):
        return
    if not has_text(getattr(task, "third_party", None)):
        yield (
            "third_party_missing",
            "it does not say whom it calls.",
            "Write `third_party = '...'`, such as 'warehouse'.",
        )
    elif not is_plain(task.third_party):
        yield (
            "third_party_name",
            f"it calls '{task.third_party}', which is no name.",
            "Use lower-case words joined by `_`: it names the table [third_parties.NAME].",
        )
    limit = getattr(task, "time_limit", None)
    if limit is None:
        yield (
            "time_limit_missing",
            "it does not say how long an attempt may take.",
            "Write `time_limit = timedelta(...)`.",
        )
        return
    yield from span("time_limit", limit)
    if isinstance(limit, timedelta) and LONGEST_TIME_LIMIT < limit < workflow.lease:
        yield (
            "time_limit_too_long",
            (
                f"its time limit is {duration(limit)}, and no claim holds a look-up and a call of "
                f"more than {duration(LONGEST_TIME_LIMIT)}."
            ),
            (
                "Shorten the limit: let one task ask for the work, and another one look whether it "
                "is done."
            ),
        )
    if isinstance(limit, timedelta) and limit >= workflow.lease:
        yield (
            "time_limit_too_long",
            f"its time limit is {duration(limit)}, and the lease {duration(workflow.lease)}.",
            (
                "Shorten the limit, or give the workflow a longer `lease`: "
                "a claim must outlast its attempt."
            ),
        )


def uncertainty(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """What is decided when nobody knows is written out."""
    if issubclass(task, State) and not hasattr(task, "when_uncertain"):
        yield (
            "uncertainty_leads_nowhere",
            "it does not say what is decided when nobody knows whether it was done.",
            "Write `when_uncertain`, an outcome or DEFAULT_EXIT.",
        )


def identifier(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """An identifier is made of what the start event has."""
    known: dict[str, Any] = {**fields_of(workflow.start), **dict.fromkeys(OF_TASKS, str)}
    yield from template("identifier", task.identifier, known)
    made = Template(task.identifier)
    fixed = {"workflow": workflow.name, "task": task.task_name()}
    if made.problem is None and made.pieces(fixed)[0].startswith(RESERVED):
        yield (
            "identifier_reserved",
            f"identifier '{task.identifier}' begins with '{RESERVED}'.",
            "Let it begin otherwise: ids that begin so belong to the events that end instances.",
        )


_OURS: Final[Sequence[type[Any]]] = (
    Task,
    State,
    OneStep,
    Idempotent,
    PessimisticLock,
    OptimisticLock,
    BlackBox,
    ToDo,
)
_BASES: Final = (ABC, Generic, object)
_DECLARED: Final = frozenset(name for kind in _OURS for name in get_annotations(kind))
"""What is declared by a value; functions of these names may be an author's own."""
