"""Many orders with troubles from a seed: customers, a payment provider and support included."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from order_compensation import Cancelled, order_compensation
from order_creation import (
    Choice,
    ContinueWithoutMissingProduct,
    CustomerSupportReview,
    Decision,
    Notice,
    Order,
    ReceivePayment,
    Review,
    WaitingForUserOnPayment,
    order_creation,
)
from scripted import Town

from delta_outbox.testing.workflows import Answer, VirtualClock, random_script, run_workflow

PRODUCTS = ("tea", "cups", "honey", "spoons", "sugar")
CALLS = 30  # that may go wrong, of each third party and order


@dataclass
class Simulated:
    """What came of the orders.

    Args:
        ends: number of instances by the event that ended them.
        town: the third parties, with their ledgers.
        clock: when all was over.
    """

    ends: Counter[str] = field(default_factory=Counter)
    town: Town = field(default_factory=Town)
    clock: VirtualClock = field(default_factory=VirtualClock)


def simulate(seed: int, orders: int = 1000) -> Simulated:
    """Run orders one after the other, with a third of all calls in trouble.

    Args:
        seed: of all that is random.
        orders: how many.
    """
    chance = random.Random(seed)
    all_of_it = Simulated()
    town, clock = all_of_it.town, all_of_it.clock
    for number in range(orders):
        order_id = f"o{number}"
        for party in town.parties:
            party.script = random_script(chance, CALLS)
        town.warehouse.out_of = frozenset(one for one in PRODUCTS if chance.random() < 0.1)
        order = Order(
            order_id=order_id,
            customer=f"c{number}",
            products=tuple(chance.sample(PRODUCTS, chance.randint(1, 3))),
        )
        run = run_workflow(
            order_creation,
            town.tasks(),
            order,
            people=_people(chance, order_id, town),
            third_parties=town.parties,
            clock=clock,
            spare_answers=True,
        )
        assert run.end is not None, run.trace
        all_of_it.ends[run.end] += 1
        if run.end == "order.cancelled":
            undone = run_workflow(
                order_compensation,
                town.tasks(),
                Cancelled(order_id=order_id),
                third_parties=town.parties,
                clock=clock,
            )
            assert undone.end is not None, undone.trace
            all_of_it.ends[undone.end] += 1
            if undone.end == "order.compensation_unclear":
                _by_hand(order_id, town)
    return all_of_it


def _by_hand(order: str, town: Town) -> None:
    """Do what whoever is told `order.compensation_unclear` does: look, and do what is missing."""
    for party in town.parties:
        party.script = []
    if town.warehouse.released(f"release-stock-{order}") is None:
        town.warehouse.release(f"release-stock-{order}", order)
    if not town.invoicing.effects(f"void-invoice-{order}"):
        town.invoicing.void(f"by-hand-void-invoice-{order}", order)


def _people(chance: random.Random, order: str, town: Town) -> list[Answer]:
    """Return what the people around an order will answer, and when."""

    def hours(most: float) -> timedelta:
        return timedelta(hours=chance.random() * most)

    def finding(task_id: str) -> Review:
        paid = bool(town.payments.effects(f"capture-{order}"))
        found: Any = "payment_confirmed" if paid else "agreed_to_cancel"
        return Review(order_id=order, finding=found, note="looked it up")

    refused = chance.choice([0, 0, 0, 1, 2])  # attempts to pay
    people = [
        Answer(
            task=ContinueWithoutMissingProduct,
            data=Choice(order_id=order, answer=chance.choice(["yes", "yes", "no"])),
            after=hours(60),
        )
    ]
    for attempt in range(1, refused + 1):
        notice = Notice(order_id=order, attempt=attempt, status="insufficient_funds")
        decision: Any = chance.choice(["try_again", "try_again", "try_again", "cancel"])
        again = Decision(order_id=order, attempt=attempt, decision=decision)
        people.append(Answer(task=ReceivePayment, data=notice, after=hours(80)))
        people.append(Answer(task=WaitingForUserOnPayment, data=again, after=hours(200)))
    notice = Notice(order_id=order, attempt=refused + 1, status="succeeded")
    people.append(Answer(task=ReceivePayment, data=notice, after=hours(80)))
    people.append(Answer(task=CustomerSupportReview, data=finding, after=hours(48)))
    return people
