"""A compromise that is a text."""

from every_category import Opaque


class Bad(Opaque):
    compromise = "at_most_once"  # refused: assignment
