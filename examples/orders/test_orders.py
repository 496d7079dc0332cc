"""What a careful shop tests: no Spark, no server, milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from audit import broken
from order_compensation import Cancelled, Released, ReleaseStock, Voided, VoidInvoice
from order_compensation import order_compensation as compensation
from order_creation import (
    Captured,
    Choice,
    ContinueWithoutMissingProduct,
    CreateInvoice,
    CreatePaymentAttempt,
    CustomerSupportReview,
    Decision,
    InsufficientFunds,
    Invoiced,
    Made,
    MakeOrder,
    Notice,
    Order,
    PaymentAsked,
    PaymentSuccessful,
    ReceivePayment,
    ReserveStock,
    Review,
    Stock,
    Told,
    WaitingForUserOnPayment,
    order_creation,
)
from scripted import Invoicing, Mail, Payments, Shop, Terminal, Town, Warehouse
from simulation import simulate

from delta_outbox.railway import DEFAULT_EXIT, State, Trigger
from delta_outbox.testing.workflows import (
    Answer,
    BrokenPromise,
    KitError,
    ThirdParty,
    Trouble,
    check_task,
    explore,
    run_workflow,
)

TEA = Order(order_id="o7", customer="c1", products=("tea", "cups"))
FACTS: dict[str, dict[str, Any]] = {
    "reserve_stock": {"missing": []},
    "create_invoice": {"number": "invoice of create-invoice-o7", "cents": 2000},
}
ORDER = Trigger(instance="o7", start=TEA, facts=FACTS)
CANCELLED = Trigger(instance="o7", start=Cancelled(order_id="o7"))
HOUR = timedelta(hours=1)


def paid(attempt: int, status: Any = "succeeded", after: timedelta = HOUR) -> Answer:
    """The provider's notice about an attempt to pay."""
    notice = Notice(order_id="o7", attempt=attempt, status=status)
    return Answer(task=ReceivePayment, data=notice, after=after)


def decides(attempt: int, decision: Any, after: timedelta = HOUR) -> Answer:
    """The customer's decision after a refused payment."""
    data = Decision(order_id="o7", attempt=attempt, decision=decision)
    return Answer(task=WaitingForUserOnPayment, data=data, after=after)


def reviews(finding: Any) -> Answer:
    """What support finds out."""
    review = Review(order_id="o7", finding=finding, note="called the customer")
    return Answer(task=CustomerSupportReview, data=review, after=timedelta(days=3))


def order(town: Town, *people: Answer) -> Any:
    """Run the order."""
    return run_workflow(
        order_creation, town.tasks(), TEA, people=people, third_parties=town.parties
    )


# --- every task, against everything that can happen to its calls -----------------------------

TASKS: dict[type[State[Any, Any]], tuple[Any, Any, Any, Trigger[Any], set[Any]]] = {
    MakeOrder: (order_creation, Shop, MakeOrder, ORDER, {Made.MADE, DEFAULT_EXIT}),
    ReserveStock: (order_creation, Warehouse, ReserveStock, ORDER, {Stock.ENOUGH, DEFAULT_EXIT}),
    CreateInvoice: (
        order_creation,
        Invoicing,
        CreateInvoice,
        ORDER,
        {Invoiced.CREATED, DEFAULT_EXIT},
    ),
    CreatePaymentAttempt: (
        order_creation,
        Terminal,
        CreatePaymentAttempt,
        ORDER,
        {PaymentAsked.ASKED, PaymentAsked.NOBODY_KNOWS, DEFAULT_EXIT},
    ),
    PaymentSuccessful: (
        order_creation,
        Payments,
        PaymentSuccessful,
        ORDER,
        {Captured.CAPTURED, Captured.UNCLEAR},
    ),
    InsufficientFunds: (order_creation, Mail, InsufficientFunds, ORDER, {Told.TOLD, Told.GAVE_UP}),
    ReleaseStock: (
        compensation,
        Warehouse,
        ReleaseStock,
        CANCELLED,
        {Released.NOTHING_RESERVED, Released.UNCLEAR},
    ),
    VoidInvoice: (
        compensation,
        Invoicing,
        VoidInvoice,
        CANCELLED,
        {Voided.NO_INVOICE, Voided.UNCLEAR},
    ),
}


@pytest.mark.parametrize("kind", TASKS, ids=[one.task_name() for one in TASKS])
def test_whatever_happens_to_its_calls_a_task_keeps_its_promise(kind: Any) -> None:
    """Against all scripts of two troubles no task does what its category may never do."""
    workflow, party, task, trigger, outcomes = TASKS[kind]

    def build(script: Sequence[Trouble]) -> tuple[State[Any, Any], ThirdParty]:
        made = party(script)
        return task(made), made

    assert outcomes == explore(workflow, build, trigger, depth=2).outcomes


def test_stock_is_reserved_once_whatever_happens(trouble: Trouble) -> None:
    """After any one trouble the stock is reserved at most once."""
    warehouse = Warehouse([Trouble.ANSWERS, trouble])
    run = check_task(order_creation, ReserveStock(warehouse), ORDER, [warehouse])
    assert warehouse.effects(run.task_id) == [[]] or run.cause == "faulted"


def test_a_terminal_that_says_nothing_is_not_asked_again() -> None:
    """After an attempt that may have asked the customer, a person decides."""
    terminal = Terminal([Trouble.ACTS_SILENTLY])
    run = check_task(order_creation, CreatePaymentAttempt(terminal), ORDER, [terminal])
    assert run.outcome == PaymentAsked.NOBODY_KNOWS
    assert len(terminal.calls) == 1


def test_a_terminal_that_refuses_the_connection_is_asked_again() -> None:
    """What certainly was not done is tried again, also for a black box."""
    terminal = Terminal([Trouble.REFUSES, Trouble.REFUSES])
    run = check_task(order_creation, CreatePaymentAttempt(terminal), ORDER, [terminal])
    assert run.outcome == PaymentAsked.ASKED
    assert len(terminal.calls) == 3


def test_a_third_party_that_breaks_its_word_is_found_out() -> None:
    """An invoicing service that forgets a key too early writes two invoices; the trace says how."""
    invoicing = Invoicing([Trouble.ACTS_SILENTLY, Trouble.FORGETS_KEY])
    with pytest.raises(BrokenPromise) as error:
        check_task(order_creation, CreateInvoice(invoicing), ORDER, [invoicing])
    assert "2 effects where at most 1 is promised" in str(error.value)
    assert "has forgotten the key too early" in str(error.value)
    assert "00:00:10  Create invoice  calls invoicing: TimeoutError: no answer" in str(error.value)


# --- the whole order -------------------------------------------------------------------------


def test_an_order_that_goes_well() -> None:
    """The goods are reserved, the invoice is written, the money is taken, the order confirmed."""
    town = Town()
    run = order(town, paid(1))
    assert run.end == "order.confirmed"
    assert run.path == [
        "make_order",
        "reserve_stock",
        "create_invoice",
        "create_payment_attempt",
        "receive_payment",
        "payment_successful",
    ]
    assert town.invoicing.effects("create-invoice-o7") == [(("tea", "cups"), 2000)]
    assert town.terminal.effects("ask-for-payment-o7") == [("c1", 2000)]
    assert town.payments.effects("capture-o7") == ["o7"]


def test_a_customer_who_goes_on_pays_for_what_there_is() -> None:
    """Without the missing product the invoice is over the rest."""
    town = Town(warehouse=Warehouse(out_of=frozenset({"cups"})))
    yes = Answer(
        task=ContinueWithoutMissingProduct, data=Choice(order_id="o7", answer="yes"), after=HOUR
    )
    run = order(town, yes, paid(1))
    assert run.end == "order.confirmed"
    assert town.invoicing.effects("create-invoice-o7") == [(("tea",), 1000)]


@pytest.mark.parametrize("people", [[("no", HOUR)], [("yes", timedelta(days=2))], []])
def test_a_customer_who_does_not_go_on_gets_no_invoice(people: list[Any]) -> None:
    """No, an answer that comes too late, and no answer at all cancel the order."""
    town = Town(warehouse=Warehouse(out_of=frozenset({"cups"})))
    answers = [
        Answer(
            task=ContinueWithoutMissingProduct,
            data=Choice(order_id="o7", answer=answer),
            after=after,
        )
        for answer, after in people
    ]
    assert order(town, *answers).end == "order.cancelled"
    assert town.invoicing.ledger == []


def test_a_payment_that_never_comes_is_reviewed_and_not_cancelled() -> None:
    """The money may be on its way: support looks, also when the notice comes after its time."""
    for people in ([], [paid(1, after=timedelta(days=3))]):
        run = order(Town(), *people, reviews("agreed_to_cancel"))
        assert run.path[-2:] == ["receive_payment", "customer_support_review"]
        assert run.end == "order.cancelled"


def test_a_review_waits_for_ever() -> None:
    """Support's item never expires: the order waits, and the item says for what."""
    run = order(Town())
    assert run.end is None
    assert run.waits_for is not None
    assert run.waits_for.task_id == "support-review-o7"
    assert run.waits_for.read_model.model_dump() == {"order_id": "o7", "customer": "c1"}


def test_a_customer_may_pay_at_the_third_attempt() -> None:
    """Each refused payment is told once, and each visit is a task of its own."""
    town = Town()
    run = order(
        town,
        paid(1, "insufficient_funds"),
        decides(1, "try_again"),
        paid(2, "insufficient_funds"),
        decides(2, "try_again"),
        paid(3),
    )
    assert run.end == "order.confirmed"
    assert [one.key for one in town.mail.ledger] == [
        "insufficient-funds-o7-1",
        "insufficient-funds-o7-2",
    ]


def test_a_notice_about_an_earlier_attempt_does_not_count_for_the_next() -> None:
    """A repeated "insufficient funds" of the first attempt is no answer to the second item."""
    with pytest.raises(KitError, match="about 'receive-payment-o7-1'"):
        order(
            Town(),
            paid(1, "insufficient_funds"),
            decides(1, "try_again"),
            paid(1, "insufficient_funds"),
        )


@pytest.mark.parametrize("people", [[decides(1, "cancel")], []])
def test_a_customer_who_gives_up_is_not_charged(people: list[Answer]) -> None:
    """After a refused payment, cancelling or saying nothing for a week cancels the order."""
    town = Town()
    run = order(town, paid(1, "insufficient_funds"), *people)
    assert run.end == "order.cancelled"
    assert town.payments.ledger == []


def test_money_that_may_have_been_taken_is_reviewed() -> None:
    """When nobody knows whether the money was taken, support finds out before anything else."""
    town = Town(payments=Payments([Trouble.ACTS_SILENTLY] + [Trouble.STAYS_SILENT] * 60))
    run = order(town, paid(1), reviews("payment_confirmed"))
    assert run.passed[-2].cause == "uncertain"
    assert run.path[-1] == "customer_support_review"
    assert run.end == "order.confirmed"


def test_a_terminal_that_may_have_asked_is_reviewed() -> None:
    """A black box that is uncertain leads to support."""
    town = Town(terminal=Terminal([Trouble.DIES_AFTER]))
    run = order(town, reviews("agreed_to_cancel"))
    assert run.path[-2:] == ["create_payment_attempt", "customer_support_review"]


def test_a_cancelled_order_leaves_nothing_behind() -> None:
    """The stock is released and the invoice voided, once each."""
    town = Town()
    run = order(town, paid(1, "insufficient_funds"), decides(1, "cancel"))
    undone = run_workflow(
        compensation, town.tasks(), Cancelled(order_id="o7"), third_parties=town.parties
    )
    assert (run.end, undone.end) == ("order.cancelled", "order.compensated")
    assert town.warehouse.effects("release-stock-o7") == [True]
    assert town.invoicing.effects("void-invoice-o7") == [True]
    assert list(broken(town)) == []


def test_a_cancelled_order_without_goods_has_nothing_to_release() -> None:
    """Undoing what was never done is an outcome like another."""
    town = Town(shop=Shop([Trouble.REJECTS]))
    assert order(town).end == "order.cancelled"
    undone = run_workflow(
        compensation, town.tasks(), Cancelled(order_id="o7"), third_parties=town.parties
    )
    assert [one.outcome for one in undone.passed] == ["nothing_reserved", "no_invoice"]


# --- a thousand orders -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", [20261103, 7])
def test_a_thousand_orders_break_no_promise(seed: int) -> None:
    """With a third of all calls in trouble, the ledgers of the third parties show nothing wrong."""
    done = simulate(seed)
    assert list(broken(done.town)) == []
    assert {"order.confirmed", "order.cancelled", "order.compensated"} <= set(done.ends)
    assert done.ends["order.confirmed"] + done.ends["order.cancelled"] == 1000


def test_the_audit_sees_what_is_wrong() -> None:
    """An order that was charged twice, and one whose goods are still set aside, are named."""
    town = Town()
    town.shop.act("make-order-o1", "o1", None)
    town.warehouse.act("reserve-stock-o1", [], [])
    town.invoicing.act("void-invoice-o1", True, True)
    town.payments.remembers_keys = False
    town.payments.act("capture-o1", "o1", None)
    town.payments.act("capture-o1", "o1", None)
    assert list(broken(town)) == [
        "Payments did capture-o1 2 times",
        "o1 was paid, and its goods or its invoice were taken back",
        "o1 was paid without goods or without an invoice",
        "o1 was cancelled, and its goods are still set aside",
    ]
