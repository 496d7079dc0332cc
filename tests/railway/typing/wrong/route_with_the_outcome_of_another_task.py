"""A route that names the outcome of another task."""

from a_workflow import GIVEN_UP, Looked, PayBack

from delta_outbox.railway import route

route(PayBack, {Looked.GIVEN_UP: GIVEN_UP})  # refused: misc
