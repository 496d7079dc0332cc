"""`outbox maintain` and `purge`: what keeps an outbox small, shown and done."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from delta_outbox.cli.outcome import DONE, TO_LOOK_AT, Invocation, Outcome

if TYPE_CHECKING:
    from rich.console import RenderableType


def maintain(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Compact small files and delete unused ones; with --dry-run only count them."""
    with invocation.open() as outbox:
        from delta_outbox.operations.maintenance.maintain import Maintenance

        maintenance = Maintenance(outbox)
        try:
            report = maintenance.run(dry_run=args.dry_run)
        finally:
            maintenance.close()
    document: dict[str, Any] = {"dry_run": args.dry_run, **report.as_dict()}
    return Outcome(document=document, text=lambda: maintain_text(document))


def maintain_text(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    """Return what maintenance did as a person reads it.

    Args:
        document: the report, and dry_run.
    """
    from delta_outbox.cli.render import Column, Rows, sentence

    columns = [Column(name="table")]
    names = ("files_before", "files_after", "bytes_before", "bytes_after", "compacted", "removed")
    columns += [Column(name=name, right=True) for name in (*names, "retain_hours")]
    yield Rows(columns=columns, rows=document["tables"])
    yield ""
    number, beats = document["finished_purge"], document["heartbeats_removed"]
    dry_run = document["dry_run"]
    if number is not None:
        what = "is to be finished" if dry_run else "was interrupted, and is finished now"
        yield sentence(f"Purge {number} {what}.", style="bold")
    if beats:
        yield sentence(f"Old heartbeats {'to remove' if dry_run else 'removed'}: {beats}.")
    if dry_run:
        yield sentence("A preview; nothing was written. Leave out --dry-run to do it.")


def purge(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Remove what has ended, by whole days; without --apply only show it."""
    from delta_outbox.operations.maintenance.purge import Purge
    from delta_outbox.operations.maintenance.purge_request import PurgeRequest

    request = PurgeRequest(
        before=args.before,
        actor=args.actor,
        reason=args.reason,
        include_dead=args.include_dead,
        dry_run=args.dry_run,
    )
    with invocation.open() as outbox:
        purge = Purge(outbox)
        try:
            report = purge.run(request)
        finally:
            purge.close()
    document = {
        "dry_run": request.dry_run,
        "before": request.before.isoformat(),
        **report.as_dict(),
    }
    return purge_outcome(document)


def purge_outcome(document: Mapping[str, Any]) -> Outcome:
    """Return the end of a purge; days that it leaves are something to look at.

    Args:
        document: the report, before and dry_run.
    """
    return Outcome(
        document=document,
        text=lambda: _purge_text(document),
        exit_code=TO_LOOK_AT if document["kept"] else DONE,
    )


def _purge_text(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    from delta_outbox.cli.render import Column, Rows, sentence

    if document["days"]:
        columns = [Column(name="created_date")]
        columns += [Column(name=name, right=True) for name in ("PUBLISHED", "DEAD")]
        rows = [{"PUBLISHED": 0, "DEAD": 0, **day} for day in document["days"]]
        yield Rows(columns=columns, rows=rows)
        yield ""
    if document["kept"]:
        yield sentence("Left as they are:", style="bold")
        yield Rows(columns=[Column(name="created_date"), Column(name="why")], rows=document["kept"])
        yield ""
    yield sentence(_conclusion(document), style="bold")


def _conclusion(document: Mapping[str, Any]) -> str:
    days, count = len(document["days"]), document["deliveries"]
    if not days:
        return f"Nothing to purge before {document['before']}; nothing was written."
    what = f"{count} deliveries of {days} day{'' if days == 1 else 's'}"
    if document["dry_run"]:
        return f"A preview of {what}; nothing was written. Add --apply to purge them for good."
    return f"Purge {document['number']}: {what} are gone. `outbox maintain` frees their room."
