"""The processes of a soak: a broker, `outbox serve`, relays; each ends with the soak."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from scripts import environment
from scripts.soak.folder import Folder

from delta_outbox.runtime.home import Home
from delta_outbox.runtime.served_home import find_served

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = "import sys; from delta_outbox.cli.main import main; sys.exit(main())"
PATIENCE = 300.0  # seconds for anything that a process is waited for
END_LIMIT = 30.0  # seconds for a process that was asked to end
BATCH_SIZE = 200
RELAYS = 2  # one at work, one that stands by and takes over

_SAID = re.compile(r" (?:(standing_by) |batch claim_id=([\w-]+) .*\bpublished=[1-9]\d*\b)")


class SoakFailed(Exception):
    """The soak cannot go on: something ended or hangs that must not."""


def wait_for(condition: Callable[[], object], what: str, *, limit: float = PATIENCE) -> None:
    """Wait until a condition holds.

    Args:
        condition: asked every 20 ms.
        what: is waited for.
        limit: seconds.

    Raises:
        SoakFailed: it takes longer.
    """
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > limit:
            raise SoakFailed(f"{what}: not within {limit:.0f} s")
        time.sleep(0.02)


@dataclass(kw_only=True)
class Relay:
    """A relay process; the rest is as of the last `listen`.

    Args:
        process: the process.
        said: what it says.
        batches: that it has recorded, since it first delivered something.
        claim_id: of the last of them.
        stands_by: another one is at work, and it waits for the end of that one.
    """

    process: subprocess.Popen[bytes]
    said: Path
    _read: int = 0
    batches: int = 0
    claim_id: str = ""
    stands_by: bool = False

    @property
    def lives(self) -> bool:
        """Say whether it runs."""
        return self.process.poll() is None

    def listen(self) -> int:
        """Take in what it has said since the last call, and return its batches."""
        with self.said.open("rb") as stream:
            stream.seek(self._read)
            text = stream.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        for match in _SAID.finditer(whole.decode(errors="replace")):
            self.stands_by = match[1] is not None
            if not self.stands_by:
                self.batches += 1
                self.claim_id = match[2]
        return self.batches


class Processes:
    """Starts commands in the home of a soak, and ends them.

    Args:
        folder: of the soak.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.home = Home(root=folder.home).create()
        self._started = 0
        self._server: subprocess.Popen[bytes] | None = None
        self.relays: list[Relay] = []

    # --- the server --------------------------------------------------------------------------

    def serve(self) -> str:
        """Start `outbox serve` and return its address, token included.

        Raises:
            SoakFailed: it does not start.
        """
        server = self._start("serve", "--short-lived")
        self._server = server
        wait_for(
            lambda: find_served(self.home) is not None or server.poll() is not None, "outbox serve"
        )
        served = find_served(self.home)
        if served is None:
            raise SoakFailed(f"outbox serve: exit {server.poll()}: {self.last_words()}")
        return served.url

    def end_leftover(self) -> None:
        """End the server of a soak that was killed itself; its relays end by themselves then."""
        served = find_served(self.home)
        if served is not None:
            os.kill(served.pid, signal.SIGTERM)
            wait_for(lambda: find_served(self.home) is None, "the end of the former server")

    def jvm(self) -> psutil.Process:
        """Return the JVM of the server.

        Raises:
            SoakFailed: there is none.
        """
        assert self._server is not None
        for child in psutil.Process(self._server.pid).children(recursive=True):
            if child.name() == "java":
                return child
        raise SoakFailed("the server has no JVM")

    def workers(self, broker: str) -> Iterator[psutil.Process]:
        """Yield the Python workers that are connected to the broker now: they publish.

        Args:
            broker: its address.
        """
        port = int(broker.rpartition(":")[2])
        for child in self.jvm().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if any(port in c.raddr[1:] for c in child.net_connections("tcp")):
                    yield child

    def bury(self) -> None:
        """After the death of the JVM: end the relays, which have nobody to talk to, and wait.

        Raises:
            SoakFailed: `outbox serve` goes on without its JVM.
        """
        for relay in self.relays:
            relay.process.kill()
            relay.process.wait()
        self.relays = []
        assert self._server is not None
        server = self._server
        wait_for(lambda: server.poll() is not None, "the end of outbox serve")
        if server.returncode == 0:
            raise SoakFailed("outbox serve: its JVM was killed, and it ended with exit 0")
        self._server = None

    # --- relays ------------------------------------------------------------------------------

    def keep_relays(self) -> None:
        """Start relays for those that are gone.

        Raises:
            SoakFailed: a relay ended that was not killed.
        """
        for relay in self.relays:
            code = relay.process.poll()
            if code is not None and code != -signal.SIGKILL:
                said = relay.said.read_text(errors="replace")[-2000:]
                raise SoakFailed(f"a relay ended by itself, exit {code}: {said}")
        self.relays = [relay for relay in self.relays if relay.lives]
        while len(self.relays) < RELAYS:
            process = self._start("relay", "--continuous", "--verbose")
            self.relays.append(Relay(process=process, said=self._said()))

    # --- commands ----------------------------------------------------------------------------

    def run(self, *words: str) -> None:
        """Run a command to its end.

        Args:
            words: of the command.

        Raises:
            SoakFailed: it does not end with exit 0.
        """
        process = self._start(*words)
        try:
            code = process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if code != 0:
            raise SoakFailed(f"outbox {' '.join(words)}: exit {code}: {self.last_words()}")

    def last_words(self) -> str:
        """Return the end of what the command said that was started last."""
        return self._said().read_text(errors="replace")[-2000:]

    def end(self) -> None:
        """End everything: kindly, so that nothing stays claimed, then at once."""
        relays = [relay.process for relay in self.relays]
        _end(relays)
        _end([self._server] if self._server is not None else [])
        self.relays, self._server = [], None

    def _said(self) -> Path:
        return self._folder.said / f"{os.getpid()}-{self._started:04}"

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        self._started += 1
        with self._said().open("wb") as said:
            return subprocess.Popen(
                [sys.executable, "-c", COMMAND, *words, "--json"],
                env={**environment.plain(), "OUTBOX_HOME": str(self.home.root)},
                cwd=self._folder.root,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,  # Ctrl-C is for us; we end them in order
            )


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + END_LIMIT
    for process in processes:
        try:
            process.wait(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
