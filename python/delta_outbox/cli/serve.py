"""`outbox serve`, `up` and `down`: one Spark for several processes, in sight or behind."""

from __future__ import annotations

import argparse
import functools
import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TextIO

from delta_outbox.cli.outcome import Invocation, Outcome

if TYPE_CHECKING:
    from rich.console import RenderableType

logger = logging.getLogger(__name__)

LOOK_INTERVAL: Final = 0.5  # seconds between two looks whether the server still runs


def serve(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Serve the home to other processes until SIGTERM or Ctrl-C."""
    from delta_outbox.cli.answers import Answers
    from delta_outbox.cli.logs import quieten_pyspark
    from delta_outbox.cli.signals import say, stop_on_signals
    from delta_outbox.delta.storage_errors import writing_to
    from delta_outbox.runtime.dead_clients import LOOK_SECONDS
    from delta_outbox.runtime.home import find_home
    from delta_outbox.runtime.server import serving

    home = find_home()
    if not args.debug:
        quieten_pyspark()
    started = time.monotonic()
    answers = Answers(home, errors=invocation.errors)
    with (
        writing_to(str(home.root)),
        serving(
            home,
            port=args.port,
            answer=answers,
            short_lived=args.short_lived,
            debug=args.debug,
        ) as server,
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
        if not args.short_lived:
            answers.prepare()
        look_again = time.monotonic()
        while not stop.wait(LOOK_INTERVAL):
            server.check()
            if time.monotonic() >= look_again:
                server.end_sessions_of_the_dead()
                look_again = time.monotonic() + LOOK_SECONDS
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


def up(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Start `outbox serve` in the background, unless the home is served, and wait until it is."""
    from delta_outbox.cli.signals import say
    from delta_outbox.delta.storage_errors import writing_to
    from delta_outbox.runtime.background_server import start_server
    from delta_outbox.runtime.home import find_home

    home = find_home()
    with writing_to(str(home.root)):
        server = start_server(
            home,
            options=_options(args),
            max_wait=args.max_wait,
            say=functools.partial(say, invocation.errors),
        )
    served = server.served
    document = {
        "home": str(home.root),
        **served.as_dict(),
        "started": server.is_new,
    }

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        word = "Up" if server.is_new else "Up already"
        yield sentence(
            f"{word}: {home.root} at {served.address} (process {served.pid}), since "
            f"{document['since']}."
        )
        yield sentence("Every command finds it by itself; `outbox down` ends it.")

    return Outcome(document=document, text=text)


def down(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """End the server of the home, and wait until the home is free."""
    from delta_outbox.cli.signals import say
    from delta_outbox.runtime.background_server import end_server, server_of
    from delta_outbox.runtime.home import find_home
    from delta_outbox.store.presence import Presence

    home = find_home()
    relays = Presence(home.relays).there() if server_of(home) else []
    if relays:
        say(
            invocation.errors,
            f"Relays at work through it: {', '.join(relays)}. They end with SERVER_UNREACHABLE; "
            "what they have in flight is sent again by the next one. Stop relays first, and "
            "nothing is sent twice.",
        )
    ended = end_server(home, max_wait=args.max_wait, say=functools.partial(say, invocation.errors))
    document = {
        "home": str(home.root),
        "pid": ended.pid if ended else None,
        "ended": ended is not None,
        "relays": relays,
    }

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        if ended is not None:
            yield sentence(
                f"Down: the server (process {ended.pid}) has ended, {home.root} is free."
            )
        else:
            yield sentence(f"Nothing is up in {home.root}.")

    return Outcome(document=document, text=text)


def suggest_up(errors: TextIO) -> None:
    """Say, at a terminal or at level info, how to get the next answers without a wait.

    Args:
        errors: standard error.
    """
    from delta_outbox.cli.signals import say

    if errors.isatty():
        say(
            errors, "This command started a Spark of its own. `outbox up` makes the next ones fast."
        )
    else:
        logger.info("spark_of_its_own", extra={"faster": "outbox up"})


def _options(args: argparse.Namespace) -> list[str]:
    """Return what `outbox serve` is told of what `up` was told."""
    options = ["--verbose"]
    if args.port is not None:
        options += ["--port", str(args.port)]
    if args.short_lived:
        options.append("--short-lived")
    if args.debug:
        options.append("--debug")
    return options
