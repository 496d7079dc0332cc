"""What one numbered write of derived events is made of, as its plan keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final

from delta_outbox.core.byte_bounds import AT_ONCE
from delta_outbox.core.instants import iso_text
from delta_outbox.delta.numbered_writes import NumberedWrite
from delta_outbox.workflow_engine.derivation.item_events import DueItem, DueMark, due_by

MOST_NEWS: Final = 1_000  # start events of one write, and endings of tasks
MOST_BYTES: Final = AT_ONCE  # of either; one alone may have more


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class News:
    """Where a start event lies, or the ending of a task, with all its copies in that commit.

    Args:
        version: the commit that brought it.
        event_id: of the event, or of the task.
        size: bytes of the rows that follow from it, about.
    """

    version: int
    event_id: str
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """Versions of a log, and a part of the commit after each end.

    Args:
        after: the first version, not included.
        to: the last version, included.
        behind: of the commit after the first version, the last id that was read before; None if
            nothing of it was.
        through: of the commit after the last version, the last id that belongs here; None if
            nothing of it does.
    """

    after: int
    to: int
    behind: str | None = None
    through: str | None = None

    @property
    def last(self) -> int:
        """Return the last commit of which something belongs here."""
        return self.to + (self.through is not None)

    def next(self, to: int) -> Span:
        """Return what follows this one.

        Args:
            to: a version; one that is older than the end of this one counts as its end.
        """
        return Span(after=self.to, to=max(self.last, to), behind=self.through)

    def holds(self, version: int, event_id: str) -> bool:
        """Say whether the news of an event in a commit belongs here.

        Args:
            version: the commit.
            event_id: of the event.
        """
        if version <= self.after or (
            version == self.after + 1 and self.behind is not None and event_id <= self.behind
        ):
            return False
        return version <= self.to or (
            version == self.to + 1 and self.through is not None and event_id <= self.through
        )

    def cut_to(self, news: Sequence[News]) -> Span:
        """Return the beginning of this one that has no more news than one write may.

        Args:
            news: all of it, or of its beginning, in order.
        """
        size = 0
        for count, one in enumerate(news):
            size += one.size
            if count and (count >= MOST_NEWS or size > MOST_BYTES):
                last = news[count - 1]
                return replace(self, to=last.version - 1, through=last.event_id)
        return self


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteRange:
    """What one numbered write is made of; whoever reads the same makes the same rows.

    Args:
        events: of the event log.
        transitions: of the transition log.
        workflows: number of the plan by which instances begin.
        seen: version of the event log by which it is known what is there.
        at: when it was planned; what it writes was appended then.
        told: how far items are told to be due, once it is written.
        due: items that were opened before, and are told to be due.
        former: numbers of the plans that were in force while the events came, but for `workflows`.
        all_transitions: whether no transition was left that was there when it was planned; up to
            then invariants ask what follows.
    """

    events: Span
    transitions: Span
    workflows: int
    seen: int
    at: datetime
    told: DueMark
    due: tuple[DueItem, ...] = ()
    former: tuple[int, ...] = ()
    all_transitions: bool = False

    @property
    def in_force_since(self) -> int:
        """Return the first plan that may have been in force when what follows this one came."""
        if self.events.to < self.seen:  # it was there already, and did not fit
            return min(self.former, default=self.workflows)
        return self.workflows

    @property
    def has_told_all(self) -> bool:
        """Say whether all items have been told to be due that were to be when it was planned."""
        return self.told.has_passed(due_by(self.at))

    def as_plan(self) -> dict[str, Any]:
        """Return it as JSON, but for the instant, which the numbered write has."""
        return {
            "events": asdict(self.events),
            "transitions": asdict(self.transitions),
            "workflows": self.workflows,
            "seen": {"events": self.seen},
            "told": {"at": iso_text(self.told.at), "through": self.told.through},
            "due": [one.as_plan() for one in self.due],
            "former": list(self.former),
            "all_transitions": self.all_transitions,
        }

    @classmethod
    def of(cls, write: NumberedWrite) -> WriteRange:
        """Return what a numbered write is made of.

        Args:
            write: its plan has what `as_plan` returned.
        """
        plan: Mapping[str, Any] = write.plan["range"]
        # Before items told that they are due, plans said nothing of it.
        told = plan.get("told", {"at": iso_text(write.planned_at), "through": None})
        return cls(
            events=Span(**plan["events"]),
            transitions=Span(**plan["transitions"]),
            workflows=plan["workflows"],
            seen=plan["seen"]["events"],
            at=write.planned_at,
            told=DueMark(at=datetime.fromisoformat(told["at"]), through=told["through"]),
            due=tuple(DueItem.of(one) for one in plan.get("due", ())),
            former=tuple(plan.get("former", ())),
            all_transitions=plan.get("all_transitions", False),
        )
