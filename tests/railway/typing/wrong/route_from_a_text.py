"""A route whose outcome is a text."""

from a_workflow import GIVEN_UP, PayBack

from delta_outbox.railway import route

route(PayBack, {"paid": GIVEN_UP})  # refused: misc
