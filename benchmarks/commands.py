"""Commands of the project as people run them: each a process, in a home of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.results import BenchmarkFailed
from scripts import environment

from delta_outbox.dbt import project_dir
from delta_outbox.home import Home
from delta_outbox.served import find_served

PATIENCE: Final = 600.0  # seconds for anything that a process is waited for
EVENT_TYPE: Final = "bench.event"
KEYS: Final = 500
_ROOT: Final = Path(__file__).resolve().parents[1]
_END: Final = 60.0  # seconds for a process that was asked to end
_OUTBOX: Final = "import sys; from delta_outbox.cli.main import main; sys.exit(main())"
_DBT: Final = "import sys; from delta_outbox.cli.dbt_launcher import main; sys.exit(main())"


class Commands:
    """Runs commands in a home.

    Args:
        home: which need not exist.
        variables: of the environment.
    """

    def __init__(self, home: Home, **variables: str) -> None:
        self.home = home
        plain = environment.plain()
        self._environment = {
            **plain,
            **variables,
            "OUTBOX_HOME": str(home.root),
            # A relay imports a publisher of the benchmarks.
            "PYTHONPATH": os.pathsep.join((plain["PYTHONPATH"], str(_ROOT))),
        }
        self._said = home.root.with_name("said")
        self._started = 0

    def outbox(self, *words: str) -> tuple[float, Any]:
        """Run an `outbox` command to its end, and return its seconds and its document.

        Args:
            words: of the command.

        Raises:
            BenchmarkFailed: it does not end with exit 0.
        """
        seconds, output = self._run(_OUTBOX, *words, "--json")
        return seconds, json.loads(output)

    def dbt(self, *words: str) -> float:
        """Run a dbt command to its end, and return its seconds.

        Args:
            words: of the command.

        Raises:
            BenchmarkFailed: it does not end with exit 0.
        """
        project, files = project_dir(), self.home.root.with_name("dbt")
        places = {
            "--project-dir": project,
            "--profiles-dir": project / "profiles",
            "--target-path": files / "target",
            "--log-path": files / "logs",
        }
        given = (str(one) for pair in places.items() for one in pair)
        return self._run(_DBT, *words, *given)[0]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start an `outbox` command and leave it running.

        Args:
            words: of the command.
        """
        return self._popen(_OUTBOX, *words)

    @contextlib.contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run an `outbox` command beside a block; it is asked to end afterwards, if it still runs.

        Args:
            words: of the command.
        """
        process = self.start(*words)
        try:
            yield process
        finally:
            end(process)

    @contextlib.contextmanager
    def serving(self) -> Iterator[str]:
        """Run `outbox serve` for a block, and give its address, token included.

        Raises:
            BenchmarkFailed: it does not start.
        """
        with self.running("serve") as server:
            self.wait(lambda: find_served(self.home) is not None, "outbox serve", server)
            served = find_served(self.home)
            assert served is not None
            yield served.url

    def wait(
        self,
        condition: Callable[[], object],
        what: str,
        *processes: subprocess.Popen[str],
        every: float = 0.05,
    ) -> None:
        """Wait until a condition holds.

        Args:
            condition: is asked again and again.
            what: is waited for.
            processes: that must not end meanwhile.
            every: seconds between two questions.

        Raises:
            BenchmarkFailed: it takes too long, or a process has ended.
        """
        until = time.monotonic() + PATIENCE
        while not condition():
            ended = [process for process in processes if process.poll() is not None]
            if ended or time.monotonic() > until:
                raise BenchmarkFailed(f"{what}: not within {PATIENCE:.0f} s. {self.last_words()}")
            time.sleep(every)

    def check_published(self, count: int) -> None:
        """Demand that so many events are on record as published.

        Args:
            count: all that were appended.

        Raises:
            BenchmarkFailed: there are more or fewer.
        """
        _, status = self.outbox("status")
        if status["counts"]["PUBLISHED"] != count:
            raise BenchmarkFailed(f"{count} events should be PUBLISHED: {status['counts']}")

    def last_words(self) -> str:
        """Return the end of what the commands said that were started last."""
        files = sorted(self._said.glob("*"))[-3:]
        return "\n".join(file.read_text(errors="replace")[-1000:] for file in files)

    def _run(self, code: str, *words: str) -> tuple[float, str]:
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            env=self._environment,
            cwd=self.home.root.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - started
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[-500:]
            raise BenchmarkFailed(f"{' '.join(words)}: exit {done.returncode}: {said}")
        return seconds, done.stdout

    def _popen(self, code: str, *words: str) -> subprocess.Popen[str]:
        self._said.mkdir(exist_ok=True)
        self._started += 1
        with (self._said / f"{self._started:04}").open("w") as said:
            return subprocess.Popen(
                [sys.executable, "-c", code, *words],
                env=self._environment,
                cwd=self.home.root.parent,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                text=True,
            )


def end(process: subprocess.Popen[str]) -> None:
    """Ask a process to end, and end it if it does not."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=_END)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


@contextlib.contextmanager
def commands(
    publisher: str = 'type = "jsonl"', *, relay: str = "", **variables: str
) -> Iterator[Commands]:
    """Make an outbox in a new home for a block; its destination are files.

    Args:
        publisher: lines of the destination's table.
        relay: lines of the relay's.
        variables: of the environment of every command.
    """
    with tempfile.TemporaryDirectory(
        prefix="delta-outbox-benchmark-", ignore_cleanup_errors=True
    ) as folder:
        made = Commands(Home(root=Path(folder).resolve() / "home"), **variables)
        made.outbox("init")
        made.home.write_settings(f"[relay]\n{relay}\n\n[publishers.default]\n{publisher}\n")
        yield made


def policy(**given: str) -> str:
    """Return the insert of a policy for the events of `insert`, before all others.

    Args:
        given: columns that are not as in the row for everything else.
    """
    columns = {
        "event_type": EVENT_TYPE,
        "event_type_regex": f"^{EVENT_TYPE}$",
        "destination": "default",
        "route": "{event_type}",
        "format": "raw",
        "ordering": "strict",
        "order_scope": "key",
        "on_dead": "continue",
        **given,
    }
    values = ", ".join(f"'{value}'" for value in columns.values())
    return (
        f"insert into outbox.policy_rows (position, {', '.join(columns)}) select -1, {values} "
        "where not exists (select * from outbox.policy_rows where position = -1)"
    )


def insert(first: int, count: int) -> str:
    """Return the insert of events whose numbers follow on each other.

    Args:
        first: the first number.
        count: how many.
    """
    return (
        "insert into outbox.outbox_events (event_id, event_type, payload, ordering_key, ordinal) "
        f"select concat('event-', lpad(id, 9, '0')), '{EVENT_TYPE}', "
        "cast(cast(id as string) as binary), "
        f"concat('key-', id % {KEYS}), id from range({first}, {first + count})"
    )


def number_of(event_id: str) -> int:
    """Return the number of an event of `insert`."""
    return int(event_id.removeprefix("event-"))
