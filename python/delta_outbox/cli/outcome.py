"""What a command is given, and how it ends: a document for programs, text for people, an exit code.

An outcome of a task of a workflow is something else: `railway/outcomes.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO

from delta_outbox.core.errors import OutboxError
from delta_outbox.core.redaction import scrub

if TYPE_CHECKING:
    from rich.console import RenderableType

    from delta_outbox.api import Outbox

DONE: Final = 0
TO_LOOK_AT: Final = 1
NOT_DONE: Final = 2


class UnexpectedError(OutboxError):
    """An error that nobody foresaw: its first line, and the trace with --debug."""

    code = "UNEXPECTED_ERROR"

    @classmethod
    def of(cls, error: Exception) -> UnexpectedError:
        """Describe an error by its type and the first line of its text.

        Args:
            error: the error.
        """
        name = type(error).__name__
        try:
            first = scrub((str(error).strip().splitlines() or [""])[0])
        except Exception:  # noqa: BLE001  # pyspark's need a JVM to say what they are
            first = ""
        return cls(f"{name}: {first}" if first else name)


def document_of(document: Mapping[str, object], *, pretty: bool) -> str:
    """Return a document as JSON in ASCII: every terminal and locale can take it.

    Args:
        document: values that JSON knows.
        pretty: on several lines.
    """
    return json.dumps(document, indent=2 if pretty else None, allow_nan=False)


def nothing() -> Iterable[RenderableType]:
    """Say nothing."""
    return ()


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a command that ran."""

    document: Mapping[str, object]  # what --json prints
    text: Callable[[], Iterable[RenderableType]] = nothing  # what a person reads instead
    exit_code: int = DONE


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """One call of a command: what all of them share."""

    told: Callable[[], Mapping[str, Any] | None]  # the document, if the home's server has it
    open: Callable[[], AbstractContextManager[Outbox]]
    open_served: Callable[[], AbstractContextManager[Outbox]]  # never to take the home for itself
    create: Callable[[], AbstractContextManager[Outbox]]  # what is missing, then open it
    errors: TextIO  # progress goes here, never to standard output
