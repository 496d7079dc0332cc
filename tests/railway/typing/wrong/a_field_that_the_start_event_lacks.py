"""An attempt that reads a field which the start event does not have."""

from a_workflow import Paid, PayBack, Refund

from delta_outbox.railway import Decided, Trigger


class Bad(PayBack):
    async def attempt(self, trigger: Trigger[Refund], task_id: str) -> Decided[Paid]:
        self.bank.pay(task_id, trigger.start.amount)  # refused: attr-defined
        return Decided(outcome=Paid.PAID)
