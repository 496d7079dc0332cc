"""The drawing of a workflow, in the words of the business: its boxes and arrows, and Mermaid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from delta_outbox.railway.graph import Event, Graph
from delta_outbox.railway.names import duration, title
from delta_outbox.railway.tasks import AnyTask, Category, Never, ToDo

CAUSES: Final = {"faulted": "not possible", "expired": "expired", "uncertain": "nobody knows"}
"""What happened to a task, in a word for people."""
COLOURS: Final = {
    "To Do": "#cfe8e6",
    "Trivial": "#e6efc9",
    "Deterministic": "#dbe7f5",
    "Opaque": "#f3c9c0",
    "event": "#f6d9b8",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """A task or an event of the drawing.

    Args:
        name: by which lines refer to it.
        lines: of its text.
        kind: business name of the category; `event` for what ends the workflow.
        people: whether somebody has to do something there.
    """

    name: str
    lines: tuple[str, ...]
    kind: str
    people: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrow:
    """What leads from one box to another.

    Args:
        start, end: names of the boxes.
        words: outcomes, and what else leads there, in order.
        trouble: nobody decided this: it happened to the task.
        count: how often that way was taken; None: that is not drawn.
    """

    start: str
    end: str
    words: tuple[str, ...]
    trouble: bool = False
    count: int | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """Return its text: the words, and the count."""
        return self.words if self.count is None else (*self.words, f"{self.count:,}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """A drawing, before it takes a form.

    Args:
        title: of the workflow.
        starts_on: event type that starts it.
        boxes: tasks in the order of their routes, then events.
        arrows: between them.
        first: name of the first task.
        started: how many instances began; None: that is not drawn.
    """

    title: str
    starts_on: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    first: str
    started: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """What has flowed through a workflow.

    Args:
        started: how many instances began.
        ended: by task and outcome, how many tasks have ended so. What is no outcome of the task has
            led to the default exit.
    """

    started: int
    ended: Mapping[tuple[str, str], int]


def draw(workflow: Graph[Any], *, counts: Counts | None = None) -> Drawing:
    """Return the drawing of a workflow.

    Args:
        workflow: to draw.
        counts: to be written beside the arrows.
    """
    ends: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for task in workflow.tasks:
        for arrow in arrows_of(workflow, task, counts=counts):
            arrows.append(arrow)
            event = next((one for one in _events(workflow) if _name(one) == arrow.end), None)
            if event is not None:
                ends[arrow.end] = Box(
                    name=arrow.end, lines=(title(event.event_type),), kind="event"
                )
    return Drawing(
        title=workflow.title or title(workflow.name),
        starts_on=workflow.starts_on,
        boxes=(*(box_of(task) for task in workflow.tasks), *ends.values()),
        arrows=tuple(arrows),
        first=_name(workflow.first),
        started=None if counts is None else counts.started,
    )


def _events(workflow: Graph[Any]) -> Iterator[Event]:
    for to in workflow.table.values():
        yield from (one for one in to.values() if isinstance(one, Event))
    if workflow.default_exit is not None:
        yield workflow.default_exit


def box_of(task: AnyTask) -> Box:
    """Return the box of a task.

    Args:
        task: the class.
    """
    kind = task.category.business_name
    lines = [task.business_name(), kind]
    if issubclass(task, ToDo):
        lines.append(f"by {' or '.join(sorted(task.roles))}")
    lines.append(_ends_by(task))
    return Box(
        name=_name(task),
        lines=tuple(lines),
        kind=kind,
        people=task.category is Category.TO_DO,
    )


def _ends_by(task: AnyTask) -> str:
    if isinstance(task.expires, Never):
        return "never expires"
    return f"within {duration(task.expires)}"


def arrows_of(workflow: Graph[Any], task: AnyTask, *, counts: Counts | None = None) -> list[Arrow]:
    """Return the arrows that leave a task: one to each box for what is decided, one for the rest.

    Args:
        workflow: of the task.
        task: the class.
        counts: of what has flowed.
    """
    ended = _ended(task, counts)
    decided: dict[str, list[str]] = {}
    happened: dict[str, list[str]] = {}
    spoken: set[str] = set()
    for leg in workflow.legs(task):
        if leg.target is None:
            continue
        end = _name(leg.target)
        if leg.cause == "decided":
            assert leg.outcome is not None
            decided.setdefault(end, []).append(leg.outcome)
        else:
            happened.setdefault(end, []).append(leg.cause)
    arrows = []
    for end, outcomes in decided.items():
        words = [title(one).lower() for one in outcomes]
        # What happens to a task and has an outcome of its own shares that outcome's arrow.
        shared = [
            one for one in happened.get(end, []) if _fallback(workflow, task, one) in outcomes
        ]
        spoken |= set(shared)
        words += [CAUSES[one] for one in shared if CAUSES[one] not in words]
        count = None if ended is None else sum(ended.pop(one, 0) for one in outcomes)
        arrows.append(Arrow(start=_name(task), end=end, words=tuple(words), count=count))
    for end, causes in happened.items():
        rest = tuple(CAUSES[one] for one in causes if one not in spoken)
        if rest:
            # Whatever has an outcome shares the arrow of that outcome.
            count = None if ended is None else sum(ended.values())
            arrows.append(Arrow(start=_name(task), end=end, words=rest, trouble=True, count=count))
    return arrows


def _ended(task: AnyTask, counts: Counts | None) -> dict[str, int] | None:
    if counts is None:
        return None
    name = task.task_name()
    return {outcome: count for (its, outcome), count in counts.ended.items() if its == name}


def _fallback(workflow: Graph[Any], task: AnyTask, cause: str) -> str:
    return str(workflow.fallbacks(task)[cause])


def _name(target: AnyTask | Event) -> str:
    if isinstance(target, Event):
        return f"event_{''.join(one if one.isalnum() else '_' for one in target.event_type)}"
    return target.task_name()


def mermaid(drawing: Drawing) -> str:
    """Return a drawing as Mermaid, which many pages show as it is.

    Args:
        drawing: of a workflow.
    """
    lines = ["flowchart TD"]
    start = _safe(f"{title(drawing.starts_on)}")
    begun = "" if drawing.started is None else f'|"{drawing.started:,}"|'
    lines.append(f'    start(["{start}"]) -->{begun} {drawing.first}')
    for box in drawing.boxes:
        text = "<br/>".join(_safe(one) for one in box.lines)
        shape = ("([", "])") if box.kind == "event" else ("(", ")")
        lines.append(f'    {box.name}{shape[0]}"{text}"{shape[1]}:::{_class(box.kind)}')
    for arrow in drawing.arrows:
        words = _safe(", ".join(arrow.words))
        words += "" if arrow.count is None else f"<br/>{arrow.count:,}"
        line = "-.->" if arrow.trouble else "-->"
        lines.append(f'    {arrow.start} {line}|"{words}"| {arrow.end}')
    for kind, colour in COLOURS.items():
        lines.append(f"    classDef {_class(kind)} fill:{colour},stroke:#444,color:#111")
    lines.append(f"    class start {_class('event')}")
    return "\n".join(lines) + "\n"


def _class(kind: str) -> str:
    return kind.lower().replace(" ", "_")


def _safe(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
