"""An attempt that decides with the outcomes of another task."""

from a_workflow import Looked, Paid, PayBack, Refund

from delta_outbox.railway import Decided, Trigger


class Bad(PayBack):
    async def attempt(self, trigger: Trigger[Refund], task_id: str) -> Decided[Paid]:
        return Decided(outcome=Looked.PAID)  # refused: arg-type
