"""An interrupt is never lost, and never comes where a process would be lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from delta_outbox.cli import command as running
from delta_outbox.cli.main import main
from delta_outbox.cli.outcome import Outcome
from delta_outbox.cli.signals import stop_on_signals
from delta_outbox.core.errors import DbtFailed
from delta_outbox.runtime.interrupts import ENDING, INTERRUPTED, handlers_kept, held, interruptible

PATIENCE = 60  # seconds in which what was told to end has ended


@pytest.fixture(autouse=True)
def _heeded() -> Iterator[None]:
    """Heed Ctrl-C, which a process does not that was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", ENDING)
def test_held_interrupts_come_at_the_end(number: signal.Signals):
    """What comes while interrupts are held is raised at the end of the block, and handlers are as
    before.
    """
    with interruptible() as interruption:
        before, done = signal.getsignal(number), []
        with pytest.raises(KeyboardInterrupt), held():  # noqa: PT012 - of the block's end
            os.kill(os.getpid(), number)
            done.append(1)
        assert ([1], True) == (done, interruption.came)
        assert before == signal.getsignal(number)


class InterruptedWhenCollected:
    """Is told to end in a callback of the collector, where Python swallows what is raised."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)
        for _ in range(1000):  # the handler runs in one of these steps
            pass


@pytest.mark.parametrize("number", ENDING)
def test_an_interrupt_that_python_swallows_comes_again(
    capsys: pytest.CaptureFixture[str], number: signal.Signals
):
    """It is raised a moment later, also while the main thread waits, and nothing is printed of the
    first time.
    """
    before, ended = sys.unraisablehook, threading.Event()
    with interruptible() as interruption:
        one = InterruptedWhenCollected(number)
        del one
        assert interruption.came
        late = threading.Timer(PATIENCE / 2, ended.set)
        late.start()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(PATIENCE)
    late.cancel()
    assert not ended.is_set()
    assert ("", before) == (capsys.readouterr().err, sys.unraisablehook)


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("swallowed", ["as an error of ours", "as another error", "wholly"])
def test_an_interrupt_is_interrupted_whatever_becomes_of_it(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
    swallowed: str,
):
    """A library that makes an error of its own of an interrupt, or swallows it, changes nothing:
    the command is INTERRUPTED, 130.
    """

    def command(*_: object) -> Outcome:
        try:
            os.kill(os.getpid(), number)
        except KeyboardInterrupt as error:
            if swallowed == "as an error of ours":
                raise DbtFailed("dbt: it gave no reason") from error
            if swallowed == "as another error":
                raise ConnectionError from None
        return Outcome(document={}, exit_code=0)

    monkeypatch.setattr(running, "COMMANDS", {"status": command})
    assert INTERRUPTED == main(["status", "--json"])
    assert "INTERRUPTED" == json.loads(capsys.readouterr().out)["error"]["code"]


def test_who_ends_in_order_is_not_hurried(monkeypatch: pytest.MonkeyPatch):
    """A relay or a server that was told to stop, and is told once more while it ends, ends with
    its own exit code.
    """

    def command(*_: object) -> Outcome:
        with stop_on_signals(sys.stderr) as stop:
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.wait(5)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        return Outcome(document={}, exit_code=0)

    monkeypatch.setattr(running, "COMMANDS", {"relay": command})
    assert 0 == main(["relay", "--once", "--json"])


def test_handlers_of_a_library_do_not_stay():
    """What replaces our handler within a block is taken back."""
    with interruptible():
        ours = signal.getsignal(signal.SIGINT)
        with handlers_kept():
            signal.signal(signal.SIGINT, lambda *_: None)
        assert ours == signal.getsignal(signal.SIGINT)


def test_an_ignored_signal_stays_ignored():
    """A process that was started to ignore Ctrl-C, by nohup or in the background, does."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible() as interruption:
            os.kill(os.getpid(), signal.SIGINT)
        assert not interruption.came
    finally:
        signal.signal(signal.SIGINT, before)


STARTS = """
import sys, os, signal
from pathlib import Path
import delta_outbox.runtime.session as session
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.interrupts import interruptible

pids = []
begin = session._begin
def noted(home, process):
    begin(home, process)
    pids.append(process.pid)
    os.kill(os.getpid(), signal.SIGINT)  # the first moment in which there is a process
session._begin = noted
home = Home(root=Path(sys.argv[1])).create()
signal.signal(signal.SIGINT, signal.default_int_handler)
with interruptible():
    try:
        session.local_session(home)
    except KeyboardInterrupt:
        print(pids[0], home.lock.held, flush=True)
"""


def test_a_jvm_that_has_just_been_started_is_ended(tmp_path: Path):
    """An interrupt in the very moment of the start ends what was started, and frees the home."""
    ended = subprocess.run(
        [sys.executable, "-c", STARTS, str(tmp_path / "home")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert 0 == ended.returncode, ended.stderr
    pid, held_still = ended.stdout.split()
    assert "False" == held_still
    until = time.monotonic() + PATIENCE
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
