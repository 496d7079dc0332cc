"""What the business decides about a black box: the checklist, and the compromise that follows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Visibility(StrEnum):
    """How likely it is that somebody notices when the task was not done."""

    SELF_EVIDENT = "self_evident"
    TRACEABLE = "traceable"
    INVISIBLE = "invisible"


class Necessity(StrEnum):
    """What becomes of the workflow without the task."""

    MUST = "must_happen"
    SHOULD = "should_happen"
    NICE = "nice_to_have"


class Hurt(StrEnum):
    """Who is hurt first if the task is not done, or done twice."""

    OWN = "own"
    THIRD_PARTY = "third_party"
    CUSTOMER = "customer"


class Risk(StrEnum):
    """The kind of consequence."""

    REPUTATION = "reputation"
    LEGAL = "legal"
    DATA_BREACH = "data_breach"
    ECONOMIC = "economic_loss"


@dataclass(frozen=True, kw_only=True, slots=True)
class Concerns:
    """The checklist of a black box, as somebody of the business filled it in.

    Args:
        visibility: who would notice.
        necessity: what the workflow is without it.
        hurt: who is hurt first.
        risks: every kind of consequence that was weighed.
        decided_by: who decided, and when.
        why: the reason, in a sentence.
    """

    visibility: Visibility
    necessity: Necessity
    hurt: Hurt
    risks: frozenset[Risk]
    decided_by: str
    why: str


@dataclass(frozen=True, slots=True)
class AtMostOnce:
    """After an unsure attempt the task is given up: it may not have happened."""


@dataclass(frozen=True, slots=True)
class AtLeastOnce:
    """After an unsure attempt the task is tried again until it expires: it may happen often."""


@dataclass(frozen=True, slots=True)
class UpTo:
    """After an unsure attempt the task is tried again, a limited number of times.

    Args:
        executions: attempts that may have acted, at most; those that certainly did not act are
            not counted.
    """

    executions: int


@dataclass(frozen=True, slots=True)
class AskHuman:
    """After an unsure attempt a person decides: `when_uncertain` leads to a To-Do item."""


Compromise = AtMostOnce | AtLeastOnce | UpTo | AskHuman


def written(compromise: Compromise) -> str:
    """Return a compromise as the generated rows have it.

    Args:
        compromise: of a black box.
    """
    match compromise:
        case AtMostOnce():
            return "at_most_once"
        case AtLeastOnce():
            return "at_least_once"
        case UpTo(executions=n):
            return f"up_to_{n}"
        case AskHuman():
            return "human"


def compromise_of(cell: str) -> Compromise | None:
    """Return the compromise that `written` has written, None if it is none.

    Args:
        cell: of the generated rows; empty for a task that is no black box.
    """
    if numbered := re.fullmatch(r"up_to_(\d+)", cell):
        return UpTo(int(numbered[1]))
    plain: tuple[Compromise, ...] = (AtMostOnce(), AtLeastOnce(), AskHuman())
    return next((one for one in plain if written(one) == cell), None)
