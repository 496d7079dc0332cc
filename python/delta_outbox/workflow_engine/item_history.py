"""What has happened to an item: who has taken, extended and answered it, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.core.instants import iso_text
from delta_outbox.lifecycle.states import Reason
from delta_outbox.store.apply_commands import ASSIGN
from delta_outbox.store.command_arguments import arguments_of, instant_in
from delta_outbox.store.completions import KIND as COMPLETE
from delta_outbox.store.extensions import KIND as EXTEND

if TYPE_CHECKING:
    from delta_outbox.workflow_engine.item_answers import Answer
    from delta_outbox.workflow_engine.item_deliveries import Delivery

Row = Mapping[str, Any]

COMMANDS: Final = (COMPLETE, EXTEND, ASSIGN, "kill")  # that are about an item


@dataclass(frozen=True, kw_only=True)
class Happening:
    """Something that has happened to an item. Of an answer only what it came to is told, and
    nothing of one that does not count.

    Args:
        at: when, as ISO 8601 in UTC.
        what: opened, taken, released, assigned, extended, answered, cancelled, expired, ended, or
            answered_late.
        by: who has done it; None: nobody.
        to: of `assigned`: who takes care of the item from then on.
        until: of `extended`: when it expires since then, as ISO 8601 in UTC.
        outcome: of `answered`, `expired` and `ended`.
    """

    at: str
    what: str
    by: str | None = None
    to: str | None = None
    until: str | None = None
    outcome: str | None = None


def history(found: Delivery, commands: Iterable[Row], winner: Answer | None) -> list[Happening]:
    """Return what has happened to an item, in the order of the command log; that it was opened
    comes first.

    Args:
        found: where the item stands.
        commands: about it, in the order of the log.
        winner: the answer that counts, if there is one (yet).
    """
    if found.is_opening:
        return []
    before: list[Happening] = [Happening(at=iso_text(found.task.created_at), what="opened")]
    late: list[Happening] = []
    is_ended = False
    for row in commands:
        # An answer that does not count came too late, whether the end is on record yet or not.
        is_late = winner is None or row["command_id"] != winner.command_id
        if row["kind"] == COMPLETE and is_late:
            late.append(_happening(row, "answered_late"))
        elif is_ended or (found.is_over and row["requested_at"] > found.changed_at):
            continue
        elif row["kind"] == COMPLETE and winner is not None:
            before.append(_happening(row, "answered", outcome=winner.outcome))
            is_ended = True
        elif row["kind"] == "kill":
            before.append(_happening(row, "cancelled"))
            is_ended = True
        else:
            before += _changes(row)
    return [*before, *_ending(found), *late]


def _changes(row: Row) -> Iterator[Happening]:
    """Yield what an extension or an assignment has changed; hand-written rows may hold anything."""
    arguments = arguments_of(row["arguments"])
    if row["kind"] == EXTEND:
        until, expired_at = instant_in(arguments, "until"), instant_in(arguments, "from")
        if until is not None and expired_at is not None and row["requested_at"] <= expired_at:
            yield _happening(row, "extended", until=iso_text(until))
    if row["kind"] != ASSIGN or not isinstance(to := arguments.get("to"), str):
        return
    if not to:
        yield _happening(row, "released")
    elif to == row["actor"]:
        yield _happening(row, "taken")
    else:
        yield _happening(row, "assigned", to=to)


def _ending(found: Delivery) -> Iterator[Happening]:
    """Yield how an item has ended, if no answer and no command says so."""
    if found.is_over and found.reason not in (Reason.COMPLETED, Reason.OPERATOR):
        what = "expired" if found.reason == Reason.EXPIRED else "ended"
        yield Happening(at=iso_text(found.changed_at), what=what, outcome=found.outcome)


def _happening(row: Row, what: str, **told: str) -> Happening:
    return Happening(at=iso_text(row["requested_at"]), what=what, by=row["actor"], **told)
