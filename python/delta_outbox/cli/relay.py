"""`outbox relay`: publish what is due, and run the tasks of workflows."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_outbox.cli.outcome import DONE, TO_LOOK_AT, Invocation, Outcome

if TYPE_CHECKING:
    from rich.console import RenderableType

    from delta_outbox.api import Outbox
    from delta_outbox.relay import Summary
    from delta_outbox.relay.destinations.task_runner import TaskRunner


def relay(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Run a relay until its mode or a signal ends it."""
    from delta_outbox.cli.progress import progress_on
    from delta_outbox.cli.signals import stop_on_signals

    with (
        invocation.open() as outbox,
        _task_runner(outbox) as tasks,
        stop_on_signals(invocation.errors) as stop,
    ):
        # Here: most of it was imported while the JVM started.
        from delta_outbox.operations import inspection
        from delta_outbox.relay import Mode, Relay

        work = Relay(outbox, limit=args.limit, tasks=tasks)
        with progress_on(
            invocation.errors, expected=lambda: inspection.counts(outbox)["PENDING"]
        ) as report:
            # It leaves the projection refreshed.
            summary = work.run(
                Mode(args.mode), max_wait=args.max_wait, stop=stop, on_progress=report
            )
        items = None if tasks is None else inspection.open_items(outbox)
    return outcome_of(summary, is_continuous=args.mode == "continuous", items=items)


def _task_runner(outbox: Outbox) -> contextlib.AbstractContextManager[TaskRunner | None]:
    """Return what runs tasks; where no workflows are named, not even its code is loaded."""
    if not outbox.settings.workflows.modules:
        return contextlib.nullcontext()
    from delta_outbox.workflow_engine.opening import task_runner

    return task_runner(outbox)


def outcome_of(summary: Summary, *, is_continuous: bool, items: int | None = None) -> Outcome:
    """Return the end of a run.

    Args:
        summary: what it did.
        is_continuous: it was stopped on purpose: what waits then is no finding.
        items: that wait for somebody; None where no workflows are named.
    """
    to_look_at = not is_continuous and (summary.dead > 0 or summary.waiting > 0)
    counted = {} if items is None else {"open_items": items}
    return Outcome(
        document={**summary.as_dict(), **counted},
        text=lambda: _text(summary, items),
        exit_code=TO_LOOK_AT if to_look_at else DONE,
    )


def _text(summary: Summary, items: int | None) -> Iterable[RenderableType]:
    from delta_outbox.cli.render import duration, facts, sentence

    pairs = [(name, value) for name, value in summary.as_dict().items() if "seconds" not in name]
    yield facts([*pairs, ("duration", duration(summary.duration_seconds))])
    if summary.dead:
        yield sentence("Dead events: `outbox list --state DEAD`.", style="bold red")
    if summary.waiting:
        yield sentence("Waiting events: `outbox list --state PENDING --state CLAIMED`.")
    if items:
        wait = "1 item waits" if items == 1 else f"{items} items wait"
        yield sentence(f"{wait} for somebody: `outbox todo list`.")
