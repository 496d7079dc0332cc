"""The rules of a declaration. Each yields a problem with a rule, a sentence and a remedy.

- between_workflows: equal names, identifiers that can be the same, workflows that start each other
- categories: what each category must say of its third party; compromises; To-Dos
- paths: where fault, expiry and uncertainty lead; tasks that nothing leads to; loops
- seed_cells: cells that dbt would not read as they were written
- shared_checks: of a duration, a text, a number, a template
- tasks: what every task says: outcomes, routes, expiry, limits, identifier
- workflows: names, the start event, one route for each task
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from delta_outbox.railway.checks import categories, paths, tasks, workflows
from delta_outbox.railway.checks.between_workflows import meeting_identifiers, problems_among
from delta_outbox.railway.checks.seed_cells import cells
from delta_outbox.railway.checks.shared_checks import AnyWorkflow, Finding, about
from delta_outbox.railway.problems import Problem
from delta_outbox.railway.tasks import AnyTask

__all__ = ["problems_among", "problems_of"]

OF_WORKFLOWS: Final[Sequence[Callable[[AnyWorkflow], Iterable[Finding]]]] = (
    workflows.names,
    workflows.start_event,
    workflows.routes_once,
)
OF_TASK_SHAPES: Final[Sequence[Callable[[AnyWorkflow, AnyTask], Iterable[Finding]]]] = (
    tasks.outcomes,
    tasks.targets,
    tasks.concrete,
    tasks.attributes,
    tasks.expiry,
    tasks.limits,
    tasks.uncertainty,
    categories.locks,
    categories.compromises,
    categories.to_dos,
    categories.four_eyes,
    categories.item_events,
    tasks.identifier,
)
OF_TASK_GRAPHS: Final[Sequence[Callable[[AnyWorkflow, AnyTask], Iterable[Finding]]]] = (
    paths.fallbacks,
    paths.people,
    paths.reached,
    paths.ends,
    paths.loops,
)


def problems_of(workflow: AnyWorkflow) -> Iterator[Problem]:
    """Yield what is wrong with a workflow taken by itself.

    Args:
        workflow: to check.
    """
    unreadable = list(_of_workflow(workflow, workflows.kinds))
    yield from unreadable
    if unreadable:
        return
    shape = [one for check in OF_WORKFLOWS for one in _of_workflow(workflow, check)]
    yield from shape
    sound = not shape
    for task in workflow.tasks:
        for check_task in OF_TASK_SHAPES:
            for rule, says, remedy in check_task(workflow, task):
                sound = False
                yield about(workflow, task, rule, says, remedy)
    if not sound:
        return  # the rest would only repeat it
    for task in workflow.tasks:
        for check_task in OF_TASK_GRAPHS:
            for rule, says, remedy in check_task(workflow, task):
                yield about(workflow, task, rule, says, remedy)
        for rule, says, remedy in paths.warnings_of(workflow, task):
            yield about(workflow, task, rule, says, remedy, warning=True)
    yield from meeting_identifiers([workflow])
    yield from cells(workflow)


def _of_workflow(
    workflow: AnyWorkflow, check: Callable[[AnyWorkflow], Iterable[Finding]]
) -> Iterator[Problem]:
    for rule, says, remedy in check(workflow):
        yield Problem(workflow=str(workflow.name), task=None, rule=rule, says=says, remedy=remedy)
