"""What a cancelled order leaves behind: "undo A" is "do B when A has been done"."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from delta_outbox.railway import (
    Decided,
    Event,
    Idempotent,
    Never,
    Outcome,
    PessimisticLock,
    Trigger,
    Workflow,
    route,
)

ORDER_COMPENSATED = Event(event_type="order.compensated")
COMPENSATION_UNCLEAR = Event(event_type="order.compensation_unclear")


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """The event that an order was cancelled.

    Args:
        order_id: of the order.
    """

    order_id: str


class Reservations(Protocol):
    """The warehouse, as this workflow sees it."""

    def release(self, key: str, order_id: str) -> bool:
        """Release what is reserved for an order; False if there was nothing."""

    def released(self, key: str) -> bool | None:
        """Return what a release has found, None if there was no release."""


class Invoices(Protocol):
    """The invoicing service, as this workflow sees it; it keeps the keys of voids for ever."""

    def void(self, key: str, order_id: str) -> bool:
        """Void the invoice of an order; False if there was none."""


class Released(Outcome):
    """Of Release stock."""

    RELEASED = "released"
    NOTHING_RESERVED = "nothing_reserved"
    UNCLEAR = "unclear"


class Voided(Outcome):
    """Of Void invoice."""

    VOIDED = "voided"
    NO_INVOICE = "no_invoice"
    UNCLEAR = "unclear"


class ReleaseStock(PessimisticLock[Cancelled, Released]):
    """Give back what was set aside."""

    third_party = "warehouse"
    identifier = "release-stock-{order_id}"
    time_limit = timedelta(seconds=20)
    settles_within = timedelta(seconds=60)
    expires = timedelta(days=7)
    when_faulted = Released.UNCLEAR
    when_expired = Released.UNCLEAR
    when_uncertain = Released.UNCLEAR

    def __init__(self, warehouse: Reservations) -> None:
        self.warehouse = warehouse

    def attempt(self, trigger: Trigger[Cancelled], task_id: str) -> Decided[Released]:
        """Release it."""
        return self._decide(self.warehouse.release(task_id, trigger.start.order_id))

    def lookup(self, trigger: Trigger[Cancelled], task_id: str) -> Decided[Released] | None:
        """Look whether it was released."""
        found = self.warehouse.released(task_id)
        return None if found is None else self._decide(found)

    def _decide(self, found: bool) -> Decided[Released]:
        return Decided(outcome=Released.RELEASED if found else Released.NOTHING_RESERVED)


class VoidInvoice(Idempotent[Cancelled, Voided]):
    """Void the invoice, if there is one."""

    third_party = "invoicing"
    identifier = "void-invoice-{order_id}"
    time_limit = timedelta(seconds=10)
    key_valid_for = Never(why="a voided invoice stays on file")
    expires = timedelta(days=7)
    when_faulted = Voided.UNCLEAR
    when_expired = Voided.UNCLEAR
    when_uncertain = Voided.UNCLEAR

    def __init__(self, invoicing: Invoices) -> None:
        self.invoicing = invoicing

    def attempt(self, trigger: Trigger[Cancelled], task_id: str) -> Decided[Voided]:
        """Void it."""
        found = self.invoicing.void(task_id, trigger.start.order_id)
        return Decided(outcome=Voided.VOIDED if found else Voided.NO_INVOICE)


order_compensation = Workflow(
    name="order_compensation",
    starts_on="order.cancelled",
    start=Cancelled,
    instance="{order_id}",
    first=ReleaseStock,
    routes=(
        route(
            ReleaseStock,
            {
                Released.RELEASED: VoidInvoice,
                Released.NOTHING_RESERVED: VoidInvoice,
                Released.UNCLEAR: COMPENSATION_UNCLEAR,
            },
        ),
        route(
            VoidInvoice,
            {
                Voided.VOIDED: ORDER_COMPENSATED,
                Voided.NO_INVOICE: ORDER_COMPENSATED,
                Voided.UNCLEAR: COMPENSATION_UNCLEAR,
            },
        ),
    ),
)
