"""A task that is made although it lacks a function of its category."""

from a_workflow import Paid, Refund

from delta_outbox.railway import Decided, PessimisticLock, Trigger


class Bad(PessimisticLock[Refund, Paid]):
    def attempt(self, trigger: Trigger[Refund], task_id: str) -> Decided[Paid]:
        return Decided(outcome=Paid.PAID)


Bad()  # refused: abstract
