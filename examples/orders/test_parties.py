"""The parts of the demo: third parties that keep their word over restarts, people, a leash."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import demo_times
import pytest
from ledger_files import Ledger, Tail, Writer
from people import ROLE_OF, ByHand, Desk, People
from third_party import Behaviour, Conflict, ThirdParty
from todo_client import OpenItem, Told

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


class AnsweringServer:
    """Takes answers as the server of items does, and keeps them."""

    def __init__(self, *results: Told | None) -> None:
        self.results, self.taken = list(results), []  # type: list[Told | None], list[Any]

    def answer(self, item: OpenItem, data: Any) -> Told | None:
        self.taken.append((item.task_id, data))
        return self.results.pop(0)


def answers(desk: Desk, server: AnsweringServer, at: datetime) -> int:
    """Let a desk answer what is due, and return how much that was."""
    clients: Any = dict.fromkeys(ROLE_OF.values(), server)
    return desk.answer(clients, at)


def item(task: str, order: str, visit: int = 1) -> OpenItem:
    """Return an open item."""
    return OpenItem(
        task_id=f"{task}-{order}-{visit}",
        workflow="order_creation",
        task=task,
        instance=order,
        visit=visit,
        opened_at=NOW,
        expires_at=NOW + timedelta(minutes=2),
    )


def test_what_people_give_and_are_told_is_written_down(tmp_path: Path) -> None:
    """Each answer stands in the notes before it is given, and what came of it afterwards; nobody
    answers again what was answered before a restart.
    """
    people, notes = People(tmp_path, "7"), tmp_path / "people.jsonl"
    waiting = [item("customer_support_review", f"o{number}") for number in range(2)]
    server = AnsweringServer(Told(outcome="agreed_to_cancel"), Told(refusal="ANSWERED_TOO_LATE"))
    desk = Desk(people, notes)
    desk.see(waiting)
    assert answers(desk, server, NOW) == 0
    assert answers(desk, server, NOW + timedelta(seconds=6)) == 2
    lines = list(Tail(notes).lines())
    assert ["gives" in one for one in lines] == [True, True, False, False]
    assert {one["was_told"]["refusal"] for one in lines[2:]} == {None, "ANSWERED_TOO_LATE"}
    later = Desk(people, notes)
    later.see(waiting)
    assert answers(later, server, NOW + timedelta(hours=1)) == 0


def test_the_same_answer_is_given_until_somebody_knows(tmp_path: Path) -> None:
    """Where nobody knows what came of an answer, it is given again as it was, also after a restart
    and when the ledgers say something else by then.
    """
    people, notes = People(tmp_path, "7"), tmp_path / "people.jsonl"
    waiting = [item("customer_support_review", "o1")]
    server = AnsweringServer(None, None, Told(outcome="agreed_to_cancel", is_repeat=True))
    desk, soon = Desk(people, notes), NOW + timedelta(seconds=6)
    desk.see(waiting)
    assert answers(desk, server, soon) == 0
    Writer(tmp_path / "payments.jsonl").write(done="o1", key="capture-o1")
    assert answers(desk, server, soon) == 0
    later = Desk(people, notes)
    later.see(waiting)
    assert answers(later, server, soon) == 1
    assert answers(later, server, soon) == 0
    (given,) = {json.dumps(one) for one in server.taken}
    assert "agreed_to_cancel" in given
    assert len([one for one in Tail(notes).lines() if "gives" in one]) == 1


def test_one_payment_is_left_to_the_person_at_the_keyboard(tmp_path: Path) -> None:
    """The first payment that is waited for, and no other one, is answered by nobody here."""
    people, notes = People(tmp_path, "7"), tmp_path / "people.jsonl"
    waiting = [item("receive_payment", f"o{number}") for number in range(5)]
    Desk(people, notes).see(waiting[:1])
    server = AnsweringServer(*[Told(outcome="successful")] * 9)
    desk = Desk(people, notes)
    desk.see(waiting)
    answers(desk, server, NOW + timedelta(hours=1))
    assert "receive_payment-o0-1" not in {name for name, _ in server.taken}
    assert server.taken
    left = [one["order"] for one in Tail(notes).lines() if "is_left" in one]
    assert left == ["o0"]


def test_the_warehouse_is_asked_again_by_hand_once_the_first_request_is_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes no keys: what it was asked for, and acts on late, would be done twice."""
    (tmp_path / "delivered").mkdir()
    Writer(tmp_path / "delivered" / "a.jsonl").write(
        event_type="order.compensation_unclear", payload='{"order_id": "o1"}'
    )
    warehouse = Writer(tmp_path / "warehouse.jsonl")
    warehouse.write(done="[]", key="reserve-stock-o1", what=[])
    key = "by-hand-release-stock-o1"
    warehouse.write(asked=True, key=key, behaviour="acts late", at=time.time() - 5)
    asked = []

    def answers(_: ByHand, name: str, path: str, body: Any, *, key: str = "") -> bool:
        asked.append((path, body["reference"]))
        return True

    monkeypatch.setattr(ByHand, "_asked", answers)
    notes = tmp_path / "people.jsonl"
    by_hand = ByHand(tmp_path / "delivered", tmp_path, {}, notes=notes)
    by_hand.work()
    assert asked == []
    monkeypatch.setattr(demo_times, "SETTLES", 1.0)
    by_hand.work()
    assert asked == [("/releases", key)]
    assert [one["undone"] for one in Tail(notes).lines()] == ["o1"]


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
    Writer(notes).write(is_left=True, task_id="of another order")
    Desk(People(tmp_path, "7"), notes).see(waiting)
    late_ids = {one.item.task_id for one in late}
    noted = {one["task_id"] for one in Tail(notes).lines() if "is_late" in one}
    assert noted == late_ids
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
