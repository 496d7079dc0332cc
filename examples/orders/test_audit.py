"""The audit of the demo sees each promise that is broken, one test a promise."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import demo_times
import pytest
from audit import LONG_STOP, Ledgers, Story, broken_promises, main
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
        self.decides(CONFIRMED, 1, "try_again")
        self.pays(CONFIRMED, 2, "succeeded")
        self.done("payments", f"capture-{CONFIRMED}", CONFIRMED)
        self.ends(CONFIRMED, "order.confirmed")
        self.says_nothing(CANCELLED)
        self.reviews(CANCELLED, "agreed_to_cancel")
        self.ends(CANCELLED, "order.cancelled")
        self.undone(CANCELLED)
        self.answers("continue_without_missing_product", BY_HAND, {"answer": "no"}, "no")
        self.ends(BY_HAND, "order.cancelled")
        self.done("warehouse", f"by-hand-release-stock-{BY_HAND}", True)
        self.done("invoicing", f"by-hand-void-invoice-{BY_HAND}", True)

    def cancelled_although_wanted(self, order: str) -> None:
        self.cancelled(order, after=demo_times.CUSTOMER + 1, missing=["tea"])
        self.answers("continue_without_missing_product", order, {"answer": "yes"}, "yes")

    def cancelled_before_the_choice(self, order: str) -> None:
        self.cancelled(order, after=demo_times.CUSTOMER - 5)
        self.pays(order, 1, "insufficient_funds")
        self.done("mail", f"insufficient-funds-{order}-1", ["c", "refused"])

    def write(self, name: str, **line: Any) -> None:
        Writer(self.root / name).write(**line)

    def order(self, order: str) -> None:
        payload = {"order_id": order, "products": ["tea", "cups"]}
        self.write("orders.jsonl", payload=payload)

    def done(self, party: str, key: str, what: Any) -> None:
        self.write(f"ledgers/{party}.jsonl", done=json.dumps(what), key=key, what=what)

    def asks(self, party: str, key: str, behaviour: str, *, after: float = 0.0) -> None:
        at = time.time() + after
        self.write(f"ledgers/{party}.jsonl", asked=True, key=key, behaviour=behaviour, at=at)

    def undone(self, order: str, *, after: float = 0.0) -> None:
        self.asks("warehouse", f"release-stock-{order}", "answers", after=after)
        self.done("warehouse", f"release-stock-{order}", True)
        self.done("invoicing", f"void-invoice-{order}", True)

    def cancelled(self, order: str, *, after: float, missing: list[str] | None = None) -> None:
        """One more order, of which nobody has said that it is to be cancelled."""
        self.order(order)
        self.done("shop", f"make-order-{order}", order)
        self.done("warehouse", f"reserve-stock-{order}", missing or [])
        self.ends(order, "order.cancelled")
        self.undone(order, after=after)

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
        told_after: float = 0.0,
    ) -> None:
        names = {
            "receive_payment": "receive-payment",
            "waiting_for_user_on_payment": "payment-choice",
        }
        about = {
            "task": task,
            "order": order,
            "task_id": f"{names.get(task, task)}-{order}-{visit}",
        }
        self.write("ledgers/people.jsonl", gives=data, opened=time.time() + after, **about)
        told = {"outcome": outcome, "repeated": False, "refusal": refusal}
        at = time.time() + told_after
        self.write("ledgers/people.jsonl", was_told=told, at=at, **about)

    def decides(self, order: str, attempt: int, decision: str) -> None:
        data = {"attempt": attempt, "decision": decision}
        self.answers("waiting_for_user_on_payment", order, data, decision, visit=attempt)

    def pays(
        self,
        order: str,
        attempt: int,
        status: str,
        *,
        refusal: str | None = None,
        told_after: float = demo_times.PAYMENT + 2,
    ) -> None:
        data = {"attempt": attempt, "status": status}
        outcome = {"succeeded": "successful"}.get(status, status)
        outcome_told = None if refusal else outcome
        task = "receive_payment"
        self.answers(
            task,
            order,
            data,
            outcome_told,
            visit=attempt,
            refusal=refusal,
            told_after=told_after if refusal else 0.0,
        )

    def reviews(self, order: str, finding: str, *, after: float = 0.0) -> None:
        data = {"finding": finding}
        self.answers("customer_support_review", order, data, finding, after=after)

    def without_reason(self, order: str) -> None:
        """Forget why support was asked about an order."""
        file = self.root / "ledgers" / "people.jsonl"
        lines = file.read_text().splitlines(keepends=True)
        kept = [one for one in lines if "says_nothing" not in one or f'"{order}"' not in one]
        file.write_text("".join(kept))

    def says_nothing(self, order: str) -> None:
        task = "receive_payment"
        self.write("ledgers/people.jsonl", says_nothing=True, task=task, order=order)

    def died(self, calls: int, *, at: float | None = None, unseen: float = 0.0) -> None:
        """Something has died that nobody had seen alive for some seconds."""
        when = time.time() if at is None else at
        seen = when - unseen
        self.write("ledgers/deaths.jsonl", died="relay", calls=calls, at=when, seen_alive=seen)

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
    "paid, and nobody took the money": (
        lambda one: one.pays(CANCELLED, 1, "succeeded"),
        "o2 has paid, and its money was not taken",
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
    "a customer who wants the rest and gets nothing": (
        lambda one: one.cancelled_although_wanted("o4"),
        "the answer yes to continue_without_missing_product-o4-1 was not followed",
    ),
    "a customer who may not try again": (
        lambda one: one.decides(CONFIRMED, 2, "try_again"),
        "the answer try_again to payment-choice-o1-2 was not followed",
    ),
    "cancelled without a reason": (
        lambda one: one.cancelled("o4", after=demo_times.CUSTOMER + 1),
        "o4 was cancelled without a reason",
    ),
    "cancelled although the customer wants the rest": (
        lambda one: one.cancelled_although_wanted("o4"),
        "o4 was cancelled without a reason",
    ),
    "cancelled before the customer's time was over": (
        lambda one: one.cancelled("o4", after=demo_times.CUSTOMER - 5, missing=["tea"]),
        "o4 was cancelled without a reason",
    ),
    "cancelled before it is known whether the customer tries again": (
        lambda one: one.cancelled_before_the_choice("o4"),
        "o4 was cancelled without a reason",
    ),
    "an answer in time that was told to be late": (
        lambda one: one.pays(
            CONFIRMED,
            3,
            "succeeded",
            refusal="ANSWERED_TOO_LATE",
            told_after=demo_times.PAYMENT - 5,
        ),
        "an answer to receive-payment-o1-3 was in time, and was told that it was late",
    ),
    "a customer in time who was told to be late": (
        lambda one: one.answers(
            "waiting_for_user_on_payment",
            "o4",
            {"decision": "try_again"},
            None,
            refusal="ANSWERED_TOO_LATE",
            told_after=demo_times.CUSTOMER - 5,
        ),
        "an answer to payment-choice-o4-1 was in time, and was told that it was late",
    ),
    "a finding that was told to be late": (
        lambda one: one.answers(
            "customer_support_review",
            CANCELLED,
            {"finding": "agreed_to_cancel"},
            None,
            visit=2,
            refusal="ANSWERED_TOO_LATE",
            told_after=10_000.0,
        ),
        "an answer to customer_support_review-o2-2 was in time, and was told that it was late",
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


REASONS: dict[str, Callable[[Folder, str], Any]] = {
    "nobody knows whether it was asked": lambda one, order: one.asks(
        "terminal", f"customer-{order}", "acts and is silent"
    ),
    "a mail was refused": lambda one, order: one.asks(
        "mail", f"insufficient-funds-{order}-1", "rejects"
    ),
    "paid too late": lambda one, order: one.pays(
        order, 3, "succeeded", refusal="ANSWERED_TOO_LATE"
    ),
    "never paid": lambda one, order: one.says_nothing(order),
    "nobody has looked in time": lambda one, order: one.reviews(
        order, "agreed_to_cancel", after=demo_times.PAYMENT + 1
    ),
    "a call was killed": lambda one, order: one.died(1),
    "a call was killed while nobody looked": lambda one, order: one.died(
        1, at=time.time() + 1000, unseen=950.0
    ),
}
MONEY_REFUSED = "the money was refused"
MONEY_REASON: Callable[[Folder, str], Any] = lambda one, order: one.asks(  # noqa: E731
    "payments", f"capture-{order}", "rejects"
)


@pytest.mark.parametrize("reason", [*REASONS, MONEY_REFUSED])
def test_support_is_asked_for_a_reason_only(folder: Folder, reason: str) -> None:
    """An order that goes to a person without a reason is seen, beyond what was killed."""
    folder.reviews(BY_HAND, "agreed_to_cancel")
    assert folder.broken() == [
        "support was asked about o3 without a reason",
        "support was asked about 1 orders without a reason, and at most 0 calls were killed",
    ]
    {**REASONS, MONEY_REFUSED: MONEY_REASON}[reason](folder, BY_HAND)
    assert "support was asked" not in str(folder.broken())


@pytest.mark.parametrize("reason", REASONS)
def test_what_was_paid_goes_to_support_only_if_it_cannot_be_taken(
    folder: Folder, reason: str
) -> None:
    """Of an order whose payment counts everybody knows that the customer was asked."""
    folder.reviews(CONFIRMED, "payment_confirmed")
    REASONS[reason](folder, CONFIRMED)
    assert "support was asked about o1 without a reason" in folder.broken()
    MONEY_REASON(folder, CONFIRMED)
    assert "support was asked" not in str(folder.broken())


def test_a_terminal_that_refuses_for_good_is_no_reason_to_ask_support(folder: Folder) -> None:
    """Everybody knows that the customer was not asked: the order is cancelled."""
    folder.reviews(BY_HAND, "agreed_to_cancel")
    folder.asks("terminal", f"customer-{BY_HAND}", "rejects")
    assert "support was asked about o3 without a reason" in folder.broken()


@pytest.mark.parametrize(
    "reason",
    [
        lambda one: one.asks("shop", "make-order-o4", "rejects"),
        lambda one: one.asks("warehouse", "reserve-stock-o4", "rejects"),
        lambda one: one.asks("invoicing", "create-invoice-o4", "rejects"),
        lambda one: one.asks("terminal", "customer-o4", "rejects"),
        lambda one: one.decides("o4", 1, "cancel"),
        lambda one: one.reviews("o4", "agreed_to_cancel"),
        lambda one: one.answers("continue_without_missing_product", "o4", {"answer": "no"}, "no"),
        lambda one: one.done("warehouse", "reserve-stock-o4", ["tea"]),
        lambda one: one.done("mail", "insufficient-funds-o4-1", ["c", "refused"]),
        lambda one: one.died(0, unseen=LONG_STOP + 1),
        lambda one: one.write("ledgers/people.jsonl", is_left=True, task_id="x", order="o4"),
    ],
)
def test_an_order_is_cancelled_for_a_reason_only(
    folder: Folder, reason: Callable[[Folder], Any]
) -> None:
    """Somebody wanted it, refused for good, or had no answer of a customer in time."""
    said = "o4 was cancelled without a reason"
    folder.cancelled("o4", after=demo_times.CUSTOMER + 1)
    assert folder.broken() == [said]
    reason(folder)
    assert said not in folder.broken()


def test_a_death_explains_only_what_was_called_then(folder: Folder) -> None:
    """What has died long after a call, or when fewer calls were under way, is no reason."""
    folder.reviews(BY_HAND, "agreed_to_cancel")
    folder.died(1, at=time.time() + demo_times.ON_RECORD + 5)
    assert folder.broken() == ["support was asked about o3 without a reason"]
    folder.died(1)
    assert folder.broken() == []
    (folder.root / "ledgers" / "deaths.jsonl").unlink()
    folder.without_reason(CANCELLED)
    folder.died(1)
    assert folder.broken() == [
        "support was asked about 2 orders without a reason, and at most 1 calls were killed"
    ]


def test_a_long_stop_explains_what_has_expired_meanwhile(folder: Folder) -> None:
    """Whoever goes on hours later finds calls that nobody needs any more, also that for money."""
    folder.pays(BY_HAND, 1, "succeeded")
    folder.reviews(BY_HAND, "agreed_to_cancel")
    assert {
        "o3 has paid, and its money was not taken",
        "support was asked about o3 without a reason",
    } <= {*folder.broken()}
    folder.died(0, unseen=LONG_STOP + 1)
    assert folder.broken() == []


@pytest.mark.parametrize("words", [[], ["here", "there"], ["."]])
def test_without_a_demo_nothing_is_said_to_be_right(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A folder without orders, and no folder, are an error: nobody reads "0 broken promises"."""
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "folder" in told.err


def test_the_audit_by_hand_says_what_is_broken(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its exit code says whether a promise is broken."""
    assert main([str(folder.root)]) == 0
    assert "3 orders, 0 broken promises" in capsys.readouterr().out
    folder.order("o4")
    assert main([str(folder.root)]) == 1
    assert capsys.readouterr().out == "o4 has no end\n4 orders, 1 broken promises\n"


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
