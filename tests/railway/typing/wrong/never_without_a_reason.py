"""An expiry that never comes, and nobody says why."""

from delta_outbox.railway import Never

Never()  # refused: call-arg
