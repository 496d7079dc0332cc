"""`outbox lanes`: how many lanes there are, who works on which, and a change of that."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from delta_outbox.cli.outcome import DONE, TO_LOOK_AT, Invocation, Outcome
from delta_outbox.core.errors import WrongUsage

if TYPE_CHECKING:
    from rich.console import RenderableType


def lanes(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Show the lanes; with --to show what would change, with --apply change it."""
    from delta_outbox.operations.lanes import LaneRequest, change_lanes, describe

    request = None
    if args.to is not None:
        if not (args.actor and args.reason):
            raise WrongUsage(
                "lanes: --to needs --actor and --reason.",
                remedy="Say who asks and why; `outbox lanes --help` explains it.",
            )
        request = LaneRequest(lanes=args.to, actor=args.actor, reason=args.reason)
    elif not args.dry_run:
        raise WrongUsage(
            "lanes: --apply needs --to.",
            remedy="Say how many lanes there are to be; `outbox lanes --help` explains it.",
        )
    with invocation.open() as outbox:
        document: dict[str, Any] = {"dry_run": args.dry_run, "to": args.to}
        if request is not None and not args.dry_run:
            document["begun"] = change_lanes(outbox, request, max_wait=args.max_wait)
        outbox.refresh()
        document |= describe(outbox)
    return lanes_outcome(document)


def lanes_outcome(document: Mapping[str, Any]) -> Outcome:
    """Return the end of the command; a change that is not over is something to look at.

    Args:
        document: what `describe` returns, dry_run, to, and, if it was to be changed, begun.
    """
    return Outcome(
        document=document,
        text=lambda: _text(document),
        exit_code=DONE if document.get("begun", True) else TO_LOOK_AT,
    )


def _text(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    from delta_outbox.cli.render import Column, Rows, sentence

    rows = [
        {**one, "lanes": ", ".join(map(str, one["lanes"])) or "stands by"}
        for one in document["relays"]
    ]
    if rows:
        columns = [Column(name="relay_id"), Column(name="lanes"), Column(name="last_beat_at")]
        yield Rows(columns=columns, rows=rows)
        yield ""
    yield sentence(
        f"Epoch {document['epoch']}: {counted(document['lanes'])}, {document['open']} deliveries "
        f"open, {document['claimed']} of them claimed.",
        style="bold",
    )
    if document["becomes"] is not None:
        yield sentence(
            f"The epoch ends, for {counted(document['becomes'])}: nothing more is claimed in it. A "
            "relay, or `outbox lanes --to N --apply`, begins the next one when nothing is claimed."
        )
    elif document["to"] is not None and document["dry_run"]:
        yield sentence(
            f"A preview; nothing was written. Add --apply to begin epoch {document['epoch'] + 1} "
            f"with {counted(document['to'])}."
        )


def counted(lanes: int) -> str:
    """Return a number of lanes in words.

    Args:
        lanes: how many.
    """
    return f"{lanes} lane{'' if lanes == 1 else 's'}"
