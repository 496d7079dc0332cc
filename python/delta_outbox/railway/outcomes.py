"""What a task may decide, and where a decision leads when nothing else is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Final, Generic, TypeVar


class Outcome(StrEnum):
    """The closed set of what one task may decide; each task has a subclass with its members."""


class Exit(Enum):
    """The type of `DEFAULT_EXIT`."""

    DEFAULT = "default exit"


DEFAULT_EXIT: Final = Exit.DEFAULT
"""Instead of an outcome: go to the default exit of the workflow."""

OutcomeT = TypeVar("OutcomeT", bound=Outcome)


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided(Generic[OutcomeT]):
    """What a task decided.

    Args:
        outcome: one member of the task's outcomes.
        data: values of JSON that later tasks may read as `trigger.facts[<task>]`, at most 1 MiB and
            64 levels.
    """

    outcome: OutcomeT
    data: Mapping[str, Any] = field(default_factory=dict)


class CertainlyNot(Exception):
    """Raised by an attempt: the third party has not acted and will not act on this request.

    Only this, and `ConnectionRefusedError`, count as a fault that is tried again. Every other
    error leaves it unsure whether the third party has acted.
    """


class FinallyRefused(CertainlyNot):
    """Raised by an attempt: the third party has refused, and asking again will not help."""


class NotDue(Exception):
    """Raised by an attempt before its first byte is sent: not now; it counts as no attempt.

    The task is tried again after a pause, which doubles each time up to five minutes.
    """
