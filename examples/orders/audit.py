"""Says what is wrong with the ledgers of the third parties, and looks at nothing else.

`broken` needs the ledgers alone. `broken_promises` also knows what was ordered, what people have
answered and were told, which events came out, and how many calls somebody has killed: what the
scripts of the demo have written down. No table of the outbox is read.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import demo_times
from ledger_files import THIRD_PARTIES, Ledger, read_lines

COMPENSATES = ("release-stock-", "void-invoice-", "by-hand-")
"""How the tasks begin that a cancelled order has, registered or not."""
CENTS = 1000  # what a product costs
HARMLESS = frozenset({"answers", "answers late", "refuses", "rejects"})
"""What a terminal does after which everybody knows whether it has asked."""
TIME_TO_ANSWER = {
    "continue_without_missing_product": demo_times.CUSTOMER,
    "waiting_for_user_on_payment": demo_times.CUSTOMER,
    "receive_payment": demo_times.PAYMENT,
    "customer_support_review": math.inf,
}
"""How long an item waits for its answer, by task; in seconds."""
CLOCKS = 1.0  # seconds by which two times of one machine may differ
LONG_STOP = 1800.0
"""Seconds: after pauses that last so long together, tasks that call somebody may have expired."""


class Entry(Protocol):
    """Something that a third party has done."""

    @property
    def key(self) -> str:
        """Return by which it was asked."""

    @property
    def what(self) -> Any:
        """Return what it has done."""


class Party(Protocol):
    """A third party and its ledger: one of the kit, or a file."""

    @property
    def title(self) -> str:
        """Return its name for people."""

    @property
    def ledger(self) -> Sequence[Entry]:
        """Return what it has done, in order."""

    def effects(self, key: str) -> list[Any]:
        """Return all that was done for a key."""


class Parties(Protocol):
    """All third parties of the orders."""

    @property
    def shop(self) -> Party:
        """Return our own register."""

    @property
    def warehouse(self) -> Party:
        """Return the warehouse."""

    @property
    def invoicing(self) -> Party:
        """Return the invoicing service."""

    @property
    def terminal(self) -> Party:
        """Return the old terminal."""

    @property
    def payments(self) -> Party:
        """Return the payment provider."""

    @property
    def mail(self) -> Party:
        """Return the mail service."""


def broken(town: Parties) -> Iterator[str]:
    """Yield each promise to a customer that the ledgers show broken.

    Args:
        town: after all orders have come to their end.
    """
    called = (town.warehouse, town.invoicing, town.terminal, town.payments)
    for party in (town.shop, *called, town.mail):
        for key, times in _counts(party).items():
            if times > 1:
                yield f"{party.title} did {key} {times} times"
    registered = {one.what for one in town.shop.ledger}
    captured = {one.what for one in town.payments.ledger}
    for party in called:
        for key in _counts(party):
            if key.rpartition("-")[2] not in registered and not key.startswith(COMPENSATES):
                yield f"{party.title} did {key} for an order that nobody has registered"
    for order in sorted(registered):
        reserved = bool(town.warehouse.effects(f"reserve-stock-{order}"))
        released = _undone(town.warehouse, f"release-stock-{order}")
        invoiced = bool(town.invoicing.effects(f"create-invoice-{order}"))
        voided = _undone(town.invoicing, f"void-invoice-{order}")
        if order in captured and (released or voided):
            yield f"{order} was paid, and its goods or its invoice were taken back"
        if order in captured and not (reserved and invoiced):
            yield f"{order} was paid without goods or without an invoice"
        if released and invoiced and not voided:
            yield f"{order} was cancelled, and its invoice stands"
        if voided and reserved and not released:
            yield f"{order} was cancelled, and its goods are still set aside"


def _counts(party: Party) -> Counter[str]:
    return Counter(one.key for one in party.ledger)


def _undone(party: Party, key: str) -> bool:
    return any(True in party.effects(f"{by}{key}") for by in ("", "by-hand-"))


# --- with all that the scripts of the demo know ---------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Ledgers:
    """The ledgers of all third parties, from their files.

    Args:
        shop: our own register.
        warehouse: the warehouse.
        invoicing: the invoicing service.
        terminal: the old terminal.
        payments: the payment provider.
        mail: the mail service.
    """

    shop: Ledger
    warehouse: Ledger
    invoicing: Ledger
    terminal: Ledger
    payments: Ledger
    mail: Ledger

    @classmethod
    def of(cls, folder: Path) -> Ledgers:
        """Read the files.

        Args:
            folder: of the ledgers.
        """
        return cls(**{name: Ledger(folder / f"{name}.jsonl") for name in THIRD_PARTIES})

    @property
    def all(self) -> Sequence[Ledger]:
        """Return all of them."""
        return [getattr(self, name) for name in THIRD_PARTIES]


@dataclass(frozen=True, kw_only=True)
class Story:
    """What the scripts of the demo know.

    Args:
        ordered: products, by order.
        given: answers that people have given, in order: task, order, data.
        told: what they were told: task id, task, order, outcome, refusal.
        silent: items that somebody has seen and means to leave unanswered: task, order.
        left: orders with an item that the person at the keyboard may answer, or not.
        seen: items that anybody has seen, by their ids.
        ends: by type of the events that were delivered, the orders.
        deaths: of relays, hosts and the demo: when it was noticed (`at`), when it was last seen
            alive, and how many calls of black boxes at most were under way in it.
    """

    ordered: Mapping[str, Sequence[str]]
    given: Sequence[Mapping[str, Any]] = ()
    told: Sequence[Mapping[str, Any]] = ()
    silent: Sequence[Mapping[str, Any]] = ()
    left: frozenset[str] = frozenset()
    seen: frozenset[str] = frozenset()
    ends: Mapping[str, Iterable[str]] = field(default_factory=dict)
    deaths: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, folder: Path) -> Story:
        """Read the files: of the orders, of what was delivered, of people and processes.

        Args:
            folder: of the demo.
        """
        ends: dict[str, set[str]] = defaultdict(set)
        for path in sorted((folder / ".outbox" / "delivered").rglob("*.jsonl")):
            for line in read_lines(path):
                if line["event_type"].startswith("order."):  # items tell that they are due, too
                    ends[line["event_type"]].add(json.loads(line["payload"])["order_id"])
        people = list(read_lines(folder / "ledgers" / "people.jsonl"))
        orders = read_lines(folder / "orders.jsonl")
        deaths = read_lines(folder / "ledgers" / "deaths.jsonl")
        return cls(
            ordered={one["payload"]["order_id"]: one["payload"]["products"] for one in orders},
            given=[one for one in people if "gives" in one],
            told=[{**one, **one["was_told"]} for one in people if "was_told" in one],
            silent=[one for one in people if "says_nothing" in one],
            left=frozenset(one["order"] for one in people if "is_left" in one),
            seen=frozenset(one["task_id"] for one in people if "task_id" in one),
            ends=ends,
            deaths=list(deaths),
        )

    def ended(self, event_type: str) -> set[str]:
        """Return the orders that came to an end.

        Args:
            event_type: of the event.
        """
        return set(self.ends.get(event_type, ()))

    @property
    def killed(self) -> int:
        """Return how many calls of black boxes may have been killed."""
        return sum(one["calls"] for one in self.deaths)

    @property
    def was_stopped_long(self) -> bool:
        """Say whether nobody has worked for so long that tasks may have expired meanwhile."""
        stops = [float(one["at"]) - _seen_alive(one) for one in self.deaths]
        return sum(stops) >= LONG_STOP

    def counted(self, task: str, outcome: str | None = None) -> dict[str, set[str]]:
        """Return the items of a task whose answer counts, by order.

        Args:
            task: its name.
            outcome: that the answer came to; None: any.
        """
        found = defaultdict(set)
        for one in self.told:
            is_meant = one["outcome"] is not None and outcome in (None, one["outcome"])
            if one["task"] == task and is_meant:
                found[one["order"]].add(one["task_id"])
        return found

    def answers(self, task: str) -> dict[str, list[Mapping[str, Any]]]:
        """Return what was given to items of a task, by order.

        Args:
            task: its name.
        """
        found = defaultdict(list)
        for one in self.given:
            if one["task"] == task:
                found[one["order"]].append(one["gives"])
        return found


def broken_promises(ledgers: Ledgers, story: Story) -> Iterator[str]:
    """Yield each promise that is broken, in a sentence.

    Args:
        ledgers: of the third parties, after all orders have come to their end.
        story: what the scripts know.
    """
    yield from broken(ledgers)
    yield from _ends(story)
    yield from _money(ledgers, story)
    yield from _undoing(ledgers, story)
    yield from _reasons_to_cancel(ledgers, story)
    yield from _calls(ledgers)
    yield from _people(ledgers, story)
    yield from _mails(ledgers, story)
    yield from _reviews(ledgers, story)


def _ends(story: Story) -> Iterator[str]:
    """Every order ends, and in one way."""
    confirmed, cancelled = story.ended("order.confirmed"), story.ended("order.cancelled")
    for order in story.ordered:
        if order not in confirmed | cancelled | story.left:
            yield f"{order} has no end"
        if order in confirmed & cancelled:
            yield f"{order} was confirmed and cancelled"
    for order in sorted((confirmed | cancelled) - story.ordered.keys()):
        yield f"{order} has an end, and nobody has ordered it"


def _money(ledgers: Ledgers, story: Story) -> Iterator[str]:
    """Who pays is confirmed, who is confirmed has paid, and nobody pays anything else."""
    captured = {one.what for one in ledgers.payments.ledger}
    confirmed, cancelled = story.ended("order.confirmed"), story.ended("order.cancelled")
    paid = {
        order
        for order, answers in story.answers("receive_payment").items()
        if any(one["status"] == "succeeded" for one in answers)
    }
    for order in sorted(confirmed - captured):
        yield f"{order} was confirmed, and its money was not taken"
    for order in sorted(cancelled & captured):
        yield f"{order} was cancelled, and its money was taken"
    for order in sorted(captured - paid - story.left):
        yield f"the money of {order} was taken, and nobody has paid"
    if not story.was_stopped_long:
        excused = captured | _rejected(ledgers.payments, "capture-") | story.left
        for order in sorted(story.counted("receive_payment", "successful").keys() - excused):
            yield f"{order} has paid, and its money was not taken"
    for order, products in story.ordered.items():
        invoices = ledgers.invoicing.effects(f"create-invoice-{order}")
        asked = ledgers.terminal.effects(f"customer-{order}")
        for missing in ledgers.warehouse.effects(f"reserve-stock-{order}")[:1]:
            due = CENTS * len([one for one in products if one not in missing])
            if any(cents != due for _, cents in invoices):
                yield f"the invoice of {order} is not over what can be delivered"
        if asked and [cents for _, cents in asked] != [cents for _, cents in invoices]:
            yield f"{order} was asked for another amount than its invoice says"


def _undoing(ledgers: Ledgers, story: Story) -> Iterator[str]:
    """Nothing is left of a cancelled order."""
    for order in sorted(story.ended("order.cancelled")):
        is_reserved = bool(ledgers.warehouse.effects(f"reserve-stock-{order}"))
        is_invoiced = bool(ledgers.invoicing.effects(f"create-invoice-{order}"))
        if is_reserved and not _undone(ledgers.warehouse, f"release-stock-{order}"):
            yield f"{order} was cancelled, and nobody has released its goods"
        if is_invoiced and not _undone(ledgers.invoicing, f"void-invoice-{order}"):
            yield f"{order} was cancelled, and nobody has voided its invoice"
    for order in sorted(story.ended("order.confirmed")):
        for key in (f"release-stock-{order}", f"void-invoice-{order}"):
            if any(one.effects(f"{by}{key}") for one in ledgers.all for by in ("", "by-hand-")):
                yield f"{order} was confirmed, and {key} was done"


def _rejected(ledger: Ledger, prefix: str) -> set[str]:
    """Return the rest of the keys that a third party has refused for good.

    Args:
        ledger: of the third party.
        prefix: how the keys begin.
    """
    keys = (one["key"] for one in ledger.asked() if one["behaviour"] == "rejects")
    return {key.removeprefix(prefix) for key in keys if key.startswith(prefix)}


def _reasons_to_cancel(ledgers: Ledgers, story: Story) -> Iterator[str]:
    """No order is cancelled without a reason: somebody wanted that, a third party refused for good
    what must be done before anybody is asked for money, or a customer's time was over.
    """
    wanted = {
        order
        for task, field_name, answer in (
            ("continue_without_missing_product", "answer", "no"),
            ("waiting_for_user_on_payment", "decision", "cancel"),
            ("customer_support_review", "finding", "agreed_to_cancel"),
        )
        for order, answers in story.answers(task).items()
        if any(one.get(field_name) == answer for one in answers)
    }
    refused = (
        _rejected(ledgers.shop, "make-order-")
        | _rejected(ledgers.warehouse, "reserve-stock-")
        | _rejected(ledgers.invoicing, "create-invoice-")
        | _rejected(ledgers.terminal, "customer-")
    )
    cancelled = story.ended("order.cancelled") - wanted - refused - story.left
    undone_at: dict[str, float] = {}
    for one in ledgers.warehouse.asked():
        undone_at.setdefault(one["key"].removeprefix("release-stock-"), one["at"])
    for order in sorted(cancelled):
        since = _customer_asked_at(order, ledgers, story)
        is_over = undone_at.get(order, math.inf) >= since + demo_times.CUSTOMER - CLOCKS
        if not (is_over or story.was_stopped_long):
            yield f"{order} was cancelled without a reason"


def _customer_asked_at(order: str, ledgers: Ledgers, story: Story) -> float:
    """Return the earliest moment at which the customer may have got a question whose answer does
    not count; infinity if there is none.
    """
    times = [
        one.at
        for one in ledgers.warehouse.ledger
        if one.key == f"reserve-stock-{order}"
        and one.what
        and order not in story.counted("continue_without_missing_product")
    ]
    prefix = f"insufficient-funds-{order}-"
    counted = story.counted("waiting_for_user_on_payment").get(order, set())
    times += [
        one.at
        for one in ledgers.mail.ledger
        if one.key.startswith(prefix)
        and f"payment-choice-{order}-{one.key.removeprefix(prefix)}" not in counted
    ]
    return min(times, default=math.inf)


def _calls(ledgers: Ledgers) -> Iterator[str]:
    """A key always means one thing, and nobody asks again who cannot be asked twice."""
    for ledger in ledgers.all:
        for line in ledger.lines:
            if "conflict" in line:
                yield f"{ledger.title} was sent {line['key']} with two contents"
    may_have_asked = Counter(
        one["key"]
        for one in ledgers.terminal.asked()
        if one["behaviour"] not in ("refuses", "rejects")
    )
    for customer, times in may_have_asked.items():
        if times > 1:
            yield f"{customer} may have been asked for money {times} times"


def _people(ledgers: Ledgers, story: Story) -> Iterator[str]:
    """An answer that counts is followed, there is one for each item, and others are told why."""
    yield from _follow_ups(ledgers, story)
    opened = {one["task_id"]: one["opened"] for one in story.given}
    followed = {
        ("continue_without_missing_product", "no"): "order.cancelled",
        ("waiting_for_user_on_payment", "cancel"): "order.cancelled",
        ("customer_support_review", "agreed_to_cancel"): "order.cancelled",
        ("customer_support_review", "payment_confirmed"): "order.confirmed",
    }
    outcomes: dict[str, set[str]] = defaultdict(set)
    for one in story.told:
        if one["refusal"] not in (None, "ANSWERED_TOO_LATE"):
            yield f"an answer to {one['task_id']} was refused: {one['refusal']}"
        if one["refusal"] == "ANSWERED_TOO_LATE":
            until = opened.get(one["task_id"], -math.inf) + TIME_TO_ANSWER[one["task"]]
            if one["at"] < until - CLOCKS:
                yield f"an answer to {one['task_id']} was in time, and was told that it was late"
        if one["outcome"] is not None:
            outcomes[one["task_id"]].add(one["outcome"])
            end = followed.get((one["task"], one["outcome"]))
            if end is not None and one["order"] not in story.ended(end):
                yield f"the answer {one['outcome']} to {one['task_id']} was not followed"
        elif one["task_id"] in outcomes:
            yield f"an answer to {one['task_id']} counted, and its repetition came too late"
    for task_id, found in outcomes.items():
        if len(found) > 1:
            yield f"{task_id} has several outcomes: {', '.join(sorted(found))}"


def _follow_ups(ledgers: Ledgers, story: Story) -> Iterator[str]:
    """Whoever wants the rest gets an invoice, and whoever tries again is asked to pay again."""
    if story.was_stopped_long:  # a task may have expired before anybody was called
        return
    invoiced = {one["key"] for one in ledgers.invoicing.asked()}
    for order, task_ids in story.counted("continue_without_missing_product", "yes").items():
        if f"create-invoice-{order}" not in invoiced:
            yield f"the answer yes to {', '.join(sorted(task_ids))} was not followed"
    reviewed = story.answers("customer_support_review").keys() | story.left
    for order, task_ids in story.counted("waiting_for_user_on_payment", "try_again").items():
        for task_id in sorted(task_ids):
            visit = int(task_id.rpartition("-")[2]) + 1
            # If its time was over before anybody has looked, support was asked.
            if f"receive-payment-{order}-{visit}" not in story.seen and order not in reviewed:
                yield f"the answer try_again to {task_id} was not followed"


def _mails(ledgers: Ledgers, story: Story) -> Iterator[str]:
    """Who could not pay is told so once, and nobody else."""
    refused = {one["key"] for one in ledgers.mail.asked() if one["behaviour"] == "rejects"}
    declined = {
        f"insufficient-funds-{order}-{one['attempt']}"
        for order, answers in story.answers("receive_payment").items()
        for one in answers
        if one["status"] == "insufficient_funds"
    }
    counted = {
        f"insufficient-funds-{one['task_id'].removeprefix('receive-payment-')}"
        for one in story.told
        if one["outcome"] == "insufficient_funds"
    }
    sent = {one.key for one in ledgers.mail.ledger}
    for key in sorted(counted - sent - refused):
        yield f"nobody has sent {key}"
    for key in sorted(sent - declined):
        if key.removeprefix("insufficient-funds-").rpartition("-")[0] in story.left:
            continue
        yield f"{key} was sent, and no payment was refused"


def _reviews(ledgers: Ledgers, story: Story) -> Iterator[str]:
    """Support is asked for a reason: nobody paid in time, somebody refused for good, or nobody can
    know. Beyond that, at most for the calls of black boxes that somebody has killed. An order whose
    payment counts has one reason only: that its money cannot be taken.
    """
    reasons = {
        one["key"].removeprefix("customer-")
        for one in ledgers.terminal.asked()
        if one["behaviour"] not in HARMLESS
    }
    reasons |= {key.rpartition("-")[0] for key in _rejected(ledgers.mail, "insufficient-funds-")}
    reasons |= {
        one["order"]
        for one in story.told
        if one["task"] == "receive_payment" and one["refusal"] == "ANSWERED_TOO_LATE"
    }
    reasons |= {one["order"] for one in story.silent if one["task"] == "receive_payment"}
    asked_at = {one.key.removeprefix("customer-"): one.at for one in ledgers.terminal.ledger}
    reasons |= {  # those whose time to pay was over before anybody has looked
        one["order"]
        for one in story.given
        if one["task"] == "customer_support_review"
        and one["opened"] >= asked_at.get(one["order"], math.inf) + demo_times.PAYMENT - CLOCKS
    }
    paid = story.counted("receive_payment", "successful").keys()
    reasons = (reasons - paid) | _rejected(ledgers.payments, "capture-") | story.left
    if story.was_stopped_long:  # to take the money may have expired
        reasons |= paid
    unexplained = sorted(story.answers("customer_support_review").keys() - reasons)
    for order in unexplained:
        is_cost = any(_may_have_cost(one, asked_at.get(order)) for one in story.deaths)
        if order in paid or not is_cost:
            yield f"support was asked about {order} without a reason"
    if len(unexplained) > story.killed:
        yield (
            f"support was asked about {len(unexplained)} orders without a reason, and at most "
            f"{story.killed} calls were killed"
        )


def _may_have_cost(death: Mapping[str, Any], asked_at: float | None) -> bool:
    """Say whether a call of the terminal may have been under way, or not on record yet, when
    something died. What was killed before it was sent stands in no ledger.
    """
    if asked_at is None:
        return True
    noticed_at = float(death["at"])
    return _seen_alive(death) - demo_times.ON_RECORD <= asked_at <= noticed_at + CLOCKS


def _seen_alive(death: Mapping[str, Any]) -> float:
    """Return when something that has died was last seen alive."""
    return float(death.get("seen_alive", death["at"]))


def main(words: Sequence[str]) -> int:
    """Print what is broken in the folder of a demo, and return the exit code.

    Args:
        words: the folder.
    """
    if len(words) != 1:
        sys.stderr.write("Which folder? python examples/orders/audit.py FOLDER\n")
        return 2
    folder = Path(words[0])
    story = Story.of(folder)
    if not story.ordered:
        sys.stderr.write(f"{folder} is not the folder of a demo: there are no orders in it.\n")
        return 2
    found = list(broken_promises(Ledgers.of(folder / "ledgers"), story))
    for one in found:
        sys.stdout.write(f"{one}\n")
    sys.stdout.write(f"{len(story.ordered)} orders, {len(found)} broken promises\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
