"""`outbox replay`, `kill` and `release`: what an operator asks for, shown and then written down."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from delta_outbox.cli.outcome import DONE, TO_LOOK_AT, Invocation, Outcome
from delta_outbox.operations.requests import Request, kill_request, release_request, replay_request

if TYPE_CHECKING:
    from rich.console import RenderableType

_COUNTS_SHOWN = 20  # rows; --json lists them all


def replay(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Deliver again what is PUBLISHED or DEAD; without --apply only show it."""
    request = replay_request(
        state=args.state,
        event_type=args.type,
        since=args.since,
        until=args.until,
        event_ids=args.event_ids,
        error=args.error,
        everything=args.everything,
        reason=args.reason,
        actor=args.actor,
        dry_run=args.dry_run,
    )
    return _perform(request, invocation)


def kill(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """End named events without delivering them; with --dry-run only show them."""
    request = kill_request(
        event_ids=args.event_ids,
        reason=args.reason,
        actor=args.actor,
        dry_run=args.dry_run,
    )
    return _perform(request, invocation)


def release(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """End claims whose lease is over; with --dry-run only show them."""
    request = release_request(
        event_ids=args.event_ids,
        claim_ids=args.claim_ids,
        reason=args.reason,
        actor=args.actor,
        dry_run=args.dry_run,
    )
    return _perform(request, invocation)


def _perform(request: Request, invocation: Invocation) -> Outcome:
    """Show a request; append it, and apply what waits, unless it is a dry run."""
    with invocation.open() as outbox:
        from delta_outbox.operations import command_life
        from delta_outbox.operations.request_expansion import perform

        report = perform(outbox, request)
        document: dict[str, Any] = {"dry_run": request.dry_run, **report.as_dict()}
        if report.command_id is not None:
            outbox.apply_commands_if_alone()
            outbox.refresh()
            command = command_life.show_command(outbox, report.command_id)
            assert command is not None
            document |= {"status": command["status"], "status_counts": command["counts"]}
    return outcome_of(document)


def outcome_of(document: Mapping[str, Any]) -> Outcome:
    """Return the end of a request.

    Args:
        document: the report, dry_run, and, once it was appended, the status of the command.
    """
    refused = (document.get("status_counts") or {}).get("refused", 0)
    to_look_at = bool(document["left_out"]) or refused > 0
    return Outcome(
        document=document,
        text=lambda: _text(document),
        exit_code=TO_LOOK_AT if to_look_at else DONE,
    )


def _text(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    from delta_outbox.cli.render import Column, Rows, sentence

    counts = document["counts"]
    if counts:
        columns = [Column(name=name) for name in ("state", "event_type", "destination")]
        columns.append(Column(name="deliveries", right=True))
        yield Rows(columns=columns, rows=counts[:_COUNTS_SHOWN])
        if len(counts) > _COUNTS_SHOWN:
            yield sentence(f"and {len(counts) - _COUNTS_SHOWN} more lines; --json lists them all.")
        yield ""
        yield sentence("For example:" if document["deliveries"] > len(document["examples"]) else "")
        yield Rows(columns=_columns(), rows=document["examples"])
    if document["left_out"]:
        yield ""
        yield sentence("Left out:", style="bold")
        columns = [Column(name="event_id"), Column(name="destination", rank=1)]
        yield Rows(columns=[*columns, Column(name="refusal")], rows=document["left_out"])
    yield ""
    for warning in document["warnings"]:
        yield sentence(f"Warning: {warning}", style="bold yellow")
    yield sentence(_conclusion(document), style="bold")


def _columns() -> list[Any]:
    from delta_outbox.cli.render import Column

    return [
        Column(name="event_id"),
        Column(name="event_type", rank=2),
        Column(name="ordering_key", rank=3),
        Column(name="created_at", rank=4),
        Column(name="destination", rank=5),
        Column(name="last_error", rank=1),
    ]


def _conclusion(document: Mapping[str, Any]) -> str:
    kind, count, command_id = document["kind"], document["deliveries"], document["command_id"]
    if not count:
        return f"Nothing to {kind}; nothing was written."
    if document["dry_run"]:
        how = "Add --apply" if kind == "replay" else "Leave out --dry-run"
        return f"A preview of {count} deliveries; nothing was written. {how} to {kind} them."
    states = document["status_counts"]
    became = ", ".join(f"{number} {status}" for status, number in states.items() if number)
    return f"Command {command_id}: {became}. `outbox show {command_id}` tells more."
