"""A compromise that does not say how often."""

from delta_outbox.railway import UpTo

UpTo()  # refused: call-arg
