"""A page per workflow for people of the business: the picture, and each task in a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from delta_outbox.railway.compromises import AskHuman, AtLeastOnce, AtMostOnce, UpTo
from delta_outbox.railway.drawing import CAUSES, draw, mermaid
from delta_outbox.railway.graph import Event, Graph, Leg
from delta_outbox.railway.names import duration, title
from delta_outbox.railway.tasks import AnyTask, BlackBox, Never, State, ToDo

HEAD = "<!-- Written by `outbox workflow build`: change the classes, not this page. -->"


def page(workflow: Graph[Any]) -> str:
    """Return the page of a workflow, in Markdown.

    Args:
        workflow: that keeps every rule.
    """
    lines = [
        HEAD,
        f"# {_cell(workflow.title or title(workflow.name))}",
        "",
        (
            f"Starts with the event `{workflow.starts_on}`, one instance for each "
            f"`{workflow.instance}`. Version {workflow.version}."
        ),
        "",
        "```mermaid",
        mermaid(draw(workflow)).rstrip(),
        "```",
        "",
        "| task | kind | who | within | what comes of it |",
        "|---|---|---|---|---|",
        *(_row(workflow, task) for task in workflow.tasks),
    ]
    boxes = [task for task in workflow.tasks if issubclass(task, BlackBox)]
    if boxes:
        lines += ["", "## Opaque tasks", ""]
        lines += [
            "Nobody can tell whether their third party has acted. What the business decided:",
            "",
            (
                "| task | when it may have happened | seen | needed | who is hurt | risks "
                "| decided by | why |"
            ),
            "|---|---|---|---|---|---|---|---|",
            *(_concerns(task) for task in boxes),
        ]
    described = [task for task in workflow.tasks if _first_line(task)]
    if described:
        lines += ["", "## The tasks in words", ""]
        lines += [f"- **{_cell(one.business_name())}**: {_first_line(one)}" for one in described]
    return "\n".join(lines) + "\n"


def _row(workflow: Graph[Any], task: AnyTask) -> str:
    if issubclass(task, ToDo):
        who = " or ".join(sorted(task.roles))
    elif issubclass(task, State):
        who = task.third_party
    within = "never expires" if isinstance(task.expires, Never) else duration(task.expires)
    if issubclass(task, ToDo) and task.due is not None:
        within += f", due after {duration(task.due)}"
    cells = [task.business_name(), task.category.business_name, who, within]
    comes = "<br>".join(_legs(workflow, task))
    return f"| {' | '.join(map(_cell, cells))} | {comes} |"


def _legs(workflow: Graph[Any], task: AnyTask) -> Iterator[str]:
    for leg in workflow.legs(task):
        yield f"{_cell(_words(leg))}: {_cell(_target(leg))}"


def _words(leg: Leg[Any]) -> str:
    if leg.cause == "decided":
        return title(leg.outcome or "").lower()
    return f"*{CAUSES[leg.cause]}*"


def _target(leg: Leg[Any]) -> str:
    assert leg.target is not None
    if isinstance(leg.target, Event):
        return f"ends with {leg.target.event_type}"
    return leg.target.business_name()


def _concerns(task: type[BlackBox[Any, Any]]) -> str:
    match task.compromise:
        case AtMostOnce():
            may = "given up: at most once"
        case AtLeastOnce():
            may = "tried again until it is certain or expired: at least once"
        case UpTo(executions=most):
            may = f"tried again, {most} times in all"
        case AskHuman():
            may = "a person decides"
    concerns = task.concerns
    cells = [
        task.business_name(),
        may,
        title(concerns.visibility).lower(),
        title(concerns.necessity).lower(),
        title(concerns.hurt).lower(),
        ", ".join(sorted(title(one).lower() for one in concerns.risks)),
        concerns.decided_by,
        concerns.why,
    ]
    return f"| {' | '.join(map(_cell, cells))} |"


def _first_line(task: AnyTask) -> str:
    return _cell((task.__doc__ or "").strip().split("\n")[0])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
