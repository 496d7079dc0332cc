"""The audit of the demo sees each promise that is broken, one test a promise."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import demo_times
import pytest
from audit import Ledgers, Story, broken_promises
from ledger_files import THIRD_PARTIES, Writer

CONFIRMED, CANCELLED, BY_HAND = "o1", "o2", "o3"


class Folder:
    """The folder of a demo in which nothing is wrong: one order was confirmed after a refused
    payment, one was cancelled by support and undone, and one by the customer and by hand.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "ledgers").mkdir()
        (root / ".outbox" / "delivered").mkdir(parents=True)
        for order in (CONFIRMED, CANCELLED, BY_HAND):
            self.order(order)
            self.done("shop", f"make-order-{order}", order)
            self.done("warehouse", f"reserve-stock-{order}", ["cups"])
            self.done("invoicing", f"create-invoice-{order}", [["tea"], 1000])
            self.asks("terminal", f"customer-{order}", "answers")
            self.done("terminal", f"customer-{order}", [f"customer-{order}", 1000])
        self.pays(CONFIRMED, 1, "insufficient_funds")
        self.done("mail", f"insufficient-funds-{CONFIRMED}-1", ["c", "refused"])
        self.pays(CONFIRMED, 2, "succeeded")
        self.done("payments", f"capture-{CONFIRMED}", CONFIRMED)
        self.ends(CONFIRMED, "order.confirmed")
        self.says_nothing(CANCELLED)
        self.reviews(CANCELLED, "agreed_to_cancel")
        self.ends(CANCELLED, "order.cancelled")
        self.done("warehouse", f"release-stock-{CANCELLED}", True)
        self.done("invoicing", f"void-invoice-{CANCELLED}", True)
        self.answers("continue_without_missing_product", BY_HAND, {"answer": "no"}, "no")
        self.ends(BY_HAND, "order.cancelled")
        self.done("warehouse", f"by-hand-release-stock-{BY_HAND}", True)
        self.done("invoicing", f"by-hand-void-invoice-{BY_HAND}", True)

    def write(self, name: str, **line: Any) -> None:
        Writer(self.root / name).write(**line)

    def order(self, order: str) -> None:
        payload = {"order_id": order, "products": ["tea", "cups"]}
        self.write("orders.jsonl", payload=payload)

    def done(self, party: str, key: str, what: Any) -> None:
        self.write(f"ledgers/{party}.jsonl", done=json.dumps(what), key=key, what=what)

    def asks(self, party: str, key: str, behaviour: str) -> None:
        self.write(f"ledgers/{party}.jsonl", asked=True, key=key, behaviour=behaviour)

    def ends(self, order: str, event_type: str) -> None:
        payload = json.dumps({"order_id": order})
        self.write(".outbox/delivered/a.jsonl", event_type=event_type, payload=payload)

    def answers(
        self,
        task: str,
        order: str,
        data: Any,
        outcome: Any,
        *,
        visit: int = 1,
        refusal: Any = None,
        after: float = 0.0,
    ) -> None:
        names = {"receive_payment": "receive-payment"}
        about = {
            "task": task,
            "order": order,
            "task_id": f"{names.get(task, task)}-{order}-{visit}",
        }
        self.write("ledgers/people.jsonl", gives=data, opened=time.time() + after, **about)
        told = {"outcome": outcome, "repeated": False, "refusal": refusal}
        self.write("ledgers/people.jsonl", was_told=told, **about)

    def pays(self, order: str, attempt: int, status: str, *, refusal: str | None = None) -> None:
        data = {"attempt": attempt, "status": status}
        outcome = {"succeeded": "successful"}.get(status, status)
        outcome_told = None if refusal else outcome
        task = "receive_payment"
        self.answers(task, order, data, outcome_told, visit=attempt, refusal=refusal)

    def reviews(self, order: str, finding: str, *, after: float = 0.0) -> None:
        data = {"finding": finding}
        self.answers("customer_support_review", order, data, finding, after=after)

    def says_nothing(self, order: str) -> None:
        task = "receive_payment"
        self.write("ledgers/people.jsonl", says_nothing=True, task=task, order=order)

    def died(self, calls: int, *, at: float | None = None) -> None:
        when = time.time() if at is None else at
        self.write("ledgers/deaths.jsonl", died="relay", calls=calls, at=when)

    def without(self, party: str, key: str) -> None:
        file = self.root / "ledgers" / f"{party}.jsonl"
        kept = [one for one in file.read_text().splitlines() if f'"{key}"' not in one]
        file.write_text("".join(f"{one}\n" for one in kept))

    def replaced(self, party: str, key: str, what: Any) -> None:
        self.without(party, key)
        self.done(party, key, what)

    def broken(self) -> list[str]:
        ledgers = Ledgers.of(self.root / "ledgers")
        return list(broken_promises(ledgers, Story.of(self.root)))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_nothing_is_found_where_nothing_is_wrong(folder: Folder) -> None:
    """Orders that came to their end as they should are no reason for a word."""
    assert folder.broken() == []


@pytest.mark.parametrize("party", THIRD_PARTIES)
def test_what_was_done_twice_is_seen(folder: Folder, party: str) -> None:
    """No third party does anything twice for one key."""
    made = Ledgers.of(folder.root / "ledgers")
    first = getattr(made, party).ledger[0]
    folder.done(party, first.key, first.what)
    assert f"{party} did {first.key} 2 times" in folder.broken()


WRONG: dict[str, tuple[Callable[[Folder], Any], str]] = {
    "no end": (lambda one: one.order("o4"), "o4 has no end"),
    "two ends": (
        lambda one: one.ends(CONFIRMED, "order.cancelled"),
        "o1 was confirmed and cancelled",
    ),
    "an end of nothing": (
        lambda one: one.ends("o9", "order.confirmed"),
        "o9 has an end, and nobody has ordered it",
    ),
    "not registered": (
        lambda one: one.without("shop", f"make-order-{CANCELLED}"),
        "warehouse did reserve-stock-o2 for an order that nobody has registered",
    ),
    "confirmed without money": (
        lambda one: one.without("payments", f"capture-{CONFIRMED}"),
        "o1 was confirmed, and its money was not taken",
    ),
    "money of a cancelled order": (
        lambda one: one.done("payments", f"capture-{CANCELLED}", CANCELLED),
        "o2 was cancelled, and its money was taken",
    ),
    "money that nobody paid": (
        lambda one: one.done("payments", f"capture-{BY_HAND}", BY_HAND),
        "the money of o3 was taken, and nobody has paid",
    ),
    "paid without goods": (
        lambda one: one.without("warehouse", f"reserve-stock-{CONFIRMED}"),
        "o1 was paid without goods or without an invoice",
    ),
    "paid, and goods taken back": (
        lambda one: one.done("warehouse", f"release-stock-{CONFIRMED}", True),
        "o1 was paid, and its goods or its invoice were taken back",
    ),
    "wrong invoice": (
        lambda one: one.replaced(
            "invoicing", f"create-invoice-{CONFIRMED}", [["tea", "cups"], 2000]
        ),
        "the invoice of o1 is not over what can be delivered",
    ),
    "another amount": (
        lambda one: one.replaced("terminal", f"customer-{CONFIRMED}", ["customer-o1", 999]),
        "o1 was asked for another amount than its invoice says",
    ),
    "goods not released": (
        lambda one: one.without("warehouse", f"release-stock-{CANCELLED}"),
        "o2 was cancelled, and nobody has released its goods",
    ),
    "invoice not voided": (
        lambda one: one.without("invoicing", f"void-invoice-{CANCELLED}"),
        "o2 was cancelled, and nobody has voided its invoice",
    ),
    "confirmed and undone": (
        lambda one: one.done("warehouse", f"by-hand-release-stock-{CONFIRMED}", True),
        "o1 was confirmed, and release-stock-o1 was done",
    ),
    "two contents": (
        lambda one: one.write("ledgers/mail.jsonl", conflict="[]", key="k"),
        "mail was sent k with two contents",
    ),
    "asked again after nobody knew": (
        lambda one: one.asks("terminal", f"customer-{CANCELLED}", "is silent"),
        "customer-o2 may have been asked for money 2 times",
    ),
    "an answer that was not followed": (
        lambda one: one.answers(
            "continue_without_missing_product", CONFIRMED, {"answer": "no"}, "no"
        ),
        "the answer no to continue_without_missing_product-o1-1 was not followed",
    ),
    "a finding that was not followed": (
        lambda one: one.reviews(CANCELLED, "payment_confirmed"),
        "the answer payment_confirmed to customer_support_review-o2-1 was not followed",
    ),
    "two outcomes of an item": (
        lambda one: one.pays(CONFIRMED, 2, "insufficient_funds"),
        "receive-payment-o1-2 has several outcomes: insufficient_funds, successful",
    ),
    "an answer that was refused": (
        lambda one: one.pays(CONFIRMED, 3, "succeeded", refusal="BAD_ANSWER"),
        "an answer to receive-payment-o1-3 was refused: BAD_ANSWER",
    ),
    "a repetition that came too late": (
        lambda one: one.pays(CONFIRMED, 2, "succeeded", refusal="ANSWERED_TOO_LATE"),
        "an answer to receive-payment-o1-2 counted, and its repetition came too late",
    ),
    "a mail that was not sent": (
        lambda one: one.without("mail", f"insufficient-funds-{CONFIRMED}-1"),
        "nobody has sent insufficient-funds-o1-1",
    ),
    "a mail for nothing": (
        lambda one: one.done("mail", f"insufficient-funds-{CONFIRMED}-2", ["c", "refused"]),
        "insufficient-funds-o1-2 was sent, and no payment was refused",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_promise_that_is_broken_is_seen(folder: Folder, wrong: str) -> None:
    """Whatever is wrong with one order is said of it, in a sentence."""
    plant, sentence = WRONG[wrong]
    plant(folder)
    assert sentence in folder.broken()


@pytest.mark.parametrize(
    "reason",
    [
        lambda one: one.asks("terminal", f"customer-{CONFIRMED}", "acts and is silent"),
        lambda one: one.asks("payments", f"capture-{CONFIRMED}", "rejects"),
        lambda one: one.asks("mail", f"insufficient-funds-{CONFIRMED}-1", "rejects"),
        lambda one: one.pays(CONFIRMED, 3, "succeeded", refusal="ANSWERED_TOO_LATE"),
        lambda one: one.died(1),
        lambda one: one.reviews(CONFIRMED, "payment_confirmed", after=demo_times.PAYMENT + 1),
    ],
)
def test_support_is_asked_for_a_reason_only(
    folder: Folder, reason: Callable[[Folder], Any]
) -> None:
    """An order that goes to a person without a reason is seen, beyond what was killed."""
    folder.reviews(CONFIRMED, "payment_confirmed")
    said = folder.broken()[0]
    assert said == "support was asked about o1 without a reason"
    reason(folder)
    assert "support was asked" not in str(folder.broken())


def test_a_death_explains_only_what_was_called_then(folder: Folder) -> None:
    """What has died long after a call, or when fewer calls were under way, is no reason."""
    folder.reviews(CONFIRMED, "payment_confirmed")
    folder.died(1, at=time.time() + demo_times.ON_RECORD + 1)
    assert folder.broken() == ["support was asked about o1 without a reason"]
    folder.died(1)
    assert folder.broken() == []
    folder.reviews(BY_HAND, "agreed_to_cancel")
    folder.says_nothing(CANCELLED)
    (folder.root / "ledgers" / "deaths.jsonl").unlink()
    folder.died(1)
    assert folder.broken() == [
        "support was asked about 2 orders without a reason, and at most 1 calls were killed"
    ]


def test_an_order_that_is_left_to_somebody_may_go_any_way(folder: Folder) -> None:
    """Whether the person at the keyboard has paid, and whether at all, stands in no notes."""
    folder.done("payments", "capture-o4", "o4")
    folder.done("mail", "insufficient-funds-o4-1", ["c", "refused"])
    folder.write("orders.jsonl", payload={"order_id": "o4", "products": []})
    assert {
        "o4 has no end",
        "the money of o4 was taken, and nobody has paid",
        "insufficient-funds-o4-1 was sent, and no payment was refused",
    } <= {*folder.broken()}
    folder.write("ledgers/people.jsonl", is_left=True, task_id="receive-payment-o4-1", order="o4")
    assert not [one for one in folder.broken() if "has no end" in one or "nobody has paid" in one]
    assert "insufficient-funds-o4-1" not in str(folder.broken())
