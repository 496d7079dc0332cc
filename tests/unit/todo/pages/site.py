"""The pages over plain items, for tests: an app without an outbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import BaseModel, Field
from tests.unit.todo.memory_items import MemoryKeys
from tests.unit.todo.pages.plain_items import PlainItems
from tests.unit.todo.serving import serving

from delta_outbox.core.clock import SystemClock
from delta_outbox.core.settings import TodoSettings
from delta_outbox.todo.app import create_app
from delta_outbox.todo.credentials import Credentials, KeyRing
from delta_outbox.todo.desk import Desk
from delta_outbox.workflow_engine.item_links import Links

SECRET = "a secret of tests, which is long enough"
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
    order: str


class Choice(BaseModel):
    """The answer of a customer."""

    choice: Literal["continue", "cancel"] = Field(title="How shall we go on?")
    order: str = Field(min_length=1)


class Site:
    """Pages with some items, and two people with keys.

    Args:
        settings: `[todo]`.
    """

    def __init__(self, settings: TodoSettings | None = None) -> None:
        self.settings = settings or TodoSettings(link_secret=SECRET, rate_per_second=10_000)
        self.clock = SystemClock()
        self.items = PlainItems()
        self.keys = MemoryKeys()
        self.key = self.keys.add("Ada", "support", "billing")
        self.other_key = self.keys.add("Bob", "support", "billing")
        self.links = Links(SECRET)
        self.ring = KeyRing(lambda: self.keys)

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serve the pages for a block, and yield their address."""
        desk = Desk(self.items, clock=self.clock)  # type: ignore[arg-type]
        app = create_app(desk, self.settings, credentials=Credentials(self.ring, None))
        self.ring.start()
        try:
            with serving(app, self.settings) as address:
                yield address
        finally:
            self.ring.stop()

    def fill(self) -> None:
        """Open the items that are shown, and no others."""
        self.items.forget()
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
            {"customer": EVIL, "order": EVIL},
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
            {"order": "A-1005", "missing_product": "Kettle, blue", "order_without_it": "28.00 EUR"},
            opened_at=opened,
            instance="A-1005",
            task="continue_without_missing_product",
            title="Continue without a missing product?",
            roles=("customer",),
            expires_at=now + 2 * day,
        )
