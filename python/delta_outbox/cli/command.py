"""The command `outbox`: one document or one text on standard output, the rest on standard error."""

from __future__ import annotations

import argparse
import contextlib
import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TextIO

from delta_outbox.cli import (
    append,
    build,
    inspection,
    lanes,
    maintenance,
    operations,
    pauses,
    relay,
    serve,
    todo,
    workflows,
)
from delta_outbox.cli.logs import logging_to, quieten_pyspark
from delta_outbox.cli.outcome import Invocation, Outcome, UnexpectedError, document_of
from delta_outbox.cli.parser import parse, split_dbt
from delta_outbox.core.errors import OutboxError
from delta_outbox.runtime.interrupts import INTERRUPTED, MESSAGE, Interruption, held

if TYPE_CHECKING:
    from delta_outbox.api import Outbox

logger = logging.getLogger(__name__)

Command = Callable[[argparse.Namespace, Invocation], Outcome]

COMMANDS: Final[Mapping[str, Command]] = {
    "init": build.init,
    "append": append.append,
    "relay": relay.relay,
    "status": inspection.status,
    "list": inspection.list_,
    "show": inspection.show,
    "replay": operations.replay,
    "kill": operations.kill,
    "release": operations.release,
    "pause": pauses.pause,
    "resume": pauses.resume,
    "refresh": build.refresh,
    "lanes": lanes.lanes,
    "maintain": maintenance.maintain,
    "purge": maintenance.purge,
    "up": serve.up,
    "down": serve.down,
    "serve": serve.serve,
    "dbt": build.dbt,
    "workflow": workflows.workflow,
    "todo": todo.todo,
}

READER_GONE: Final = 141  # exit code: 128 + SIGPIPE, as every program in a pipe


def run(argv: Sequence[str] | None, interruption: Interruption) -> int:
    """Run a command line and return its exit code.

    Args:
        argv: the arguments; those of this process if None.
        interruption: says whether the command was told to end.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    output = _Output(stdout=sys.stdout, stderr=sys.stderr, as_json="--json" in split_dbt(words)[0])
    try:
        return _run(words, output, interruption)
    except BrokenPipeError:
        # Whoever read us has enough; without this, Python complains when it flushes at its end.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE


def _run(words: Sequence[str], output: _Output, interruption: Interruption) -> int:
    if interruption.came:
        return output.interrupted()
    try:
        args = parse(words)
    except SystemExit:  # help or the version was asked for, and printed
        return 0
    except OutboxError as wrong:
        return output.error(wrong.as_dict(), wrong.exit_code)
    with logging_to(output.stderr, verbose=args.verbose, debug=args.debug):
        try:
            with output.kept_clean():
                outcome = COMMANDS[args.command](args, _invocation(words, args, output.stderr))
        except BrokenPipeError:
            raise
        except KeyboardInterrupt:
            interruption.came = True
            logger.debug("interrupted", exc_info=True)
        except Exception as error:
            # An interrupt has many shapes: dbt reports a failed run, pyspark a lost connection.
            logger.debug("command_failed", exc_info=True)
            if not interruption.came:
                known = error if isinstance(error, OutboxError) else UnexpectedError.of(error)
                return output.error(known.as_dict(), known.exit_code)
        if interruption.came:
            return output.interrupted()
        try:
            return output.outcome(outcome)
        except KeyboardInterrupt:
            return INTERRUPTED  # in the middle of a document, which a second one would only spoil


def _invocation(words: Sequence[str], args: argparse.Namespace, errors: TextIO) -> Invocation:
    @contextlib.contextmanager
    def opened(*, create: bool = False, only_served: bool = False) -> Iterator[Outbox]:
        from delta_outbox.api import open_outbox
        from delta_outbox.delta.storage_errors import full_disk
        from delta_outbox.runtime.session import lost_server

        if not args.debug:
            quieten_pyspark()
        with open_outbox(
            config=args.config,
            create=create,
            only_served=only_served,
            short_lived=args.command != "relay" or args.mode == "once",
            debug=args.debug,
        ) as outbox:
            if outbox.exclusive:
                serve.suggest_up(errors)
            try:
                yield outbox
            except OutboxError:
                raise
            except Exception as error:
                # Spark's errors can be read only while Spark runs.
                known = lost_server(error) or full_disk(error, table=outbox.tables.schema)
                raise known or UnexpectedError.of(error) from error

    def told() -> Mapping[str, object] | None:
        from delta_outbox.cli.answers import told_by_server

        return told_by_server(words, args)

    return Invocation(
        told=told,
        open=opened,
        open_served=functools.partial(opened, only_served=True),
        create=functools.partial(opened, create=True),
        errors=errors,
    )


class _Output:
    """Standard output and standard error of one command.

    Args:
        stdout: takes the document or the text, nothing else.
        stderr: takes logs, progress and errors.
        as_json: print documents.
    """

    def __init__(self, *, stdout: TextIO, stderr: TextIO, as_json: bool) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self._as_json = as_json

    def kept_clean(self) -> contextlib.AbstractContextManager[object]:
        """Keep what others print (dbt, a publisher) away from the one document."""
        if self._as_json:
            return contextlib.redirect_stdout(self.stderr)
        return contextlib.nullcontext()

    def outcome(self, outcome: Outcome) -> int:
        """Print what a command hands back and return its exit code."""
        if self._as_json:
            self._document(outcome.document)
            return outcome.exit_code
        from delta_outbox.cli.render import console_for

        console = console_for(self.stdout)
        for part in outcome.text():
            console.print(part)
        self.stdout.flush()
        return outcome.exit_code

    def interrupted(self) -> int:
        """Print that the command was told to end and return the exit code."""
        with contextlib.suppress(KeyboardInterrupt), held():
            self.error(MESSAGE, INTERRUPTED)
        return INTERRUPTED

    def error(self, error: Mapping[str, str], exit_code: int) -> int:
        """Print an error and return the exit code."""
        if self._as_json:
            self._document({"error": error})
            return exit_code
        from delta_outbox.cli.render import console_for, sentence

        console = console_for(self.stderr)
        console.print(sentence(f"{error['code']}: {error['message']}", style="bold red"))
        console.print(sentence(error["remedy"]))
        return exit_code

    def _document(self, document: Mapping[str, object]) -> None:
        self.stdout.write(document_of(document, pretty=self.stdout.isatty()) + "\n")
        self.stdout.flush()
