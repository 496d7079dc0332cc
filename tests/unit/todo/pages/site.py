"""The pages over plain items, for tests: an app without an outbox."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel, Field
from tests.unit.todo.pages.plain_items import PlainItems

from delta_outbox.core.clock import SystemClock
from delta_outbox.todo.credentials import Unrecognised
from delta_outbox.todo.desk import Desk
from delta_outbox.todo.pages.links import Links
from delta_outbox.todo.pages.router import Pages
from delta_outbox.todo.people import Person

SECRET = "a secret of tests, which is long enough"
KEY, OTHER_KEY = "key-of-ada", "key-of-bob"
EVIL = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"


class Money(BaseModel):
    """What is paid back."""

    amount: float | None = Field(default=None, gt=0, description="In euros.")
    to: str = Field(default="", max_length=60, title="To whom")


class Review(BaseModel):
    """The answer of support."""

    finding: Literal["payment_confirmed", "agreed_to_cancel"] = Field(title="What did you find?")
    called_at: datetime = Field(title="When did you talk to the customer?")
    calls: int = Field(ge=1, le=9, title="How many calls did it take?", default=1)
    code: str = Field(pattern="^[A-Z]{3}$", title="Code of the case", max_length=3)
    note: str = Field(default="", max_length=2000, description="The customer does not see it.")
    refund: Money | None = None


class Choice(BaseModel):
    """The answer of a customer."""

    choice: Literal["continue", "cancel"] = Field(title="How shall we go on?")


class PlainKeys:
    """Keys of people, as the credentials of a server know them."""

    def __init__(self) -> None:
        self.people = {
            KEY: Person(name="Ada", roles=frozenset({"support", "billing"})),
            OTHER_KEY: Person(name="Bob", roles=frozenset({"warehouse"})),
        }

    async def person(self, token: str) -> Person:
        if token not in self.people:
            raise Unrecognised
        return self.people[token]

    async def person_of_digest(self, digest: str) -> Person:
        for key, person in self.people.items():
            if hashlib.sha256(key.encode()).hexdigest() == digest:
                return person
        raise Unrecognised


class Site:
    """Pages with some items."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.items = PlainItems()
        self.keys = PlainKeys()
        self.links = Links(SECRET)
        desk: Any = Desk(self.items, clock=self.clock)
        pages = Pages(desk, self.keys, secret=SECRET, is_secure=False, clock=self.clock)
        self.app = FastAPI(openapi_url=None)
        self.app.include_router(pages.router())

    def fill(self) -> None:
        """Open the items that are shown."""
        now = datetime.now(UTC).replace(microsecond=0)
        hour, day = timedelta(hours=1), timedelta(days=1)
        case = {
            "customer": "Maria Lindqvist",
            "order": "A-1001",
            "amount_paid": "129.00 EUR",
            "what_happened": "The bank confirmed the payment after the order was cancelled.",
            "products": ["Kettle, blue", "Filter, 4 pieces"],
            "delivery": {"city": "Uppsala", "is_express": True},
        }
        opened = now - day
        self.items.add(
            "review-A-1001",
            Review,
            case,
            opened_at=opened,
            due_at=now - 3 * hour,
            expires_at=now + 2 * day,
        )
        self.items.add(
            "review-A-0977",
            Review,
            {"customer": EVIL},
            opened_at=opened,
            instance=EVIL,
            due_at=now - 20 * hour,
            expires_at=now + 2 * day,
        )
        self.items.add(
            "review-A-1004",
            Review,
            case,
            opened_at=opened,
            instance="A-1004",
            due_at=now + 5 * hour,
            expires_at=now + 3 * day,
        )
        self.items.add(
            "refund-A-1002",
            Choice,
            case,
            opened_at=opened,
            instance="A-1002",
            task="check_refund",
            title="Check a refund",
            roles=("billing",),
            due_at=now + 4 * day,
            expires_at=now + 9 * day,
        )
        self.items.add(
            "refund-A-1003",
            Choice,
            case,
            opened_at=opened,
            instance="A-1003",
            task="check_refund",
            title="Check a refund",
            roles=("billing",),
        )
        self.items.add(
            "product-A-1005",
            Choice,
            {"missing_product": "Kettle, blue", "order_without_it": "28.00 EUR"},
            opened_at=opened,
            instance="A-1005",
            task="continue_without_missing_product",
            title="Continue without a missing product?",
            roles=("customer",),
            expires_at=now + 2 * day,
        )
