"""`outbox append`: events from JSON lines, all or none."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from delta_outbox.cli.outcome import DONE, TO_LOOK_AT, Invocation, Outcome

if TYPE_CHECKING:
    from rich.console import RenderableType

    from delta_outbox.api import Outbox
    from delta_outbox.producer.append import AppendReport
    from delta_outbox.producer.json_lines import EventRows
    from delta_outbox.producer.rejection import Rejection

_REJECTIONS_SHOWN = 50  # --json lists them all


def append(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Append a file, or say which of its lines break which rule."""
    from delta_outbox.producer.json_lines import read_file

    rows = read_file(args.file)  # before a session starts: a wrong name is told at once
    with invocation.open() as outbox:
        if rows.rejections:
            outcome = outcome_of(0, 0, _all_rejections(outbox, rows))
        else:
            report: AppendReport = outbox.append(rows.events, lines=rows.lines)
            outcome = outcome_of(report.appended, report.already_present, report.rejected)
        outbox.refresh()
    return outcome


def _all_rejections(outbox: Outbox, rows: EventRows) -> list[Rejection]:
    """Check the readable lines too: one run shows everything that is wrong."""
    from delta_outbox.producer.validation import validate

    checked = validate(
        rows.events, settings=outbox.settings.append, now=outbox.clock.now(), lines=rows.lines
    )
    return sorted([*rows.rejections, *checked.rejections])


def outcome_of(appended: int, already_present: int, rejected: Sequence[Rejection]) -> Outcome:
    """Return the report of an append.

    Args:
        appended: rows.
        already_present: rows that the log held before.
        rejected: all that is wrong.
    """
    document = {
        "appended": appended,
        "already_present": already_present,
        "rejected": [asdict(rejection) for rejection in rejected],
    }

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import Column, Rows, sentence

        if not rejected:
            yield sentence(f"{appended} appended, {already_present} already present.")
            return
        yield sentence(f"Nothing was appended: {len(rejected)} rejection(s).", style="bold red")
        columns = [Column(name="line", right=True), Column(name="field")]
        columns += [Column(name="rule"), Column(name="message")]
        yield Rows(columns=columns, rows=[asdict(one) for one in rejected[:_REJECTIONS_SHOWN]])
        if len(rejected) > _REJECTIONS_SHOWN:
            more = len(rejected) - _REJECTIONS_SHOWN
            yield sentence(f"and {more} more; --json lists them all.")

    return Outcome(document=document, text=text, exit_code=TO_LOOK_AT if rejected else DONE)
