"""`outbox todo`: what waits for somebody, who takes care of it, answers to it, and their server."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.cli import todo_link, todo_server
from delta_outbox.cli.instances import perform_request, task_selection
from delta_outbox.cli.outcome import Invocation, Outcome
from delta_outbox.core.errors import WrongUsage

if TYPE_CHECKING:
    from rich.console import RenderableType

    from delta_outbox.store.store import Store
    from delta_outbox.workflow_engine.instances import TasksReport

MOST_READ: Final = (
    4 * 1024 * 1024
)  # bytes of a file with an answer; `complete` says what is too much


def todo(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Run one of the commands for items."""
    return _COMMANDS[args.action](args, invocation)


def list_(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """List items, those first that are over first."""
    from delta_outbox.workflow_engine.workflow_views import items

    with invocation.open() as outbox:
        outbox.refresh()
        known = _roles(outbox, args.known_role or []) if args.orphans else None
        rows, more = items(
            outbox,
            workflow=args.workflow,
            role=args.role,
            ended=args.ended,
            assigned_to=args.assigned_to,
            unassigned=args.unassigned,
            answerers=known,
            limit=args.limit,
        )
    document: dict[str, Any] = {"items": rows, "more": more}
    if known is not None:
        document["known_roles"] = known
    return Outcome(document=document, text=lambda: list_text(document))


def _roles(outbox: Store, others: Iterable[str]) -> list[str]:
    """Return the roles that anybody has by an API key, and others."""
    from delta_outbox.todo.key_log import KeyLog

    return sorted(
        {role for key in KeyLog(outbox).current().values() for role in key.roles} | {*others}
    )


def list_text(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    """Return items as a person reads them.

    Args:
        document: items, and whether there are more than these.
    """
    from delta_outbox.cli.render import Column, Rows, sentence

    rows = document["items"]
    known = document.get("known_roles")
    if known is not None:
        yield sentence(f"Roles that somebody has: {', '.join(known) or 'none'}.", style="dim")
    if not rows:
        yield sentence(
            "Nothing waits for anybody."
            if known is None
            else "Nothing waits for a role that nobody has."
        )
        return
    columns = [
        Column(name="task_id"),
        Column(name="title"),
        Column(name="roles", rank=1),
        Column(name="assigned_to", rank=2),
        Column(name="workflow", rank=5),
        Column(name="instance", rank=4),
        Column(name="opened_at", rank=3),
        Column(name="due_at", rank=2),
        Column(name="expires_at", rank=1),
    ]
    if any(row["outcome"] for row in rows):
        columns += [Column(name="outcome"), Column(name="ended_at", rank=2)]
    yield Rows(columns=columns, rows=rows)
    if document["more"]:
        yield sentence(f"The first {len(rows)}; --limit shows more.", style="dim")


def show(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Show what whoever answers an item may see, and what an answer must look like."""
    from delta_outbox.workflow_engine.items import Items

    with invocation.open() as outbox:
        document = Items(outbox).show(args.id)
    return Outcome(document=document, text=lambda: show_text(document))


def show_text(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    """Return an item as a person reads it.

    Args:
        document: as `Items.show` returns it.
    """
    from delta_outbox.cli.render import Column, Rows, facts, sentence

    apart = ("read_model", "contract", "outcomes", "history")
    told = document.items()
    yield facts([pair for pair in told if pair[0] not in apart and pair[1] is not None])
    yield ""
    yield sentence("What it is about:", style="bold")
    yield facts(document["read_model"].items())
    yield ""
    if document["history"]:
        names = ("at", "what", "by", "to", "until", "outcome")
        yield sentence("What has happened to it:", style="bold")
        yield Rows(columns=[Column(name=name) for name in names], rows=document["history"])
        yield ""
    yield sentence("What an answer looks like (JSON Schema):", style="bold")
    yield sentence(json.dumps(document["contract"], ensure_ascii=False, indent=2))
    yield ""
    yield sentence(f"It may come to: {', '.join(document['outcomes'])}.")
    if document["state"] == "open":
        yield sentence(f"Answer it: outbox todo complete {document['task_id']} --data '{{...}}'")


def complete(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Answer an item."""
    data = _data(args)
    from delta_outbox.workflow_engine.items import Items

    with invocation.open() as outbox:
        done = Items(outbox).complete(
            args.id, data, actor=args.actor, reason=args.reason, outcome=args.outcome
        )

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        was = "was answered so before" if done.repeated else "is answered"
        yield sentence(f"{done.task_id} {was}: {done.outcome}.", style="bold")
        if done.status == "waiting":
            yield sentence("A relay goes on from there within a minute.")

    return Outcome(document=done.as_dict(), text=text)


def assign(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Say who takes care of items; without --apply only show them."""

    def ask(outbox: Store) -> TasksReport:
        from delta_outbox.workflow_engine.items import Items

        return Items(outbox).assign(
            args.instances,
            to=args.actor if args.take else args.to,
            only_unassigned=args.unassigned or args.take,
            **task_selection(args, only_items=True),
        )

    return perform_request(args, invocation, ask)


def extend(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Let items expire later; without --apply only show them."""

    def ask(outbox: Store) -> TasksReport:
        from delta_outbox.workflow_engine.instances import Instances

        return Instances(outbox).extend(
            args.instances,
            to=args.to,
            by_seconds=args.by_seconds,
            **task_selection(args, only_items=True),
        )

    return perform_request(args, invocation, ask)


def _data(args: argparse.Namespace) -> Mapping[str, Any]:
    """Return the answer that the command line gives."""
    if args.data is not None:
        text, where = args.data, "--data"
    elif args.data_file is not None:
        text, where = _read(args.data_file), f"--data-file {args.data_file}"
    elif args.outcome is not None:
        return {}  # there are answers that say nothing else
    else:
        raise WrongUsage(
            "todo complete: no answer is given.",
            remedy="Give --data JSON or --data-file FILE; `outbox todo show ID` says how.",
        )
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise WrongUsage(
            f"todo complete: {where} must be an object of JSON; it cannot be read{place}.",
            remedy='Write it as \'{"name": "value"}\', in single quotes on a command line.',
        ) from None
    if not isinstance(found, dict):
        raise WrongUsage(
            f"todo complete: {where} must be an object of JSON.",
            remedy='Write it as \'{"name": "value"}\', in single quotes on a command line.',
        )
    return found


def _read(name: str) -> str:
    try:
        if name == "-":
            text = sys.stdin.read(MOST_READ + 1)
        else:
            with Path(name).open(encoding="utf-8") as file:
                text = file.read(MOST_READ + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise WrongUsage(
            f"todo complete: --data-file {name} cannot be read: {why}.",
            remedy="Name a file with JSON; - is standard input.",
        ) from None
    if len(text) > MOST_READ:
        raise WrongUsage(
            f"todo complete: --data-file {name} has more than {MOST_READ} characters.",
            remedy="An answer is at most 1 MiB.",
        )
    return text


_COMMANDS: Final[Mapping[str, Callable[[argparse.Namespace, Invocation], Outcome]]] = {
    "list": list_,
    "show": show,
    "complete": complete,
    "assign": assign,
    "extend": extend,
    "link": todo_link.link,
    **todo_server.COMMANDS,
}
