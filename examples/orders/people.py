"""The people around the orders, as a process: `python people.py --folder FOLDER --seed N`.

Customers decide, the payment provider tells who has paid, support finds out what nobody knows. They
answer To-Do items over HTTP, many at a time, each with a key of their own. What each of them does
follows from the seed: some pay at once, some twice, some late, some never. The first payment is
left to the person at the keyboard. What they have answered, and what they were told, is written
into a file of their own. Whoever is told that an order could not be undone does that by hand.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import demo_times
from ledger_files import Ledger, Tail, Writer, read_lines
from todo_client import OpenItem, TodoClient, Told

PAUSE: Final = 2.0  # seconds, between two looks at what is open
AT_ONCE: Final = 100  # answers

ROLE_OF: Final = {
    "continue_without_missing_product": "customer",
    "waiting_for_user_on_payment": "customer",
    "receive_payment": "payment-provider",
    "customer_support_review": "support",
}
"""Who answers, by task."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What somebody is going to answer.

    Args:
        item: that it is for.
        data: the answer.
        at: when.
        again: whether it is given a second time.
    """

    item: OpenItem
    data: Mapping[str, Any]
    at: datetime
    again: bool = False


class People:
    """All of them.

    Args:
        ledgers: folder of the ledgers of third parties.
        seed: of what they do.
    """

    def __init__(self, ledgers: Path, seed: str) -> None:
        self._ledgers, self._seed = ledgers, seed

    def plan(self, item: OpenItem) -> Plan | None:
        """Return what is answered to an item; None if nobody ever answers.

        Args:
            item: that is open.
        """
        chance = random.Random(f"{self._seed}/{item.task_id}")
        soon = item.opened_at + timedelta(seconds=chance.random() * 5)
        order = {"order_id": item.instance}
        match item.task:
            case "continue_without_missing_product":
                if chance.random() < 0.1:  # says nothing
                    return None
                answer = chance.choice(["yes", "yes", "no"])
                return Plan(item=item, data={**order, "answer": answer}, at=soon)
            case "receive_payment":
                return self._pays(item, soon, chance)
            case "waiting_for_user_on_payment":
                if chance.random() < 0.1:
                    return None
                decision = chance.choice(["try_again", "try_again", "try_again", "cancel"])
                data = {**order, "attempt": item.visit, "decision": decision}
                return Plan(item=item, data=data, at=soon)
            case "customer_support_review":
                return Plan(item=item, data={**order, "finding": "", "note": ""}, at=soon)
        raise ValueError(item.task)

    def _pays(self, item: OpenItem, soon: datetime, chance: random.Random) -> Plan | None:
        does = chance.choices(
            ["pays", "pays twice", "cannot", "pays late", "never pays"], [70, 8, 16, 3, 3]
        )[0]
        if does == "never pays":
            return None
        status = "insufficient_funds" if does == "cannot" else "succeeded"
        data = {"order_id": item.instance, "attempt": item.visit, "status": status}
        at = soon
        if does == "pays late":
            assert item.expires_at is not None
            at = item.expires_at + timedelta(seconds=3)
        return Plan(item=item, data=data, at=at, again=does == "pays twice")

    def finding(self, order: str) -> Mapping[str, Any]:
        """Return what support finds out about an order: whether its money was taken.

        Args:
            order: its id.
        """
        is_paid = bool(Ledger(self._ledgers / "payments.jsonl").effects(f"capture-{order}"))
        found = "payment_confirmed" if is_paid else "agreed_to_cancel"
        return {"order_id": order, "finding": found, "note": "looked into the ledger"}


class Desk:
    """Answers what is open, and remembers what it has answered.

    Args:
        people: who decide.
        notes: file of what they have answered.
    """

    def __init__(self, people: People, notes: Path) -> None:
        self._people, self._notes = people, Writer(notes)
        self._plans: dict[str, Plan] = {}
        # What was done before this process was started.
        known = list(read_lines(notes))
        self._over = {one["task_id"] for one in known if one.get("again") is False}
        self._given = {one["task_id"]: one["gives"] for one in known if "gives" in one}
        left = [one["task_id"] for one in known if "is_left" in one]
        self._left = left[0] if left else None

    def see(self, waiting: list[OpenItem]) -> None:
        """Plan the answers to items that are new.

        Args:
            waiting: what is open.
        """
        for item in waiting:
            if item.task_id in self._over:
                continue
            self._over.add(item.task_id)
            about = {"task_id": item.task_id, "task": item.task, "order": item.instance}
            until = item.expires_at and item.expires_at.timestamp()
            if self._left is None and item.task == "receive_payment":
                self._left = item.task_id
                self._notes.write(is_left=True, **about)
            if item.task_id == self._left:
                continue
            plan = self._people.plan(item)
            if plan is None:
                self._notes.write(says_nothing=True, until=until, **about)
                continue
            self._plans[item.task_id] = plan
            if item.expires_at is not None and plan.at > item.expires_at:
                self._notes.write(is_late=True, until=until, **about)

    def answer(self, clients: Mapping[str, TodoClient], now: datetime) -> int:
        """Give the answers that are due, and return of how many it is known what came of them. The
        others are given again the next time.

        Args:
            clients: of the server, by role.
            now: the time.
        """
        due = [one for one in self._plans.values() if one.at <= now]
        for plan in due:  # before anybody can know of it
            self._give(plan)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            results = threads.map(
                lambda plan: clients[ROLE_OF[plan.item.task]].answer(
                    plan.item, self._given[plan.item.task_id]
                ),
                due,
            )
            known = 0
            for plan, result in zip(due, results, strict=True):
                if result is not None:
                    known += 1
                    self._was_told(plan, result, now)
        return known

    def _give(self, plan: Plan) -> None:
        item = plan.item
        if item.task_id in self._given:
            return
        data = plan.data
        if item.task == "customer_support_review":
            data = self._people.finding(item.instance)
        self._given[item.task_id] = data
        self._notes.write(
            gives=data,
            task_id=item.task_id,
            task=item.task,
            order=item.instance,
            opened=item.opened_at.timestamp(),
        )

    def _was_told(self, plan: Plan, told: Told, now: datetime) -> None:
        item = plan.item
        self._notes.write(
            was_told={
                "outcome": told.outcome,
                "repeated": told.is_repeat,
                "refusal": told.refusal,
            },
            task_id=item.task_id,
            task=item.task,
            order=item.instance,
            again=plan.again,
        )
        del self._plans[item.task_id]
        if plan.again:
            self._plans[item.task_id] = Plan(item=item, data=plan.data, at=now)


class ByHand:
    """Undoes by hand what a cancelled order has left behind.

    Args:
        delivered: folder of the events that were delivered.
        ledgers: folder of the ledgers of third parties.
        urls: by third party, where it listens.
        notes: file of what was undone.
    """

    def __init__(
        self, delivered: Path, ledgers: Path, urls: Mapping[str, str], *, notes: Path
    ) -> None:
        self._delivered, self._ledgers, self._urls = delivered, ledgers, urls
        self._notes = Writer(notes)
        self._tails: dict[Path, Tail] = {}
        self._left: set[str] = set()

    def work(self) -> None:
        """Do what was asked for since the last time, as far as the third parties answer."""
        self._left |= {
            str(json.loads(one["payload"])["order_id"])
            for one in new_events(self._delivered, self._tails)
            if one["event_type"] == "order.compensation_unclear"
        }
        for order in [one for one in self._left if self._undo(one)]:
            self._left.remove(order)
            self._notes.write(undone=order)

    def _undo(self, order: str) -> bool:
        """Say whether nothing is left of an order."""
        warehouse = Ledger(self._ledgers / "warehouse.jsonl")
        invoicing = Ledger(self._ledgers / "invoicing.jsonl")
        done = True
        if warehouse.effects(f"reserve-stock-{order}") and not any(
            warehouse.effects(f"{by}release-stock-{order}") for by in ("", "by-hand-")
        ):
            # The warehouse takes no keys, and what it was asked for may take effect late.
            key = f"by-hand-release-stock-{order}"
            before = [one["at"] for one in warehouse.asked() if one["key"] == key]
            is_settled = time.time() >= max(before, default=0.0) + demo_times.SETTLES
            body = {"reference": key, "order_id": order}
            done = is_settled and self._asked("warehouse", "/releases", body)
        if invoicing.effects(f"create-invoice-{order}") and not any(
            invoicing.effects(f"{by}void-invoice-{order}") for by in ("", "by-hand-")
        ):
            body = {"order_id": order}
            key = f"by-hand-void-invoice-{order}"
            done = self._asked("invoicing", "/voids", body, key=key) and done
        return done

    def _asked(self, name: str, path: str, body: Mapping[str, Any], *, key: str = "") -> bool:
        request = urllib.request.Request(
            self._urls[name] + path,
            data=json.dumps(body).encode(),
            headers={"content-type": "application/json", "idempotency-key": key},
        )
        try:
            with urllib.request.urlopen(request, timeout=3):
                return True
        except (OSError, ValueError):
            return False


def new_events(folder: Path, tails: dict[Path, Tail]) -> Iterator[Mapping[str, Any]]:
    """Yield the events that were delivered since the last time.

    Args:
        folder: of the destination.
        tails: of its files, kept by the caller.
    """
    for path in sorted(folder.rglob("*.jsonl")):
        yield from tails.setdefault(path, Tail(path)).lines()


def main() -> None:
    """Answer until told to end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledgers", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--delivered", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--urls", type=json.loads, required=True, metavar="JSON")
    parser.add_argument("--seed", required=True)
    parser.add_argument("--todo", required=True, metavar="URL", help="of the server of items")
    parser.add_argument("--keys", type=Path, required=True, metavar="FILE", help="by role, JSON")
    given = parser.parse_args()
    notes = given.ledgers / "people.jsonl"
    desk = Desk(People(given.ledgers, given.seed), notes)
    by_hand = ByHand(given.delivered, given.ledgers, given.urls, notes=notes)
    clients = {
        role: TodoClient(given.todo, key, at_once=AT_ONCE)
        for role, key in json.loads(given.keys.read_text()).items()
    }
    while True:
        by_hand.work()
        desk.see([item for client in clients.values() for item in client.waiting()])
        if not desk.answer(clients, datetime.now(UTC)):
            time.sleep(PAUSE)


if __name__ == "__main__":
    main()
