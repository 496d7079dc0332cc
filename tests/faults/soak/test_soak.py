"""The short form of `make soak`: everything that it does, with three kills."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.soak.processes import BATCH_SIZE
from tests.faults.conftest import REPOSITORY

pytestmark = pytest.mark.rest

# Claims of a relay, at most: one that is being recorded, one that is being sent, and retries
# beside them.
IN_FLIGHT = 3


def test_three_kills_break_no_promise(tmp_path: Path) -> None:
    """A relay, a worker and a JVM, killed in the middle of their work, lose nothing, give up
    nothing, make no illegal step and disturb no order; each repeats at most what it had in flight.
    """
    folder = tmp_path / "soak"
    ended = subprocess.run(
        [sys.executable, "-m", "scripts.run_soak", "--short", "--folder", str(folder)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == ended.returncode, ended.stdout[-5000:] + ended.stderr[-5000:]
    report = json.loads((folder / "report.json").read_text())
    kills = report["kills"]
    # A worker whose death nobody notices was idle: then another one is killed.
    assert [1, 1] == [kills[kind]["kills"] for kind in ("alone", "jvm")]
    assert {0} == set(report["violations"].values())
    assert report["kept"]
    # They hit something: a kill between two batches would prove little.
    assert 0 < kills["worker"]["with_events_in_flight"]
    assert kills["all"]["with_events_in_flight"] == kills["all"]["recovery_seconds"]["measured"]
    assert kills["all"]["duplicates"]["max"] <= IN_FLIGHT * BATCH_SIZE
    assert report["events"] <= report["messages"]
