"""A route that leads to a task with another start event."""

from dataclasses import dataclass

from a_workflow import Look, Looked, Paid, PayBack, Finding, Shown

from delta_outbox.railway import Decided, Item, ToDo, Trigger, route


@dataclass(frozen=True)
class Order:
    order_id: str


class Elsewhere(ToDo[Order, Looked, Finding, Shown]):
    def read_model(self, trigger: Trigger[Order]) -> Shown:
        return Shown(cents=1)

    def correlate(self, data: Finding) -> str:
        return data.task_id

    def decide(self, item: Item[Shown], data: Finding) -> Decided[Looked]:
        return Decided(outcome=Looked.PAID)


route(PayBack, {Paid.PAID: Look, Paid.REFUSED: Elsewhere})  # refused: dict-item
