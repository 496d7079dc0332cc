"""Write down how each test ended and what it cost, for `scripts/run_tests.py`."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import psutil
import pytest

OPTION = "--record"
CPU_SECONDS = "cpu_seconds"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption(OPTION, metavar="FILE", help="append a line of JSON for each test")


def pytest_configure(config: pytest.Config) -> None:
    """Record where it is asked for: in the process that hears of every test."""
    file = config.getoption(OPTION)
    if file is None:
        return
    if not hasattr(config, "workerinput"):  # xdist's mark of a process that runs tests for another
        config.pluginmanager.register(Record(Path(file)))
    if not getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(Costs())


class Costs:
    """Measures the CPU time of each test, that of the processes it starts or uses included.

    What a test finds started, and what was used before the first, counts for whoever came first.
    A process that nobody waits for is not counted after its end.
    """

    def __init__(self) -> None:
        self._self = psutil.Process()
        self._before = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Add what a test has cost to its last report."""
        if call.when == "teardown":
            now = self._seconds(item)
            item.user_properties.append((CPU_SECONDS, round(max(0.0, now - self._before), 3)))
            self._before = now
        return (yield)

    def _seconds(self, item: pytest.Item) -> float:
        times = os.times()
        seconds = times.user + times.system + times.children_user + times.children_system
        if "unit" in item.path.parts:  # they leave no process; to look for some takes as long
            return seconds
        for child in self._self.children(recursive=True):
            try:
                seconds += sum(child.cpu_times()[:4])
            except psutil.Error:  # it has ended meanwhile
                continue
        return seconds


class Record:
    """Appends to a file: first how many tests there are, then how each ended.

    Args:
        file: receives a line of JSON for each.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._reports: defaultdict[str, list[pytest.TestReport]] = defaultdict(list)
        self._counted = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write how many tests will run here; workers say it themselves."""
        if session.items:
            self._count(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """Write how many tests the workers share; each of them finds them all."""
        self._count(len(ids))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write how a test ended, once it has."""
        reports = self._reports[report.nodeid]
        reports.append(report)
        if report.when in ("setup", "call"):
            return
        del self._reports[report.nodeid]  # a worker that died says neither; it is over all the same
        outcomes = {one.outcome for one in reports}
        self._write(
            test=report.nodeid,
            outcome=next((one for one in ("failed", "skipped") if one in outcomes), "passed"),
            seconds=round(sum(one.duration for one in reports), 3),
            cpu_seconds=dict(report.user_properties).get(CPU_SECONDS, 0.0),
            said="\n".join(one.longreprtext for one in reports if one.failed),
        )

    def _count(self, tests: int) -> None:
        if not self._counted:
            self._counted = True
            self._write(tests=tests)

    def _write(self, **line: object) -> None:
        with self._file.open("a", encoding="utf-8") as stream:
            stream.write(f"{json.dumps(line)}\n")
