"""Answers to items: which of them count, and what each who answers is told.

An answer is a command. Of several for one item the first in the command log counts, so who answers
learns at once whether it was this one, whoever applies it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
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
from delta_outbox.workflow_engine.four_eyes import NotNamed, another_person
from delta_outbox.workflow_engine.item_decisions import BadAnswer, UndecidedAnswer, canonical
from delta_outbox.workflow_engine.item_deliveries import (
    Delivery,
    ItemDeliveries,
    WaitingItem,
)
from delta_outbox.workflow_engine.task_reader import commands_since, literals

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

MOST_ANSWERS: Final = 1000  # that are given at once
DONE: Final = "done"
WAITING: Final = "waiting"  # of an answer that counts, for the end of its item
# By so much the clock of a relay may be ahead, and end as expired what is open here: an answer
# that comes so shortly before the end is told once it has ended the item. Not an hour, as where a
# lease is taken over (`clock_skew_seconds`): to end an item takes as long as to answer it.
CLOCKS_APART: Final = timedelta(minutes=1)


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


class NotKnownYet(OutboxError):
    """An answer is on record, and nobody can say yet whether it counts: its item cannot be ended at
    the moment, because the lanes change.
    """

    code = "NOT_KNOWN_YET"
    retryable = True
    remedy = "Give the same answer again in some seconds: it is told what has become of it."


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
        is_named: the actor is a person; else it answers nothing of which `not_by` speaks.
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
    is_named: bool = True
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
    """An answer on its way into the command log.

    Args:
        found: where its item stands.
        given: the answer.
        content: stands for its data.
        command: that it becomes.
        is_there: the same is in the log already, so it is not written again.
    """

    found: Delivery
    given: GivenAnswer
    content: str
    command: Mapping[str, object]
    is_there: bool


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
        firsts: dict[object, int] = {}
        places = [
            firsts.setdefault(_stands_for(one, who), place)
            for place, (one, who) in enumerate(zip(answers, actors, strict=True))
        ]
        distinct = list(dict.fromkeys(places))
        told = self._given(
            [answers[one] for one in distinct], [actors[one] for one in distinct], why
        )
        results = dict(zip(distinct, told, strict=True))
        return [
            results[first] if first == place else _again(results[first])
            for place, first in enumerate(places)
        ]

    def _given(
        self, answers: Sequence[GivenAnswer], actors: Sequence[str], reason: str
    ) -> list[Completion | OutboxError]:
        """Give answers; of messages none repeats another."""
        ids = list(dict.fromkeys(one.task_id for one in answers))
        stands, commands, winners = self._standing(ids)
        open_ = [one for name, one in stands.items() if name not in winners]
        before = self._answered_before(open_)
        results: dict[int, Completion | OutboxError] = {}
        written: dict[int, _Written] = {}
        for place, (one, who) in enumerate(zip(answers, actors, strict=True)):
            name = one.task_id
            try:
                made = self._made(
                    one, who, reason, stands.get(name), winners.get(name), commands.get(name, ())
                )
                if isinstance(made, _Written) and name not in winners:
                    self._demand_another(made, who, before)
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
            if new := [one.command for one in turn.values() if not one.is_there]:
                self._deliveries.append(new)
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

    def _demand_another(
        self,
        made: _Written,
        actor: str,
        before: Mapping[str, Mapping[str, Collection[str]]],
    ) -> None:
        """Demand what four eyes ask for, of an answer that may be the first to its item.

        Raises:
            SamePerson: it is not kept.
        """
        decisions, task = self._deliveries.decisions, made.found.task
        if not made.given.is_named and decisions.needs_names(task):
            raise NotNamed(task.task_id)
        another_person(
            task.task_id,
            actor,
            not_by=decisions.not_by(task),
            answered=before.get(task.key, {}),
        )

    def end_answered(self) -> bool:
        """End the items whose answers are on record, where no relay is alive to do it; return
        whether any has ended.
        """
        return self._outbox.apply_commands_if_alone() > 0

    def _standing(
        self, ids: Sequence[str]
    ) -> tuple[dict[str, Delivery], Mapping[str, Sequence[Mapping[str, Any]]], dict[str, Answer]]:
        """Return where items stand, the answers and what decides about them, and which count. What
        is answered and near its end is ended first.
        """
        stands = self._deliveries.found(ids)
        commands = self.commands(stands.values(), (KIND, EXTEND, "kill"))
        winners = _winners(stands.values(), commands)
        if any(self._is_near_its_end(stands[name]) for name in winners):
            self._outbox.apply_commands()
            stands = self._deliveries.found(ids)
            winners = _winners(stands.values(), commands)
        return stands, commands, winners

    def _is_near_its_end(self, found: Delivery) -> bool:
        """Say whether somebody may be ending an item as expired."""
        return found.until is not None and self._outbox.clock.now() >= found.until - CLOCKS_APART

    def _made(
        self,
        given: GivenAnswer,
        actor: str,
        reason: str,
        found: Delivery | None,
        winner: Answer | None,
        commands: Sequence[Mapping[str, Any]],
    ) -> Completion | _Written:
        """Return the command that an answer becomes, or the answer that it repeats.

        Args:
            given: the answer.
            actor: who gives it.
            reason: why.
            found: where the item stands; None: there is none.
            winner: the answer that counts.
            commands: about the item.

        Raises:
            OutboxError: nothing is to be written.
        """
        task_id = given.task_id
        beaten: AnsweredAlready | None = None
        is_there = False
        content = hashlib.sha256(canonical(given.data).encode()).hexdigest()
        found = self._deliveries.open_to(task_id, found, given.allowed)
        if winner is not None:
            if self._is_near_its_end(found):
                raise _not_known(task_id)
            is_over = found.state is State.PUBLISHED
            try:
                return _repeated(winner, given, content, is_over=is_over)
            except AnsweredAlready as error:
                if not given.is_message or _is_there(commands, given, actor, content):
                    raise
                beaten = error
        elif _is_there(commands, given, actor, content):
            is_killed = any(one["kind"] == "kill" for one in commands)  # before anybody answered
            if is_killed or found.is_past(self._outbox.clock.now()):
                raise self._too_late(found)
            is_there = found.is_between_claims  # else its clock was ahead, and another may count
        try:
            decided, its_data = self._decided(found, given)
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
            is_there=is_there,
        )

    def _decided(self, found: Delivery, given: GivenAnswer) -> tuple[str, Mapping[str, Any]]:
        """Return the outcome that an answer means, and its data."""
        decided, its_data = self._deliveries.decisions.decided(found.task, given.data)
        if not self._deliveries.knows(found.task, decided):
            raise UndecidedAnswer(
                f"{given.task_id}: the version of its instance has no outcome {decided!r}.",
                remedy="Answer it by the code of that version, or move the instance: "
                "`outbox workflow migrate`.",
            )
        return decided, its_data

    def _answered_before(
        self, found: Collection[Delivery]
    ) -> Mapping[str, Mapping[str, Collection[str]]]:
        """Return who has given the answers that count, or were accepted late, to the tasks that
        `not_by` of items names: by the key of the instance, then by the name of the task. For items
        without `not_by` nothing is read.
        """
        asked: set[str] = set()
        types: set[str] = set()
        accepted: set[str] = set()
        for one in found:
            names = self._deliveries.decisions.not_by(one.task)
            if names:
                asked.add(one.task.key)
                types |= {task_type(one.task.workflow, it) for it in names}
                accepted |= {*one.task.accepted}
        if not asked:
            return {}
        counts = f"reason = '{Reason.COMPLETED}'"
        if accepted:
            counts = f"({counts} or event_id in ({literals(accepted)}))"
        earlier = self._deliveries.where(
            f"state = '{State.PUBLISHED}' and {counts} and not ambiguous "
            f"and event_type in ({literals(types)}) and ordering_key in ({literals(asked)})"
        )
        commands = self.commands(earlier.values(), (KIND, EXTEND, "kill"))
        persons: dict[str, dict[str, set[str]]] = {}
        for task_id, one in earlier.items():
            answer = _answer_that_led_on(one, commands.get(task_id, ()))
            if answer is not None:
                its = persons.setdefault(one.task.key, {})
                its.setdefault(one.task.place.task, set()).add(answer.actor)
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
        stands = self._deliveries.found(ids)
        pressing = [
            name
            for name, one in stands.items()
            if one.is_between_claims or self._is_near_its_end(one)
        ]
        if pressing:
            self._outbox.apply_commands()
            stands = self._deliveries.found(ids)
        winners = self.winners(stands.values())
        are_over = self._ends_items and self.end_answered()
        results: dict[int, Completion | OutboxError] = {}
        for place, ours in written.items():
            task_id = ours.found.task.task_id
            found, winner = stands[task_id], winners.get(task_id)
            is_open = found.until is not None and winner is not None
            if task_id in pressing and (found.is_between_claims or is_open):
                results[place] = _not_known(task_id)
                continue
            if winner is None:
                if place in turn:
                    results[place] = self._too_late(found)
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

    def _too_late(self, found: Delivery) -> AnsweredTooLate:
        why = _why_over(found, self._outbox.clock.now())
        return AnsweredTooLate(f"{found.task.task_id} is over: {why}.")

    def winners(self, found: Collection[Delivery]) -> dict[str, Answer]:
        """Return the answers that end items, or have ended them; there may be none (yet).

        Args:
            found: where the items stand.
        """
        asked = [one for one in found if _may_be_answered(one)]
        return _winners(asked, self.commands(asked, (KIND, EXTEND, "kill")))

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
            f"and requested_date >= {commands_since(one.task.created_at for one in found)} "
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
    """Return an item, its arrival and lifecycle, and when it expires or was to expire at first, as
    a row of SQL.
    """
    end = found.until or found.task.expires_at
    lease = "cast(null as timestamp)" if end is None else instant_literal(end)
    task_id = text_literal(found.task.task_id)
    return f"({task_id}, {found.arrival}, {found.lifecycle}, {lease})"


def _may_be_answered(found: Delivery) -> bool:
    """Say whether an answer may end an item, or may have ended it."""
    if found.state is State.PUBLISHED:
        return found.reason == Reason.COMPLETED
    return found.until is not None


def _stands_for(given: GivenAnswer, actor: str) -> object:
    """Return what is the same of a message and its repeat. All else is judged by itself: who may
    answer is asked for each.
    """
    if not given.is_message:
        return object()
    try:
        return given.task_id, actor, given.outcome, given.key or canonical(given.data)
    except BadAnswer:
        return object()


def _again(told: Completion | OutboxError) -> Completion | OutboxError:
    """Return what a repeat is told, by what the first was told."""
    return told if isinstance(told, OutboxError) else replace(told, repeated=True)


def _winners(
    found: Iterable[Delivery], commands: Mapping[str, Iterable[Mapping[str, Any]]]
) -> dict[str, Answer]:
    """Return the answers that count, by identifier of the item."""
    winners = {one.task.task_id: winner(one, commands.get(one.task.task_id, ())) for one in found}
    return {name: one for name, one in winners.items() if one is not None}


def _is_there(
    commands: Iterable[Mapping[str, Any]], given: GivenAnswer, actor: str, content: str
) -> bool:
    """Say whether the same answer of the same sender is on record."""
    found = (_answer(row) for row in commands if row["kind"] == KIND)
    return any(
        one.actor == actor and (one.content == content or _is_same_message(one, given))
        for one in found
        if one is not None
    )


def _is_same_message(answer: Answer, given: GivenAnswer) -> bool:
    return given.is_message and given.key is not None and given.key == answer.key


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
        answer, deadline = _answer(row), row["deadline"]
        if answer is None or (deadline is not None and answer.at > deadline):
            continue
        if found.state is not State.PUBLISHED or answer.outcome == found.outcome:
            return answer
    return None


def _answer_that_led_on(found: Delivery, commands: Iterable[Mapping[str, Any]]) -> Answer | None:
    """Return the answer by which an instance went on from an item: the one that has ended it, else
    the one that operators may accept, which is the first that came too late.

    Args:
        found: where the item stands.
        commands: about it, in the order of the log.
    """
    if found.reason == Reason.COMPLETED:
        return winner(found, commands)
    answers = (_answer(row) for row in commands if row["kind"] == KIND)
    return next((one for one in answers if one is not None), None)


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
    if content != winner.content and not _is_same_message(winner, given):
        is_same_key = given.key is not None and given.key == winner.key
        kind = KeyUsedAgain if is_same_key else AnsweredAlready
        raise kind(task_id=given.task_id, outcome=winner.outcome)
    return _counted(winner, given.task_id, is_over=is_over, repeated=True)


def _counted(winner: Answer, task_id: str, *, is_over: bool, repeated: bool = False) -> Completion:
    return Completion(
        task_id=task_id,
        outcome=winner.outcome,
        command_id=winner.command_id,
        status=DONE if is_over else WAITING,
        repeated=repeated,
    )


def _not_known(task_id: str) -> NotKnownYet:
    return NotKnownYet(f"{task_id} cannot be ended just now.")


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
