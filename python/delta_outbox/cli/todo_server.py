"""`outbox todo serve`, `consume` and `keys`: who takes answers, and who may give them."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.cli.outcome import Invocation, Outcome
from delta_outbox.core.errors import OutboxError, ServerNeeded

if TYPE_CHECKING:
    from rich.console import RenderableType

    from delta_outbox.core.settings import TodoSettings
    from delta_outbox.runtime.home import Home
    from delta_outbox.todo.item_thread import OpenOutbox


class ExtraMissing(OutboxError):
    """What the server of items is made of is not installed."""

    code = "EXTRA_MISSING"
    remedy = "Install it: pip install 'delta-outbox[todo]'."


def serve(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Answer requests for items until SIGTERM or Ctrl-C."""
    from delta_outbox.cli.signals import say, stop_on_signals
    from delta_outbox.core.clock import SystemClock

    try:
        from delta_outbox.todo import server
    except ModuleNotFoundError as error:
        raise ExtraMissing(f"`outbox todo serve` needs {error.name}.") from None
    home, settings = _served_home(args)
    if args.port is not None:
        settings = replace(settings, port=args.port)
    started = time.monotonic()
    with stop_on_signals(
        invocation.errors,
        first="Ending after the requests that are under way. Ctrl-C again ends at once.",
        second="Ended at once: what was answered is on record.",
    ) as stop:
        server.serve(
            lambda: _opened(invocation),
            settings,
            clock=SystemClock(),
            stop=stop,
            say=lambda address: say(
                invocation.errors,
                f"Answering at {address} (process {os.getpid()}). End it with Ctrl-C or SIGTERM.",
            ),
        )
    seconds = round(time.monotonic() - started, 3)

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import duration, sentence

        yield sentence(f"Answered for {duration(seconds)}.")

    document = {"home": str(home.root), "pid": os.getpid(), "duration_seconds": seconds}
    return Outcome(document=document, text=text)


def consume(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Take answers from topics of Kafka until SIGTERM or Ctrl-C."""
    from delta_outbox.cli.signals import say, stop_on_signals
    from delta_outbox.todo.queue import consumer

    home, settings = _served_home(args)
    started = time.monotonic()
    with stop_on_signals(
        invocation.errors,
        first="Ending after what is being written. Ctrl-C again ends at once.",
        second="Ended at once: what was not committed comes again, and is known.",
    ) as stop:
        taken = consumer.consume(
            lambda: _opened(invocation),
            settings,
            stop=stop,
            say=lambda topics: say(
                invocation.errors,
                f"Taking answers from {', '.join(topics)} (process {os.getpid()}). "
                "End it with Ctrl-C or SIGTERM.",
            ),
        )
    seconds = round(time.monotonic() - started, 3)

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import duration, sentence

        yield sentence(
            f"Took {taken.answers} answers within {duration(seconds)}; "
            f"{taken.dead_letters} messages are dead letters."
        )

    document = {
        "home": str(home.root),
        "pid": os.getpid(),
        "duration_seconds": seconds,
        "answers": taken.answers,
        "dead_letters": taken.dead_letters,
    }
    return Outcome(document=document, text=text)


def _served_home(args: argparse.Namespace) -> tuple[Home, TodoSettings]:
    from delta_outbox.runtime.home import find_home
    from delta_outbox.runtime.served_home import find_served, remote_address
    from delta_outbox.runtime.settings_file import load_settings

    home = find_home()
    if remote_address(find_served(home)) is None:
        raise ServerNeeded(home=home.root)
    return home, load_settings(home=home.root, path=args.config).todo


@contextlib.contextmanager
def _opened(invocation: Invocation) -> Iterator[OpenOutbox]:
    from delta_outbox.todo.item_thread import OpenOutbox
    from delta_outbox.todo.key_log import KeyLog
    from delta_outbox.workflow_engine.items import Items

    with invocation.open_served() as outbox:
        yield OpenOutbox(items=Items(outbox, ends_items=False), keys=KeyLog(outbox))


def add_key(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Add an API key, and show it once."""
    from delta_outbox.todo.key_log import KeyLog

    with invocation.open() as outbox:
        key, token = KeyLog(outbox).add(
            person=args.person, roles=args.role or [], actor=args.actor, reason=args.reason
        )
    document = {**key.shown(), "key": token}

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import facts, sentence

        yield facts(key.shown().items())
        yield ""
        yield sentence(f"The key: {token}", style="bold")
        yield sentence("Nobody can be shown it again. `outbox todo keys revoke` ends it.")

    return Outcome(document=document, text=text)


def list_keys(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """List the API keys that count."""
    from delta_outbox.todo.key_log import KeyLog

    with invocation.open() as outbox:
        rows = [key.shown() for key in KeyLog(outbox).current().values()]

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import Column, Rows, sentence

        if not rows:
            yield sentence("There are no keys: nobody is let in.")
            return
        yield Rows(columns=[Column(name=name) for name in rows[0]], rows=rows)

    return Outcome(document={"keys": rows}, text=text)


def revoke_key(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Revoke an API key."""
    from delta_outbox.todo.key_log import KeyLog

    with invocation.open() as outbox:
        key = KeyLog(outbox).revoke(args.id, actor=args.actor, reason=args.reason)

    def text() -> Iterable[RenderableType]:
        from delta_outbox.cli.render import sentence

        yield sentence(f"{key.id} of {key.person} is revoked: servers refuse it within 10 s.")

    return Outcome(document={"revoked": key.shown()}, text=text)


_KEYS: Final[Mapping[str, Callable[[argparse.Namespace, Invocation], Outcome]]] = {
    "add": add_key,
    "list": list_keys,
    "revoke": revoke_key,
}


def keys(args: argparse.Namespace, invocation: Invocation) -> Outcome:
    """Run one of the commands for API keys."""
    return _KEYS[args.keys_action](args, invocation)


COMMANDS: Final[Mapping[str, Any]] = {"serve": serve, "consume": consume, "keys": keys}
