"""Lets the process that serves a home run what only reads: it has Spark and the outbox at hand.
It puts the commits of other processes in place as well (delta/files/served_commits.py).

`status`, `list` and `show` then import no Spark and open no session. The server answers only who
sees the same outbox as it does: the same release, schema, clock and settings. Everybody else, and
whoever gets no answer, opens the outbox as every other command does.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from delta_outbox.cli import inspection
from delta_outbox.cli.outcome import Invocation, Outcome
from delta_outbox.cli.parser import parse
from delta_outbox.core.clock import CLOCK_OFFSET_VARIABLE
from delta_outbox.core.errors import OutboxError, ToldError
from delta_outbox.core.settings import Settings
from delta_outbox.core.version import __version__
from delta_outbox.runtime.home import Home, find_home
from delta_outbox.runtime.questions import ask
from delta_outbox.runtime.served_home import REMOTE_VARIABLE, find_served
from delta_outbox.runtime.settings_file import CONFIG_VARIABLE, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.api import Outbox

logger = logging.getLogger(__name__)

ANSWERED: Final[Mapping[str, Callable[[argparse.Namespace, Invocation], Outcome]]] = {
    "status": inspection.status,
    "list": inspection.list_,
    "show": inspection.show,
}


def told_by_server(words: Sequence[str], args: argparse.Namespace) -> Mapping[str, Any] | None:
    """Return the document that the server of the home has for a command; None if it has none.

    Args:
        words: the command line.
        args: the same, parsed.

    Raises:
        ToldError: the error with which the command ended there.
    """
    if args.debug or os.environ.get(REMOTE_VARIABLE):
        return None
    home = find_home()
    served = find_served(home)
    if served is None:
        return None
    settings = load_settings(home=home.root, path=args.config)
    answer = ask(served, question_of(words, settings)) or {}
    if "error" in answer:
        raise ToldError(answer["error"])
    return answer.get("document")


def question_of(words: Sequence[str], settings: Settings) -> Mapping[str, Any]:
    """Return what a server is asked.

    Args:
        words: the command line.
        settings: by which it is asked.
    """
    source = str(settings.source) if settings.source else None
    return {"words": list(words), "settings": source, "sees": what_is_seen(settings)}


def what_is_seen(settings: Settings) -> list[str]:
    """Return what must be the same where a command is run; of secrets only their names.

    Args:
        settings: by which it is run.
    """
    from delta_outbox.runtime.dbt import default_schema

    offset = os.environ.get(CLOCK_OFFSET_VARIABLE, "")
    return [__version__, default_schema(), offset, repr(settings)]


def settings_of(question: Mapping[str, Any], home: Home) -> Settings:
    """Return the settings by which a question is asked, as this process sees them.

    Args:
        question: as `question_of` makes it.
        home: the home that this process serves.

    Raises:
        BadSettings: they break a rule, here.
    """
    source = question["settings"]
    # Of whoever asks: neither our OUTBOX_CONFIG nor a file of our working folder.
    environ = {name: value for name, value in os.environ.items() if name != CONFIG_VARIABLE}
    return load_settings(
        home=home.root, path=source and Path(source), environ=environ, folder=home.root
    )


class Answers:
    """Answers commands that only read, one at a time, with an outbox that stays open.

    Args:
        home: the home that this process serves.
        errors: takes what a command says on standard error.
    """

    def __init__(self, home: Home, *, errors: TextIO) -> None:
        self._home = home
        self._errors = errors
        self._outbox: Outbox | None = None
        self._turns = threading.Lock()

    def __call__(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the document of a command, or its error; nothing if its caller is to run it.

        Args:
            question: as `told_by_server` asks it, or `ServedStore.put`.
        """
        from delta_outbox.delta.files.served_commits import COMMIT, put_for_others

        if COMMIT in question:
            return put_for_others(_session(), self._home.warehouse, question[COMMIT])
        settings = settings_of(question, self._home)
        args = parse(question["words"])
        if question["sees"] != what_is_seen(settings):
            return {}
        with self._turns:
            try:
                outbox = self._opened(settings)
                given = Invocation(
                    told=lambda: None,
                    open=lambda: contextlib.nullcontext(outbox),
                    open_served=lambda: contextlib.nullcontext(outbox),
                    create=lambda: contextlib.nullcontext(outbox),
                    errors=self._errors,
                )
                return {"document": ANSWERED[args.command](args, given).document}
            except OutboxError as error:
                return {"error": error.as_dict()}
            except Exception:
                # Whoever asked runs it again, and gets the error if it comes again.
                logger.warning("question_failed", exc_info=True)
                self._close()
                return {}

    def prepare(self) -> None:
        """Open the outbox and load what answers take, in a thread, so that the first is quick."""

        def status() -> None:
            with contextlib.suppress(OutboxError):  # whoever asks is told
                self(question_of(["status"], load_settings(home=self._home.root)))

        threading.Thread(target=status, name="prepare", daemon=True).start()

    def _opened(self, settings: Settings) -> Outbox:
        if self._outbox is not None and repr(self._outbox.settings) != repr(settings):
            self._close()
        if self._outbox is None:
            from delta_outbox.operations.outbox import outbox_on
            from delta_outbox.runtime.query_mode import use_small_query_mode

            # Relays of other processes work here as well: it is not exclusive.
            outbox = outbox_on(_session(), home=self._home, settings=settings, exclusive=False)
            use_small_query_mode(outbox.spark)
            self._outbox = outbox
        return self._outbox

    def _close(self) -> None:
        if self._outbox is not None:
            self._outbox.close()
            self._outbox = None


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()
