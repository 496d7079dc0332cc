"""What the kit refuses."""

from __future__ import annotations


class KitError(Exception):
    """The kit was asked for something that cannot be, or ran something that tests nothing."""
