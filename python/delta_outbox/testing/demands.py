"""What a check of a kit demands; what does not hold is said in a sentence."""

from __future__ import annotations

from typing import NoReturn


class Broken(AssertionError):
    """A store breaks a rule; the message says what was expected and what was seen."""


def broken(what: str) -> NoReturn:
    """Say that a rule is broken.

    Args:
        what: the sentence for the report.

    Raises:
        Broken: always.
    """
    raise Broken(what)


def holds(condition: object, what: str) -> None:
    """Demand that something holds.

    Args:
        condition: true or false.
        what: what does not hold if it is false.

    Raises:
        Broken: it does not.
    """
    if not condition:
        broken(what)


def same(expected: object, actual: object, what: str) -> None:
    """Demand that two things are equal.

    Args:
        expected: what should be.
        actual: what was seen.
        what: what they are.

    Raises:
        Broken: they differ.
    """
    if expected != actual:
        broken(f"{what}: expected {expected!r}, saw {actual!r}")
