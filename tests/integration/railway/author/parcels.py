"""A workflow over three third parties, each of which writes down what it was asked.

What goes wrong is the field `does` of the start event.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from delta_outbox.railway import (
    AtMostOnce,
    BlackBox,
    CertainlyNot,
    Concerns,
    Decided,
    Event,
    FinallyRefused,
    Hurt,
    Idempotent,
    Item,
    Necessity,
    Never,
    Outcome,
    PessimisticLock,
    Risk,
    Task,
    ToDo,
    Trigger,
    Visibility,
    Workflow,
    route,
)


@dataclass(frozen=True, kw_only=True)
class Parcel:
    parcel: str
    port: int
    does: str = ""


class Booked(Outcome):
    BOOKED = "booked"
    NOT_BOOKED = "not_booked"


class Paid(Outcome):
    PAID = "paid"
    NOT_PAID = "not_paid"


class Reviewed(Outcome):
    KEEP = "keep"
    SEND = "send"


class Rung(Outcome):
    PAYS = "pays"


class Told(Outcome):
    TOLD = "told"
    MAYBE_TOLD = "maybe_told"


def known(port: int, key: str) -> int:
    """Return how often a third party was asked for something."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"?\n")
        with connection.makefile("rb") as answer:
            lines: list[str] = json.loads(answer.readline())
            return lines.count(key)


def ask(port: int, key: str) -> int:
    """Ask a third party for something; return how often it was asked for that before."""
    before = known(port, key)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"{key}\n".encode())
        assert connection.recv(1)
    return before


def wait_for(port: int, key: str) -> None:
    """Wait until a third party has been asked for something."""
    while not known(port, key):
        time.sleep(0.1)


class Book(Idempotent[Parcel, Booked]):
    third_party = "carrier"
    identifier = "book-{parcel}"
    time_limit = timedelta(seconds=20)
    key_valid_for = Never(why="it keeps them")
    expires = timedelta(hours=1)
    when_faulted = Booked.NOT_BOOKED
    when_uncertain = Booked.NOT_BOOKED

    async def attempt(self, trigger: Trigger[Parcel], task_id: str) -> Decided[Booked]:
        before = await asyncio.to_thread(ask, trigger.start.port, task_id)
        match trigger.start.does:
            case "carrier_answers_late":
                await asyncio.to_thread(wait_for, trigger.start.port, f"go-{task_id}")
            case "carrier_fails" if before < 2:
                raise CertainlyNot("no van is free")
            case "carrier_refuses":
                raise FinallyRefused("too heavy")
        return Decided(outcome=Booked.BOOKED, data={"van": 7})

    def back_off(
        self, attempts: int, trigger: Trigger[Parcel], task_id: str, error: Exception | None
    ) -> timedelta | None:
        return timedelta(seconds=0.1)


class Pay(PessimisticLock[Parcel, Paid]):
    third_party = "bank"
    identifier = "pay-{parcel}"
    time_limit = timedelta(seconds=20)
    settles_within = timedelta(seconds=0.5)
    expires = timedelta(hours=1)
    when_faulted = Paid.NOT_PAID
    when_uncertain = Paid.NOT_PAID

    def attempt(self, trigger: Trigger[Parcel], task_id: str) -> Decided[Paid]:
        assert {"book": {"van": 7}} == trigger.facts
        ask(trigger.start.port, task_id)
        match trigger.start.does:
            case "bank_is_silent":
                raise TimeoutError
            case "bank_refuses":
                raise FinallyRefused("no money")
        return Decided(outcome=Paid.PAID)

    def lookup(self, trigger: Trigger[Parcel], task_id: str) -> Decided[Paid] | None:
        if known(trigger.start.port, task_id):
            return Decided(outcome=Paid.PAID, data={"by": "lookup"})
        return None

    def back_off(
        self, attempts: int, trigger: Trigger[Parcel], task_id: str, error: Exception | None
    ) -> timedelta | None:
        return timedelta(seconds=0.1)


class Verdict(BaseModel):
    parcel: str
    send: bool


class Shown(BaseModel):
    parcel: str


class Review(ToDo[Parcel, Reviewed, Verdict, Shown]):
    """Somebody looks at a parcel that nobody wants to carry."""

    identifier = "review-{parcel}"
    roles = frozenset({"support"})
    contract = Verdict
    expires = timedelta(hours=1)

    def read_model(self, trigger: Trigger[Parcel]) -> Shown:
        return Shown(parcel=trigger.start.parcel)

    def correlate(self, data: Verdict) -> str:
        return f"review-{data.parcel}"

    def decide(self, item: Item[Shown], data: Verdict) -> Decided[Reviewed]:
        assert data.parcel == item.read_model.parcel
        outcome = Reviewed.SEND if data.send else Reviewed.KEEP
        return Decided(outcome=outcome, data={"parcel": data.parcel})


class Ring(ToDo[Parcel, Rung, Shown, Shown]):
    """Somebody rings the customer, soon or never."""

    identifier = "ring-{parcel}"
    roles = frozenset({"support"})
    contract = Shown
    expires = timedelta(seconds=2)

    def read_model(self, trigger: Trigger[Parcel]) -> Shown:
        return Shown(parcel=trigger.start.parcel)

    def correlate(self, data: Shown) -> str:
        return f"ring-{data.parcel}"

    def decide(self, item: Item[Shown], data: Shown) -> Decided[Rung]:
        return Decided(outcome=Rung.PAYS)


class Tell(BlackBox[Parcel, Told]):
    third_party = "post"
    identifier = "tell-{parcel}"
    time_limit = timedelta(seconds=1)
    expires = timedelta(hours=1)
    compromise = AtMostOnce()
    when_uncertain = Told.MAYBE_TOLD
    concerns = Concerns(
        visibility=Visibility.TRACEABLE,
        necessity=Necessity.NICE,
        hurt=Hurt.CUSTOMER,
        risks=frozenset({Risk.REPUTATION}),
        decided_by="a test",
        why="it is one",
    )

    def attempt(self, trigger: Trigger[Parcel], task_id: str) -> Decided[Told]:
        ask(trigger.start.port, task_id)
        if trigger.start.does == "post_hangs":
            time.sleep(1000)
        return Decided(outcome=Told.TOLD)


sent = Event(event_type="parcel.sent")
maybe_sent = Event(event_type="parcel.maybe_sent")
kept = Event(event_type="parcel.kept")

parcels = Workflow(
    name="parcels",
    starts_on="parcel.ordered",
    start=Parcel,
    instance="{parcel}",
    first=Book,
    routes=(
        route(Book, {Booked.BOOKED: Pay, Booked.NOT_BOOKED: Review}),
        route(Review, {Reviewed.SEND: sent, Reviewed.KEEP: kept}),
        route(Pay, {Paid.PAID: Tell, Paid.NOT_PAID: Ring}),
        route(Ring, {Rung.PAYS: sent}),
        route(Tell, {Told.TOLD: sent, Told.MAYBE_TOLD: maybe_sent}),
    ),
    default_exit=kept,
)


def provide(settings: Mapping[str, Any]) -> list[Task[Any, Any]]:
    """Return the tasks."""
    del settings
    return [Book(), Pay(), Tell(), Review(), Ring()]
