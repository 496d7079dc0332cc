"""The demo: real flights through an outbox, and the query that proves that all arrived."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from delta_outbox.cli.logs import logging_to
from delta_outbox.cli.outcome import UnexpectedError
from delta_outbox.core.errors import OutboxError
from delta_outbox.demo.flights import DAYS
from delta_outbox.demo.story import Demo, Stopped
from delta_outbox.demo.terminal import Terminal
from delta_outbox.runtime.home import DEFAULT_NAME, HOME_VARIABLE, Home

if TYPE_CHECKING:
    from delta_outbox.demo.story import Kind

logger = logging.getLogger(__name__)

HOMES: Final[Mapping[Kind, str]] = {"jsonl": DEFAULT_NAME, "kafka": f"{DEFAULT_NAME}-kafka"}


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m delta_outbox.demo",
        description="Deliver the events of real flights through an outbox, and prove it.",
    )
    parser.add_argument(
        "--publisher",
        choices=sorted(HOMES),
        default="jsonl",
        help="jsonl: files in the home; kafka: a broker that is started for it (default: jsonl)",
    )
    parser.add_argument(
        "--home",
        type=Path,
        metavar="DIR",
        help=f"where the outbox is created (default: {HOME_VARIABLE}, "
        f"{HOMES['jsonl']} here, {HOMES['kafka']} for kafka)",
    )
    parser.add_argument(
        "--days",
        type=_days,
        default=DAYS,
        metavar="N",
        help="the first N days of the year only (default: all)",
    )
    parser.add_argument(
        "--debug", action="store_true", help="log in detail and show the trace of an error"
    )
    return parser.parse_args(argv)


def _days(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= DAYS:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {DAYS}. Got: {text!r}.")


def _home(named: Path | None, kind: Kind) -> Home:
    chosen = named or os.environ.get(HOME_VARIABLE, "").strip() or HOMES[kind]
    return Home(root=Path(chosen).expanduser().resolve()).create()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit code.

    Args:
        argv: the arguments; those of this process if left out.
    """
    arguments = _arguments(argv)

    terminal = Terminal()
    with logging_to(sys.stderr, debug=arguments.debug):
        try:
            return Demo(
                kind=arguments.publisher,
                home=_home(arguments.home, arguments.publisher),
                days=arguments.days,
                terminal=terminal,
                debug=arguments.debug,
            ).run()
        except OutboxError as error:
            logger.debug("demo_failed", exc_info=True)
            failure = error
        except KeyboardInterrupt:
            failure = Stopped("Interrupted.")
        except Exception as error:
            logger.debug("demo_failed", exc_info=True)
            failure = UnexpectedError.of(error)
    terminal.error(failure.as_dict())
    return failure.exit_code


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: end in order
    sys.exit(main())
