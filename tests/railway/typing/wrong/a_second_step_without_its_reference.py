"""A second step that is not told which first step it completes."""

from a_workflow import Paid, Refund
from every_category import TwoSteps

from delta_outbox.railway import Decided, Trigger


class Bad(TwoSteps):
    async def attempt(  # refused: override
        self, trigger: Trigger[Refund], task_id: str
    ) -> Decided[Paid]:
        return Decided(outcome=Paid.PAID)
