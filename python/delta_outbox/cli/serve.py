"""`outbox serve`: one session for several processes, until a signal ends it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from delta_outbox.cli.outcome import Invocation, Outcome

if TYPE_CHECKING:
    from rich.console import RenderableType

LOOK_INTERVAL: Final = 0.5  # seconds between two looks whether the server still runs


def serve(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Serve the home to other processes until SIGTERM or Ctrl-C."""
    from delta_outbox.cli.logs import quieten_pyspark
    from delta_outbox.cli.signals import say, stop_on_signals
    from delta_outbox.runtime.home import find_home
    from delta_outbox.runtime.server import serving

    home = find_home()
    if not args.debug:
        quieten_pyspark()
    started = time.monotonic()
    with (
        serving(home, port=args.port, short_lived=args.short_lived, debug=args.debug) as server,
        stop_on_signals(
            invocation.errors,
            first="Ending. Commands that still use this server end with an error.",
            second="Ended at once.",
        ) as stop,
    ):
        served = server.served
        say(
            invocation.errors,
            f"Serving {home.root} at {served.address} (process {served.pid}). Every command finds "
            "it by itself; end it with Ctrl-C or SIGTERM.",
        )
        while not stop.wait(LOOK_INTERVAL):
            server.check()
    seconds = round(time.monotonic() - started, 3)
    document = {
        "home": str(home.root),
        "address": served.address,
        "pid": served.pid,
        "duration_seconds": seconds,
    }

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import duration, sentence

        yield sentence(f"Served {home.root} for {duration(seconds)}.")

    return Outcome(document=document, text=text)
