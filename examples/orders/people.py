"""The people around the orders, as a process: `python people.py --folder FOLDER --seed N`.

Customers decide, the payment provider tells who has paid, support finds out what nobody knows. They
answer To-Do items through the Python API, many at a time. What each of them does follows from the
seed: some pay at once, some twice, some late, some never. What they have answered, and what they
were told, is written into a file of their own. Whoever is told that an order could not be undone
does that by hand.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from ledger_files import Ledger, Tail, Writer, read_lines

from delta_outbox import Completion, GivenAnswer, Items, OutboxError, WaitingItem, open_outbox

PAUSE: Final = 2.0  # seconds, between two looks at what is open

BY: Final = {"actor": "demo", "reason": "orders demo"}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What somebody is going to answer.

    Args:
        item: that it is for.
        data: the answer.
        at: when.
        again: whether it is given a second time.
    """

    item: WaitingItem
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

    def plan(self, item: WaitingItem) -> Plan | None:
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

    def _pays(self, item: WaitingItem, soon: datetime, chance: random.Random) -> Plan | None:
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
        # Those that were answered, also before this process was started.
        self._over = {one["task_id"] for one in read_lines(notes) if one.get("again") is False}

    def see(self, waiting: list[WaitingItem]) -> None:
        """Plan the answers to items that are new.

        Args:
            waiting: what is open.
        """
        for item in waiting:
            if item.task_id not in self._over:
                self._over.add(item.task_id)
                plan = self._people.plan(item)
                if plan is not None:
                    self._plans[item.task_id] = plan
                else:
                    self._notes.write(
                        says_nothing=True,
                        task_id=item.task_id,
                        task=item.task,
                        order=item.instance,
                    )

    def answer(self, items: Items, now: datetime) -> int:
        """Give the answers that are due; return how many.

        Args:
            items: of the outbox.
            now: the time.
        """
        due = {name: one for name, one in self._plans.items() if one.at <= now}
        answers = [GivenAnswer(task_id=name, data=self._data(one)) for name, one in due.items()]
        if not answers:
            return 0
        for one in answers:  # before anybody can know of it
            item = due[one.task_id].item
            self._notes.write(
                gives=one.data,
                task_id=one.task_id,
                task=item.task,
                order=item.instance,
                opened=item.opened_at.timestamp(),
            )
        for one, result in zip(answers, items.complete_many(answers, **BY), strict=True):
            plan = self._plans.pop(one.task_id)
            self._notes.write(
                was_told=told(result),
                task_id=one.task_id,
                task=plan.item.task,
                order=plan.item.instance,
                again=plan.again,
            )
            if plan.again:
                self._plans[one.task_id] = Plan(item=plan.item, data=plan.data, at=now)
        return len(answers)

    def _data(self, plan: Plan) -> Mapping[str, Any]:
        if plan.item.task == "customer_support_review":
            return self._people.finding(plan.item.instance)
        return plan.data


def told(result: Completion | OutboxError) -> dict[str, Any]:
    """Return what somebody was told about an answer, for the notes.

    Args:
        result: of the answer.
    """
    if isinstance(result, Completion):
        return {"outcome": result.outcome, "repeated": result.repeated, "refusal": None}
    return {"outcome": None, "repeated": False, "refusal": result.code}


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
            body = {"reference": f"by-hand-release-stock-{order}", "order_id": order}
            done = self._asked("warehouse", "/releases", body)
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
    given = parser.parse_args()
    notes = given.ledgers / "people.jsonl"
    desk = Desk(People(given.ledgers, given.seed), notes)
    by_hand = ByHand(given.delivered, given.ledgers, given.urls, notes=notes)
    with open_outbox() as outbox:
        items = Items(outbox)
        while True:
            by_hand.work()
            desk.see(items.waiting())
            if not desk.answer(items, datetime.now(UTC)):
                time.sleep(PAUSE)


if __name__ == "__main__":
    main()
