"""Answers to items: which of them count, and what each who answers is told.

An answer is a command. Of several for one item the first in the command log counts, so who answers
learns at once whether it was this one, whoever applies it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from delta_outbox.core.errors import OutboxError, WrongUsage
from delta_outbox.core.literals import instant_literal, text_literal
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.operations.argument_rules import MAX_ACTOR, MAX_TEXT, Arguments
from delta_outbox.store.command_arguments import arguments_of
from delta_outbox.store.completions import KIND, completion_arguments
from delta_outbox.store.extensions import KIND as EXTEND
from delta_outbox.store.extensions import deadline_at_its_place
from delta_outbox.workflow_engine.derivation.events import task_type
from delta_outbox.workflow_engine.four_eyes import another_person
from delta_outbox.workflow_engine.item_decisions import UndecidedAnswer, canonical
from delta_outbox.workflow_engine.item_deliveries import (
    Delivery,
    ItemDeliveries,
    WaitingItem,
)
from delta_outbox.workflow_engine.task_reader import literals

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

MOST_ANSWERS: Final = 1000  # that are given at once


class AnsweredAlready(OutboxError):
    """Somebody was faster: another answer counts, and this one was not written."""

    code = "ANSWERED_ALREADY"
    exit_code = 1
    remedy = "Nothing is to be done; `outbox todo show ID` says what came of the item."
    why: ClassVar[str] = "somebody was faster"

    def __init__(self, *, task_id: str, outcome: str) -> None:
        """Name the item and the outcome that counts."""
        super().__init__(f"{task_id}: {self.why}, with the outcome {outcome!r}.")
        self.outcome = outcome


class KeyUsedAgain(AnsweredAlready):
    """Another answer to the item was given with the same key; this one was not written."""

    code = "KEY_USED_AGAIN"
    remedy = "Give each answer a key of its own, and a repeat the data of what it repeats."
    why = "another answer was given with this key"


class AnsweredTooLate(OutboxError):
    """The item is over without an answer: this one changes nothing any more, and is on record."""

    code = "ANSWERED_TOO_LATE"
    exit_code = 1
    remedy = "`outbox todo show ID` says what came of the item, and `outbox show` of the command."


class UnexpectedOutcome(OutboxError):
    """The answer means another outcome than who answers has expected; nothing was written."""

    code = "UNEXPECTED_OUTCOME"
    remedy = "Correct the data or the outcome."


@dataclass(frozen=True, kw_only=True)
class GivenAnswer:
    """What somebody answers.

    Args:
        task_id: of the item.
        data: as its contract asks for it.
        outcome: that is expected; if the answer means another one, it is refused.
        actor: who answers, one line; None: whoever the call names.
        key: stands for the request: whoever repeats it gives the same data.
        is_message: of a third party, which gives its messages ids: `key` is that id, a message of
            the same id is the same whatever came beside it, and one that does not count goes on
            record as evidence.
        allowed: says of the item whether it may be answered; if not, it is as if there were none.
    """

    task_id: str
    data: Mapping[str, Any]
    outcome: str | None = None
    actor: str | None = None
    key: str | None = None
    is_message: bool = False
    allowed: Callable[[WaitingItem], bool] | None = None


@dataclass(frozen=True, kw_only=True)
class Completion:
    """An answer that counts.

    Args:
        task_id: of the item.
        outcome: that was decided.
        command_id: of the command.
        status: `done`; `waiting`: a relay ends the item within a minute.
        repeated: the same answer was on record already.
    """

    task_id: str
    outcome: str
    command_id: str
    status: str
    repeated: bool = False

    def as_dict(self) -> dict[str, object]:
        """Return the document that --json prints."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A completion in the command log.

    Args:
        command_id: of the command.
        actor: who has answered.
        at: when.
        outcome: that was decided.
        content: stands for the data.
        key: stands for the request.
    """

    command_id: str
    actor: str
    at: datetime
    outcome: str
    content: str
    key: str | None


@dataclass(frozen=True, kw_only=True)
class _Written:
    """An answer on its way into the command log."""

    found: Delivery
    given: GivenAnswer
    content: str
    command: Mapping[str, object]


class Answers:
    """The answers to the items of one outbox.

    Args:
        outbox: whose.
        deliveries: where its items stand.
        ends_items: whether answering an item ends it too, where no relay is alive.
    """

    def __init__(self, outbox: Store, deliveries: ItemDeliveries, *, ends_items: bool) -> None:
        self._outbox = outbox
        self._deliveries = deliveries
        self._ends_items = ends_items

    def give(
        self, answers: Sequence[GivenAnswer], *, actor: str, reason: str
    ) -> list[Completion | OutboxError]:
        """Give answers: see `Items.complete_many`."""
        given = Arguments()
        why = given.line("reason", reason, MAX_TEXT)
        actors = [given.line("actor", one.actor or actor, MAX_ACTOR) for one in answers]
        if len(answers) > MOST_ANSWERS:
            given.refuse("answers", f"must be at most {MOST_ANSWERS}", len(answers))
        if given.problems:
            raise WrongUsage(f"todo complete: {'; '.join(dict.fromkeys(given.problems))}.")
        ids = list(dict.fromkeys(one.task_id for one in answers))
        stands = self._deliveries.found(ids)
        winners = self.winners(stands.values())
        open_ = [one for name, one in stands.items() if name not in winners]
        before = self._answered_before(open_)
        results: dict[int, Completion | OutboxError] = {}
        written: dict[int, _Written] = {}
        for place, (one, who) in enumerate(zip(answers, actors, strict=True)):
            try:
                made = self._made(one, who, why, stands.get(one.task_id), winners.get(one.task_id))
                if isinstance(made, _Written):
                    another_person(
                        one.task_id,
                        who,
                        not_by=self._deliveries.decisions.not_by(made.found.task),
                        answered=before.get(made.found.task.key, {}),
                    )
            except OutboxError as error:
                results[place] = error
            else:
                if isinstance(made, Completion):
                    results[place] = made
                else:
                    written[place] = made
        if written:
            # Of several to one open item the first is written, and the others are judged by what
            # came of it. If that was late, so are they, and go on record too.
            turn = _first_of_each(written)
            self._deliveries.append([one.command for one in turn.values()])
            results |= self._ended(turn, written)
            late = {place: one for place, one in written.items() if place not in results}
            beaten = [
                one
                for place, one in written.items()
                if place not in turn
                and one.given.is_message
                and isinstance(results.get(place), AnsweredAlready)
            ]
            if late or beaten:
                self._deliveries.append([one.command for one in (*late.values(), *beaten)])
            if late:
                results |= self._ended(late, late)
        return [results[place] for place in range(len(answers))]

    def end_answered(self) -> bool:
        """End the items whose answers are on record, where no relay is alive to do it; return
        whether any has ended.
        """
        return self._outbox.apply_commands_if_alone() > 0

    def _made(
        self,
        given: GivenAnswer,
        actor: str,
        reason: str,
        found: Delivery | None,
        winner: Answer | None,
    ) -> Completion | _Written:
        """Return the command that an answer becomes, or the answer that it repeats.

        Raises:
            OutboxError: nothing is to be written.
        """
        task_id = given.task_id
        beaten: AnsweredAlready | None = None
        content = hashlib.sha256(canonical(given.data).encode()).hexdigest()
        found = self._deliveries.open_to(task_id, found, given.allowed)
        if winner is not None:
            is_over = found.state is State.PUBLISHED
            try:
                return _repeated(winner, given, content, is_over=is_over)
            except AnsweredAlready as error:
                if not given.is_message:
                    raise
                beaten = error
        try:
            decided, its_data = self._deliveries.decisions.decided(found.task, given.data)
        except UndecidedAnswer:
            if beaten is not None:  # what it would have come to changes nothing
                raise beaten from None
            raise
        if given.outcome is not None and given.outcome != decided:
            raise UnexpectedOutcome(
                f"{task_id}: the answer means {decided!r}, and {given.outcome!r} was expected."
            )
        return _Written(
            found=found,
            given=given,
            content=content,
            command=found.command(
                KIND,
                completion_arguments(decided, its_data, content, given.key),
                actor=actor,
                reason=reason,
            ),
        )

    def _answered_before(
        self, found: Collection[Delivery]
    ) -> Mapping[str, Mapping[str, Collection[str]]]:
        """Return who has answered the items that `not_by` of others names: by the key of the
        instance, then by the name of the task. For items without `not_by` nothing is read.
        """
        named = {one.task.key: self._deliveries.decisions.not_by(one.task) for one in found}
        asked = {key for key, names in named.items() if names}
        if not asked:
            return {}
        types = {task_type(one.task.workflow, it) for one in found for it in named[one.task.key]}
        ended = (
            f"state = '{State.PUBLISHED}' and reason = '{Reason.COMPLETED}' and not ambiguous "
            f"and event_type in ({literals(types)}) and ordering_key in ({literals(asked)})"
        )
        earlier = self._deliveries.where(ended)
        persons: dict[str, dict[str, set[str]]] = {}
        for task_id, answer in self.winners(earlier.values()).items():
            task = earlier[task_id].task
            persons.setdefault(task.key, {}).setdefault(task.place.task, set()).add(answer.actor)
        return persons

    def _ended(
        self, turn: Mapping[int, _Written], written: Mapping[int, _Written]
    ) -> dict[int, Completion | OutboxError]:
        """Return what came of answers, by their places.

        Args:
            turn: those that are in the command log now.
            written: these, and others to the same items, of which those are left out that must be
                written to know.
        """
        ids = list(dict.fromkeys(one.found.task.task_id for one in turn.values()))
        now = self._outbox.clock.now()
        untils = [one.found.until for one in turn.values() if one.found.until is not None]
        if any(now >= until for until in untils):
            # Somebody may be ending it as expired: whoever is first in the log of transitions.
            self._outbox.apply_commands()
        stands = self._deliveries.found(ids)
        if any(one.is_between_claims for one in stands.values()):
            self._outbox.apply_commands()
            stands = self._deliveries.found(ids)
        winners = self.winners(stands.values())
        are_over = self._ends_items and self.end_answered()
        results: dict[int, Completion | OutboxError] = {}
        for place, ours in written.items():
            task_id = ours.found.task.task_id
            found, winner = stands[task_id], winners.get(task_id)
            if winner is None:
                if place in turn:
                    why = _why_over(found, self._outbox.clock.now())
                    results[place] = AnsweredTooLate(f"{task_id} is over: {why}.")
                continue
            is_over = are_over or found.state is State.PUBLISHED
            if winner.command_id == ours.command["command_id"]:
                results[place] = _counted(winner, task_id, is_over=is_over)
            else:
                try:
                    results[place] = _repeated(winner, ours.given, ours.content, is_over=is_over)
                except AnsweredAlready as error:
                    results[place] = error
        return results

    def winners(self, found: Collection[Delivery]) -> dict[str, Answer]:
        """Return the answers that end items, or have ended them; there may be none (yet).

        Args:
            found: where the items stand.
        """
        asked = {one.task.task_id: one for one in found if _may_be_answered(one)}
        commands = self.commands(asked.values(), (KIND, EXTEND, "kill"))
        winners = {name: winner(asked[name], its) for name, its in commands.items()}
        return {name: one for name, one in winners.items() if one is not None}

    def commands(
        self, found: Collection[Delivery], kinds: Collection[str]
    ) -> dict[str, list[Mapping[str, Any]]]:
        """Return the commands about items, by identifier, in the order of the log; each with the
        deadline at its place.

        Args:
            found: where the items stand.
            kinds: of commands; extensions are among them.
        """
        if not found:
            return {}
        rows = self._outbox.spark.sql(
            "select c.command_id, c.kind, c.event_id, c.requested_at, c.arguments, c.actor, "
            f"{deadline_at_its_place('c', 'c.lease')} as deadline from ("
            "select k.*, i.lease from ("
            "select *, _metadata.row_commit_version as _commit_version "
            f"from {self._outbox.tables.commands} where kind in ({literals(kinds)}) "
            f"and event_id in ({literals(one.task.task_id for one in found)})) as k "
            f"inner join (values {', '.join(map(_place, found))}) "
            "as i (event_id, arrival, lifecycle, lease) on k.event_id = i.event_id "
            "and k.arrival = i.arrival and k.lifecycle = i.lifecycle) as c "
            "order by c._commit_version, c.command_id"
        ).toArrow()
        commands: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows.to_pylist():
            commands.setdefault(row["event_id"], []).append(row)
        return commands


def _place(found: Delivery) -> str:
    """Return an item, its arrival and lifecycle, and when its claim ends, as a row of SQL."""
    lease = "cast(null as timestamp)" if found.until is None else instant_literal(found.until)
    task_id = text_literal(found.task.task_id)
    return f"({task_id}, {found.arrival}, {found.lifecycle}, {lease})"


def _may_be_answered(found: Delivery) -> bool:
    """Say whether an answer may end an item, or may have ended it."""
    if found.state is State.PUBLISHED:
        return found.reason == Reason.COMPLETED
    return found.until is not None


def winner(found: Delivery, commands: Iterable[Mapping[str, Any]]) -> Answer | None:
    """Return the answer that ends an item, or has ended it; None if there is none (yet).

    Args:
        found: where the item stands.
        commands: about it, in the order of the log.
    """
    if not _may_be_answered(found):
        return None
    for row in commands:
        if row["kind"] == "kill":  # before anybody answered
            return None
        if row["kind"] != KIND:
            continue
        answer = _answer(row)
        if answer is None or (found.until is not None and answer.at > row["deadline"]):
            continue
        if found.state is not State.PUBLISHED or answer.outcome == found.outcome:
            return answer
    return None


def _first_of_each(written: Mapping[int, _Written]) -> dict[int, _Written]:
    """Return, of the answers to each open item, the first; and all to those that are over.

    Args:
        written: by their places.
    """
    first: dict[str, int] = {}
    for place, one in written.items():
        first.setdefault(one.found.task.task_id, place)
    return {
        place: one
        for place, one in written.items()
        if first[one.found.task.task_id] == place or one.found.is_over
    }


def _repeated(winner: Answer, given: GivenAnswer, content: str, *, is_over: bool) -> Completion:
    """Return the answer that counts, if another one repeats it.

    Raises:
        AnsweredAlready: it does not.
    """
    is_same_key = given.key is not None and given.key == winner.key
    if content != winner.content and not (is_same_key and given.is_message):
        kind = KeyUsedAgain if is_same_key else AnsweredAlready
        raise kind(task_id=given.task_id, outcome=winner.outcome)
    return _counted(winner, given.task_id, is_over=is_over, repeated=True)


def _counted(winner: Answer, task_id: str, *, is_over: bool, repeated: bool = False) -> Completion:
    return Completion(
        task_id=task_id,
        outcome=winner.outcome,
        command_id=winner.command_id,
        status="done" if is_over else "waiting",
        repeated=repeated,
    )


def _why_over(found: Delivery, now: datetime) -> str:
    if found.reason == Reason.EXPIRED:
        return f"it has expired, with the outcome {found.outcome!r}"
    is_killed = found.state is State.DEAD or (found.until is not None and found.until > now)
    return "an operator has ended it" if is_killed else "it has expired"


def _answer(row: Mapping[str, Any]) -> Answer | None:
    """Return what a command says; hand-written rows may hold anything."""
    body = arguments_of(row["arguments"])
    if not isinstance(body.get("outcome"), str):
        return None
    return Answer(
        command_id=row["command_id"],
        actor=row["actor"],
        at=row["requested_at"],
        outcome=body["outcome"],
        content=str(body.get("content", "")),
        key=body.get("key"),
    )
