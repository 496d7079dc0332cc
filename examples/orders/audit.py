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
HARMLESS = frozenset({"answers", "answers late", "refuses"})
"""What a terminal does after which everybody knows whether it has asked."""


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
        ends: by type of the events that were delivered, the orders.
        deaths: of relays, hosts and the demo: when, and how many calls of black boxes at most were
            under way in it.
    """

    ordered: Mapping[str, Sequence[str]]
    given: Sequence[Mapping[str, Any]] = ()
    told: Sequence[Mapping[str, Any]] = ()
    silent: Sequence[Mapping[str, Any]] = ()
    left: frozenset[str] = frozenset()
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
    yield from _calls(ledgers)
    yield from _people(story)
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


def _people(story: Story) -> Iterator[str]:
    """An answer that counts is followed, there is one for each item, and others are told why."""
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
    know. Beyond that, at most for the calls of black boxes that somebody has killed.
    """
    reasons = {
        one["key"].removeprefix("customer-")
        for one in ledgers.terminal.asked()
        if one["behaviour"] not in HARMLESS
    }
    for ledger in (ledgers.payments, ledgers.mail):
        for one in ledger.asked():
            if one["behaviour"] == "rejects":
                reasons.add(one["key"].removeprefix("capture-"))
                reasons.add(one["key"].removeprefix("insufficient-funds-").rpartition("-")[0])
    reasons |= {
        one["order"]
        for one in story.told
        if one["task"] == "receive_payment" and one["refusal"] == "ANSWERED_TOO_LATE"
    }
    reasons |= {one["order"] for one in story.silent if one["task"] == "receive_payment"}
    reasons |= story.left
    asked_at = {one.key.removeprefix("customer-"): one.at for one in ledgers.terminal.ledger}
    reasons |= {  # those whose time to pay was over before anybody has looked
        one["order"]
        for one in story.given
        if one["task"] == "customer_support_review"
        and one["opened"] >= asked_at.get(one["order"], math.inf) + demo_times.PAYMENT
    }
    unexplained = sorted(story.answers("customer_support_review").keys() - reasons)
    for order in unexplained:
        if not any(_may_have_cost(one, asked_at.get(order)) for one in story.deaths):
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
    return asked_at is None or -1.0 <= death["at"] - asked_at <= demo_times.ON_RECORD


def main(folder: Path) -> int:
    """Print what is broken in the folder of a demo, and return the exit code.

    Args:
        folder: of the demo.
    """
    story = Story.of(folder)
    found = list(broken_promises(Ledgers.of(folder / "ledgers"), story))
    for one in found:
        sys.stdout.write(f"{one}\n")
    sys.stdout.write(f"{len(story.ordered)} orders, {len(found)} broken promises\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
