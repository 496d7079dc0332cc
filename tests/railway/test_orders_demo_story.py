"""How the demo of orders follows what others write down."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from ledger_files import Writer, read_lines
from scripts.orders_demo import children, story
from scripts.orders_demo.children import Children, DemoFailed, beside
from scripts.orders_demo.folder import Folder
from scripts.orders_demo.story import LeftItem, Progress, next_commands


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return the folder of a demo of three orders."""
    made = Folder(root=tmp_path / "demo")
    made.make(orders=3, seed=1)
    made.home.delivered.mkdir(parents=True, exist_ok=True)
    return made


class AtOnce(Executor):
    """Runs a function when it is submitted."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as an executor does
            future.set_exception(error)
        return future


def test_an_item_is_extended_again_where_that_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """While Spark is dead the demo does not end: it tries again, some seconds later."""
    monkeypatch.setattr(story, "EXTEND_SECONDS", 3600.0)
    tries: list[str] = []

    def extend(task_id: str) -> bool:
        tries.append(task_id)
        if len(tries) == 1:
            raise DemoFailed("Spark was killed.")
        return True

    left = LeftItem("receive-payment-o1-1", "o1")
    for _ in range(3):
        left.extend(AtOnce(), extend)
        assert not left.waits
    assert len(tries) == 1
    left._next_try = 0.0
    for _ in range(3):
        left.extend(AtOnce(), extend)
        assert left.waits
    assert tries == ["receive-payment-o1-1"] * 2


def told(outcome: str | None, *, repeated: bool = False) -> dict[str, Any]:
    """Return what somebody was told."""
    refusal = None if outcome else "ANSWERED_TOO_LATE"
    return {"outcome": outcome, "repeated": repeated, "refusal": refusal}


def test_only_answers_that_count_are_counted_each_once(folder: Folder) -> None:
    """Who answers twice, or too late, has not answered one more item."""
    people = Writer(folder.ledgers / "people.jsonl")
    for number, outcome in ((1, "successful"), (1, "successful"), (2, None)):
        item = {"task_id": f"receive-payment-o{number}-1", "order": f"o{number}"}
        people.write(gives={}, **item)
        people.write(was_told=told(outcome, repeated=number == 1), **item)
    progress = Progress(folder, 3)
    progress.look()
    assert "1 answers" in progress.line()


def test_who_is_waited_for_is_said(folder: Folder) -> None:
    """In the last minutes nothing moves: customers let their time pass, and orders are undone."""
    people = Writer(folder.ledgers / "people.jsonl")
    delivered = Writer(folder.home.delivered / "a.jsonl")
    progress = Progress(folder, 3)
    progress.look()
    assert progress.waits_for(1000.0) == ""
    people.write(says_nothing=True, until=1095.0, order="o1")
    people.write(is_late=True, until=1010.0, order="o2")
    progress.look()
    assert progress.waits_for(1000.0) == "2 customers say nothing, the last has 95 s left"
    delivered.write(event_type="order.cancelled", payload='{"order_id": "o1"}')
    progress.look()
    assert progress.waits_for(1020.0) == (
        "1 customer says nothing, and the time is over; 1 order to undo"
    )
    people.write(gives={}, order="o2", task_id="receive-payment-o2-1")
    delivered.write(event_type="order.compensated", payload='{"order_id": "o1"}')
    progress.look()
    assert progress.waits_for(1020.0) == ""


def test_a_demo_shows_that_it_is_alive_while_it_waits(folder: Folder) -> None:
    """Whatever a demo waits for, it is known when it was last alive."""
    with folder.alive():
        deadline = time.monotonic() + 30
        while not folder.is_running.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.utime(folder.is_running, (0, 0))
        while not folder.is_running.stat().st_mtime and time.monotonic() < deadline:
            time.sleep(0.01)
        assert folder.is_running.stat().st_mtime > 0
    assert folder.is_running.exists()


def test_a_death_is_noted_with_when_it_was_seen_alive(folder: Folder) -> None:
    """Between these two moments calls may have been under way."""
    children.note_death(folder, "relay", calls=12, seen_alive=1.5)
    (death,) = read_lines(folder.deaths)
    assert death["seen_alive"] == 1.5
    assert death["at"] > 1.5


@pytest.mark.parametrize("started", [True, False])
def test_what_was_started_again_is_said(
    folder: Folder, started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who watches learns what has died, and whether it was Spark."""
    monkeypatch.setattr(children, "outbox", lambda *_, **__: {"started": started})
    words = [sys.executable, "-c", ""]
    made = Children(folder, 1)
    made.start_third_parties()

    def start(self: Children, name: str, *_: Any, **__: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(words, text=True)

    monkeypatch.setattr(Children, "_start", start)
    made.start_workers()
    for one in made._workers.values():
        one.wait()
    spark = ["Spark has died, and was started again."] if started else []
    assert made.look() == [
        *spark,
        "The relay has died, and was started again.",
        "The server of items has died, and was started again.",
        "The process of people has died, and was started again.",
    ]
    made.end()
    (death,) = read_lines(folder.deaths)
    assert death["died"] == "relay"
    assert death["seen_alive"] <= death["at"]


def test_a_failure_ends_the_commands_beside_it(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for minutes for a command whose result is of no use any more."""
    sleeper = folder.root / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 600\n")
    sleeper.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(sleeper))

    def fail() -> None:
        deadline = time.monotonic() + 30
        while not children._commands and time.monotonic() < deadline:
            time.sleep(0.01)
        raise DemoFailed("Something else.")

    begun = time.monotonic()
    with pytest.raises(DemoFailed, match="Something else"), beside(1) as threads:  # noqa: PT012
        threads.submit(children.outbox, folder, "append")
        fail()
    assert time.monotonic() - begun < 60
    assert not children._commands


def test_what_to_look_at_next_is_named(folder: Folder) -> None:
    """The pictures, the ledgers of one order alone, and the audit by hand are commands to copy."""
    pictures = [folder.root / "order_creation.svg", folder.root / "order_compensation.svg"]
    said = next_commands(folder, order="o17", serves=False, pictures=pictures)
    assert all(any(str(one) in line for line in said) for one in pictures)
    assert any(line.startswith(f"grep -w o17 {folder.ledgers}/*") for line in said)
    assert any("audit.py" in line and line.endswith(str(folder.root)) for line in said)
