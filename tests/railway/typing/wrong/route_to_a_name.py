"""A route that leads to a name instead of a task."""

from a_workflow import Paid, PayBack

from delta_outbox.railway import route

route(PayBack, {Paid.PAID: "look"})  # refused: dict-item
