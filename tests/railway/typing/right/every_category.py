"""A task of each category, sync and async, that a type checker takes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from a_workflow import Paid, Refund

from delta_outbox.railway import (
    AskHuman,
    BlackBox,
    Concerns,
    Decided,
    FirstStep,
    Hurt,
    Idempotent,
    Necessity,
    Never,
    OptimisticLock,
    PessimisticLock,
    Risk,
    Trigger,
    Visibility,
)


class WithLookup(Idempotent[Refund, Paid]):
    third_party = "bank"
    time_limit = timedelta(seconds=20)
    key_valid_for = Never(why="the bank keeps every key")
    expires = timedelta(hours=12)
    when_uncertain = Paid.UNCLEAR

    def attempt(self, trigger: Trigger[Refund], task_id: str) -> Decided[Paid]:
        return Decided(outcome=Paid.PAID)

    def lookup(self, trigger: Trigger[Refund], task_id: str) -> Decided[Paid] | None:
        return None


class Locked(PessimisticLock[Refund, Paid]):
    third_party = "bank"
    time_limit = timedelta(seconds=20)
    settles_within = timedelta(minutes=1)
    expires = timedelta(hours=12)
    when_uncertain = Paid.UNCLEAR

    async def attempt(self, trigger: Trigger[Refund], task_id: str) -> Decided[Paid]:
        return Decided(outcome=Paid.PAID)

    async def lookup(self, trigger: Trigger[Refund], task_id: str) -> Decided[Paid] | None:
        return None


class TwoSteps(OptimisticLock[Refund, Paid]):
    third_party = "bank"
    time_limit = timedelta(seconds=20)
    expires = timedelta(hours=12)
    when_uncertain = Paid.UNCLEAR
    why_not_pessimistic = "settling takes longer than a refund may"

    def first_step(self, trigger: Trigger[Refund], task_id: str) -> str:
        return "r-1"

    def lookup(self, trigger: Trigger[Refund], task_id: str) -> Sequence[FirstStep[Paid]]:
        return [FirstStep(reference="r-1", decided=Decided(outcome=Paid.PAID))]

    async def attempt(
        self, trigger: Trigger[Refund], task_id: str, reference: str
    ) -> Decided[Paid]:
        return Decided(outcome=Paid.PAID)

    def undo(self, trigger: Trigger[Refund], task_id: str, reference: str) -> None:
        return None


class Opaque(BlackBox[Refund, Paid]):
    third_party = "bank"
    time_limit = timedelta(seconds=20)
    expires = timedelta(hours=12)
    compromise = AskHuman()
    when_uncertain = Paid.UNCLEAR
    concerns = Concerns(
        visibility=Visibility.SELF_EVIDENT,
        necessity=Necessity.MUST,
        hurt=Hurt.CUSTOMER,
        risks=frozenset({Risk.LEGAL}),
        decided_by="head of support",
        why="the customer complains",
    )

    def attempt(self, trigger: Trigger[Refund], task_id: str) -> Decided[Paid]:
        return Decided(outcome=Paid.PAID)
