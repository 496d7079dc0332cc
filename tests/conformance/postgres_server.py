"""A real PostgreSQL: a private cluster in a temporary folder, on a free loopback port."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from delta_outbox.demo.kafka_server import WATCHDOG
from delta_outbox.demo.ports import free_ports

ROOT: Final = Path(__file__).resolve().parents[2]
READY_TIMEOUT: Final = 60.0  # seconds
STOP_TIMEOUT: Final = 10.0  # seconds until SIGTERM becomes SIGKILL
_START_TRIES: Final = 3  # a free port may be taken by somebody else before the server has it
_DEBIAN: Final = Path("/usr/lib/postgresql")
_USERS: Final = ("postgres", "nobody")  # who runs it where we are root: PostgreSQL refuses root


class PostgresNotStarted(Exception):
    """The PostgreSQL of the tests is missing, or it did not start: the message says why."""


def find_programs() -> Path:
    """Return the folder of initdb and postgres; install them where that needs no question.

    Raises:
        PostgresNotStarted: they are missing and cannot be installed.
    """
    found = next(_program_folders(), None)
    if found is None:
        subprocess.run(["sh", ROOT / "scripts" / "apt_install.sh", "postgresql"], check=False)
        found = next(_program_folders(), None)
    if found is None:
        raise PostgresNotStarted(
            "PostgreSQL is missing and cannot be installed here: install it "
            "(Debian, Ubuntu: sudo apt-get install postgresql; macOS: brew install postgresql), "
            "then run the tests again."
        )
    return found


def _program_folders() -> Iterator[Path]:
    versions = _DEBIAN.glob("*/bin/initdb")
    yield from (file.parent for file in sorted(versions, key=_major, reverse=True))
    initdb = shutil.which("initdb")
    if initdb is not None:
        yield Path(initdb).resolve().parent


def _major(file: Path) -> int:
    name = file.parents[1].name
    return int(name) if name.isdigit() else 0


class PostgresServer:
    """A server that belongs to this process; it ends with it, whatever the reason.

    Args:
        settings: of the server, beside its defaults.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        """Make the cluster and start the server.

        Raises:
            PostgresNotStarted: it is missing, or did not start.
        """
        self._programs = find_programs()
        self._settings = dict(settings or {})
        self._folder = Path(tempfile.mkdtemp(prefix="delta-outbox-postgres-"))
        self._as_user = self._unprivileged()
        self._watchdog: subprocess.Popen[str] | None = None
        self._pid = 0
        self._port = 0
        try:
            self._run(
                "initdb",
                "-D",
                "data",
                *("-U", "outbox", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"),
            )
            self._start_anywhere()
        except BaseException:
            self.close()
            raise

    @property
    def conninfo(self) -> str:
        """Return where it is, for clients of other processes."""
        return f"host=127.0.0.1 port={self._port} user=outbox dbname=postgres"

    def connect(self) -> psycopg.Connection[dict[str, Any]]:
        """Return a new connection; rows are dictionaries."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self._port,
            user="outbox",
            dbname="postgres",
            row_factory=dict_row,
            options="-c timezone=UTC",
        )

    def crash(self) -> None:
        """End the server without a checkpoint and start it again: it recovers from its log."""
        os.kill(self._pid, signal.SIGQUIT)
        self._wait_for_end()
        self._start()

    def close(self) -> None:
        """Stop the server and remove its folder."""
        if self._watchdog is not None:
            os.kill(self._pid, signal.SIGINT)  # at once, but in order
            self._wait_for_end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start_anywhere(self) -> None:
        for last in (*[False] * (_START_TRIES - 1), True):
            [self._port] = free_ports(1)
            try:
                self._start()
            except PostgresNotStarted:
                if last:
                    raise
            else:
                return

    def _start(self) -> None:
        command = [
            *self._as_user,
            str(self._programs / "postgres"),
            *("-D", "data", "-p", str(self._port), "-h", "127.0.0.1", "-k", str(self._folder)),
            *(word for item in self._settings.items() for word in ("-c", "=".join(item))),
        ]
        with (self._folder / "log").open("ab") as log:
            # Between us and the server: ends it when we are gone.
            self._watchdog = subprocess.Popen(
                [sys.executable, "-c", WATCHDOG, str(STOP_TIMEOUT), *command],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._watchdog.stdout is not None
        self._pid = int(self._watchdog.stdout.readline())
        deadline = time.monotonic() + READY_TIMEOUT
        while True:
            try:
                self.connect().close()
            except psycopg.OperationalError as error:
                if self._watchdog.poll() is not None or time.monotonic() > deadline:
                    self._wait_for_end()
                    raise PostgresNotStarted(self._last_words()) from error
                time.sleep(0.05)
            else:
                return

    def _wait_for_end(self) -> None:
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is None:
            return
        try:
            watchdog.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            pass  # closing its input makes the watchdog end the server
        finally:
            assert watchdog.stdin is not None
            assert watchdog.stdout is not None
            watchdog.stdin.close()
            watchdog.stdout.close()
            watchdog.wait()

    def _last_words(self) -> str:
        log = self._folder / "log"
        text = log.read_text(errors="replace") if log.exists() else ""
        return "PostgreSQL did not start: " + " | ".join(text.splitlines()[-5:])

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._as_user, str(self._programs / program), *arguments],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise PostgresNotStarted(f"{program} failed: {done.stderr.strip()[-500:]}")

    def _unprivileged(self) -> list[str]:
        """Return the words that run a command as somebody else where we are root."""
        if os.geteuid() != 0:
            return []
        user = next(name for name in _USERS if _exists(name))
        entry = pwd.getpwnam(user)
        os.chown(self._folder, entry.pw_uid, entry.pw_gid)
        ids = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
        return ["setpriv", *ids]


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
