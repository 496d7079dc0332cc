"""The parts of JSON pointers (RFC 6901)."""

from __future__ import annotations


def step(key: int | str) -> str:
    """Return the part of a pointer that leads to a value, from the slash on.

    Args:
        key: of the object, or the place in the array, that holds the value.
    """
    return "/" + str(key).replace("~", "~0").replace("/", "~1")


def key_of(part: str) -> str:
    """Return the key that a part of a pointer names.

    Args:
        part: between two slashes.
    """
    return part.replace("~1", "/").replace("~0", "~")
