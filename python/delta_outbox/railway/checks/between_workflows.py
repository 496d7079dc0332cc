"""Rules between workflows, and between tasks: equal names, equal identifiers, circles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from delta_outbox.railway.checks.shared_checks import AnyWorkflow, about
from delta_outbox.railway.graph import Event
from delta_outbox.railway.identifiers import Template, can_meet
from delta_outbox.railway.problems import Problem


def problems_among(workflows: Sequence[AnyWorkflow]) -> Iterator[Problem]:
    """Yield what is wrong with workflows that are each right by themselves.

    Args:
        workflows: all that run beside each other.
    """
    named: dict[str, AnyWorkflow] = {}
    for one in workflows:
        other = named.setdefault(one.name, one)
        if other is not one:
            yield Problem(
                workflow=one.name,
                task=None,
                rule="workflow_twice",
                says=f"two workflows have this name, in {_module(other)} and {_module(one)}.",
                remedy="Rename one of them.",
            )
    yield from meeting_identifiers(list(named.values()), across=True)
    yield from circles(list(named.values()))


def _module(workflow: AnyWorkflow) -> str:
    """Return where a workflow seems to be declared: the module of its first task."""
    return workflow.first.__module__


# twin: macros/workflows/workflow_identifier_problems.sql::workflow_identifier_problems
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
        Template(task.identifier).pieces({"workflow": workflow.name, "task": task.task_name()})
        for workflow, task in every
    ]
    for i, (workflow, task) in enumerate(every):
        for j in range(i):
            other_workflow, other = every[j]
            if across and other_workflow is workflow:
                continue
            if can_meet(made[i], made[j]):
                yield about(
                    workflow,
                    task,
                    "identifiers_collide",
                    f"its identifier '{task.identifier}' can be the same as that of "
                    f"{other_workflow.name}.{other.task_name()}, '{other.identifier}'.",
                    "Let one begin with text of its own: an identifier belongs to one task.",
                )


# twin: macros/workflows/workflow_circle_problems.sql::workflow_circle_problems
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
