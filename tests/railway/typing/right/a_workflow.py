"""A workflow of two tasks that a type checker takes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from pydantic import BaseModel

from delta_outbox.railway import (
    DEFAULT_EXIT,
    Decided,
    Event,
    Idempotent,
    Item,
    Outcome,
    ToDo,
    Trigger,
    Workflow,
    route,
)


@dataclass(frozen=True)
class Refund:
    refund_id: str
    cents: int


class Bank(Protocol):
    def pay(self, key: str, cents: int) -> bool: ...


class Paid(Outcome):
    PAID = "paid"
    REFUSED = "refused"
    UNCLEAR = "unclear"


class Looked(Outcome):
    PAID = "paid"
    GIVEN_UP = "given_up"


class PayBack(Idempotent[Refund, Paid]):
    third_party = "bank"
    identifier = "refund-{refund_id}"
    time_limit = timedelta(seconds=20)
    key_valid_for = timedelta(hours=24)
    expires = timedelta(hours=12)
    when_expired = Paid.REFUSED
    when_faulted = DEFAULT_EXIT
    when_uncertain = Paid.UNCLEAR

    def __init__(self, bank: Bank) -> None:
        self.bank = bank

    async def attempt(self, trigger: Trigger[Refund], task_id: str) -> Decided[Paid]:
        paid = self.bank.pay(task_id, trigger.start.cents)
        return Decided(outcome=Paid.PAID if paid else Paid.REFUSED)


class Finding(BaseModel):
    task_id: str
    paid: bool


class Shown(BaseModel):
    cents: int


class Look(ToDo[Refund, Looked, Finding, Shown]):
    roles = frozenset({"support"})
    contract = Finding
    expires = timedelta(days=5)

    def read_model(self, trigger: Trigger[Refund]) -> Shown:
        return Shown(cents=trigger.start.cents)

    def correlate(self, data: Finding) -> str:
        return data.task_id

    def decide(self, item: Item[Shown], data: Finding) -> Decided[Looked]:
        return Decided(outcome=Looked.PAID if data.paid else Looked.GIVEN_UP)


REFUNDED = Event(event_type="refund.paid")
GIVEN_UP = Event(event_type="refund.given_up")

refund = Workflow(
    name="refund",
    starts_on="refund.asked",
    start=Refund,
    first=PayBack,
    default_exit=GIVEN_UP,
    routes=(
        route(PayBack, {Paid.PAID: REFUNDED, Paid.REFUSED: GIVEN_UP, Paid.UNCLEAR: Look}),
        route(Look, {Looked.PAID: REFUNDED, Looked.GIVEN_UP: GIVEN_UP}),
    ),
)
