"""What `outbox list` selects and how it sorts: checked values, no SQL."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from delta_outbox.core.errors import WrongUsage
from delta_outbox.lifecycle.states import State

DEFAULT_LIMIT: Final = 50  # rows

SORT_COLUMNS: Final = (
    "arrival",
    "created_at",
    "available_at",
    "changed_at",
    "claimed_at",
    "published_at",
    "attempts",
    "event_id",
    "event_type",
    "ordering_key",
    "state",
)
"""The allow-list of what a listing can be sorted by; `arrival` is the order of the log."""


@dataclass(frozen=True, kw_only=True)
class Sort:
    """A column to sort by; rows without a value come last either way.

    Raises:
        WrongUsage: the column is not on the allow-list.
    """

    column: str = "arrival"
    descending: bool = False

    def __post_init__(self) -> None:
        if self.column not in SORT_COLUMNS:
            raise WrongUsage(
                f"list: `sort` must be one of {', '.join(SORT_COLUMNS)}. Got: {self.column!r}."
            )


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which deliveries to list; what is left out selects everything.

    Args:
        states: any of these.
        event_type: a shell glob.
        ordering_key: this very key.
        since: created at this instant or later.
        until: created before this instant.
        min_attempts: at least so many attempts in the current lifecycle.

    Raises:
        WrongUsage: an instant has no offset, or `until` is not after `since`.
    """

    states: tuple[State, ...] = ()
    event_type: str | None = None
    ordering_key: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    min_attempts: int = 0
    sort: Sort = field(default_factory=Sort)
    limit: int = DEFAULT_LIMIT

    def __post_init__(self) -> None:
        for name, value in (("since", self.since), ("until", self.until)):
            if value is not None and value.tzinfo is None:
                raise WrongUsage(f"list: `{name}` must have an offset. Got: {value.isoformat()}.")
        if self.since and self.until and self.until <= self.since:
            raise WrongUsage(
                "list: `until` must be after `since`. "
                f"Got: {self.since.isoformat()} to {self.until.isoformat()}."
            )
        if self.limit < 1:
            raise WrongUsage(f"list: `limit` must be at least 1. Got: {self.limit}.")
