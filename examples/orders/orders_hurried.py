"""The same workflows with the times of a demo: what takes days elsewhere takes a minute here."""

from __future__ import annotations

from datetime import timedelta

import demo_times
from order_compensation import ReleaseStock, VoidInvoice, order_compensation
from order_creation import (
    ContinueWithoutMissingProduct,
    CreateInvoice,
    CreatePaymentAttempt,
    InsufficientFunds,
    MakeOrder,
    PaymentSuccessful,
    ReceivePayment,
    ReserveStock,
    WaitingForUserOnPayment,
    order_creation,
)
from orders import provide

__all__ = ["order_compensation", "order_creation", "provide"]

for _calls in (
    MakeOrder,
    ReserveStock,
    CreateInvoice,
    CreatePaymentAttempt,
    PaymentSuccessful,
    InsufficientFunds,
    ReleaseStock,
    VoidInvoice,
):
    _calls.time_limit = timedelta(seconds=demo_times.CALL)
for _locked in (ReserveStock, ReleaseStock):
    _locked.settles_within = timedelta(seconds=demo_times.SETTLES)
for _asks in (ContinueWithoutMissingProduct, WaitingForUserOnPayment):
    _asks.expires = timedelta(seconds=demo_times.CUSTOMER)
ReceivePayment.due = timedelta(seconds=demo_times.PAYMENT / 2)
ReceivePayment.expires = timedelta(seconds=demo_times.PAYMENT)
