"""A workflow whose first task has another start event."""

from dataclasses import dataclass

from a_workflow import PayBack

from delta_outbox.railway import Workflow


@dataclass(frozen=True)
class Order:
    order_id: str


Workflow(name="order", starts_on="x", start=Order, first=PayBack, routes=())  # refused: misc
