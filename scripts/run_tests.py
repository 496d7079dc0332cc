"""Run the tests, a pytest process per suite, and let nothing pass that did not run.

A suite is a folder below tests/, with all that is below it but for what needs a process of its own
(scripts/tiers/suites.py): a process holds one SparkSession. As many Sparks run beside each other as
there are cores and memory, up to three; beside them, one after the other, the suites without Spark.
A skipped or expected failure counts as a failure, because a promise that was not tried is not kept.
What pytest prints is in build/tests.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.tiers.process import LOGS, Process, Test
from scripts.tiers.suites import FOLDERS, LONG_FOLDERS, PARTS, TESTS, Suite, Tier, suites

from delta_outbox.runtime.java import find_java
from delta_outbox.runtime.spark_settings import class_archive

MEMORY = 5 * 1024**3  # bytes: a Spark, a broker, Python
AT_ONCE = 3  # of these
# They start no Spark; in this order, so that whoever broke a unit test knows soon.
LIGHT = ("unit", "publishers", "publishers/kit", "railway", "conformance", "mutants")
# Of the others, those that take longest, so that they begin first.
LONG = (
    "integration",
    "acceptance",
    "faults/crashes",
    "faults/soak",
    "faults/exactly_once",
    "faults/interrupts",
    "faults/served",
)
# Of the unit tests, those that mostly wait.
WAITING_FILES = (
    TESTS / "unit" / "runtime" / "test_home_lock.py",
    TESTS / "unit" / "publishers" / "test_kafka.py",
)
PROGRESS_SECONDS = 15
SLOWEST = 10  # tests that are named at the end
REASON_HEAD, REASON_TAIL = 2, 8  # lines of why a test failed that are told again at the end
REASON_WIDTH = 160  # characters of such a line


def room() -> int:
    """Return how many Sparks may run beside each other on this machine."""
    cores = os.cpu_count() or 1
    return max(1, min(AT_ONCE, cores, psutil.virtual_memory().available // MEMORY))


def is_for_two(suite: Suite) -> bool:
    """Say whether two workers share the files of a suite; the tests of other folders start many
    processes. With one, integration leaves a core idle for half of a run.
    """
    return suite.name in ("integration", "publishers", "publishers/kit")


def processes_of(suite: Suite, *, shared: bool) -> list[Process]:
    """Return the processes of a suite, which run beside each other.

    Of thousands of short tests, the talk between the processes of xdist costs as much CPU time as
    the tests of one of them; so the unit tests are shared out beforehand.

    Args:
        suite: whose tests.
        shared: whether the machine has room for two processes.
    """
    options: list[str] = []
    shares = [suite.files]
    if shared and suite.name == "unit":
        working = [file for file in suite.files if file not in WAITING_FILES]
        waiting = [file for file in suite.files if file in WAITING_FILES]
        shares = [share for share in (working[::2], working[1::2], waiting) if share]
    elif shared and is_for_two(suite):
        options = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
    named = suite.name.replace("/", "-")
    return [
        Process(
            name=suite.name,
            files=share,
            tier=suite.tier,
            options=options,
            log=LOGS / f"{named}{f'-{number}' if number else ''}.log",
        )
        for number, share in enumerate(shares)
    ]


def ended_in(processes: Iterable[Process]) -> list[Test]:
    """Return the tests that have ended in some processes."""
    return [test for process in processes for test in process.recorded()[1]]


def is_shared(processes: Sequence[Process]) -> bool:
    """Say whether two workers share the files of a suite."""
    return any("-n" in process.options for process in processes)


class Run:
    """Runs suites beside each other, and says how far they are.

    Args:
        chosen: what is to run.
    """

    def __init__(self, chosen: Sequence[Suite]) -> None:
        self._room = room()
        shared = self._room > 1
        self._suites = [(suite, processes_of(suite, shared=shared)) for suite in chosen]
        for process in self.processes:
            process.forget()
        self._began = time.monotonic()
        self._running: list[str] = []
        self._over = threading.Event()
        self.stopped_by: int | None = None

    @property
    def processes(self) -> Iterator[Process]:
        """Return all processes, also those that have not begun."""
        return (process for _, processes in self._suites for process in processes)

    @property
    def ended(self) -> list[Test]:
        """Return all tests that have ended."""
        return ended_in(self.processes)

    def stop(self, number: int, _: object) -> None:
        """Pass Ctrl-C and SIGTERM, which reach this process alone, on; begin nothing more."""
        self.stopped_by = number
        for process in self.processes:
            process.stop()

    def go(self) -> None:
        """Run them all: those with Spark, the longest first, beside those without."""
        light = [one for name in LIGHT for one in self._suites if one[0].name == name]
        heavy = [one for one in self._suites if one[0].name not in LIGHT]
        heavy.sort(key=lambda one: LONG.index(one[0].name) if one[0].name in LONG else len(LONG))
        teller = threading.Thread(target=self._tell)
        teller.start()
        try:
            with ThreadPoolExecutor(1) as beside:
                begun = beside.map(self._try, light if self._room > 1 else ())
                self._fill(heavy if self._room > 1 else light + heavy)
                list(begun)
        finally:
            self._over.set()
            teller.join()

    def _fill(self, heavy: Sequence[tuple[Suite, list[Process]]]) -> None:
        """Run suites in this order, each as soon as there is room for its Sparks."""
        free = threading.Semaphore(self._room)

        def run(one: tuple[Suite, list[Process]], needed: int) -> None:
            try:
                self._try(one)
            finally:
                free.release(needed)

        with ThreadPoolExecutor(self._room) as places:
            begun = []
            for one in heavy:
                needed = 2 if is_shared(one[1]) else 1
                for _ in range(needed):
                    free.acquire()
                begun.append(places.submit(run, one, needed))
            for future in begun:
                future.result()

    def _try(self, one: tuple[Suite, list[Process]]) -> None:
        suite, processes = one
        if self.stopped_by is not None:
            return
        began = time.monotonic()
        self._running.append(suite.name)
        try:
            with ThreadPoolExecutor(len(processes)) as beside:
                list(beside.map(Process.run, processes))
        finally:
            self._running.remove(suite.name)
        tests = ended_in(processes)
        for test in tests:
            if test.outcome != "passed":
                say(f"--- {test.outcome}: {test.name}\n{test.said}")
        for process in processes:
            if (complaint := process.complaint()) is not None:
                say(f"--- {complaint}")
        say(f"--- {suite.name}: {len(tests)} tests, {time.monotonic() - began:.0f} s")

    def _tell(self) -> None:
        while not self._over.wait(PROGRESS_SECONDS):
            say(self._progress())

    def _progress(self) -> str:
        done = sum(all(one.exit_code is not None for one in own) for _, own in self._suites)
        parts = []
        for suite, processes in self._suites:
            if suite.name in self._running:
                found = [process.recorded() for process in processes]
                expected = sum(count for count, _ in found)
                parts.append(f"{suite.name} {sum(len(tests) for _, tests in found)} of {expected}")
        tests = self.ended
        bad = sum(test.outcome != "passed" for test in tests)
        return (
            f"{clock(time.monotonic() - self._began)}: {done} of {len(self._suites)} folders, "
            f"{len(tests) - bad} tests passed, {bad} not; now {', '.join(parts) or 'nothing'}"
        )

    def summary(self) -> tuple[list[str], bool]:
        """Return what is said at the end, and whether all is well."""
        rows = [f"{'folder':<24}{'tests':>7}{'CPU s':>8}{'CPU s a test':>14}"]
        for suite, processes in self._suites:
            tests = ended_in(processes)
            spent = sum(test.cpu_seconds for test in tests)
            rows.append(
                f"{suite.name:<24}{len(tests):>7}{spent:>8.0f}{spent / (len(tests) or 1):>14.2f}"
            )
        tests = self.ended
        rows.append(f"the slowest of {sum(test.cpu_seconds for test in tests):.0f} s of CPU time:")
        slowest = sorted(tests, key=lambda test: test.seconds, reverse=True)[:SLOWEST]
        rows += [
            f"{test.seconds:>8.1f} s{test.cpu_seconds:>8.1f} CPU  {test.name}" for test in slowest
        ]
        complaints = [process.complaint() for process in self.processes]
        rows += [f"tests: {complaint}" for complaint in complaints if complaint is not None]
        counts = {
            outcome: sum(test.outcome == outcome for test in tests)
            for outcome in ("passed", "failed", "skipped")
        }
        for test in tests:
            if test.outcome != "passed":
                rows += [f"tests: {test.outcome}: {test.name}", *reason(test.said)]
        rows.append(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
        good = not any(complaints) and counts["passed"] == len(tests) > 0
        return rows, good


def reason(said: str) -> list[str]:
    """Return why a test failed, in a few lines: of a long output, CI may keep the end alone.

    Args:
        said: what pytest said of it; it marks the lines of the error with an E.
    """
    lines = [line.rstrip() for line in said.splitlines()]
    marked = [line for line in lines if line.startswith("E ")] or lines
    if len(marked) > REASON_HEAD + REASON_TAIL:
        marked = [*marked[:REASON_HEAD], "E   ...", *marked[-REASON_TAIL:]]
    return [f"    {line[:REASON_WIDTH]}" for line in marked]


def clock(seconds: float) -> str:
    """Return a time as minutes and seconds."""
    return f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"


def say(text: str) -> None:
    """Print what may come from several threads."""
    print(f"{text}\n", end="", flush=True)


def prepare() -> None:
    """Let every JVM of the tests start faster: creating an outbox leaves an archive of classes."""
    if class_archive(find_java()).path.is_file():
        return
    say("--- the first outbox on this machine")
    with tempfile.TemporaryDirectory(prefix="outbox-tests-") as folder:
        command = [str(Path(sys.executable).with_name("outbox")), "init"]
        subprocess.run(command, env={**os.environ, "OUTBOX_HOME": f"{folder}/home"}, check=True)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "folders",
        nargs="*",
        metavar="FOLDER",
        help=f"below tests/: {', '.join((*FOLDERS, *LONG_FOLDERS))}; all but the last if left out",
    )
    tier = parser.add_mutually_exclusive_group()
    tier.add_argument("--all", action="store_true", help="also the tests that are marked `rest`")
    tier.add_argument(
        "--part",
        type=int,
        choices=range(1, len(PARTS) + 1),
        help="only those that are marked `rest`, and of them one part",
    )
    given = parser.parse_args(argv)
    unknown = set(given.folders) - {*FOLDERS, *LONG_FOLDERS}
    if unknown:
        parser.error(f"there is no folder {', '.join(sorted(unknown))}")
    return given


def main(argv: Sequence[str] | None = None) -> int:
    """Run tests and print what happened.

    Args:
        argv: the arguments; those of this process if left out.
    """
    given = parse(argv)
    tier = Tier.REST if given.part else Tier.ALL if given.all else Tier.FIRST
    folders = given.folders or FOLDERS
    chosen = [suite for folder in folders for suite in suites(folder, tier, given.part)]
    empty = [folder for folder in given.folders if not list(suites(folder, tier, given.part))]
    if empty or not chosen:
        say(f"tests: {', '.join(empty) or 'everywhere'}: there are no tests of this kind")
        return 1
    if any(suite.name not in LIGHT for suite in chosen):
        prepare()
    LOGS.mkdir(parents=True, exist_ok=True)
    run = Run(chosen)
    signal.signal(signal.SIGTERM, run.stop)
    signal.signal(signal.SIGINT, run.stop)
    with tempfile.TemporaryDirectory(prefix="outbox-tests-") as shared:
        # An outbox of this run, which its processes copy (tests/integration/template.py).
        os.environ["OUTBOX_TESTS_TEMPLATE"] = shared
        run.go()
    rows, good = run.summary()
    say("\n".join(rows))
    return 128 + run.stopped_by if run.stopped_by is not None else int(not good)


if __name__ == "__main__":
    sys.exit(main())
