"""`outbox pause` and `resume`: whether events are claimed for a destination."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from delta_outbox.cli.outcome import Invocation, Outcome
from delta_outbox.operations.pauses import pausing_request

if TYPE_CHECKING:
    from rich.console import RenderableType


def pause(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Take nothing more for a destination; what is in flight is finished."""
    return _ask("pause", args, invocation)


def resume(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Take events for a destination again."""
    return _ask("resume", args, invocation)


def _ask(kind: str, args: argparse.Namespace, invocation: Invocation) -> Outcome:
    request = pausing_request(
        kind, destination=args.destination, actor=args.actor, reason=args.reason
    )
    from delta_outbox.operations import command_life
    from delta_outbox.operations.pauses import append_pausing

    with invocation.open() as outbox:
        command_id = append_pausing(outbox, request)
        outbox.apply_commands_if_alone()
        outbox.refresh()
        command = command_life.show_command(outbox, command_id)
        assert command is not None
    document = {
        "kind": kind,
        "destination": request.destination,
        "command_id": command_id,
        "status": command["status"],
    }
    return Outcome(document=document, text=lambda: _text(document))


def _text(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    from delta_outbox.cli.render import sentence

    done = {"pause": "is paused", "resume": "is served again"}[document["kind"]]
    if document["status"] == "done":
        yield sentence(f"{document['destination']} {done}.", style="bold")
    else:
        yield sentence(
            f"{document['destination']} {done} within a minute: a relay applies it.",
            style="bold",
        )
