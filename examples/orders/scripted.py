"""The third parties of an order for tests: each a ledger of its own, and a script of troubles."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import orders
from order_creation import Order

from delta_outbox.railway import Task
from delta_outbox.testing.workflows import ThirdParty, Trouble

Script = Sequence[Trouble]


class Shop(ThirdParty):
    """Our own register."""

    def __init__(self, script: Script = ()) -> None:
        super().__init__(script, remembers_keys=True)

    def register(self, key: str, order: Order) -> None:
        """Register an order."""
        self.act(key, order.order_id, None)


class Warehouse(ThirdParty):
    """It has no keys; it can be asked.

    Args:
        script: of troubles.
        out_of: products that there are none of.
    """

    def __init__(self, script: Script = (), out_of: frozenset[str] = frozenset()) -> None:
        super().__init__(script)
        self.out_of = out_of

    def reserve(self, key: str, products: tuple[str, ...]) -> list[str]:
        """Reserve what there is."""
        missing = [one for one in products if one in self.out_of]
        return self.act(key, missing, missing)

    def reservation(self, key: str) -> list[str] | None:
        """Return what is missing in a reservation."""
        return self.find(key)

    def release(self, key: str, order_id: str) -> bool:
        """Release what is reserved for an order."""
        found = bool(self.effects(f"reserve-stock-{order_id}"))
        return self.act(key, found, found)

    def released(self, key: str) -> bool | None:
        """Return what a release has found."""
        return self.find(key)


class Invoicing(ThirdParty):
    """It forgets keys after a day."""

    def __init__(self, script: Script = ()) -> None:
        super().__init__(script, remembers_keys=True, remembers_for=timedelta(hours=24))

    def create(self, key: str, products: tuple[str, ...], cents: int) -> str:
        """Create an invoice."""
        return self.act(key, (products, cents), f"invoice of {key}")

    def void(self, key: str, order_id: str) -> bool:
        """Void the invoice of an order."""
        found = bool(self.effects(f"create-invoice-{order_id}"))
        return self.act(key, found, found)


class Terminal(ThirdParty):
    """It knows nothing."""

    def ask(self, key: str, customer: str, cents: int) -> None:
        """Ask for money."""
        self.act(key, (customer, cents), None)


class Payments(ThirdParty):
    """It forgets keys after a day."""

    def __init__(self, script: Script = ()) -> None:
        super().__init__(script, remembers_keys=True, remembers_for=timedelta(hours=24))

    def capture(self, key: str, order_id: str) -> None:
        """Take the money."""
        self.act(key, order_id, None)


class Mail(ThirdParty):
    """It forgets keys after a week."""

    def __init__(self, script: Script = ()) -> None:
        super().__init__(script, remembers_keys=True, remembers_for=timedelta(days=7))

    def tell(self, key: str, customer: str, text: str) -> None:
        """Send a mail."""
        self.act(key, (customer, text), None)


class Town:
    """All third parties of an order.

    Args:
        parties: those that are not to answer every call, by name.
    """

    def __init__(self, **parties: Any) -> None:
        self.shop: Shop = parties.pop("shop", None) or Shop()
        self.warehouse: Warehouse = parties.pop("warehouse", None) or Warehouse()
        self.invoicing: Invoicing = parties.pop("invoicing", None) or Invoicing()
        self.terminal: Terminal = parties.pop("terminal", None) or Terminal()
        self.payments: Payments = parties.pop("payments", None) or Payments()
        self.mail: Mail = parties.pop("mail", None) or Mail()
        assert not parties, parties

    @property
    def parties(self) -> list[ThirdParty]:
        """Return all of them."""
        return [
            self.shop,
            self.warehouse,
            self.invoicing,
            self.terminal,
            self.payments,
            self.mail,
        ]

    def tasks(self) -> list[Task[Any, Any]]:
        """Return the tasks of both workflows, with these third parties for clients."""
        return orders.tasks(
            shop=self.shop,
            warehouse=self.warehouse,
            invoicing=self.invoicing,
            terminal=self.terminal,
            payments=self.payments,
            mail=self.mail,
        )
