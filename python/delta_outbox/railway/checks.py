"""The rules of a declaration. Each yields a problem with a rule, a sentence and a remedy."""

from __future__ import annotations

import json
from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import timedelta
from difflib import get_close_matches
from enum import Enum
from inspect import get_annotations, isabstract
from typing import Any, Final, Generic, get_args

from pydantic import BaseModel

from delta_outbox.railway.concerns import (
    AskHuman,
    AtLeastOnce,
    AtMostOnce,
    Compromise,
    Concerns,
    Hurt,
    Necessity,
    Risk,
    UpTo,
    Visibility,
)
from delta_outbox.railway.graph import Event, Graph, Leg, fields_of
from delta_outbox.railway.identifiers import OF_TASKS, Template, can_meet
from delta_outbox.railway.names import duration, is_plain
from delta_outbox.railway.outcomes import Exit, Outcome
from delta_outbox.railway.problems import Problem
from delta_outbox.railway.tasks import (
    BlackBox,
    Idempotent,
    Never,
    OneStep,
    OptimisticLock,
    PessimisticLock,
    State,
    Task,
    ToDo,
)

RESERVED_TYPE: Final = "workflow:"
"""How the event types of tasks begin; no domain event may."""
LONGEST: Final = timedelta(days=3650)
"""Beyond it a duration is a slip of the pen, and no instant of a log can hold it."""

ALIKE: Final = 0.8
"""From this likeness of two names (difflib, 0 to 1) on, one is taken for the other misspelt."""

AnyWorkflow = Graph[Any]
AnyTask = type[Task[Any, Any]]
Found = tuple[str, str, str]
"""Rule, what is wrong, remedy."""


def problems_of(workflow: AnyWorkflow) -> Iterator[Problem]:
    """Yield what is wrong with a workflow taken by itself.

    Args:
        workflow: to check.
    """
    shape = [
        Problem(workflow=workflow.name, task=None, rule=rule, says=says, remedy=remedy)
        for check in OF_WORKFLOWS
        for rule, says, remedy in check(workflow)
    ]
    yield from shape
    sound = True
    for task in workflow.tasks:
        for check_task in OF_TASK_SHAPES:
            for rule, says, remedy in check_task(workflow, task):
                sound = False
                yield _about(workflow, task, rule, says, remedy)
    if not sound or shape:
        return  # the rest would only repeat it
    for task in workflow.tasks:
        for check_task in OF_TASK_GRAPHS:
            for rule, says, remedy in check_task(workflow, task):
                yield _about(workflow, task, rule, says, remedy)
        for rule, says, remedy in warnings_of(workflow, task):
            yield _about(workflow, task, rule, says, remedy, warning=True)
    yield from meeting_identifiers([workflow])


def _about(
    workflow: AnyWorkflow, task: AnyTask, rule: str, says: str, remedy: str, warning: bool = False
) -> Problem:
    return Problem(
        workflow=workflow.name,
        task=task.task_name(),
        rule=rule,
        says=says,
        remedy=remedy,
        warning=warning,
    )


# --- a workflow as a whole -------------------------------------------------------------------


def names(workflow: AnyWorkflow) -> Iterator[Found]:
    """A workflow, its tasks and its event types have names that rows can carry."""
    if not is_plain(workflow.name):
        yield (
            "workflow_name",
            f"'{workflow.name}' is no name.",
            "Use lower-case words joined by `_`.",
        )
    if workflow.version < 1:
        yield "version", f"version is {workflow.version}.", "Count versions from 1."
    if not workflow.starts_on.strip() or workflow.starts_on.startswith(RESERVED_TYPE):
        yield (
            "starts_on",
            f"'{workflow.starts_on}' cannot be the type of a start event.",
            f"Name a domain event; types that begin with '{RESERVED_TYPE}' belong to tasks.",
        )
    ends = [target for to in workflow.table.values() for target in to.values()]
    for event in [*ends, workflow.default_exit]:
        if isinstance(event, Event) and (
            not event.event_type.strip() or event.event_type.startswith(RESERVED_TYPE)
        ):
            yield (
                "event_type",
                f"'{event.event_type}' cannot be the type of a domain event.",
                f"Name the event; types that begin with '{RESERVED_TYPE}' belong to tasks.",
            )


def start_event(workflow: AnyWorkflow) -> Iterator[Found]:
    """The start event has fields, and `instance` is made of them."""
    known = fields_of(workflow.start)
    if not known:
        yield (
            "start",
            f"start is {workflow.start!r}, which has no fields.",
            "Give a dataclass or a pydantic model.",
        )
        return
    taken = sorted(OF_TASKS & set(known))
    if taken:
        yield (
            "start_fields",
            f"the start event has the fields {taken}, which identifiers use for other things.",
            "Rename them in the class; an alias may keep the name in the payload.",
        )
    yield from template("instance", workflow.instance, {**known, "event_id": str})


def routes_once(workflow: AnyWorkflow) -> Iterator[Found]:
    """Each task has one route, and a name of its own."""
    if not workflow.routes:
        yield "routes", "it has no routes.", "Add `route(Task, {...})` for each task."
    classes = [one.task for one in workflow.routes]
    for task in dict.fromkeys(classes):
        if classes.count(task) > 1:
            yield (
                "route_twice",
                f"{task.task_name()} has {classes.count(task)} routes.",
                "Put all its outcomes into one.",
            )
    named: dict[str, AnyTask] = {}
    for task in dict.fromkeys(classes):
        other = named.setdefault(task.task_name(), task)
        if other is not task:
            yield (
                "task_name_twice",
                f"two classes are called {task.task_name()}.",
                "Rename one of them.",
            )
    if workflow.routes and workflow.first not in classes:
        yield (
            "first_without_route",
            f"it begins with {workflow.first.task_name()}, which has no route.",
            f"Add `route({workflow.first.__name__}, {{...}})`.",
        )


# --- one task: is all there? ------------------------------------------------------------------


def outcomes(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
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


def targets(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
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


def concrete(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
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


def attributes(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
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


def expiry(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
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


def limits(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
    """A task that calls somebody says whom, and for how long."""
    if not issubclass(task, State):
        return
    if not _has_text(getattr(task, "third_party", None)):
        yield (
            "third_party_missing",
            "it does not say whom it calls.",
            "Write `third_party = '...'`, such as 'warehouse'.",
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
    if isinstance(limit, timedelta) and limit >= workflow.lease:
        yield (
            "time_limit_too_long",
            f"its time limit is {duration(limit)}, and the lease {duration(workflow.lease)}.",
            (
                "Shorten the limit, or give the workflow a longer `lease`: "
                "a claim must outlast its attempt."
            ),
        )


def uncertainty(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
    """What is decided when nobody knows is written out."""
    if issubclass(task, State) and not hasattr(task, "when_uncertain"):
        yield (
            "uncertainty_leads_nowhere",
            "it does not say what is decided when nobody knows whether it was done.",
            "Write `when_uncertain`, an outcome or DEFAULT_EXIT.",
        )


def locks(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
    """Each category states the facts about its third party that its promise rests on."""
    if issubclass(task, PessimisticLock):
        if not hasattr(task, "settles_within"):
            yield (
                "settles_within_missing",
                "it does not say how late a request may take effect after its attempt has ended.",
                "Ask the third party, and write `settles_within = timedelta(...)`.",
            )
        else:
            yield from span("settles_within", task.settles_within)
    if issubclass(task, OptimisticLock) and not _has_text(
        getattr(task, "why_not_pessimistic", None)
    ):
        yield (
            "performance_reason_missing",
            "an optimistic lock needs a performance problem that was measured.",
            "Write `why_not_pessimistic`, or make it a PessimisticLock.",
        )
    if issubclass(task, Idempotent):
        valid = getattr(task, "key_valid_for", None)
        if valid is None:
            yield (
                "key_valid_for_missing",
                "it does not say how long the third party remembers a key.",
                "Write `key_valid_for = timedelta(...)`, or `Never(why=...)` if it never forgets.",
            )
            return
        yield from span("key_valid_for", valid, never=True)
        parts = (valid, getattr(task, "time_limit", None), task.settles_within)
        if not all(isinstance(one, timedelta) for one in parts):
            return
        least = task.time_limit + task.settles_within
        if isinstance(valid, timedelta) and valid <= least:
            yield (
                "key_valid_too_short",
                (
                    f"a key is valid for {duration(valid)}, and one attempt may need "
                    f"{duration(least)} until it has settled."
                ),
                "Shorten time_limit or settles_within, or choose another category.",
            )


def compromises(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
    """An opaque task has a compromise, and somebody who decided on it."""
    if not issubclass(task, BlackBox):
        return
    compromise = getattr(task, "compromise", None)
    if compromise is None:
        yield (
            "compromise_missing",
            "an opaque task needs a compromise.",
            "Write `compromise = AtMostOnce()`, `AtLeastOnce()`, `UpTo(n)` or `AskHuman()`.",
        )
    elif not isinstance(compromise, Compromise):
        yield from no_compromise(compromise)
    if isinstance(compromise, UpTo) and not _is_number_from(2, compromise.executions):
        yield (
            "up_to_too_few",
            f"up to {compromise.executions!r} executions.",
            "Write AtMostOnce(), or a number from 2.",
        )
    concerns = getattr(task, "concerns", None)
    if not isinstance(concerns, Concerns):
        yield (
            "concerns_missing",
            "nobody has filled in the checklist of the business.",
            "Write `concerns = Concerns(...)`; `outbox workflow new` asks for it.",
        )
        return
    yield from no_members(concerns)
    if not _has_text(concerns.decided_by) or not _has_text(concerns.why) or not concerns.risks:
        yield (
            "concerns_incomplete",
            "its concerns lack who decided, why, or every risk.",
            "Fill in decided_by, why and at least one risk.",
        )


def no_members(concerns: Concerns) -> Iterator[Found]:
    """Yield what is no member of the closed lists of the checklist, such as a word.

    Args:
        concerns: the checklist.
    """
    wrong: list[tuple[str, object, str]] = []
    for name, members in (("visibility", Visibility), ("necessity", Necessity), ("hurt", Hurt)):
        value = getattr(concerns, name)
        if not isinstance(value, members):
            wrong.append((name, value, f"`{name}` one of {_listed(members)}"))
    risks: object = concerns.risks
    if not isinstance(risks, Set) or not all(isinstance(one, Risk) for one in risks):
        wrong.append(("risks", risks, f"`risks=frozenset({{...}})` of {_listed(Risk)}"))
    for name, value, right in wrong:
        yield "concerns_no_members", f"`{name}` of its concerns is {value!r}.", f"Write {right}."


def _listed(members: type[Enum]) -> str:
    return ", ".join(f"{members.__name__}.{one}" for one in members.__members__)


def no_compromise(value: object) -> Iterator[Found]:
    """Yield what is wrong with a value that is no compromise, such as the class of one.

    Args:
        value: in its place.
    """
    objects = {AtMostOnce: "AtMostOnce()", AtLeastOnce: "AtLeastOnce()", UpTo: "UpTo(2)"}
    objects[AskHuman] = "AskHuman()"
    for kind, written in objects.items():
        if value is kind:
            says, remedy = f"the class {kind.__name__}", f"Write `{written}`."
            break
    else:
        says = repr(value)
        remedy = f"Write {', '.join(f'`{one}`' for one in objects.values())}."
    yield "compromise_no_object", f"`compromise` is {says}.", remedy


def to_dos(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
    """A To-Do item says who may answer, and what an answer looks like."""
    if not issubclass(task, ToDo):
        return
    roles: object = getattr(task, "roles", None)
    if not roles:
        yield (
            "roles_missing",
            "nobody may answer it.",
            "Write `roles = frozenset({...})`.",
        )
    elif not isinstance(roles, Set) or not all(map(_has_text, roles)):
        given = roles if isinstance(roles, Iterable) and not isinstance(roles, str) else [roles]
        written = ", ".join(sorted({json.dumps(one) for one in given if _has_text(one)})) or "..."
        yield (
            "roles_no_set",
            f"`roles` is {roles!r}, which is no set of names.",
            f"Write `roles = frozenset({{{written}}})`.",
        )
    contract = getattr(task, "contract", None)
    if not (isinstance(contract, type) and issubclass(contract, BaseModel)):
        yield (
            "contract_missing",
            "it does not say what an answer looks like.",
            "Write `contract = Model`, a pydantic model.",
        )
    if task.due is not None:
        yield from span("due", task.due)
        expires = getattr(task, "expires", None)
        if isinstance(expires, timedelta) and task.due >= expires:
            yield (
                "due_after_expiry",
                f"it is due after {duration(task.due)}, when it has expired.",
                "Let it expire later, or be due sooner.",
            )


def identifier(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
    """An identifier is made of what the start event has."""
    known: dict[str, Any] = {**fields_of(workflow.start), **dict.fromkeys(OF_TASKS, str)}
    yield from template("identifier", task.identifier, known)


# --- one task: where does it lead? --------------------------------------------------------------


def fallbacks(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
    """Fault, expiry and uncertainty lead somewhere."""
    members = [str(one) for one in task.outcomes()]
    for cause, chosen in workflow.fallbacks(task).items():
        if isinstance(chosen, Exit):
            if workflow.default_exit is None:
                yield (
                    f"{_NOUNS[cause]}_leads_nowhere",
                    f"its {_NOUNS[cause]} leads nowhere: the workflow has no default exit.",
                    f"Write `when_{cause}`, or give the workflow a `default_exit`.",
                )
        elif not isinstance(chosen, Outcome) or not isinstance(chosen, task.outcomes()):
            yield (
                "wrong_outcome",
                f"when_{cause} is '{chosen}', which it cannot decide.",
                f"Its outcomes are {', '.join(members)}; or write DEFAULT_EXIT.",
            )


def people(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
    """Whoever asks a person leads to one."""
    if not issubclass(task, BlackBox) or not isinstance(task.compromise, AskHuman):
        return
    target = next(
        (leg.target for leg in workflow.legs(task) if leg.cause == "uncertain"),
        None,
    )
    if not (isinstance(target, type) and issubclass(target, ToDo)):
        yield (
            "human_without_to_do",
            "its compromise is AskHuman, and its uncertainty does not lead to a To-Do item.",
            "Let `when_uncertain` be an outcome whose route is a ToDo.",
        )


def reached(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
    """Every task is reached, and comes to an end."""
    if task is not workflow.first and task not in workflow.reachable(workflow.first):
        yield (
            "nothing_leads_here",
            "nothing leads to it.",
            "Let an outcome lead to it, or remove its route.",
        )
    decided = workflow.reachable(task, follows=lambda leg: leg.cause == "decided")
    if not any(isinstance(one, Event) for one in decided):
        yield (
            "no_way_out",
            "no domain event can be reached from it by what is decided.",
            "Let an outcome end the workflow: else it goes round and round while all goes well.",
        )
    elif not any(_rests(one) for one in (task, *workflow.reachable(task, follows=_unanswered))):
        yield (
            "no_way_out_unanswered",
            "if nobody answers any more, it goes round and round.",
            "Let an expiry on the loop lead out of it: people stop answering.",
        )


def _unanswered(leg: Leg[Any]) -> bool:
    """Say whether a leg is taken when third parties answer and people do not."""
    return leg.cause == ("expired" if issubclass(leg.task, ToDo) else "decided")


def _rests(target: AnyTask | Event) -> bool:
    """Say whether an instance ends or waits there."""
    if isinstance(target, Event):
        return True
    return issubclass(target, ToDo) and isinstance(target.expires, Never)


def loops(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
    """Each visit of a loop has an identifier of its own, and an end."""
    if task not in workflow.reachable(task):
        return
    if "visit" not in Template(task.identifier).fields:
        yield (
            "loop_without_visit",
            f"it lies on a loop, and every visit has the identifier '{task.identifier}'.",
            "Add `{visit}`.",
        )
    if isinstance(task.expires, Never):
        yield (
            "loop_never_expires",
            "it lies on a loop and never expires.",
            "Write `expires = timedelta(...)`.",
        )
    if issubclass(task, ToDo) and task.told_apart_by not in task.contract.model_fields:
        yield (
            "loop_answers_look_alike",
            "it lies on a loop, and its contract has no field that tells the visits apart.",
            (
                "Name one by `told_apart_by`, such as the id of the payment; "
                "else a late answer counts for the next visit."
            ),
        )


def warnings_of(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Found]:
    """What is allowed, and somebody should know by name."""
    if (
        issubclass(task, BlackBox)
        and isinstance(task.compromise, AtLeastOnce)
        and isinstance(task.expires, Never)
    ):
        yield (
            "at_least_once_for_ever",
            "it is tried again without end: at least once, and it never expires.",
            "Let it expire, unless that is meant.",
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

_NOUNS: Final = {"faulted": "fault", "expired": "expiry", "uncertain": "uncertainty"}

OF_WORKFLOWS: Final[Sequence[Callable[[AnyWorkflow], Iterable[Found]]]] = (
    names,
    start_event,
    routes_once,
)
OF_TASK_SHAPES: Final[Sequence[Callable[[AnyWorkflow, AnyTask], Iterable[Found]]]] = (
    outcomes,
    targets,
    concrete,
    attributes,
    expiry,
    limits,
    uncertainty,
    locks,
    compromises,
    to_dos,
    identifier,
)
OF_TASK_GRAPHS: Final[Sequence[Callable[[AnyWorkflow, AnyTask], Iterable[Found]]]] = (
    fallbacks,
    people,
    reached,
    loops,
)


# --- parts --------------------------------------------------------------------------------------


def _is_number_from(least: int, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _has_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def span(name: str, value: object, *, never: bool = False) -> Iterator[Found]:
    """Yield what is wrong with a duration.

    Args:
        name: of the attribute.
        value: its value.
        never: whether `Never` is allowed.
    """
    if never and isinstance(value, Never):
        if not _has_text(value.why):
            yield f"{name}_never_why", f"{name} is Never without a reason.", "Write down why."
    elif not isinstance(value, timedelta):
        yield (
            f"{name}_no_duration",
            f"{name} is {value!r}.",
            f"Write `{name} = timedelta(...)`{', or `Never(why=...)`' if never else ''}.",
        )
    elif not timedelta(0) < value <= LONGEST:
        yield (
            f"{name}_out_of_range",
            f"{name} is {duration(value)}.",
            (
                "It must be more than 0 and at most ten years"
                f"{'; for longer write `Never(why=...)`' if never else ''}."
            ),
        )


def template(name: str, text: str, known: dict[str, Any]) -> Iterator[Found]:
    """Yield what is wrong with a template.

    Args:
        name: of the attribute.
        text: the template.
        known: fields that it may use, with their types.
    """
    made = Template(text)
    if made.problem is not None:
        yield (
            f"{name}_malformed",
            f"{name} '{text}': {made.problem}.",
            "Write text with fields in braces, such as 'refund-{order_id}'.",
        )
        return
    unknown = sorted(made.fields - set(known))
    if unknown:
        yield (
            f"{name}_unknown_field",
            f"{name} '{text}' uses {', '.join(unknown)}, which the start event does not have.",
            f"It has {', '.join(sorted(known))}.",
        )
    for field in sorted(made.fields & set(known)):
        if known[field] not in _PLAIN_TYPES:
            yield (
                f"{name}_no_text",
                f"{name} '{text}' uses {field}, which is neither text nor a whole number.",
                "Use a field whose text is the same for every reader.",
            )


_PLAIN_TYPES: Final = (str, int, "str", "int")


# --- several workflows ------------------------------------------------------------------------


def problems_among(workflows: Sequence[AnyWorkflow]) -> Iterator[Problem]:
    """Yield what is wrong with workflows that are each right by themselves.

    Args:
        workflows: all that run beside each other.
    """
    named: dict[str, AnyWorkflow] = {}
    for one in workflows:
        if named.setdefault(one.name, one) is not one:
            yield Problem(
                workflow=one.name,
                task=None,
                rule="workflow_twice",
                says="two workflows have this name.",
                remedy="Rename one of them.",
            )
    yield from meeting_identifiers(list(named.values()), across=True)
    yield from circles(list(named.values()))


def meeting_identifiers(
    workflows: Sequence[AnyWorkflow], *, across: bool = False
) -> Iterator[Problem]:
    """Yield pairs of tasks whose identifiers can be the same text.

    Args:
        workflows: whose tasks.
        across: only pairs of different workflows.
    """
    every = [(workflow, task) for workflow in workflows for task in workflow.tasks]
    made = [
        Template(task.identifier).pattern({"workflow": workflow.name, "task": task.task_name()})
        for workflow, task in every
    ]
    for i, (workflow, task) in enumerate(every):
        for j in range(i):
            other_workflow, other = every[j]
            if across and other_workflow is workflow:
                continue
            if can_meet(made[i], made[j]):
                yield _about(
                    workflow,
                    task,
                    "identifiers_collide",
                    f"its identifier '{task.identifier}' can be the same as that of "
                    f"{other_workflow.name}.{other.task_name()}, '{other.identifier}'.",
                    "Let one begin with text of its own: an identifier belongs to one task.",
                )


def circles(workflows: Sequence[AnyWorkflow]) -> Iterator[Problem]:
    """Yield workflows that start each other for ever.

    Args:
        workflows: all that run beside each other.
    """
    starts: dict[str, list[AnyWorkflow]] = {}
    for one in workflows:
        starts.setdefault(one.starts_on, []).append(one)
    follows = {
        one.name: {
            other.name
            for end in one.reachable(one.first)
            if isinstance(end, Event)
            for other in starts.get(end.event_type, ())
        }
        for one in workflows
    }
    for name in follows:
        path = _way_back(name, follows)
        if path is not None and name == min(path):  # each circle once
            yield Problem(
                workflow=name,
                task=None,
                rule="workflows_go_in_circles",
                says=f"workflows start each other without end: {' -> '.join([*path, name])}.",
                remedy="Let one of them end with an event type that starts none of the others.",
            )


def _way_back(name: str, follows: dict[str, set[str]]) -> list[str] | None:
    paths = [[name]]
    seen: set[str] = set()
    while paths:
        path = paths.pop(0)
        for one in sorted(follows[path[-1]]):
            if one == name:
                return path
            if one not in seen:
                seen.add(one)
                paths.append([*path, one])
    return None
