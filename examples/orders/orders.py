"""The workflows of the shop, and the clients that their tasks call: the module that runs.

`outbox.toml` names it. Tests make the same tasks, of scripted third parties.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, Protocol

from http_clients import (
    Api,
    HttpInvoicing,
    HttpMail,
    HttpPayments,
    HttpShop,
    HttpTerminal,
    HttpWarehouse,
)
from order_compensation import (
    Invoices,
    ReleaseStock,
    Reservations,
    VoidInvoice,
    order_compensation,
)
from order_creation import (
    ContinueWithoutMissingProduct,
    CreateInvoice,
    CreatePaymentAttempt,
    CustomerSupportReview,
    InsufficientFunds,
    Invoicing,
    Mail,
    MakeOrder,
    Payments,
    PaymentSuccessful,
    ReceivePayment,
    ReserveStock,
    Shop,
    Terminal,
    WaitingForUserOnPayment,
    Warehouse,
    order_creation,
)

from delta_outbox.railway import State, Task

WORKFLOWS: Final = (order_creation, order_compensation)
LEFT: Final = timedelta(seconds=2)
"""What a client leaves of a time limit: it gives up before the attempt is ended from outside."""


class Stocks(Warehouse, Reservations, Protocol):
    """The warehouse of both workflows."""


class Bills(Invoicing, Invoices, Protocol):
    """The invoicing service of both workflows."""


def tasks(
    *,
    shop: Shop,
    warehouse: Stocks,
    invoicing: Bills,
    terminal: Terminal,
    payments: Payments,
    mail: Mail,
) -> list[Task[Any, Any]]:
    """Return the tasks of both workflows, one of each class.

    Args:
        shop: what the tasks call, a client; in tests a scripted third party.
        warehouse: the same.
        invoicing: the same.
        terminal: the same.
        payments: the same.
        mail: the same.
    """
    return [
        MakeOrder(shop),
        ReserveStock(warehouse),
        ContinueWithoutMissingProduct(),
        CreateInvoice(invoicing),
        CreatePaymentAttempt(terminal),
        ReceivePayment(),
        PaymentSuccessful(payments),
        InsufficientFunds(mail),
        WaitingForUserOnPayment(),
        CustomerSupportReview(),
        ReleaseStock(warehouse),
        VoidInvoice(invoicing),
    ]


def provide(settings: Mapping[str, Mapping[str, Any]]) -> list[Task[Any, Any]]:
    """Make the clients, and return the tasks. It connects to nobody.

    Args:
        settings: by third party, its table of outbox.toml; secrets are filled in.
    """

    def api(third_party: str) -> Api:
        return Api(settings[third_party], timeout_of(third_party))

    return tasks(
        shop=HttpShop(api("shop")),
        warehouse=HttpWarehouse(api("warehouse")),
        invoicing=HttpInvoicing(api("invoicing")),
        terminal=HttpTerminal(api("terminal")),
        payments=HttpPayments(api("payments")),
        mail=HttpMail(api("mail")),
    )


def timeout_of(third_party: str) -> timedelta:
    """Return how long a call may take: somewhat less than any task that calls allows an attempt.

    Args:
        third_party: as the tasks name it.
    """
    called = [task for one in WORKFLOWS for task in one.tasks if issubclass(task, State)]
    return min(task.time_limit for task in called if task.third_party == third_party) - LEFT
