"""Rules of where a task leads: fault, expiry and uncertainty, ways out, loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from delta_outbox.railway.checks.shared_checks import AnyWorkflow, Finding
from delta_outbox.railway.compromises import AskHuman, AtLeastOnce
from delta_outbox.railway.drawing import CAUSES
from delta_outbox.railway.graph import Target
from delta_outbox.railway.identifiers import Template
from delta_outbox.railway.names import duration
from delta_outbox.railway.outcomes import DEFAULT_EXIT, Exit, Outcome
from delta_outbox.railway.tasks import AnyTask, BlackBox, Never, ToDo

_NOUNS: Final = {"faulted": "fault", "expired": "expiry", "uncertain": "uncertainty"}
_WORDS: Final = {"decided": "decided", **CAUSES}


# twin: macros/workflows/workflow_fallback_problems.sql::workflow_fallback_problems
def fallbacks(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
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
        elif not isinstance(chosen, Outcome) and chosen in members:
            member = task.outcomes()(chosen)
            yield (
                "wrong_outcome",
                f"when_{cause} is the text {chosen!r}.",
                f"Write the member, `{type(member).__name__}.{member.name}`.",
            )
        elif not isinstance(chosen, task.outcomes()):
            yield (
                "wrong_outcome",
                f"when_{cause} is '{chosen}', which it cannot decide.",
                f"Its outcomes are {', '.join(members)}; or write DEFAULT_EXIT.",
            )


def people(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
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


def reached(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """Every task is reached."""
    if task is not workflow.first and task not in workflow.reachable(workflow.first):
        yield (
            "nothing_leads_here",
            "nothing leads to it.",
            "Let an outcome lead to it, or remove its route.",
        )


def ends(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
    """Whatever happens again and again, an instance ends, or waits where it can be seen."""
    endless = _endless(workflow)

    def after(one: AnyTask) -> set[Target[Any]]:
        return workflow.reachable(one, follows=lambda leg: leg.cause in endless.get(leg.task, {}))

    if task not in endless or task not in after(task):
        return
    loop = [one for one in endless if one in after(task) and task in after(one)]
    words = [
        f"{one.task_name()} ({', '.join(_WORDS[each] for each in endless[one])})" for one in loop
    ]
    yield (
        "no_way_out",
        f"an instance may go round for ever: {', '.join(words)}.",
        (
            "Let one of these lead out of the loop; to go round a few times, let `on_fault` choose "
            "the way back by `trigger.visit`."
        ),
    )


# twin: macros/workflows/workflow_endless.sql::workflow_endless
def _endless(workflow: AnyWorkflow) -> Mapping[AnyTask, Mapping[str, set[Target[Any]]]]:
    """Return the tasks that an instance may never leave: what keeps it there, and leads where.

    What happens to a task keeps an instance if all that can come of it is again such a task.
    """
    kept: dict[AnyTask, dict[str, set[Target[Any]]]] = {}
    for task in workflow.tasks:
        kept[task] = {}
        for leg in workflow.legs(task):
            if leg.target is not None:
                kept[task].setdefault(leg.cause, set()).add(leg.target)
    while True:
        ways = {
            task: {cause: to for cause, to in causes.items() if to <= kept.keys()}
            for task, causes in kept.items()
        }
        left = {task: causes for task, causes in ways.items() if causes}
        if left.keys() == kept.keys():
            return left
        kept = left


# twin: macros/workflows/workflow_loop_problems.sql::workflow_loop_problems
def loops(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
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


def warnings_of(workflow: AnyWorkflow, task: AnyTask) -> Iterator[Finding]:
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
    for leg in workflow.legs(task):
        item = leg.target
        if leg.cause != "uncertain" or not isinstance(item, type) or not issubclass(item, ToDo):
            continue
        if not isinstance(item.expires, Never) and item.when_expired is DEFAULT_EXIT:
            yield (
                "uncertainty_expires",
                (
                    f"when nobody knows whether it was done, {item.task_name()} asks; and if "
                    f"nobody answers within {duration(item.expires)}, the default exit follows."
                ),
                (
                    f"Let {item.task_name()} never expire, or write its `when_expired`: an outcome "
                    "that says what is believed then."
                ),
            )
