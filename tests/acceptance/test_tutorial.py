"""The tutorial, followed literally, in one terminal, in a clone."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PATIENCE = 1200.0  # seconds for all of it, a set-up from nothing included, on a busy machine
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^=== step \d+, after \d+ s$\n", re.MULTILINE)


@pytest.fixture
def desk(clone: Path) -> Iterator[Path]:
    """Return the clone to work in, and put back what the tutorial changes."""
    yield clone
    subprocess.run(["git", "-C", str(clone), "checkout", "--quiet", "seeds"], check=True)


def follow(blocks: list[str], *, folder: Path, environment: dict[str, str]) -> list[str]:
    """Run blocks as they stand, in one shell, and return what each printed."""
    script = "".join(
        f'echo "=== step {n}, after $SECONDS s"\n{block}' for n, block in enumerate(blocks, start=1)
    )
    shell = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        told, _ = shell.communicate(timeout=PATIENCE)
    finally:
        # What a failed step left running in the background.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGTERM)
    assert shell.returncode == 0, f"exit {shell.returncode}\n{told[-6000:]}"
    return STEP.split(told)[1:]


def test_the_tutorial_ends_with_a_dead_letter_replayed(
    desk: Path, strangers_environment: dict[str, str]
) -> None:
    """From an empty folder: three orders, one dead letter, its cause, its replay, its life."""
    text = (desk / "docs" / "tutorial.md").read_text(encoding="utf-8")
    told = follow(BLOCK.findall(text), folder=desk, environment=strangers_environment)
    assert len(told) == 11
    delivered, asked, preview, applied, life = told[4], told[5], told[7], told[8], told[9]

    assert "exit code 1: there is something to look at" in delivered
    (dead,) = json.loads(asked)["show"]
    assert dead == {
        "event_id": "o-2",
        "event_type": "order.created",
        "last_error": "the route names a value that the event lacks",
    }
    assert "nothing was written" in preview
    assert "1 done" in applied
    steps = re.findall(r"(?:PENDING|CLAIMED|DEAD) -> (?:PENDING|CLAIMED|DEAD|PUBLISHED)", life)
    assert steps == [
        "PENDING -> CLAIMED",
        "CLAIMED -> DEAD",
        "DEAD -> PENDING",
        "PENDING -> CLAIMED",
        "CLAIMED -> PUBLISHED",
    ]
    assert "ada@shop.example" in life
    lines = [
        json.loads(line)
        for file in (desk / "shop" / "delivered").glob("*.jsonl")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    assert {"o-1": 0, "o-2": 1, "o-3": 0} == {one["event_id"]: one["lifecycle"] for one in lines}
    assert len(lines) == 3
