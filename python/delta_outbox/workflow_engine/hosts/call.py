"""What a host is asked and what it answers: lines of JSON in two pipes.

The parent sends calls, and takes calls back; the host says that a call has started, and what came
of it. What an author's code has made crosses as JSON or as pickled bytes that only hosts open, so
that the parent never runs it. Only the first line, the parent's, is pickled: it holds settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from delta_outbox.core.settings import SecretMapping

MOST_DATA: Final = 1024 * 1024  # bytes of the data of a decision, as JSON
LONGEST_REFERENCE: Final = 1024  # characters of the reference of a first step
MOST_PICKLED: Final = 64 * 1024  # bytes of an error that `back_off` and `on_fault` are given
LONGEST_LINE: Final = 16 * MOST_DATA  # bytes; a host that sends a longer one is broken

ACTS: Final = frozenset({"first_step", "attempt", "undo"})
"""What may change something at the third party. All else is a question."""
DECISIONS: Final = ("still_needed", "back_off", "on_fault")


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a host is started with.

    Args:
        modules: that hold the workflows.
        folder: that they are found from.
        third_parties: by name, its table of outbox.toml.
        growth_bytes: of memory, after which the host is to be renewed.
    """

    modules: Sequence[str]
    folder: Path
    third_parties: Mapping[str, SecretMapping] = field(default_factory=dict)
    growth_bytes: int = 512 * 1024**2


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """An error as a host tells it.

    Args:
        kind: `certainly_not`, `refused` (for good), `not_due`, `unsure`; or `not_begun`, of a call
            that the host itself has not made.
        message: one line without content of the event and without secrets.
        pickled: the error itself in base64, None if it cannot be had.
    """

    kind: str
    message: str
    pickled: str | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The author's function has returned.

    Args:
        value: what the host made of it.
    """

    value: Any


@dataclass(frozen=True, slots=True)
class NotStarted:
    """The author's function was not called: its host is gone, or did not come to it in time.

    Args:
        why: which of them.
    """

    why: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The author's function was called, and nobody knows what came of it.

    Args:
        why: there is no answer.
        host_gone: whether it was the host that was lost, and not this call that took too long.
    """

    why: str
    host_gone: bool


Word = Answered | Told | NotStarted | Lost
"""What is known of a call in the end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A call of one function of a task.

    Args:
        workflow: its name.
        task: its name.
        task_id: its identifier.
        instance: of the workflow.
        visit: of the task.
        start: the payload of the start event, JSON.
        facts: by task, the data of its latest decision.
        function: `attempt`, `lookup`, ..., `back_off`.
        more: what it is given beside the trigger and the task identifier, values of JSON.
        error: of the last attempt, for a decision.
        deadline: by the boot-time clock; it does not begin later.
    """

    workflow: str
    task: str
    task_id: str
    instance: str
    visit: int
    start: str
    facts: Mapping[str, Mapping[str, Any]]
    function: str
    more: Sequence[Any] = ()
    error: Told | None = None
    deadline: float

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Call:
        """Return the call that a message holds.

        Args:
            message: as `dataclasses.asdict` makes it.
        """
        error = message["error"]
        return cls(**{**message, "error": error and Told(**error)})


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskFacts:
    """What the parent must know of a task before it has it called.

    Args:
        category: of the task.
        third_party: that it calls.
        asynchronous: whether its attempt is an `async def`, so that many run beside each other.
        hash: of the rows that `outbox workflow build` writes of its workflow.
        can_look_up: whether its third party can be asked what it has done.
        decides: the decisions that its author has written; the others have a known answer.
    """

    category: str
    third_party: str
    asynchronous: bool
    hash: str = ""
    can_look_up: bool = False
    decides: Sequence[str] = field(default_factory=list)


def line_of(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line.

    Args:
        message: values of JSON.
    """
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
