"""What a publisher answers for an event: delivered, failed, rejected, unknown or not sent."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from delta_outbox.core.redaction import scrub


class JsonText(str):
    """Text that is JSON already, so that `to_json` does not quote it again."""

    __slots__ = ()


def to_json(value: object) -> str | None:
    """Return a receipt or outcome data as the JSON text that the log stores, None for None.

    Args:
        value: any JSON value, or a `JsonText`.

    Raises:
        TypeError: the value has no JSON form.
    """
    if value is None or isinstance(value, JsonText):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivered:
    """The destination acknowledged this very event.

    Args:
        receipt: what the destination said, any JSON value; never payload or secrets.
        outcome: name of the outcome, for tasks of a workflow.
        outcome_data: any JSON value that belongs to the outcome.
    """

    receipt: object = None
    outcome: str | None = None
    outcome_data: object = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """The event was certainly not delivered; another attempt may succeed.

    Args:
        error: one sentence without payload and secrets; made printable and capped here.
        retry_after: seconds that the destination asked to wait.
    """

    error: str
    retry_after: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", scrub(self.error))
        if self.retry_after is not None:
            # A nonsensical number from a destination must not turn a known failure into a crash.
            seconds = float(self.retry_after) if math.isfinite(self.retry_after) else None
            object.__setattr__(self, "retry_after", None if seconds is None else max(0.0, seconds))


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    """The event was certainly not delivered and never will be as it is.

    Args:
        error: one sentence without payload and secrets; made printable and capped here.
    """

    error: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", scrub(self.error))


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """The event was sent and no answer came: it may have been delivered.

    Args:
        error: one sentence without payload and secrets; made printable and capped here.
    """

    error: str | None = None

    def __post_init__(self) -> None:
        if self.error is not None:
            object.__setattr__(self, "error", scrub(self.error))


@dataclass(frozen=True, kw_only=True, slots=True)
class NotSent:
    """The event never left this process; it is released and burns no budget."""


Result = Delivered | Failed | Rejected | Unknown | NotSent
