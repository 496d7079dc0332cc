"""Starts the server of a home in the background, and ends it.

What `up` starts is `outbox serve` in a session of its own, and what `down` ends is whatever serves
the home. That one server starts is the home's lock: of two that begin at once the second one ends,
and who has started it waits for the first.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from delta_outbox.core.errors import HomeInUse, OutboxError, ToldError
from delta_outbox.runtime.home import HOME_VARIABLE, Home
from delta_outbox.runtime.home_lock import Holder, is_alive, is_free, open_by
from delta_outbox.runtime.interrupts import MESSAGE, held
from delta_outbox.runtime.ownership import open_own
from delta_outbox.runtime.served_home import Served, find_served

LOG: Final = "serve.log"  # in the folder of the home's logs
LOG_LINES: Final = 10  # of its end, in an error
POLL_INTERVAL: Final = 0.1  # seconds
END_TIMEOUT: Final = 30.0  # seconds; a server that is not ready yet and takes longer is killed

Say = Callable[[str], None]


class ServerNotStarted(OutboxError):
    """The server ended without an error of its own, or was not ready in time: see its log."""

    code = "SERVER_NOT_STARTED"
    remedy = "Read logs/serve.log, logs/jvm.log and logs/spark.log in the home, and run it again."


class ServerStillThere(OutboxError):
    """The server was told to end and has not: look at its log, or kill it."""

    code = "SERVER_STILL_THERE"


@dataclass(frozen=True, kw_only=True)
class Up:
    """A server that is ready.

    Args:
        served: where it is.
        is_new: this call has started it.
    """

    served: Served
    is_new: bool


def start_server(home: Home, *, options: Sequence[str] = (), max_wait: float, say: Say) -> Up:
    """Return when the home is served: by the server that is there, or by one that is started now.

    One that this call has started and that does not become ready is ended again, also when the
    call is interrupted.

    Args:
        home: the home.
        options: of `outbox serve`.
        max_wait: seconds to wait until it is ready.
        say: takes a sentence about what is waited for.

    Raises:
        HomeMoved: the home was moved while its server runs.
        ToldError: the server's own, where it ended with one.
        ServerNotStarted: it ended without one, or was not ready in time.
    """
    begun = time.monotonic()
    served = find_served(home)
    if served is not None:
        return Up(served=served, is_new=False)
    with contextlib.ExitStack() as started:
        child: _Child | None = None
        other: Holder | None = None
        while served is None:
            if child is None:
                before, other = other, server_of(home)
                if other is None:
                    child = started.enter_context(_started(home, options))
                    say(
                        f"Waiting until the server (process {child.process.pid}) is ready: it "
                        f"starts a Spark in {home.root}. Its log: {child.log}."
                    )
                elif other != before:
                    say(f"Waiting for the server that process {other.pid} starts or ends.")
            elif child.process.poll() is not None:
                error = child.error()
                if error.code != HomeInUse.code or server_of(home) is None:
                    raise error
                child = None  # another one was faster
            if time.monotonic() - begun > max_wait:
                raise _late(home, max_wait, child, other)
            time.sleep(POLL_INTERVAL)
            served = find_served(home)
        if child is None or child.process.pid != served.pid:
            return Up(served=served, is_new=False)
        child.leave()
        return Up(served=served, is_new=True)


def end_server(home: Home, *, max_wait: float, say: Say) -> Holder | None:
    """End the server of a home and return when the home is free.

    Args:
        home: the home.
        max_wait: seconds to wait for that.
        say: takes a sentence about what is waited for.

    Returns:
        Whose server has ended; None if there was none.

    Raises:
        ServerStillThere: it has not ended in time, or belongs to somebody else.
    """
    begun = time.monotonic()
    holder = server_of(home)
    if holder is None:
        return None
    if _holds(home, holder):
        try:
            os.kill(holder.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass  # it has just ended
        except PermissionError as error:
            raise ServerStillThere(
                f"The server of {home.root} (process {holder.pid}) belongs to another user.",
                remedy="Its owner, or root, can end it.",
            ) from error
    say(f"Waiting until the server (process {holder.pid}) has ended and {home.root} is free.")
    while not is_free(home.lock_file) and _is_held_by(home, holder.pid):
        if time.monotonic() - begun > max_wait:
            there = sorted(open_by(home.lock_file) or {holder.pid})
            raise ServerStillThere(
                f"The server of {home.root} (process {holder.pid}) was told to end and still has "
                f"the home after {max_wait:g} s.",
                remedy=(
                    f"Wait for it with `outbox down` again, or kill it: kill -9 "
                    f"{' '.join(map(str, there))}. What was in flight is delivered again then."
                ),
            )
        time.sleep(POLL_INTERVAL)
    return holder


def server_of(home: Home) -> Holder | None:
    """Return which process serves a home, or is about to; None if none does.

    Args:
        home: the home.
    """
    holder = home.lock.other_holder()
    return holder if holder is not None and holder.serves else None


def _is_held_by(home: Home, pid: int) -> bool:
    """Say whether a process is who signed the lock last, which it does anew with its JVM."""
    holder = home.lock.holder()
    return holder is None or holder.pid == pid


def _holds(home: Home, holder: Holder) -> bool:
    """Say whether a process that has signed the lock is still there: its number may be another's
    by now.
    """
    there = open_by(home.lock_file)
    return is_alive(holder.pid) if there is None else holder.pid in there


@dataclass(frozen=True, kw_only=True)
class _Child:
    """`outbox serve` on its way.

    Args:
        process: it.
        document: takes what it prints on standard output.
        log: takes the rest.
        since: where in the log its words begin.
    """

    process: subprocess.Popen[bytes]
    document: IO[bytes]
    log: Path
    since: int

    def error(self) -> OutboxError:
        """Return the error with which it has ended."""
        self.document.seek(0)
        try:
            error = json.loads(self.document.read())["error"]
        except (ValueError, KeyError):
            code = self.process.returncode
            return ServerNotStarted(
                f"The server ended before it was ready (exit {code}).{self.tail()}"
            )
        if error["code"] == MESSAGE["code"]:
            return ServerNotStarted(
                "The server was told to end before it was ready, by `outbox down` or a signal."
            )
        return ToldError(error)

    def tail(self) -> str:
        """Return the last lines that it has added to the log, as the end of a message."""
        with self.log.open("rb") as file:
            file.seek(self.since)
            lines = file.read().decode(errors="replace").splitlines()[-LOG_LINES:]
        return "\n".join([" The end of its log:", *lines]) if lines else " Its log is empty."

    def leave(self) -> None:
        """Let it go on without this process."""
        self.process.returncode = 0  # what is not waited for is no mistake

    def end(self) -> None:
        """End it, if it was not left and runs, and whoever interrupts this kills it."""
        if self.process.poll() is not None:
            return
        try:
            self.process.terminate()
            self.process.wait(END_TIMEOUT)
        except BaseException as error:
            with held():
                self.process.kill()  # its JVM ends with it
                self.process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise


@contextlib.contextmanager
def _started(home: Home, options: Sequence[str]) -> Iterator[_Child]:
    """Start `outbox serve` for a block; without `leave` it ends with the block."""
    log = home.logs / LOG
    home.logs.mkdir(mode=0o700, exist_ok=True)
    words = [sys.executable, "-P", "-m", "delta_outbox.cli", "serve", "--json", *options]
    with (
        os.fdopen(open_own(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as errors,
        tempfile.TemporaryFile() as document,
        contextlib.ExitStack() as ended,
    ):
        with held():
            process = subprocess.Popen(
                words,
                # Found by us, named to it; another folder than ours may be its working folder.
                env={**os.environ, HOME_VARIABLE: str(home.root)},
                stdin=subprocess.DEVNULL,
                stdout=document,
                stderr=errors,
                start_new_session=True,  # neither Ctrl-C nor the end of the terminal is for it
            )
            child = _Child(
                process=process, document=document, log=log, since=errors.seek(0, os.SEEK_END)
            )
            ended.callback(child.end)
        yield child


def _late(
    home: Home, max_wait: float, child: _Child | None, other: Holder | None
) -> ServerNotStarted:
    if child is not None:
        return ServerNotStarted(
            f"The server of {home.root} was not ready after {max_wait:g} s, and is ended."
            f"{child.tail()}",
            remedy=(
                "Run it again with a larger --max-wait if this machine is slow or busy. Else read "
                "logs/serve.log, logs/jvm.log and logs/spark.log in the home."
            ),
        )
    who = f"process {other.pid}" if other is not None else "another process"
    return ServerNotStarted(
        f"The server of {home.root} that {who} starts or ends was not ready after {max_wait:g} s.",
        remedy="Run it again, or end that server first: `outbox down`.",
    )
