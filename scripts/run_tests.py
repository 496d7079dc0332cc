"""Run the tests, one pytest process per folder, and let nothing pass that did not run.

Usage: run_tests.py [tier ...]      (default: every tier but the long ones, which `make soak` runs)

A process can hold one SparkSession, of one kind; hence a process for each folder that holds tests
(the unit tests need no Spark; where the machine has room, three processes share their files). Most
of what Spark does for small tables occupies one core. So where there is room, the files of the
long folders are shared out to two workers (those of publishers, which mostly wait, by the server
that they start: conftest.py there), and of the other folders two are tested at a time. A skipped
or expected failure counts as a failure, because a promise that was not tried is not kept; so does
a tier without tests. What mostly waits for servers runs beside all of that.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil

from delta_outbox.java import find_java
from delta_outbox.spark_settings import class_archive

TIERS = ("unit", "conformance", "mutants", "integration", "publishers", "faults", "acceptance")
LONG_TIERS = {"integration/long"}  # left out unless named; `make soak` has them
WORKER_MEMORY = 5 * 1024**3  # bytes: a Spark, a broker, Python
# For two workers; others start many processes.
SHARED = ("integration", "publishers", "publishers/kit")
# They use a quarter of a core each, and run beside the rest.
WAITING = ("publishers", "publishers/kit")
# Of the others, those that take longest, so that they begin first.
LONG = (
    "acceptance",
    "faults/crashes",
    "faults/soak",
    "faults/exactly_once",
    "faults/served",
    "integration/connect",
)
# Of the unit tests, those that mostly wait.
WAITING_FILES = ("test_home_lock.py", "test_publishers_kafka.py")
# Files that take longer than their size says.
LONG_FILES = ("test_maintenance.py", "test_rebuild.py")
SUITE_LIMIT = 60 * 60  # seconds; a hung suite must end before a CI does
SLOW = 20  # seconds; of tests that take longer, the ten slowest are named
LAST_WORDS = 1200  # characters of each failure that are said again at the end
ROOT = Path(__file__).resolve().parent.parent

_running: set[subprocess.Popen[str]] = set()
_stopped_by: list[int] = []  # signals


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one pytest process did.

    Args:
        passed, failed, skipped: numbers of tests; errors count as failed, xfail as skipped.
        exit_code: pytest's; 124 if it was ended for taking too long.
        failures: of each test that failed, its name and the end of what it said.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    exit_code: int
    failures: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Tell whether every test ran and passed."""
        return self.exit_code == 0 and self.passed > 0 and self.failed == self.skipped == 0


def suites(tier: str) -> Iterator[tuple[str, list[Path]]]:
    """Yield the pytest processes of a tier as (name, test files)."""
    folder = ROOT / "tests" / tier
    files = sorted(folder.rglob("test_*.py"))
    if tier == "unit":
        if files:
            yield tier, files
        return
    for parent in sorted({file.parent for file in files}):
        name = parent.relative_to(ROOT / "tests").as_posix()
        if name in LONG_TIERS - {tier}:
            continue
        own = [file for file in files if file.parent == parent]
        # The long ones first, so that neither worker waits for the other in the end.
        own.sort(key=lambda file: (file.name in LONG_FILES, file.stat().st_size), reverse=True)
        yield name, own


def parts(name: str, files: list[Path]) -> list[list[Path]]:
    """Share the files of a suite out to processes of their own that run beside each other.

    Of thousands of short tests, the talk between the processes of xdist costs as much CPU time as
    the tests of one of them; so the unit tests are shared out beforehand.

    Args:
        name: of the suite.
        files: the test files.
    """
    if name != "unit" or not has_room():
        return [files]
    working = [file for file in files if file.name not in WAITING_FILES]
    working.sort(key=lambda file: (file.stat().st_size, file.name), reverse=True)
    waiting = [file for file in files if file.name in WAITING_FILES]
    return [part for part in (working[::2], working[1::2], waiting) if part]


def run(name: str, files: list[Path]) -> Outcome:
    """Run some test files, in one process or in several beside each other.

    Args:
        name: of the suite; begins each line that a process prints.
        files: the test files.
    """
    shares = parts(name, files)
    with ThreadPoolExecutor(len(shares)) as beside:
        outcomes = list(beside.map(lambda share: run_process(name, share), shares))
    return Outcome(
        passed=sum(one.passed for one in outcomes),
        failed=sum(one.failed for one in outcomes),
        skipped=sum(one.skipped for one in outcomes),
        exit_code=next((one.exit_code for one in outcomes if one.exit_code), 0),
        failures=tuple(failure for one in outcomes for failure in one.failures),
    )


def run_process(name: str, files: list[Path]) -> Outcome:
    """Run some test files in a pytest process of their own.

    Args:
        name: of the suite; begins each line that the process prints.
        files: the test files.
    """
    with tempfile.TemporaryDirectory(prefix="outbox-tests-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}"]
        command += ["--durations=10", f"--durations-min={SLOW}", *workers(name)]
        command += [str(file.relative_to(ROOT)) for file in files]
        # A session of its own, so that a hung suite ends together with the servers it started.
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        _running.add(process)
        if _stopped_by:
            _end(process, signal.SIGTERM)
        echo = threading.Thread(target=_echo, args=(name, process), daemon=True)
        echo.start()
        try:
            exit_code = process.wait(timeout=SUITE_LIMIT)
        except subprocess.TimeoutExpired:
            print(f"tests: {name}: ended after {SUITE_LIMIT} s", flush=True)
            _end(process, signal.SIGKILL)
            exit_code = 124
        finally:
            _running.discard(process)
        echo.join(timeout=10)  # not longer, should something that it left running hold the pipe
        if not report.exists():
            return Outcome(exit_code=exit_code)
        return read_report(report, exit_code=exit_code)


def environment() -> dict[str, str]:
    """Return the environment of a pytest process.

    What is compiled is kept, also where the environment says otherwise, as in many containers: to
    rewrite and compile the tests takes seconds, and they start hundreds of processes.
    """
    found = {**os.environ, "PYTHONUNBUFFERED": "1"}
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


def _echo(name: str, process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            with contextlib.suppress(OSError):  # nobody listens any more; the suite goes on
                print(f"{name}| {line}", end="", flush=True)


def _end(process: subprocess.Popen[str], by: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, by)


def _stop(number: int, _: object) -> None:
    """Pass Ctrl-C and SIGTERM, which reach this process alone, on to the suites; begin no other."""
    _stopped_by.append(number)
    for process in tuple(_running):
        _end(process, signal.SIGTERM)


def has_room() -> bool:
    """Tell whether the machine is large enough for two Sparks beside each other."""
    memory = psutil.virtual_memory().available
    return (os.cpu_count() or 1) >= 2 and memory >= 2 * WORKER_MEMORY


def workers(name: str) -> list[str]:
    """Return the arguments that share test files out to two worker processes, if that is of use.

    Args:
        name: of the suite.
    """
    return (
        ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
        if name in SHARED and has_room()
        else []
    )


def prepare() -> None:
    """Let every JVM of the tests start faster: creating an outbox leaves an archive of classes."""
    if class_archive(find_java()).path.is_file():
        return
    print("--- the first outbox on this machine", flush=True)
    with tempfile.TemporaryDirectory(prefix="outbox-tests-") as folder:
        command = [str(Path(sys.executable).with_name("outbox")), "init"]
        subprocess.run(command, env={**os.environ, "OUTBOX_HOME": f"{folder}/home"}, check=True)


def read_report(report: Path, *, exit_code: int) -> Outcome:
    """Count the tests of a JUnit report.

    Args:
        report: the file that pytest wrote.
        exit_code: pytest's; 124 if it was ended for taking too long.
    """
    total = failed = skipped = 0
    failures: list[str] = []
    for suite in ET.parse(report).getroot().iter("testsuite"):
        total += int(suite.get("tests", "0"))
        failed += int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
        skipped += int(suite.get("skipped", "0"))
        failures += [
            f"tests: {test.get('classname')}::{test.get('name')}:\n"
            f"{(found.text or '')[-LAST_WORDS:].strip()}"
            for test in suite.iter("testcase")
            for found in (*test.iter("failure"), *test.iter("error"))
        ]
    return Outcome(
        passed=max(0, total - failed - skipped),
        failed=failed,
        skipped=skipped,
        exit_code=exit_code,
        failures=tuple(failures),
    )


def main(tiers: list[str]) -> int:
    """Run the tiers and print what happened.

    Args:
        tiers: names of folders below tests/; none means all.
    """
    known = (*TIERS, *LONG_TIERS)
    unknown = set(tiers) - set(known)
    if unknown:
        print(f"tests: a tier must be one of {', '.join(known)}. Got: {', '.join(sorted(unknown))}")
        return 2
    found = {tier: list(suites(tier)) for tier in tiers or TIERS}
    complaints = [f"tests: {tier}: there are no tests" for tier in found if not found[tier]]
    if set(found) - {"unit", "conformance", "mutants"}:
        prepare()
    outcomes: list[Outcome] = []

    def tried(suite: tuple[str, list[Path]]) -> None:
        name, files = suite
        if _stopped_by:
            return
        print(f"--- {name}", flush=True)
        started = time.monotonic()
        outcome = run(name, files)
        print(f"--- {name}: {time.monotonic() - started:.0f} s", flush=True)
        outcomes.append(outcome)
        if not outcome.good:
            complaints.extend(outcome.failures)
            complaints.append(
                f"tests: {name}: {outcome.passed} passed, {outcome.failed} failed, "
                f"{outcome.skipped} skipped, pytest exit {outcome.exit_code}"
            )

    every = [suite for tier in found for suite in found[tier]]
    waiting = [suite for suite in every if suite[0] in WAITING]
    alone = [suite for suite in every if suite[0] in SHARED and suite not in waiting]
    others = [suite for suite in every if suite[0] not in (*SHARED, "unit")]
    others.sort(key=lambda suite: LONG.index(suite[0]) if suite[0] in LONG else len(LONG))
    for suite in found.get("unit", ()):  # first: whoever broke one knows soon
        tried(suite)
    room = has_room()
    with (
        tempfile.TemporaryDirectory(prefix="outbox-tests-") as shared,
        ThreadPoolExecutor(1) as beside,
        ThreadPoolExecutor(2 if room else 1) as two,
    ):
        # An outbox of this run, which its processes copy (tests/integration/template.py).
        os.environ["OUTBOX_TESTS_TEMPLATE"] = shared
        begun = beside.map(tried, waiting if room else ())
        list(two.map(tried, others if room else others + waiting))
        for suite in alone:
            tried(suite)
        list(begun)
    print(*complaints, sep="\n")
    print(
        f"{sum(o.passed for o in outcomes)} passed, {sum(o.failed for o in outcomes)} failed, "
        f"{sum(o.skipped for o in outcomes)} skipped"
    )
    return 128 + _stopped_by[0] if _stopped_by else int(bool(complaints))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    sys.exit(main(sys.argv[1:]))
