"""Commands that are told to end, or killed, at any moment: nothing of them is left."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from scripts import environment
from tests.faults.conftest import House, event_id, wait_for

from delta_outbox.core.errors import HomeInUse
from delta_outbox.publishers.jsonl import read_lines
from delta_outbox.runtime.home import Home

# A command that says by a file that it begins: until then Python itself is still starting.
BEGINS = """
import os, pathlib, sys
from {module} import {main}
pathlib.Path(os.environ["BEGUN"]).touch()
sys.exit({main}())
"""
OUTBOX = BEGINS.format(module="delta_outbox.cli.main", main="main")
DBT = BEGINS.format(module="delta_outbox.cli.dbt_launcher", main="main")
LIMIT = 600.0  # seconds; a command on a busy machine
GONE_LIMIT = 30.0  # seconds; a JVM whose driver was killed ends by itself
BATCH = 40  # events

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "status": ("status", "--json"),
    "init": ("init", "--json"),
    "relay": ("relay", "--once", "--json"),
    "append": ("append", "EVENTS", "--json"),
    "refresh": ("refresh", "--json"),
    "maintain": ("maintain", "--json"),
    "dbt": ("dbt", "--json", "build"),
}


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended.

    Args:
        code: the exit code; negative where a signal ended it.
        document: what it printed on standard output, if it is a document.
        errors: what it printed on standard error.
    """

    code: int
    document: Mapping[str, object]
    errors: str


@pytest.fixture(scope="module")
def home(made_home: Callable[[Path], Home], tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return the home of an outbox that is there already."""
    return made_home(tmp_path_factory.mktemp("interrupts") / "home")


def run(
    words: list[str],
    root: Path,
    *,
    code: str = OUTBOX,
    after: float | Callable[[], object] = 0.0,
    number: int = 0,
) -> Ended:
    """Run a command in a home, send it a signal some seconds after it has begun or as soon as
    something holds, and return how it ended.
    """
    begun = root.parent / "begun"
    begun.unlink(missing_ok=True)
    with subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env={**environment.plain(), "OUTBOX_HOME": str(root), "BEGUN": str(begun)},
        cwd=root.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        if number:
            wait_for(lambda: begun.exists() or command.poll() is not None, interval=0.01)
            if callable(after):
                wait_for(lambda: after() or command.poll() is not None, interval=0.01)
            else:
                time.sleep(after)  # the moment is the test's input
            command.send_signal(number)
        output, errors = command.communicate(timeout=LIMIT)
    try:
        document = json.loads(output)
    except ValueError:
        document = {}
    return Ended(code=command.returncode, document=document, errors=errors)


def left_behind(root: Path) -> Iterator[psutil.Process]:
    """Yield the processes that work for a home: its path is in their arguments or environment."""
    for process in psutil.process_iter():
        try:
            said = [*process.cmdline(), process.environ().get("OUTBOX_HOME", "")]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(root) in word for word in said):
            yield process


def check_free(home: Home) -> None:
    """Demand that the home is free now."""
    with home.locked():
        pass


def interrupt(home: Home, name: str, *, after: float | Callable[[], object], number: int) -> Ended:
    """Interrupt a command at a moment and demand what holds at any moment."""
    events = home.root.parent / "events.jsonl"
    events.write_text('{"event_id": "a", "event_type": "t", "payload": 1}\n', encoding="utf-8")
    words = [str(events) if word == "EVENTS" else word for word in COMMANDS[name]]
    ended = run(words, home.root, after=after, number=number)
    moment = f"{name}, signal {number} after {after}: {ended}"
    assert [] == [process.cmdline()[:3] for process in left_behind(home.root)], moment
    check_free(home)
    if ended.code == 0:  # it was over before, or a relay that ended in order
        assert "error" not in ended.document, moment
    else:
        assert 130 == ended.code, moment
        assert "INTERRUPTED" == ended.document["error"]["code"], moment  # type: ignore[index]
        if name != "dbt":  # which logs where it was, before our word comes
            assert "Traceback" not in ended.errors, moment
    return ended


@pytest.mark.parametrize(
    ("after", "number"),
    [
        (1.0, signal.SIGINT),
        (4.0, signal.SIGTERM),
        pytest.param(1.0, signal.SIGTERM, marks=pytest.mark.rest),
        pytest.param(4.0, signal.SIGINT, marks=pytest.mark.rest),
    ],
)
def test_an_interrupt_leaves_nothing(home: Home, after: float, number: int):
    """Ctrl-C and SIGTERM in the first seconds of `status` end it as INTERRUPTED, 130; no process
    is left and the home is free.
    """
    interrupt(home, "status", after=after, number=number)


@pytest.mark.rest
def test_an_interrupted_set_up_is_mended_by_the_next(tmp_path: Path):
    """Ctrl-C when `init` has created the first table is INTERRUPTED, and `init` once more makes
    the outbox whole.
    """
    home = Home(root=tmp_path / "home").create()

    def has_a_table() -> bool:
        return any(home.warehouse.glob("**/_delta_log"))

    ended = interrupt(home, "init", after=has_a_table, number=signal.SIGINT)
    assert 130 == ended.code, ended
    assert 0 == run(["init", "--json"], home.root).code
    assert 0 == run(["status", "--json"], home.root).code


@pytest.mark.parametrize("after", [pytest.param(0.8, marks=pytest.mark.rest), 2.0])
def test_a_killed_command_frees_the_home(home: Home, after: float):
    """After SIGKILL at any moment the home becomes free by itself; until then the message names a
    process that lives and has the home.
    """
    ended = run(["status"], home.root, after=after, number=signal.SIGKILL)
    assert -signal.SIGKILL == ended.code
    until = time.monotonic() + GONE_LIMIT
    while (named := holder_named(home)) is not None:
        assert time.monotonic() < until, f"{named} has the home"
        # It may have ended since; another one it may not be.
        here = {process.pid for process in left_behind(home.root)}
        assert named in here or not psutil.pid_exists(named), f"{named} has nothing to do with it"
    # What it had just started, such as `java -version`, ends by itself.
    wait_for(lambda: not list(left_behind(home.root)), limit=GONE_LIMIT)


def holder_named(home: Home) -> int | None:
    """Return which process the message names as the holder of the home; None if it is free."""
    try:
        check_free(home)
    except HomeInUse as error:
        return error.pid or -1
    return None


def test_a_relay_without_its_jvm_loses_nothing(
    home: Home, tmp_path: Path, plain_environment: dict[str, str]
):
    """A relay whose JVM is killed when a batch was sent and is not on record ends with an error and
    leaves nothing running; the next one delivers everything, each event legally, none DEAD.
    """
    house = House(root=home.root, environment={**plain_environment, "OUTBOX_HOME": str(home.root)})
    house.settings('type = "jsonl"\npath = "delivered"')
    file = tmp_path / "events.jsonl"
    events = ({"event_id": event_id(n), "event_type": "t", "payload": n} for n in range(BATCH))
    file.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    assert BATCH == house.run("append", str(file))[1]["appended"]

    code, document = house.run("relay", "--drain", OUTBOX_FAILPOINT="publish.after@1=jvm")

    assert 2 == code, document
    wait_for(lambda: not list(left_behind(home.root)), limit=GONE_LIMIT)
    sent = [line["event_id"] for line in read_lines(home.delivered)]
    assert {event_id(n) for n in range(BATCH)} == set(sent)
    assert {"CLAIMED"} == {rows[-1]["to_state"] for rows in house.histories().values()}
    code, summary = house.run("relay", "--drain")
    assert (0, BATCH, 0) == (code, summary["published"], summary["dead"])
    assert {"PUBLISHED"} == {rows[-1]["to_state"] for rows in house.histories().values()}


@pytest.mark.rest
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_at_three_moments(home: Home, name: str):
    """At three moments of each command, told by the seed, the same holds."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it with a failure
    chance = random.Random(seed)
    moments = [chance.uniform(0.3, 2), chance.uniform(2, 8), chance.uniform(8, 30)]
    for after in moments:
        number = chance.choice([signal.SIGINT, signal.SIGTERM])
        interrupt(home, name, after=after, number=number)


@pytest.mark.rest
def test_dbt_says_interrupted(home: Home):
    """The launcher of dbt ends with 130 and one sentence of ours, whatever dbt makes of it."""
    for after in (1.5, 12.0):
        ended = run(["build"], home.root, code=DBT, after=after, number=signal.SIGINT)
        assert 130 == ended.code, ended
        assert "INTERRUPTED: Interrupted." in ended.errors, ended
        assert [] == list(left_behind(home.root))
        check_free(home)
