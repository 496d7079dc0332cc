"""Checks that several rules share: of a duration, a text, a number, a template."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from delta_outbox.railway.graph import Graph
from delta_outbox.railway.identifiers import PLAIN_TYPES, Template
from delta_outbox.railway.names import duration
from delta_outbox.railway.problems import Problem
from delta_outbox.railway.tasks import AnyTask, Never

LONGEST: Final = timedelta(days=3650)
"""Beyond it a duration is a slip of the pen, and no instant of a log can hold it."""

AnyWorkflow = Graph[Any]
Finding = tuple[str, str, str]
"""Rule, what is wrong, remedy."""


def about(
    workflow: AnyWorkflow, task: AnyTask, rule: str, says: str, remedy: str, warning: bool = False
) -> Problem:
    """Return a problem of a task.

    Args:
        workflow: of the task.
        task: the class.
        rule: its name.
        says: what is wrong.
        remedy: what to do.
        warning: it is allowed, and somebody should know.
    """
    return Problem(
        workflow=workflow.name,
        task=task.task_name(),
        rule=rule,
        says=says,
        remedy=remedy,
        warning=warning,
    )


def is_number_from(least: int, value: object) -> bool:
    """Say whether a value is a whole number that is large enough.

    Args:
        least: the smallest one.
        value: of any kind.
    """
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def has_text(value: object) -> bool:
    """Say whether a value is a text that is not blank.

    Args:
        value: of any kind.
    """
    return isinstance(value, str) and bool(value.strip())


def span(name: str, value: object, *, never: bool = False) -> Iterator[Finding]:
    """Yield what is wrong with a duration.

    Args:
        name: of the attribute.
        value: its value.
        never: whether `Never` is allowed.
    """
    if never and isinstance(value, Never):
        if not has_text(value.why):
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


def template(name: str, text: str, known: dict[str, Any]) -> Iterator[Finding]:
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
        if known[field] not in PLAIN_TYPES:
            yield (
                f"{name}_no_text",
                f"{name} '{text}' uses {field}, which is neither text nor a whole number.",
                "Use a field whose text is the same for every reader.",
            )
