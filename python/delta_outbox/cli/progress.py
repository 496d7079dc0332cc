"""Progress of a relay on standard error: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from delta_outbox.relay import Summary

LINE_INTERVAL: Final = 5.0  # seconds, at least, between two lines

Report = Callable[["Summary"], None]


class Lines:
    """One line at a time, when something has changed and the last one is long enough ago.

    Args:
        stream: standard error.
        monotonic: seconds that never go back.
    """

    def __init__(self, stream: TextIO, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._monotonic = monotonic
        self._written_at = monotonic()
        self._last = ""

    def __call__(self, summary: Summary) -> None:
        """Write a line if it is time.

        Args:
            summary: what the relay has done so far.
        """
        now = self._monotonic()
        line = counted(summary)
        if line != self._last and now - self._written_at >= LINE_INTERVAL:
            self._stream.write(f"{line}\n")
            self._stream.flush()
            self._last, self._written_at = line, now


def counted(summary: Summary) -> str:
    """Return what a relay has done so far, in one line.

    Args:
        summary: its counters.
    """
    return (
        f"claimed {summary.claimed:,}, published {summary.published:,}, "
        f"retried {summary.retried:,}, dead {summary.dead:,}"
    )


@contextlib.contextmanager
def progress_on(stream: TextIO, *, expected: Callable[[], int]) -> Iterator[Report]:
    """Show progress for a block.

    Args:
        stream: standard error.
        expected: how many events wait; asked only where a bar needs it.
    """
    if not stream.isatty():
        yield Lines(stream)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from delta_outbox.cli.render import console_for

    total, started = expected(), time.monotonic()
    columns = (
        TextColumn("relay"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}  retried {task.fields[retried]}  dead {task.fields[dead]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console_for(stream), transient=True) as bar:
        task = bar.add_task("relay", total=total or None, rate="", retried=0, dead=0)

        def report(summary: Summary) -> None:
            finished = summary.published + summary.dead
            seconds = max(time.monotonic() - started, 1e-3)
            bar.update(
                task,
                completed=finished,
                total=max(total, finished) or None,  # more may have come since we asked
                rate=f"{finished / seconds:,.0f}/s",
                retried=f"{summary.retried:,}",
                dead=f"{summary.dead:,}",
            )

        yield report
