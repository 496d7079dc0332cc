"""A category's function that was taken away."""

from every_category import Locked


class Bad(Locked):
    lookup = None  # refused: assignment
