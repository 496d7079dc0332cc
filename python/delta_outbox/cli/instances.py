"""`outbox workflow instances | show | cancel | extend | accept-late | migrate`: what has become of
each order, and how operators end it, let it wait longer, or go on elsewhere.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.cli.outcome import DONE, TO_LOOK_AT, Invocation, Outcome
from delta_outbox.core.errors import WrongUsage
from delta_outbox.lifecycle.states import OPEN_STATES

if TYPE_CHECKING:
    from rich.console import RenderableType

    from delta_outbox.store.store import Store
    from delta_outbox.workflow_engine.instances import Instances, TasksReport
    from delta_outbox.workflow_engine.task_requests import Selection

_WHERE_TO: Final = {
    "accept_late": ("late_task_id", "late_outcome", "goes_to"),
    "extend": ("expires_then",),
    "migrate": ("version", "to_version", "to_task", "to_task_id"),
}
"""What is shown of a task beside where it stands, by the kind of request."""

_WHEN: Final = "by a relay, at once or when its next attempt is due"
_HELD_BACK: Final = {
    None: "Nobody need do anything.",
    "breaker": "Not yet: {} does not answer, and is asked again from time to time.",
    "paused": "Not yet: {0} is paused. `outbox resume {0}` lets it go on.",
}
"""What holds an attempt back, by why."""

_SHOWN: Final = 20  # rows of a preview; --json lists them all


def instances(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """List instances, the last that was started first."""
    from delta_outbox.workflow_engine import workflow_views as views
    from delta_outbox.workflow_engine.workflow_states import OPEN, STATES

    with invocation.open() as outbox:
        outbox.refresh()
        rows, more = views.instances(
            outbox,
            workflow=args.workflow,
            states=STATES if args.all else args.state or OPEN,
            since=args.since,
            until=args.until,
            limit=args.limit,
        )
    document: dict[str, Any] = {"instances": rows, "more": more}
    return Outcome(document=document, text=lambda: instances_text(document))


def instances_text(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    """Return instances as a person reads them.

    Args:
        document: instances, and whether there are more than these.
    """
    from delta_outbox.cli.render import Column, Rows, sentence

    rows = document["instances"]
    if not rows:
        yield sentence("No instances match.")
        return
    columns = [
        Column(name="workflow"),
        Column(name="instance"),
        Column(name="state"),
        Column(name="task", rank=1),
        Column(name="next_at", rank=3),
        Column(name="expires_at", rank=4),
        Column(name="started_at", rank=2),
    ]
    if any(row["exit"] for row in rows):
        columns += [Column(name="exit", rank=1), Column(name="ended_at", rank=3)]
    yield Rows(columns=columns, rows=rows)
    if document["more"]:
        yield sentence(f"The first {len(rows)}; --limit shows more.", style="dim")


def show(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Show what has happened to an instance, what is not known, and what happens next."""
    from delta_outbox.workflow_engine.instances import Instances

    with invocation.open() as outbox:
        document = Instances(outbox).show(args.instance, workflow=args.workflow)
    return Outcome(document=document, text=lambda: show_text(document))


def show_text(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    """Return an instance as a person reads it, on one screen.

    Args:
        document: as `Instances.show` returns it.
    """
    from delta_outbox.cli.render import Column, Rows, sentence

    one = document["instance"]
    title = one["title"] or one["workflow"]
    yield sentence(f"{title}: {one['instance']}", style="bold")
    yield sentence(
        f"Started {one['started_at']} by {one['start_event_id']}, version {one['version']}."
    )
    yield ""
    yield Rows(
        columns=[
            Column(name="task"),
            Column(name="outcome"),
            Column(name="attempts", right=True),
            Column(name="since", rank=3),
            Column(name="ended", rank=2),
            Column(name="identifier", rank=4),
            Column(name="error", rank=1),
        ],
        rows=[_task_row(task) for task in document["tasks"]],
    )
    yield ""
    yield from map(sentence, _moved_words(document["moves"]))
    yield from map(sentence, _late_words(document["late_answers"]))
    yield from map(sentence, _unknown_words(document["unknown"]))
    yield from map(sentence, _next_words(document["next"], one))


def _task_row(task: Mapping[str, Any]) -> dict[str, object]:
    is_open = task["delivery_state"] in OPEN_STATES
    visit = f" ({task['visit']})" if int(task["visit"] or 1) > 1 else ""
    cause = task["cause"]
    outcome = task["outcome"]
    return {
        "task": f"{task['title'] or task['task']}{visit}",
        "outcome": "open" if is_open else outcome if cause == "decided" else f"{outcome} ({cause})",
        "attempts": task["attempts"],
        "since": task["triggered_at"],
        "ended": None if is_open else task["changed_at"],
        "identifier": task["task_id"],
        "error": task["last_error"],
    }


def _moved_words(moves: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Say where operators have let an instance go on elsewhere."""
    for one in moves:
        to = one["to_task"] or one["to_event"] or "what is not written yet"
        by = (
            f"by the late answer {one['late_outcome']!r} to {one['late_task_id']}"
            if one["late_task_id"]
            else f"from version {one['from_version']} to {one['to_version'] or 'another one'}"
        )
        if one["is_uncertain"]:
            by = "as uncertain: its task was attempted meanwhile, without a known result"
        yield (
            f"Moved at {one['at']} from {one['from_task']} to {to}, {by}; "
            f"{one['actor']}: {one['reason']}."
        )


def _late_words(answers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Say which answers did not count."""
    for one in answers:
        remedy = " `outbox workflow accept-late` goes on by it." if one["may_be_accepted"] else ""
        yield (
            f"Did not count: {one['answer']!r} to {one['task_id']}, by {one['actor']} at "
            f"{one['requested_at']}.{remedy}"
        )


def _unknown_words(unknown: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for one in unknown:
        yet = "" if one["is_final"] else " yet"
        yield (
            f"Not known{yet}: whether {one['third_party']} has done {one['title']!r} "
            f"({one['task_id']})."
        )


def _next_words(after: Mapping[str, Any] | None, instance: Mapping[str, Any]) -> Iterator[str]:
    """Say what happens next, when, and who must do something."""
    if after is None:
        how = f"with {instance['exit']}" if instance["exit"] else "without an event"
        yield f"It has ended {how}, at {instance['ended_at']}."
        if instance["problem"]:
            yield f"It was stranded: {instance['problem']}"
        return
    expires = (
        f"At {after['expires_at']} it expires, and goes on by that."
        if after["expires_at"]
        else "It never expires."
    )
    if asked := after["asked"]:
        yield (
            f"{asked['actor']} has asked that {after['title']!r} ends, or goes on elsewhere: "
            f"{asked['reason']} (command {asked['command_id']}). It is done {_WHEN}."
        )
    match after["what"]:
        case "answer":
            who = " or ".join(after["roles"])
            yield f"{after['title']!r} waits for {who}: `outbox todo show {after['task_id']}`."
            if after["assigned_to"]:
                yield f"{after['assigned_to']} takes care of it."
            if after["due_at"]:
                yield f"An answer is due at {after['due_at']}."
            yield expires
        case "attempt under way":
            yield f"{after['title']!r} is under way, by {after['by']}, until {after['at']} at most."
        case "attempt":
            yield f"A relay attempts {after['title']!r}, at {after['at']} or later."
            yield _HELD_BACK[after["held_back"]].format(after["third_party"])
            yield expires
        case "ends":
            return
        case "item opens":
            yield f"A relay opens {after['title']!r} for an answer, within seconds if one is alive."
        case "what follows is written":
            yield "A relay writes what follows, within seconds if one is alive."
        case _:
            yield f"Stranded: {after['problem']} A person must look."


def cancel(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """End open instances by the default exit of their workflow; without --apply only show them."""
    return perform_request(
        args,
        invocation,
        lambda outbox: _instances_of(outbox).cancel(args.instances or None, **task_selection(args)),
    )


def extend(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Let open tasks expire later; without --apply only show them."""
    return perform_request(
        args,
        invocation,
        lambda outbox: _instances_of(outbox).extend(
            args.instances or None, to=args.to, by_seconds=args.by_seconds, **task_selection(args)
        ),
    )


def accept_late(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Let open instances go on by answers that came too late; without --apply only show them."""
    return perform_request(
        args,
        invocation,
        lambda outbox: _instances_of(outbox).accept_late(
            args.instances or None, late_task=args.late_task, **task_selection(args)
        ),
    )


def migrate(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Move open instances to another version of their workflow; without --apply only show them."""
    tasks = dict(args.map)
    if len(tasks) < len(args.map):
        raise WrongUsage(
            "workflow migrate: --map must name each task that is left once. Got: "
            f"{' '.join('='.join(one) for one in args.map)}."
        )
    return perform_request(
        args,
        invocation,
        lambda outbox: _instances_of(outbox).migrate(
            args.instances or None,
            to_version=args.to_version,
            from_version=args.from_version,
            tasks=tasks,
            **task_selection(args),
        ),
    )


def _instances_of(outbox: Store) -> Instances:
    from delta_outbox.workflow_engine.instances import Instances

    return Instances(outbox)


def task_selection(args: argparse.Namespace, *, only_items: bool = False) -> Selection:
    """Return which open tasks a command line is about, by whom, and why.

    Args:
        args: with the options that `_open_tasks` or `_open_items` of the parser adds.
        only_items: no tasks of third parties.
    """
    return {
        "only_items": only_items,
        "task_ids": args.task_ids or None,
        "role": args.role,
        "workflow": args.workflow,
        "task": args.task,
        "third_party": args.third_party,
        "since": args.since,
        "until": args.until,
        "actor": args.actor,
        "reason": args.reason,
        "dry_run": args.dry_run,
    }


def perform_request(
    args: argparse.Namespace, invocation: Invocation, ask: Callable[[Store], TasksReport]
) -> Outcome:
    """Show a request about open tasks; append it, and apply what waits, unless it is a dry run.

    Args:
        args: with dry_run.
        invocation: opens the outbox.
        ask: makes the request.
    """
    with invocation.open() as outbox:
        done = ask(outbox)
        outbox.refresh()
    document: dict[str, Any] = {"dry_run": args.dry_run, **done.as_dict()}
    return Outcome(
        document=document,
        text=lambda: report_text(document),
        exit_code=TO_LOOK_AT if document["left_out"] else DONE,
    )


def report_text(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    """Return a request about open tasks as a person reads it.

    Args:
        document: as `TasksReport.as_dict` returns it, and dry_run.
    """
    from delta_outbox.cli.render import Column, Rows, sentence
    from delta_outbox.workflow_engine.instances import DONE_BY

    kind = document["kind"]
    done = DONE_BY[kind]
    if kind == "assign":
        columns = [Column(name="task_id"), Column(name="instance", rank=1), Column(name="task")]
        columns += [Column(name="assigned_to"), Column(name="expires_at", rank=2)]
    else:
        columns = [Column(name="workflow", rank=1), Column(name="instance"), Column(name="state")]
        columns += [Column(name="task"), Column(name="third_party", rank=3)]
        columns += [Column(name="expires_at", rank=2)]
    columns += [Column(name=name) for name in _WHERE_TO.get(kind, ())]
    rows, left_out = document[done], document["left_out"]
    if rows:
        yield Rows(columns=columns, rows=rows[:_SHOWN])
        if len(rows) > _SHOWN:
            yield sentence(f"and {len(rows) - _SHOWN} more; --json lists them all.")
    if left_out:
        yield ""
        yield sentence(f"Left out: {len(left_out)}", style="bold")
        for why, count in document["reasons"].items() if len(left_out) > _SHOWN else ():
            yield sentence(f"{count}: {why}")
        names = columns[:2]
        if not all(one["instance"] for one in left_out):
            names = [Column(name="task_id"), *(one for one in names if one.name != "task_id")]
        yield Rows(columns=[*names, Column(name="refusal")], rows=left_out[:_SHOWN])
        if len(left_out) > _SHOWN:
            yield sentence(f"and {len(left_out) - _SHOWN} more; --json lists them all.")
    yield ""
    yield sentence(_conclusion(kind, done, len(rows), document), style="bold")


def _conclusion(kind: str, done: str, count: int, document: Mapping[str, Any]) -> str:
    from delta_outbox.workflow_engine.task_requests import command_of

    what = "items" if kind == "assign" else "instances"
    if not count:
        return f"Nothing to {command_of(kind)}; nothing was written."
    if document["dry_run"]:
        then = f"Add --apply to {command_of(kind)} them."
        return f"A preview of {count} {what}; nothing was written. {then}"
    what_then = {
        "accept_late": f"each goes on by its late answer, {_WHEN}.",
        "cancel": f"each ends with its default exit, {_WHEN}, if no attempt decides first; "
        "what was stranded has ended without an event.",
        "migrate": f"each goes on at its new task, {_WHEN}.",
        "extend": f"`outbox show {document['command_id']}` says what became of it.",
        "assign": "it holds until another assignment comes after it.",
    }
    return f"{count} {what} are {done} by command {document['command_id']}; {what_then[kind]}"
