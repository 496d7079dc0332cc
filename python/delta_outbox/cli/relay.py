"""`outbox relay`: publish what is due."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_outbox.cli.outcome import DONE, TO_LOOK_AT, Invocation, Outcome

if TYPE_CHECKING:
    from rich.console import RenderableType

    from delta_outbox.relay import Summary


def relay(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Run a relay until its mode or a signal ends it."""
    from delta_outbox.cli.progress import progress_on
    from delta_outbox.cli.signals import stop_on_signals

    with invocation.open() as outbox, stop_on_signals(invocation.errors) as stop:
        # Here: most of it was imported while the JVM started.
        from delta_outbox.operations import inspection
        from delta_outbox.relay import Mode, Relay

        work = Relay(outbox, limit=args.limit)
        with progress_on(
            invocation.errors, expected=lambda: inspection.counts(outbox)["PENDING"]
        ) as report:
            # It leaves the projection refreshed.
            summary = work.run(
                Mode(args.mode), max_wait=args.max_wait, stop=stop, on_progress=report
            )
    return outcome_of(summary, is_continuous=args.mode == "continuous")


def outcome_of(summary: Summary, *, is_continuous: bool) -> Outcome:
    """Return the end of a run.

    Args:
        summary: what it did.
        is_continuous: it was stopped on purpose: what waits then is no finding.
    """
    to_look_at = not is_continuous and (summary.dead > 0 or summary.waiting > 0)
    return Outcome(
        document=summary.as_dict(),
        text=lambda: _text(summary),
        exit_code=TO_LOOK_AT if to_look_at else DONE,
    )


def _text(summary: Summary) -> Iterable[RenderableType]:
    from delta_outbox.cli.render import duration, facts, sentence

    pairs = [(name, value) for name, value in summary.as_dict().items() if "seconds" not in name]
    yield facts([*pairs, ("duration", duration(summary.duration_seconds))])
    if summary.dead:
        yield sentence("Dead events: `outbox list --state DEAD`.", style="bold red")
    if summary.waiting:
        yield sentence("Waiting events: `outbox list --state PENDING --state CLAIMED`.")
