"""An attempt that decides a text."""

from a_workflow import Paid, PayBack, Refund

from delta_outbox.railway import Decided, Trigger


class Bad(PayBack):
    async def attempt(self, trigger: Trigger[Refund], task_id: str) -> Decided[Paid]:
        return Decided(outcome="paid")  # refused: arg-type
