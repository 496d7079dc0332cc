"""Says what is wrong with the ledgers of the third parties, and looks at nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from scripted import Town

from delta_outbox.testing.workflows import ThirdParty

COMPENSATES = ("release-stock-", "void-invoice-", "by-hand-")
"""How the tasks begin that a cancelled order has, registered or not."""


def broken(town: Town) -> Iterator[str]:
    """Yield each promise to a customer that the ledgers show broken.

    Args:
        town: after all orders have come to their end.
    """
    for party in town.parties:
        for key, times in _counts(party).items():
            if times > 1:
                yield f"{party.title} did {key} {times} times"
    registered = {one.what for one in town.shop.ledger}
    captured = {one.what for one in town.payments.ledger}
    for party in (town.warehouse, town.invoicing, town.terminal, town.payments):
        for key in _counts(party):
            if key.rpartition("-")[2] not in registered and not key.startswith(COMPENSATES):
                yield f"{party.title} did {key} for an order that nobody has registered"
    for order in sorted(registered):
        reserved = bool(town.warehouse.effects(f"reserve-stock-{order}"))
        released = True in town.warehouse.effects(f"release-stock-{order}")
        invoiced = bool(town.invoicing.effects(f"create-invoice-{order}"))
        voids = [
            done
            for key in (f"void-invoice-{order}", f"by-hand-void-invoice-{order}")
            for done in town.invoicing.effects(key)
        ]
        voided = True in voids
        if order in captured and (released or voided):
            yield f"{order} was paid, and its goods or its invoice were taken back"
        if order in captured and not (reserved and invoiced):
            yield f"{order} was paid without goods or without an invoice"
        if released and invoiced and not voided:
            yield f"{order} was cancelled, and its invoice stands"
        if voided and reserved and not released:
            yield f"{order} was cancelled, and its goods are still set aside"


def _counts(party: ThirdParty) -> Counter[str]:
    return Counter(one.key for one in party.ledger)
