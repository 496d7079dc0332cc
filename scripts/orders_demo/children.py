"""The processes of the demo: third parties, a relay, a server of items, people. All of them end
with the demo.

What dies is started again, as whoever runs it for good would have it. What was being called then is
written down: the audit asks whose call that may have cost.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import psutil
from ledger_files import THIRD_PARTIES, Writer
from scripts.orders_demo import EXAMPLE
from scripts.orders_demo.folder import HOSTS, Folder

from delta_outbox.core.errors import OutboxError

PATIENCE: Final = 60.0  # seconds, for a process to end
TRIES: Final = 3  # of a command, while what it works with may be killed
_TITLES: Final = {
    "relay": "The relay",
    "todo": "The server of items",
    "people": "The process of people",
}
MOST_DEATHS: Final = 20  # of relay, server of items and people, after which the demo gives up
HOST_MODULE: Final = "delta_outbox.workflow_engine.hosts.host"


class DemoFailed(OutboxError):
    """A process of the demo ended, and not as it should: see its log."""

    code = "DEMO_FAILED"
    remedy = "Read the log, and run the demo again: it goes on where it stopped."


def environment(folder: Folder) -> dict[str, str]:
    """Return the environment of processes that work in the outbox of a folder.

    Args:
        folder: of the demo.
    """
    dropped = ("SPARK_", "PYSPARK_", "DBT_", "OUTBOX_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(dropped) or name == "OUTBOX_CACHE"
    }
    return {**kept, "OUTBOX_HOME": str(folder.home.root)}


def outbox(
    folder: Folder, *words: str, fine: tuple[int, ...] = (0,), tries: int = 1
) -> dict[str, Any]:
    """Run a command of the command line to its end, and return its document.

    Args:
        folder: of the demo.
        words: of the command.
        fine: exit codes that are no failure.
        tries: how often it is tried, where the server that it works with may be killed.

    Raises:
        DemoFailed: it failed, the last time as well.
    """
    for _ in range(tries - 1):
        with contextlib.suppress(DemoFailed):
            return _outbox(folder, words, fine)
    return _outbox(folder, words, fine)


def _outbox(folder: Folder, words: tuple[str, ...], fine: tuple[int, ...]) -> dict[str, Any]:
    log = folder.logs / f"{words[0]}.log"
    with (
        log.open("ab") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "delta_outbox.cli", *words, *_json(words)],
            cwd=folder.root,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as command,
    ):
        _commands.add(command)
        try:
            said, _ = command.communicate()
        except BaseException:
            command.kill()
            raise
        finally:
            _commands.discard(command)
        code = command.returncode
        if words[0] == "dbt" or code not in fine:  # else it may be a key or a link
            errors.write(said)
    if code not in fine:
        raise DemoFailed(f"`outbox {' '.join(words)}` ended with exit {code}: {log}.")
    if words[0] == "dbt":
        return {}
    document: dict[str, Any] = json.loads(said)
    return document


_commands: Final[set[subprocess.Popen[bytes]]] = set()


@contextlib.contextmanager
def beside(most: int) -> Iterator[ThreadPoolExecutor]:
    """Run functions beside a block; if it fails, commands of theirs are ended, too.

    Args:
        most: at the same time.
    """
    with ThreadPoolExecutor(most) as threads:
        try:
            yield threads
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            for one in tuple(_commands):
                one.kill()
            raise


def _json(words: tuple[str, ...]) -> tuple[str, ...]:
    return () if words[0] == "dbt" else ("--json",)


@dataclass
class Children:
    """The processes of one demo.

    Args:
        folder: of the demo.
        seed: of what they do.
    """

    folder: Folder
    seed: int
    urls: dict[str, str] = field(default_factory=dict)
    todo: str = ""  # where the server of items listens
    deaths: int = 0
    _seen_alive: float = field(default_factory=time.time)
    _third_parties: list[subprocess.Popen[str]] = field(default_factory=list)
    _workers: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    _hosts: dict[int, set[int]] = field(default_factory=dict)

    def start_third_parties(self) -> None:
        """Start all third parties, and note where they listen."""
        for name in THIRD_PARTIES:
            words = ["third_party.py", name, "--seed", str(self.seed)]
            words += ["--ledger", str(self.folder.ledgers / f"{name}.jsonl")]
            self._third_parties.append(self._start(name, words, stdout=subprocess.PIPE))
        for name, child in zip(THIRD_PARTIES, self._third_parties, strict=True):
            assert child.stdout is not None
            port = child.stdout.readline().strip()
            if not port:
                raise self._failed(name, child)
            self.urls[name] = f"http://127.0.0.1:{port}"

    def start_workers(self) -> None:
        """Start a relay, the server of items, and the people who answer them."""
        self._seen_alive = time.time()
        for name in self._words():
            self._workers[name] = self._start(name, self._words()[name])

    def look(self) -> list[str]:
        """Start again what has died, note who it was, and return that in sentences.

        Raises:
            DemoFailed: a third party has died, or others did so too often.
        """
        for name, third_party in zip(THIRD_PARTIES, self._third_parties, strict=True):
            if third_party.poll() is not None:
                raise self._failed(name, third_party)
        now = time.time()
        said = ["A host has died: the relay starts another one."] * self._count_hosts()
        dead = {name: one for name, one in self._workers.items() if one.poll() is not None}
        if "relay" in dead:
            note_death(self.folder, "relay", calls=HOSTS, seen_alive=self._seen_alive)
        self._seen_alive = now
        if not dead:
            return said
        self.deaths += len(dead)
        if self.deaths > MOST_DEATHS:
            raise self._failed(*next(iter(dead.items())))
        # It may have been the server that died.
        if outbox(self.folder, "up", "--max-wait", "600", tries=TRIES)["started"]:
            said.append("Spark has died, and was started again.")
        for name, one in dead.items():
            _close(one)
            self._workers[name] = self._start(name, self._words()[name])
            said.append(f"{_TITLES[name]} has died, and was started again.")
        return said

    def end_workers(self) -> None:
        """Let relay, server of items and people end in order."""
        for one in self._workers.values():
            one.terminate()
        for name, one in self._workers.items():
            try:
                one.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                raise DemoFailed(f"{name} does not end: {self._log(name)}.") from None
            _close(one)
        self._workers = {}

    def end(self) -> None:
        """End all that is left, at once."""
        for one in (*self._workers.values(), *self._third_parties):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()
            _close(one)

    def _words(self) -> Mapping[str, list[str]]:
        people = ["people.py", "--seed", str(self.seed), "--urls", json.dumps(self.urls)]
        people += ["--ledgers", str(self.folder.ledgers)]
        people += ["--delivered", str(self.folder.home.delivered)]
        people += ["--todo", self.todo, "--keys", str(self.folder.keys)]
        command = ["-m", "delta_outbox.cli"]
        return {
            "relay": [*command, "relay", "--continuous"],
            "todo": [*command, "todo", "serve"],
            "people": people,
        }

    def _start(
        self, name: str, words: list[str], *, stdout: int = subprocess.DEVNULL
    ) -> subprocess.Popen[str]:
        if words[0].endswith(".py"):
            words = [str(EXAMPLE / words[0]), *words[1:]]
        with self._log(name).open("ab") as errors:
            return subprocess.Popen(
                [sys.executable, str(EXAMPLE / "leash.py"), *words],
                cwd=self.folder.root,
                env=environment(self.folder),
                stdin=subprocess.PIPE,  # it ends when this is closed
                stdout=stdout,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is for the demo, which ends them in order
                text=True,
            )

    def _count_hosts(self) -> int:
        """Note the hosts that are gone while their relay is there, and return how many."""
        relay = self._workers["relay"]
        there = {one.pid for one in hosts_of(relay.pid)}
        gone = self._hosts.get(relay.pid, set()) - there
        if relay.poll() is not None:
            return 0
        for _ in gone:
            note_death(self.folder, "host", calls=1, seen_alive=self._seen_alive)
        self._hosts = {relay.pid: there}
        return len(gone)

    def _log(self, name: str) -> Path:
        return self.folder.logs / f"{name}.log"

    def _failed(self, name: str, child: subprocess.Popen[str]) -> DemoFailed:
        return DemoFailed(f"{name} ended with exit {child.wait()}: {self._log(name)}.")


def hosts_of(relay: int) -> list[psutil.Process]:
    """Return the hosts of a relay.

    Args:
        relay: its process id.
    """
    try:
        children = psutil.Process(relay).children()
    except psutil.NoSuchProcess:
        return []
    return [one for one in children if HOST_MODULE in _words_of(one)]


def _words_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def note_death(folder: Folder, who: str, *, calls: int, seen_alive: float) -> None:
    """Write down that something has died, between then and now.

    Args:
        folder: of the demo.
        who: relay, host, or demo.
        calls: of black boxes at most, that may have been under way in it.
        seen_alive: when it was last seen alive, in seconds since 1970.
    """
    Writer(folder.deaths).write(died=who, calls=calls, seen_alive=round(seen_alive, 3))


def _close(child: subprocess.Popen[str]) -> None:
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            _closed(stream)


def _closed(stream: IO[str]) -> None:
    with contextlib.suppress(BrokenPipeError):
        stream.close()
