"""Who takes care of items: take one, give it back. The last assignment in the command log says so.

Whoever asks for many items by a selection uses a task request (task_requests.py). What is here is
for people who take the item that they look at: it refreshes nothing, and is told in one append.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_outbox.core.errors import OutboxError, WrongUsage
from delta_outbox.operations.argument_rules import MAX_ACTOR, MAX_TEXT, Arguments
from delta_outbox.store.apply_commands import ASSIGN
from delta_outbox.workflow_engine.four_eyes import is_same_person
from delta_outbox.workflow_engine.item_deliveries import ItemDeliveries, WaitingItem
from delta_outbox.workflow_engine.task_reader import commands_since, holders

if TYPE_CHECKING:
    from delta_outbox.store.store import Store
    from delta_outbox.workflow_engine.item_answers import Answers
    from delta_outbox.workflow_engine.item_deliveries import Delivery


class HeldByAnother(OutboxError):
    """Somebody else takes care of the item; nothing was changed."""

    code = "HELD_BY_ANOTHER"
    exit_code = 1
    remedy = "Ask that person, or answer it all the same: to hold an item is a courtesy."

    def __init__(self, *, task_id: str, holder: str) -> None:
        """Name the item and who holds it."""
        super().__init__(f"{task_id}: {holder} takes care of it.")
        self.holder = holder


class NotOpen(OutboxError):
    """The item waits for nobody any more, so nobody can take care of it."""

    code = "NOT_OPEN"
    exit_code = 1
    remedy = "Nothing is to be done; `outbox todo show ID` says what came of the item."


@dataclass(frozen=True, kw_only=True)
class HoldRequest:
    """Somebody who takes an item, or gives it back.

    Args:
        task_id: of the item.
        person: who asks, one line.
        gives_back: the item; else it is taken.
        allowed: says of the item whether this person may hold it; if not, it is as if there were
            none.
    """

    task_id: str
    person: str
    gives_back: bool = False
    allowed: Callable[[WaitingItem], bool] | None = None


class Holds:
    """Who takes care of the items of one outbox.

    Args:
        outbox: whose.
        deliveries: where its items stand.
        answers: to them.
    """

    def __init__(self, outbox: Store, deliveries: ItemDeliveries, answers: Answers) -> None:
        self._outbox = outbox
        self._deliveries = deliveries
        self._answers = answers

    def holders(self, found: Collection[Delivery]) -> dict[str, str]:
        """Return who takes care of items, by identifier, without those that nobody holds.

        Args:
            found: where the items stand.
        """
        if not found:
            return {}
        outbox, ids = self._outbox, [one.task.task_id for one in found]
        since = commands_since(one.task.created_at for one in found)
        holding = holders(outbox.spark, outbox.statements, ids, since=since)
        return {task_id: holder for (task_id, _), holder in holding.items()}

    def warm_up(self) -> None:
        """Ask once what `holders` asks."""
        outbox = self._outbox
        holders(outbox.spark, outbox.statements, [""], since=commands_since(()))

    def change(
        self, requests: Sequence[HoldRequest], *, reason: str
    ) -> list[str | OutboxError | None]:
        """Take items and give them back: see `Items.hold_many`."""
        given = Arguments()
        why = given.line("reason", reason, MAX_TEXT)
        for one in requests:
            given.line("person", one.person, MAX_ACTOR)
        if given.problems:
            raise WrongUsage(f"todo take: {'; '.join(dict.fromkeys(given.problems))}.")
        results: dict[int, str | OutboxError | None] = {}
        left = dict(enumerate(requests))
        while left:
            # Within one commit the log has no order, so of several for one item each waits for the
            # one before.
            turn: dict[str, int] = {}
            for place, one in left.items():
                turn.setdefault(one.task_id, place)
            results |= self._changed({place: left.pop(place) for place in turn.values()}, why)
        return [results[place] for place in range(len(requests))]

    def _changed(
        self, asked: Mapping[int, HoldRequest], reason: str
    ) -> dict[int, str | OutboxError | None]:
        """Return what came of requests of which no two are about the same item."""
        ids = [one.task_id for one in asked.values()]
        stands = self._deliveries.found(ids)
        holders = self.holders(stands.values())
        answered = self._answers.winners(stands.values())
        results: dict[int, str | OutboxError | None] = {}
        rows = []
        for place, one in asked.items():
            holder = holders.get(one.task_id)
            try:
                found = self._to_hold(
                    one, stands.get(one.task_id), holder, is_answered=one.task_id in answered
                )
            except OutboxError as error:
                results[place] = error
                continue
            results[place] = holder
            if (holder is None) != one.gives_back:
                to = json.dumps({"to": "" if one.gives_back else one.person})
                rows.append(found.command(ASSIGN, to, actor=one.person, reason=reason))
        if not rows:
            return results
        self._deliveries.append(rows)
        # Somebody may have taken an item meanwhile; the later one holds it.
        now = self.holders(stands.values())
        for place, one in asked.items():
            if isinstance(results[place], OutboxError):
                continue
            holder = results[place] = now.get(one.task_id)
            if not (one.gives_back or holder is None or is_same_person(holder, one.person)):
                results[place] = HeldByAnother(task_id=one.task_id, holder=holder)
        return results

    def _to_hold(
        self, one: HoldRequest, found: Delivery | None, holder: str | None, *, is_answered: bool
    ) -> Delivery:
        """Return the item that somebody may take or give back.

        Raises:
            OutboxError: nobody may, or not this person.
        """
        found = self._deliveries.open_to(one.task_id, found, one.allowed)
        if is_answered or found.is_past(self._outbox.clock.now()):
            raise NotOpen(f"{one.task_id} is over, or answered.")
        if holder is not None and not is_same_person(holder, one.person):
            raise HeldByAnother(task_id=one.task_id, holder=holder)
        return found
