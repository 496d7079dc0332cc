"""The parts of the demo: third parties that keep their word over restarts, people, a leash."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ledger_files import Ledger, Tail, Writer
from people import Desk, People
from third_party import Behaviour, Conflict, ThirdParty

from delta_outbox import Completion, OutboxError, WaitingItem

HERE = Path(__file__).resolve().parent
NOW = datetime(2026, 11, 28, tzinfo=UTC)


def party(folder: Path, name: str = "shop", seed: str = "7") -> ThirdParty:
    """Return a third party, as it is after a restart."""
    return ThirdParty(name, folder / f"{name}.jsonl", seed=seed, troubled=0.5)


def test_a_third_party_with_keys_acts_once_also_after_a_restart(tmp_path: Path) -> None:
    """A key is known as long as the ledger is there, and means one thing."""
    for _ in range(2):
        assert party(tmp_path).act("k", "o1", "first") == "first"
        assert party(tmp_path).act("k", "o1", "again") == "first"
    with pytest.raises(Conflict):
        party(tmp_path).act("k", "o2", None)
    ledger = Ledger(tmp_path / "shop.jsonl")
    assert [one.what for one in ledger.ledger] == ["o1"]
    assert [one["key"] for one in ledger.lines if "conflict" in one] == ["k"]


def test_a_third_party_without_keys_acts_whenever_it_is_asked(tmp_path: Path) -> None:
    """The warehouse reserves twice for who asks twice, and finds what it has done."""
    warehouse = party(tmp_path, "warehouse")
    assert warehouse.find("k") is None
    for _ in range(2):
        warehouse.request("/reservations", "k", {"products": ["tea"]})()
    assert len(Ledger(tmp_path / "warehouse.jsonl").effects("k")) == 2
    assert party(tmp_path, "warehouse").find("k") == {"missing": []}


def test_what_goes_wrong_follows_from_the_seed_and_the_key(tmp_path: Path) -> None:
    """The same requests meet the same troubles, in whatever order and over a restart."""
    keys = [f"k{number}" for number in range(200)]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = party(tmp_path / "a"), party(tmp_path / "b")
    forth = {key: first.behaviour(key, acting=True) for key in keys}
    back = {key: second.behaviour(key, acting=True) for key in reversed(keys)}
    assert forth == back
    assert set(forth.values()) == set(Behaviour)
    again = {key: first.behaviour(key, acting=True) for key in keys}
    assert again == {key: party(tmp_path / "b").behaviour(key, acting=True) for key in keys}
    assert forth != again
    rejected = {key for key in keys if forth[key] is Behaviour.REJECTS}
    assert rejected == {key for key in keys if again[key] is Behaviour.REJECTS}


class TooLate(OutboxError):
    """As `Items` tells it."""

    code = "ANSWERED_TOO_LATE"


class AnsweringItems:
    """Takes answers as `Items` does, and writes down which."""

    def __init__(self, *results: Any) -> None:
        self.results, self.taken = list(results), []  # type: list[Any], list[str]

    def complete_many(self, answers: Any, **_: Any) -> list[Any]:
        self.taken += [one.task_id for one in answers]
        return [self.results.pop(0) for _ in answers]


def item(task: str, order: str, visit: int = 1) -> WaitingItem:
    """Return an open item."""
    return WaitingItem(
        task_id=f"{task}-{order}-{visit}",
        workflow="order_creation",
        instance=order,
        task=task,
        title=task,
        visit=visit,
        roles=(),
        opened_at=NOW,
        due_at=None,
        expires_at=NOW + timedelta(minutes=2),
    )


def test_what_people_give_and_are_told_is_written_down(tmp_path: Path) -> None:
    """Each answer stands in the notes before it is given, and what came of it afterwards; nobody
    answers again what was answered before a restart.
    """
    people, notes = People(tmp_path, "7"), tmp_path / "people.jsonl"
    waiting = [item("customer_support_review", f"o{number}") for number in range(2)]
    counted = Completion(
        task_id="x", outcome="agreed_to_cancel", command_id="c", status="done", repeated=False
    )
    items: Any = AnsweringItems(counted, TooLate("too late"))
    desk = Desk(people, notes)
    desk.see(waiting)
    assert desk.answer(items, NOW) == 0
    assert desk.answer(items, NOW + timedelta(seconds=6)) == 2
    lines = list(Tail(notes).lines())
    assert ["gives" in one for one in lines] == [True, True, False, False]
    assert [one["was_told"]["refusal"] for one in lines[2:]] == [None, "ANSWERED_TOO_LATE"]
    later = Desk(people, notes)
    later.see(waiting)
    assert later.answer(items, NOW + timedelta(hours=1)) == 0


def test_customers_differ(tmp_path: Path) -> None:
    """Some pay at once, some twice, some late, some never; who never pays is in the notes."""
    notes = tmp_path / "people.jsonl"
    waiting = [item("receive_payment", f"o{number}") for number in range(200)]
    plans = [People(tmp_path, "7").plan(one) for one in waiting]
    late = [one for one in plans if one is not None and one.at > NOW + timedelta(minutes=2)]
    said = {one.data["status"] for one in plans if one is not None}
    assert late
    assert said == {"succeeded", "insufficient_funds"}
    assert any(one.again for one in plans if one is not None)
    Desk(People(tmp_path, "7"), notes).see(waiting)
    silent = [one["task_id"] for one in Tail(notes).lines() if "says_nothing" in one]
    expected = [one.task_id for one, plan in zip(waiting, plans, strict=True) if plan is None]
    assert silent == expected != []


def test_a_line_that_is_not_whole_is_read_later(tmp_path: Path) -> None:
    """Who reads a file beside its writer gets whole lines, each once."""
    file = tmp_path / "a.jsonl"
    tail = Tail(file)
    assert list(tail.lines()) == []
    Writer(file).write(a=1)
    with file.open("ab") as half:
        half.write(b'{"a"')
    assert [one["a"] for one in tail.lines()] == [1]
    with file.open("ab") as rest:
        rest.write(b": 2}\n")
    assert [one["a"] for one in tail.lines()] == [2]


def test_a_process_on_a_leash_ends_with_its_parent(tmp_path: Path) -> None:
    """When nobody holds its standard input any more, a third party ends."""
    words = ["third_party.py", "mail", "--seed", "7", "--ledger", str(tmp_path / "mail.jsonl")]
    with subprocess.Popen(
        [sys.executable, str(HERE / "leash.py"), str(HERE / words[0]), *words[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert int(child.stdout.readline()) > 0
        assert child.poll() is None
        child.stdin.close()
        assert child.wait(30) < 0
