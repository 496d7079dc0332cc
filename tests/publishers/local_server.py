"""A real server of its own process: started on a free loopback port, ended with this process."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

from delta_outbox.demo.kafka_server import WATCHDOG, freeze
from delta_outbox.demo.ports import free_ports

ROOT: Final = Path(__file__).resolve().parents[2]
READY_TIMEOUT: Final = 60.0  # seconds; on a busy machine
STOP_TIMEOUT: Final = 5.0  # seconds until SIGTERM becomes SIGKILL
_START_TRIES: Final = 3  # a free port may be taken by somebody else before the server has it
_FOLDERS: Final = os.pathsep.join(("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"))


class ServerNotStarted(Exception):
    """A server of the tests is missing, or it did not start: the message says why."""


def find_program(name: str, package: str) -> str:
    """Return the path of a server; install its package where that needs no question.

    Args:
        name: of the program.
        package: of Debian that holds it.

    Raises:
        ServerNotStarted: it is missing and cannot be installed.
    """
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), _FOLDERS))
    found = shutil.which(name, path=path)
    if found is None:
        subprocess.run(["sh", ROOT / "scripts" / "apt_install.sh", package], check=False)
        found = shutil.which(name, path=path)
    if found is None:
        raise ServerNotStarted(
            f"{name} is missing and cannot be installed here: install it (Debian, Ubuntu: "
            f"sudo apt-get install {package}), then run the tests again."
        )
    return found


class LocalServer(ABC):
    """A server that belongs to this process; it ends with it, whatever the reason."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="delta-outbox-server-"))
        self.port = 0
        self._watchdog: subprocess.Popen[str] | None = None
        self._pid = 0

    def __enter__(self) -> Self:
        try:
            for last in (*[False] * (_START_TRIES - 1), True):
                [self.port] = free_ports(1)
                try:
                    return self.start()
                except ServerNotStarted:
                    if last:
                        raise
        except BaseException:
            self.__exit__()
            raise
        raise AssertionError("the last try returns or raises")

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @abstractmethod
    def command(self) -> Iterable[str]:
        """Return the words that start the server on `port` in the foreground."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Return whether it answers, or raise OSError."""

    def start(self) -> Self:
        """Start the server, again on the same port and data; one that runs is left."""
        if self._watchdog is not None:
            return self
        with (self.folder / "log").open("ab") as log:
            self._watchdog = subprocess.Popen(
                [sys.executable, "-I", "-c", WATCHDOG, str(STOP_TIMEOUT), *self.command()],
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._watchdog.stdout is not None
        self._pid = int(self._watchdog.stdout.readline())
        deadline = time.monotonic() + READY_TIMEOUT
        while time.monotonic() < deadline and self._watchdog.poll() is None:
            with contextlib.suppress(OSError):
                if self.is_ready():
                    return self
            time.sleep(0.02)
        self.stop()
        said = " | ".join((self.folder / "log").read_text(errors="replace").splitlines()[-5:])
        raise ServerNotStarted(f"The server did not start: {said}")

    def stop(self) -> None:
        """Stop the server, kindly first; data and port are kept for `start`."""
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is None:
            return
        assert watchdog.stdin is not None
        assert watchdog.stdout is not None
        if watchdog.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGCONT)
        watchdog.stdin.close()
        watchdog.stdout.close()
        watchdog.wait()

    def kill(self) -> None:
        """End the server with SIGKILL, as a crash would."""
        os.kill(self._pid, signal.SIGKILL)
        self.stop()

    def pause(self) -> None:
        """Freeze the server: it keeps its connections and answers nothing."""
        freeze(self._pid)

    def resume(self) -> None:
        """Let a frozen server go on."""
        os.kill(self._pid, signal.SIGCONT)
