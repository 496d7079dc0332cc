"""The README and the tutorial, followed literally, one after the other, in a fresh clone."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil
import pytest
from tests.acceptance.told import number, said

from delta_outbox.runtime.background_server import end_server
from delta_outbox.runtime.home import Home

DAYS = "3"  # of the README's demo: some 2,700 events, in seconds
PATIENCE = 1500.0  # seconds for a document, a set-up from nothing included, on a busy machine
END_LIMIT = 60.0  # seconds; from the death of a driver to the end of all that it started
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^=== step \d+, after \d+ s$\n", re.MULTILINE)


@contextlib.contextmanager
def shell(
    script: str, *, folder: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Run a script for a block; what it leaves running in the background ends with the block."""
    process = subprocess.Popen(
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
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)


def follow(blocks: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Run blocks as they stand, in one shell, and return what each printed."""
    script = "".join(
        f'echo "=== step {n}, after $SECONDS s"\n{block}' for n, block in enumerate(blocks, start=1)
    )
    with shell(script, folder=folder, environment=environment) as process:
        told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, f"exit {process.returncode}\n{told[-6000:]}"
    return STEP.split(told)[1:]


def blocks_of(document: Path) -> list[str]:
    """Return what a document tells its reader to type."""
    return BLOCK.findall(document.read_text(encoding="utf-8"))


def lines_in(folder: Path) -> list[str]:
    """Return the lines that were delivered into a folder."""
    files = folder.rglob("*.jsonl")
    return [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def words_of(process: psutil.Process) -> list[str]:
    """Return the command line of a process; none if it has ended meanwhile."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:  # or a zombie
        return []


def kill_in_the_middle(command: str, *, folder: Path, environment: Mapping[str, str]) -> None:
    """Start the demo in small batches, and end it as it delivers, as nothing can prepare for. What
    it has started ends with it.
    """
    settings = folder / "outbox.toml"
    settings.write_text("[relay]\nbatch_size = 250\n")
    delivered = folder / ".outbox" / "delivered"
    with shell(command, folder=folder, environment=environment) as process:
        deadline = time.monotonic() + PATIENCE
        while len(list(delivered.glob("*.jsonl"))) < 3 and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
        started = psutil.Process(process.pid).children(recursive=True)
        words = {one: words_of(one) for one in started}
        (demo,) = (one for one in started if "delta_outbox.demo" in words[one])
        assert "java" in {Path(program).name for program, *_ in filter(None, words.values())}
        demo.kill()
        told, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode != 0, told
        _, left = psutil.wait_procs(started, timeout=END_LIMIT)
        assert not left
    settings.unlink()


@pytest.fixture(scope="module")
def readers_environment(strangers_environment: dict[str, str]) -> dict[str, str]:
    """Return the environment of who follows the README, with less to deliver."""
    return {**strangers_environment, "DAYS": DAYS}


@pytest.fixture(scope="module", autouse=True)
def _all_down(set_up_clone: Path) -> Iterator[None]:
    """End what a document has started behind its shell, if it did not come to its `down`."""
    yield
    for name in (".outbox", "my-outbox", "shop"):
        end_server(Home(root=set_up_clone / name), max_wait=END_LIMIT, say=lambda sentence: None)


@pytest.fixture(scope="module")
def proven(set_up_clone: Path, readers_environment: dict[str, str]) -> str:
    """Follow the first commands of the README, the demo killed in the middle and started again, and
    return what that one says.
    """
    clone = set_up_clone
    (first, *_) = blocks_of(clone / "README.md")
    setup, demo = first.splitlines(keepends=True)
    follow([setup], folder=clone, environment=readers_environment)
    kill_in_the_middle(demo, folder=clone, environment=readers_environment)
    (told,) = follow([first], folder=clone, environment=readers_environment)
    return told


def test_the_quick_start_of_the_readme_works(
    set_up_clone: Path, readers_environment: dict[str, str], proven: str
) -> None:
    """The first commands of the README, in its order, set up, prove the demo and show what it left,
    through a Spark in the background, which is gone afterwards. What it says of a demo that is
    killed is true: started again, it delivers the rest, and proves it.
    """
    blocks = blocks_of(set_up_clone / "README.md")
    assert len(blocks) == 3
    # In a shell of its own: a reader may come back another day.
    (looked,) = follow([blocks[1]], folder=set_up_clone, environment=readers_environment)

    expected = number(proven, "expected")
    assert said(proven, "appended") == 0
    assert 0 < said(proven, "published") < expected
    assert number(proven, "delivered") == expected + number(proven, "duplicates")
    assert (number(proven, "missing"), number(proven, "unexpected")) == (0, 0)
    assert (number(proven, "altered"), number(proven, "out of order")) == (0, 0)
    assert "PUBLISHED" in looked
    home = Home(root=set_up_clone / ".outbox")
    assert f"Up: {home.root} at sc://localhost:" in looked
    assert f"has ended, {home.root} is free." in looked
    with home.locked():
        assert not home.served_file.exists()


@pytest.mark.rest
def test_an_outbox_of_ones_own_delivers(
    set_up_clone: Path, readers_environment: dict[str, str]
) -> None:
    """The other commands of the README make an outbox and deliver an event."""
    (own,) = follow(
        blocks_of(set_up_clone / "README.md")[2:],
        folder=set_up_clone,
        environment=readers_environment,
    )
    assert "order.created" in own
    assert '"event_id":"o-1"' in own  # the reader sees where it went
    (line,) = lines_in(set_up_clone / "my-outbox" / "delivered")
    assert '"event_id":"o-1"' in line


@pytest.mark.rest
def test_the_tutorial_ends_with_a_dead_letter_replayed(
    set_up_clone: Path, strangers_environment: dict[str, str]
) -> None:
    """From an empty folder: three orders, one dead letter, its cause, its replay, its life."""
    clone = set_up_clone
    blocks = blocks_of(clone / "docs" / "tutorial.md")
    told = follow(blocks, folder=clone, environment=strangers_environment)
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
    lines = [json.loads(line) for line in lines_in(clone / "shop" / "delivered")]
    assert {"o-1": 0, "o-2": 1, "o-3": 0} == {one["event_id"]: one["lifecycle"] for one in lines}
    assert len(lines) == 3
