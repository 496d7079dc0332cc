"""The command `outbox` as the shell starts it: it can be interrupted before anything is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from delta_outbox.runtime.interrupts import held, interruptible


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Args:
        argv: the arguments; those of this process if left out, and then nothing can interrupt it
            any more once it has returned.
    """
    with interruptible(until_end=argv is None) as interruption:
        try:
            # A second, in which modules would be left half loaded.
            with held():
                from delta_outbox.cli.command import run
        except KeyboardInterrupt:
            from delta_outbox.cli.command import run
        return run(argv, interruption)
