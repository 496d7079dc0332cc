"""The creation of an order: ten tasks, from the click of a customer to money and goods."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol

from pydantic import BaseModel

from delta_outbox.railway import (
    DEFAULT_EXIT,
    AskHuman,
    BlackBox,
    Concerns,
    Decided,
    Event,
    Hurt,
    Idempotent,
    Item,
    Necessity,
    Never,
    Outcome,
    PessimisticLock,
    Risk,
    ToDo,
    Trigger,
    Visibility,
    Workflow,
    route,
)

ORDER_CONFIRMED = Event(event_type="order.confirmed")
ORDER_CANCELLED = Event(event_type="order.cancelled")


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a customer has asked for: the start event.

    Args:
        order_id: of the order.
        customer: who gets mail about it.
        products: what is to be delivered.
        cents: what a product costs; here each the same.
    """

    order_id: str
    customer: str
    products: tuple[str, ...]
    cents: int = 1000


# --- third parties, as the tasks see them ------------------------------------------------------


class Shop(Protocol):
    """Our own register of orders; it keeps keys for ever."""

    def register(self, key: str, order: Order) -> None:
        """Register an order."""


class Warehouse(Protocol):
    """It has no keys, and can be asked what is reserved."""

    def reserve(self, key: str, products: tuple[str, ...]) -> list[str]:
        """Reserve what there is, and return what is missing."""

    def reservation(self, key: str) -> list[str] | None:
        """Return what is missing in a reservation, None if there is none."""


class Invoicing(Protocol):
    """It takes keys, and forgets them after a day."""

    def create(self, key: str, products: tuple[str, ...], cents: int) -> str:
        """Create an invoice, and return its number."""


class Terminal(Protocol):
    """The old payment terminal: no keys, nothing to ask."""

    def ask(self, key: str, customer: str, cents: int) -> None:
        """Show the customer what to pay."""


class Payments(Protocol):
    """It holds money for us; keys are forgotten after a day."""

    def capture(self, key: str, order_id: str) -> None:
        """Take the money that is held."""


class Mail(Protocol):
    """It takes keys, and forgets them after a week."""

    def tell(self, key: str, customer: str, text: str) -> None:
        """Send a mail."""


# --- outcomes -----------------------------------------------------------------------------------


class Made(Outcome):
    """Of Make order."""

    MADE = "made"


class Stock(Outcome):
    """Of Reserve stock."""

    ENOUGH = "enough"
    NOT_ENOUGH = "not_enough"


class Continues(Outcome):
    """Of Continue without missing product."""

    YES = "yes"
    NO = "no"


class Invoiced(Outcome):
    """Of Create invoice."""

    CREATED = "created"


class PaymentAsked(Outcome):
    """Of Create payment attempt."""

    ASKED = "asked"
    NOBODY_KNOWS = "nobody_knows"


class Paid(Outcome):
    """Of Receive payment."""

    SUCCESSFUL = "successful"
    INSUFFICIENT_FUNDS = "insufficient_funds"
    EXPIRED = "expired"


class Captured(Outcome):
    """Of Payment successful."""

    CAPTURED = "captured"
    UNCLEAR = "unclear"


class Told(Outcome):
    """Of Insufficient funds."""

    TOLD = "told"
    GAVE_UP = "gave_up"


class Again(Outcome):
    """Of Waiting for user on payment."""

    TRY_AGAIN = "try_again"
    CANCEL = "cancel"


class Reviewed(Outcome):
    """Of Customer support review."""

    AGREED_TO_CANCEL = "agreed_to_cancel"
    PAYMENT_CONFIRMED = "payment_confirmed"


# --- tasks --------------------------------------------------------------------------------------


class MakeOrder(Idempotent[Order, Made]):
    """Register the order in our own shop."""

    third_party = "shop"
    identifier = "make-order-{order_id}"
    time_limit = timedelta(seconds=10)
    key_valid_for = Never(why="our own shop keeps the keys of orders for ever")
    expires = timedelta(hours=1)
    when_uncertain = DEFAULT_EXIT

    def __init__(self, shop: Shop) -> None:
        self.shop = shop

    def attempt(self, trigger: Trigger[Order], task_id: str) -> Decided[Made]:
        """Register it."""
        self.shop.register(task_id, trigger.start)
        return Decided(outcome=Made.MADE)


class ReserveStock(PessimisticLock[Order, Stock]):
    """Set the products aside."""

    third_party = "warehouse"
    identifier = "reserve-stock-{order_id}"
    time_limit = timedelta(seconds=20)
    settles_within = timedelta(seconds=60)
    expires = timedelta(hours=2)
    when_uncertain = DEFAULT_EXIT

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse

    def attempt(self, trigger: Trigger[Order], task_id: str) -> Decided[Stock]:
        """Reserve what there is."""
        return self._decide(self.warehouse.reserve(task_id, trigger.start.products))

    def lookup(self, trigger: Trigger[Order], task_id: str) -> Decided[Stock] | None:
        """Look whether there is a reservation."""
        missing = self.warehouse.reservation(task_id)
        return None if missing is None else self._decide(missing)

    def _decide(self, missing: list[str]) -> Decided[Stock]:
        outcome = Stock.NOT_ENOUGH if missing else Stock.ENOUGH
        return Decided(outcome=outcome, data={"missing": missing})


class Missing(BaseModel):
    """What the customer is shown."""

    order_id: str
    missing: list[str]


class Choice(BaseModel):
    """What the customer answers."""

    order_id: str
    answer: Literal["yes", "no"]


class ContinueWithoutMissingProduct(ToDo[Order, Continues, Choice, Missing]):
    """Ask the customer whether the rest is wanted."""

    identifier = "continue-{order_id}"
    roles = frozenset({"customer"})
    contract = Choice
    expires = timedelta(days=2)

    def read_model(self, trigger: Trigger[Order]) -> Missing:
        """Show what is missing, and nothing else."""
        missing = trigger.facts["reserve_stock"]["missing"]
        return Missing(order_id=trigger.start.order_id, missing=missing)

    def correlate(self, data: Choice) -> str:
        """Find the item."""
        return f"continue-{data.order_id}"

    def decide(self, item: Item[Missing], data: Choice) -> Decided[Continues]:
        """Take the answer."""
        return Decided(outcome=Continues(data.answer))


class CreateInvoice(Idempotent[Order, Invoiced]):
    """Write the invoice over what can be delivered."""

    third_party = "invoicing"
    identifier = "create-invoice-{order_id}"
    time_limit = timedelta(seconds=10)
    key_valid_for = timedelta(hours=24)
    expires = timedelta(hours=20)
    when_uncertain = DEFAULT_EXIT

    def __init__(self, invoicing: Invoicing) -> None:
        self.invoicing = invoicing

    def attempt(self, trigger: Trigger[Order], task_id: str) -> Decided[Invoiced]:
        """Create it."""
        missing = trigger.facts["reserve_stock"]["missing"]
        products = tuple(one for one in trigger.start.products if one not in missing)
        cents = trigger.start.cents * len(products)
        number = self.invoicing.create(task_id, products, cents)
        return Decided(outcome=Invoiced.CREATED, data={"number": number, "cents": cents})


class CreatePaymentAttempt(BlackBox[Order, PaymentAsked]):
    """Ask the customer for the money, at the old terminal."""

    third_party = "terminal"
    identifier = "ask-for-payment-{order_id}"
    time_limit = timedelta(seconds=30)
    expires = timedelta(hours=1)
    compromise = AskHuman()
    when_uncertain = PaymentAsked.NOBODY_KNOWS
    concerns = Concerns(
        visibility=Visibility.TRACEABLE,
        necessity=Necessity.MUST,
        hurt=Hurt.CUSTOMER,
        risks=frozenset({Risk.REPUTATION, Risk.ECONOMIC}),
        decided_by="head of payments, 2026-11-03",
        why="asked twice for money, a customer does not come back",
    )

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal

    def attempt(self, trigger: Trigger[Order], task_id: str) -> Decided[PaymentAsked]:
        """Ask once."""
        cents = trigger.facts["create_invoice"]["cents"]
        self.terminal.ask(task_id, trigger.start.customer, cents)
        return Decided(outcome=PaymentAsked.ASKED)


class Expected(BaseModel):
    """What the payment provider may see."""

    order_id: str
    cents: int


class Notice(BaseModel):
    """What the payment provider sends; `attempt` counts the customer's attempts to pay."""

    order_id: str
    attempt: int
    status: Literal["succeeded", "insufficient_funds"]


class ReceivePayment(ToDo[Order, Paid, Notice, Expected]):
    """Wait for the notice of the payment provider."""

    identifier = "receive-payment-{order_id}-{visit}"
    roles = frozenset({"payment-provider"})
    contract = Notice
    told_apart_by = "attempt"
    due = timedelta(minutes=30)
    expires = timedelta(days=3)
    # Not the default exit: the money may be on its way.
    when_expired = Paid.EXPIRED

    def read_model(self, trigger: Trigger[Order]) -> Expected:
        """Show what is expected."""
        cents = trigger.facts["create_invoice"]["cents"]
        return Expected(order_id=trigger.start.order_id, cents=cents)

    def correlate(self, data: Notice) -> str:
        """Find the item of this attempt to pay."""
        return f"receive-payment-{data.order_id}-{data.attempt}"

    def decide(self, item: Item[Expected], data: Notice) -> Decided[Paid]:
        """Take the notice."""
        match data.status:
            case "succeeded":
                return Decided(outcome=Paid.SUCCESSFUL)
            case "insufficient_funds":
                return Decided(outcome=Paid.INSUFFICIENT_FUNDS)


class PaymentSuccessful(Idempotent[Order, Captured]):
    """Take the money that the provider holds for us."""

    third_party = "payments"
    identifier = "capture-{order_id}"
    time_limit = timedelta(seconds=20)
    key_valid_for = timedelta(hours=24)
    expires = timedelta(hours=12)
    when_expired = Captured.UNCLEAR
    when_faulted = Captured.UNCLEAR
    when_uncertain = Captured.UNCLEAR

    def __init__(self, payments: Payments) -> None:
        self.payments = payments

    def attempt(self, trigger: Trigger[Order], task_id: str) -> Decided[Captured]:
        """Capture."""
        self.payments.capture(task_id, trigger.start.order_id)
        return Decided(outcome=Captured.CAPTURED)


class InsufficientFunds(Idempotent[Order, Told]):
    """Tell the customer that the payment was refused."""

    third_party = "mail"
    identifier = "insufficient-funds-{order_id}-{visit}"
    time_limit = timedelta(seconds=10)
    key_valid_for = timedelta(days=7)
    expires = timedelta(hours=6)
    when_faulted = Told.GAVE_UP
    when_uncertain = Told.GAVE_UP

    def __init__(self, mail: Mail) -> None:
        self.mail = mail

    def attempt(self, trigger: Trigger[Order], task_id: str) -> Decided[Told]:
        """Send the mail."""
        self.mail.tell(task_id, trigger.start.customer, "Your payment was refused.")
        return Decided(outcome=Told.TOLD)


class Decision(BaseModel):
    """What the customer decides after a refused payment."""

    order_id: str
    attempt: int
    decision: Literal["try_again", "cancel"]


class Refused(BaseModel):
    """What the customer is shown after a refused payment."""

    order_id: str
    attempt: int


class WaitingForUserOnPayment(ToDo[Order, Again, Decision, Refused]):
    """Wait for the customer to try again or to give up."""

    identifier = "payment-choice-{order_id}-{visit}"
    roles = frozenset({"customer"})
    contract = Decision
    told_apart_by = "attempt"
    expires = timedelta(days=7)

    def read_model(self, trigger: Trigger[Order]) -> Refused:
        """Show which attempt was refused."""
        return Refused(order_id=trigger.start.order_id, attempt=trigger.visit)

    def correlate(self, data: Decision) -> str:
        """Find the item of this attempt to pay."""
        return f"payment-choice-{data.order_id}-{data.attempt}"

    def decide(self, item: Item[Refused], data: Decision) -> Decided[Again]:
        """Take the decision."""
        return Decided(outcome=Again(data.decision))


class Case(BaseModel):
    """What support is shown."""

    order_id: str
    customer: str


class Review(BaseModel):
    """What support has found out, and agreed on with the customer."""

    order_id: str
    finding: Literal["agreed_to_cancel", "payment_confirmed"]
    note: str


class CustomerSupportReview(ToDo[Order, Reviewed, Review, Case]):
    """Let a person find out whether money has moved."""

    identifier = "support-review-{order_id}"
    roles = frozenset({"support"})
    contract = Review
    due = timedelta(days=1)
    expires = Never(why="money may have moved: a person must look")

    def read_model(self, trigger: Trigger[Order]) -> Case:
        """Show whose order it is."""
        return Case(order_id=trigger.start.order_id, customer=trigger.start.customer)

    def correlate(self, data: Review) -> str:
        """Find the item."""
        return f"support-review-{data.order_id}"

    def decide(self, item: Item[Case], data: Review) -> Decided[Reviewed]:
        """Take the finding."""
        return Decided(outcome=Reviewed(data.finding), data={"note": data.note})


order_creation = Workflow(
    name="order_creation",
    starts_on="order.requested",
    start=Order,
    instance="{order_id}",
    first=MakeOrder,
    default_exit=ORDER_CANCELLED,
    routes=(
        route(MakeOrder, {Made.MADE: ReserveStock}),
        route(
            ReserveStock,
            {
                Stock.ENOUGH: CreateInvoice,
                Stock.NOT_ENOUGH: ContinueWithoutMissingProduct,
            },
        ),
        route(
            ContinueWithoutMissingProduct,
            {
                Continues.YES: CreateInvoice,
                Continues.NO: ORDER_CANCELLED,
            },
        ),
        route(CreateInvoice, {Invoiced.CREATED: CreatePaymentAttempt}),
        route(
            CreatePaymentAttempt,
            {
                PaymentAsked.ASKED: ReceivePayment,
                PaymentAsked.NOBODY_KNOWS: CustomerSupportReview,
            },
        ),
        route(
            ReceivePayment,
            {
                Paid.SUCCESSFUL: PaymentSuccessful,
                Paid.INSUFFICIENT_FUNDS: InsufficientFunds,
                Paid.EXPIRED: CustomerSupportReview,
            },
        ),
        route(
            PaymentSuccessful,
            {
                Captured.CAPTURED: ORDER_CONFIRMED,
                Captured.UNCLEAR: CustomerSupportReview,
            },
        ),
        route(
            InsufficientFunds,
            {
                Told.TOLD: WaitingForUserOnPayment,
                Told.GAVE_UP: CustomerSupportReview,
            },
        ),
        route(
            WaitingForUserOnPayment,
            {
                Again.TRY_AGAIN: ReceivePayment,
                Again.CANCEL: ORDER_CANCELLED,
            },
        ),
        route(
            CustomerSupportReview,
            {
                Reviewed.AGREED_TO_CANCEL: ORDER_CANCELLED,
                Reviewed.PAYMENT_CONFIRMED: ORDER_CONFIRMED,
            },
        ),
    ),
)
