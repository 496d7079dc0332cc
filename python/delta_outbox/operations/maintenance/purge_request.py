"""The arguments of a purge, and its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from delta_outbox.core.errors import WrongUsage
from delta_outbox.operations.argument_rules import MAX_ACTOR, MAX_TEXT, Arguments
from delta_outbox.operations.maintenance.purge_rules import Choice


@dataclass(frozen=True, kw_only=True)
class PurgeRequest:
    """What is to be purged, as an operator asks for it.

    Args:
        before: events created on this day and later stay.
        actor: who asks.
        reason: why.
        include_dead: DEAD events go, too.
        dry_run: only say what would go.
    """

    before: date
    actor: str
    reason: str
    include_dead: bool = False
    dry_run: bool = True

    def __post_init__(self) -> None:
        arguments = Arguments()
        arguments.line("reason", self.reason, MAX_TEXT)
        arguments.line("actor", self.actor, MAX_ACTOR)
        if arguments.problems:
            raise WrongUsage(f"purge: {'; '.join(arguments.problems)}.")


@dataclass(frozen=True, kw_only=True)
class PurgeReport:
    """What a purge removes, or would, and what it leaves.

    Args:
        choice: the days.
        number: of its plan; None if nothing was written.
        removed: table to the rows that are gone.
    """

    choice: Choice
    number: int | None = None
    removed: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Return the document that --json prints."""
        return {
            "number": self.number,
            "deliveries": sum(self.choice.states.values()),
            "counts": self.choice.states,
            "days": [
                {"created_date": day.created_date.isoformat(), **dict(sorted(day.states.items()))}
                for day in self.choice.days
            ],
            "kept": [
                {"created_date": one.created_date.isoformat(), "why": one.why}
                for one in self.choice.kept
            ],
            "removed": dict(self.removed),
        }
