"""A checklist that nobody has signed."""

from delta_outbox.railway import Concerns, Hurt, Necessity, Visibility

Concerns(  # refused: call-arg
    visibility=Visibility.TRACEABLE,
    necessity=Necessity.MUST,
    hurt=Hurt.OWN,
    risks=frozenset(),
    why="x",
)
