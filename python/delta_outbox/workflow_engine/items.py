"""To-Do items: who answers one gives data, and the code of its author decides what that means.

An answer is a command. Of several for one item the first in the command log counts, so who answers
learns at once whether it was this one, whoever applies it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Unpack

from delta_outbox.core.errors import BadSettings, OutboxError, WrongUsage
from delta_outbox.core.instants import iso_text
from delta_outbox.core.literals import instant_literal, text_literal
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.operations.argument_rules import MAX_ACTOR, MAX_TEXT, Arguments
from delta_outbox.operations.command_log import append_commands
from delta_outbox.railway.modules import project_folder
from delta_outbox.store.completions import KIND, completion_arguments
from delta_outbox.store.extensions import KIND as EXTEND
from delta_outbox.store.extensions import deadline_at_its_place
from delta_outbox.workflow_engine.derivation.events import TaskEvent, task_type
from delta_outbox.workflow_engine.four_eyes import another_person
from delta_outbox.workflow_engine.instances import Instances, TasksReport
from delta_outbox.workflow_engine.item_decisions import (
    ItemDecisions,
    NoSuchItem,
    canonical,
    has_slow_patterns,
)
from delta_outbox.workflow_engine.task_reader import Place, TaskReader, literals
from delta_outbox.workflow_engine.task_requests import Selection, task_request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_outbox.railway.tasks import ToDo
    from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)

MOST_ANSWERS: Final = 1000  # that are given at once

_STANDING: Final = (
    *("event_id", "arrival", "lifecycle", "state", "claimed_by", "attempts"),
    *("lease_expires_at", "created_at", "reason", "outcome"),
)


class UnknownItem(OutboxError):
    """No item has this identifier: it is none yet, or another one."""

    code = "UNKNOWN_ITEM"
    remedy = "Name the task identifier of an item: `outbox todo list`."


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
class ItemType:
    """A To-Do task of a workflow, of which there may be many items.

    Args:
        workflow: its name.
        task: its name in the workflow.
        title: its name for people.
        roles: who may answer.
        outcomes: what an answer may come to.
        contract: what an answer must look like, as a JSON Schema.
        has_slow_patterns: a text of some thousand characters may stop whoever judges it.
        topic: of Kafka, by which answers may come too; None: there is none.
    """

    workflow: str
    task: str
    title: str
    roles: tuple[str, ...]
    outcomes: tuple[str, ...]
    contract: Mapping[str, Any]
    has_slow_patterns: bool = False
    topic: str | None = None


@dataclass(frozen=True, kw_only=True)
class WaitingItem:
    """An item that is open.

    Args:
        task_id: the task identifier.
        workflow: whose.
        instance: business key of the instance.
        task: its name in the workflow.
        title: its name for people.
        visit: of the task.
        roles: who may answer.
        opened_at: when it was opened.
        due_at: when somebody should be reminded; None: never.
        expires_at: when it expires; None: never.
        assigned_to: who takes care of it; None: nobody yet.
    """

    task_id: str
    workflow: str
    instance: str
    task: str
    title: str
    visit: int
    roles: tuple[str, ...]
    opened_at: datetime
    due_at: datetime | None
    expires_at: datetime | None
    assigned_to: str | None = None

    @classmethod
    def of(
        cls,
        found: _Delivery,
        task: ToDo[Any, Any, Any, Any],
        *,
        assigned_to: str | None = None,
    ) -> WaitingItem:
        """Return an item that is open.

        Args:
            found: where it stands.
            task: as its author has declared it.
            assigned_to: who takes care of it.
        """
        return cls(
            task_id=found.task.task_id,
            workflow=found.task.workflow,
            instance=found.task.instance,
            task=found.task.place.task,
            title=task.business_name(),
            visit=found.task.place.visit,
            roles=tuple(sorted(task.roles)),
            opened_at=found.task.created_at,
            due_at=found.task.due_at,
            expires_at=found.expires_at,
            assigned_to=assigned_to,
        )


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
class _Delivery:
    """Where an item stands."""

    task: TaskEvent
    arrival: int
    lifecycle: int
    state: State
    is_held: bool  # by `todo`, for whoever answers
    attempts: int
    until: datetime | None
    reason: str | None
    outcome: str | None

    @property
    def expires_at(self) -> datetime | None:
        """Return when it expires, None if never; while it is open, its claim says so."""
        return self.until or self.task.expires_at if self.task.expires_at else None

    @property
    def is_over(self) -> bool:
        """Say whether it has ended."""
        return self.state in (State.PUBLISHED, State.DEAD)

    @property
    def is_between_claims(self) -> bool:
        """Say whether an extension may have released it, and nobody has claimed it anew yet."""
        return self.state is State.PENDING and self.reason == Reason.RELEASED


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """A completion in the command log."""

    command_id: str
    actor: str
    at: datetime
    outcome: str
    content: str
    key: str | None


@dataclass(frozen=True, kw_only=True)
class _Written:
    """An answer on its way into the command log."""

    found: _Delivery
    command_id: str
    actor: str
    given: GivenAnswer
    content: str
    arguments: str


class Items:
    """The items of one outbox.

    Args:
        outbox: with `[workflows] modules` in its settings.
        folder: that the modules are found from; if left out, the nearest folder with a
            dbt_project.yml, from the working folder upwards.
        ends_items: whether answering an item ends it too, where no relay is alive. A server tells
            first that the answer is on record, and calls `end_answered` then.
    """

    def __init__(
        self, outbox: Store, *, folder: Path | None = None, ends_items: bool = True
    ) -> None:
        self._outbox = outbox
        self._ends_items = ends_items
        self._folder = folder or project_folder(Path.cwd())
        self._reader = TaskReader(outbox.spark, outbox.tables, clock=outbox.clock)
        self._known: Mapping[Place, TaskEvent] = {}

    @cached_property
    def _decisions(self) -> ItemDecisions:
        settings = self._outbox.settings
        if not settings.workflows.modules:
            raise BadSettings(
                "No module of workflows is named, so nobody can say what an answer means.",
                remedy='Add `[workflows] modules = ["..."]` to outbox.toml.',
            )
        return ItemDecisions(settings.workflows.modules, self._folder, settings.of_third_parties)

    def show(self, task_id: str) -> dict[str, Any]:
        """Return an item: what whoever answers may see, what an answer must look like, what it may
        come to, and what has come of it. Instants are ISO 8601 in UTC.

        Args:
            task_id: the task identifier.

        Raises:
            UnknownItem: there is no such item.
            BadSettings: no module of workflows is named.
        """
        found = self._one(task_id)
        task = self._decisions.task(found.task)
        return {
            "task_id": task_id,
            "workflow": found.task.workflow,
            "instance": found.task.instance,
            "task": found.task.place.task,
            "title": task.business_name(),
            "visit": found.task.place.visit,
            "state": self._state_of(found),
            "outcome": found.outcome,
            "opened_at": iso_text(found.task.created_at),
            "due_at": found.task.due_at and iso_text(found.task.due_at),
            "expires_at": found.expires_at and iso_text(found.expires_at),
            "roles": sorted(task.roles),
            "assigned_to": self.holders([task_id]).get(task_id),
            "read_model": self._decisions.read_model(found.task),
            "outcomes": [str(one) for one in type(task).outcomes()],
            "contract": task.contract.model_json_schema(),
        }

    def waiting(self, *, role: str | None = None, limit: int = MOST_ANSWERS) -> list[WaitingItem]:
        """Return the items that are open, those first that expire first.

        Args:
            role: only those that it may answer.
            limit: items at most.

        Raises:
            BadSettings: no module of workflows is named.
        """
        types = self._decisions.event_types(role)
        if not types:
            return []
        is_open = (
            f"state = '{State.CLAIMED}' and claimed_by = '{TO_DO}' and not ambiguous "
            f"and event_type in ({literals(types)})"
        )
        found = self._items(self._standing(is_open, limit=limit))
        holders = self.holders([*found])
        return [
            WaitingItem.of(one, self._decisions.task(one.task), assigned_to=holders.get(task_id))
            for task_id, one in found.items()
        ]

    def holders(self, task_ids: Sequence[str]) -> dict[str, str]:
        """Return who takes care of items: by identifier, without those that nobody holds. It is
        read from the command log, so an assignment of a moment ago counts.

        Args:
            task_ids: of items.
        """
        if not task_ids:
            return {}
        outbox = self._outbox
        rows = outbox.spark.sql(
            f"select event_id, assigned_to from ({outbox.statements.fill('item_holders')}) "
            f"where event_id in ({literals(task_ids)}) and assigned_to is not null"
        ).collect()
        return {row["event_id"]: row["assigned_to"] for row in rows}

    def assign(
        self,
        instances: Sequence[str] | None = None,
        *,
        to: str | None,
        only_unassigned: bool = False,
        **selected: Unpack[Selection],
    ) -> TasksReport:
        """Say who takes care of open items, or that nobody does any more. It holds as soon as this
        returns, until another assignment comes after it in the command log. To take care of an item
        is a courtesy: whoever else has its role may answer it all the same.

        Args:
            instances: only items of these, by their business keys; any if left out.
            to: the person; None to give the items back.
            only_unassigned: leave alone what somebody else holds, as whoever takes an item wants.
            selected: as `Selection` says; something must say which items are meant.

        Raises:
            WrongUsage: arguments break rules, or nothing says which items are meant.
            UnknownInstance: one that is named does not exist; nothing was written.
            SeveralInstances: a name stands for instances of several workflows.
        """
        given = {"instances": instances, "assignee": to or "", **selected, "only_items": True}
        request = task_request("assign", only_unassigned=only_unassigned, **given)
        return Instances(self._outbox).perform(request)

    def types(self) -> list[ItemType]:
        """Return the types of items, by workflow and task.

        Raises:
            BadSettings: no module of workflows is named.
        """
        return [
            ItemType(
                workflow=workflow,
                task=task.task_name(),
                title=task.business_name(),
                roles=tuple(sorted(task.roles)),
                outcomes=tuple(str(one) for one in type(task).outcomes()),
                contract=task.contract.model_json_schema(),
                has_slow_patterns=has_slow_patterns(task.contract),
                topic=task.topic,
            )
            for workflow, task in self._decisions.to_dos()
        ]

    def correlated(self, workflow: str, task: str, data: Mapping[str, Any]) -> str | None:
        """Return the identifier of the item that an answer is about, as its author says; None if it
        is about none.

        Args:
            workflow: whose.
            task: its name in the workflow.
            data: the answer.

        Raises:
            UnknownItem: there is no such task.
            BadAnswer: the data breaks the contract.
            UndecidedAnswer: the author's code has failed.
        """
        try:
            return self._decisions.correlated(workflow, task, data)
        except NoSuchItem:
            raise UnknownItem(f"There is no To-Do task {workflow}.{task}.") from None

    def complete(
        self,
        task_id: str,
        data: Mapping[str, Any],
        *,
        actor: str,
        reason: str,
        outcome: str | None = None,
    ) -> Completion:
        """Answer an item. The answer is on record when this returns, and is the one that counts;
        where no relay is alive, the item is ended as well.

        Args:
            task_id: the task identifier.
            data: as the contract of the item asks for it.
            actor: who answers, one line.
            reason: why, one line.
            outcome: that is expected; if the answer means another one, nothing is written.

        Raises:
            WrongUsage: actor or reason break a rule.
            UnknownItem: there is no such item.
            BadAnswer: the data breaks the contract, or is about another item.
            UnexpectedOutcome: the answer means another outcome.
            UndecidedAnswer: the author's code has failed.
            SamePerson: somebody else must answer it (`not_by` of its class).
            AnsweredAlready: another answer counts.
            AnsweredTooLate: the item has expired, or was cancelled.
        """
        answer = GivenAnswer(task_id=task_id, data=data, outcome=outcome)
        (done,) = self.complete_many([answer], actor=actor, reason=reason)
        if isinstance(done, OutboxError):
            raise done
        return done

    def complete_many(
        self, answers: Sequence[GivenAnswer], *, actor: str, reason: str
    ) -> list[Completion | OutboxError]:
        """Answer several items, each as `complete` does, with one append: that costs hardly more
        than to answer one.

        Args:
            answers: at most 1,000. Of several to one item the first that may be is written, and
                decides what the others are told.
            actor: who answers where an answer names nobody else, one line.
            reason: why, one line.

        Returns:
            For each answer, in their order, what `complete` would return or raise.

        Raises:
            WrongUsage: an actor or the reason breaks a rule, or there are too many.
        """
        given = Arguments()
        why = given.line("reason", reason, MAX_TEXT)
        actors = [given.line("actor", one.actor or actor, MAX_ACTOR) for one in answers]
        if len(answers) > MOST_ANSWERS:
            given.refuse("answers", f"must be at most {MOST_ANSWERS}", len(answers))
        if given.problems:
            raise WrongUsage(f"todo complete: {'; '.join(dict.fromkeys(given.problems))}.")
        ids = list(dict.fromkeys(one.task_id for one in answers))
        stands = self._found(ids)
        winners = self._winners(stands.values())
        open_ = [one for name, one in stands.items() if name not in winners]
        before = self._answered_before(open_)
        results: dict[int, Completion | OutboxError] = {}
        written: dict[int, _Written] = {}
        for place, (one, who) in enumerate(zip(answers, actors, strict=True)):
            try:
                made = self._made(one, who, stands.get(one.task_id), winners.get(one.task_id))
                if isinstance(made, _Written):
                    another_person(
                        one.task_id,
                        who,
                        not_by=self._decisions.not_by(made.found.task),
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
            self._append([*turn.values()], why)
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
                self._append([*late.values(), *beaten], why)
            if late:
                results |= self._ended(late, late)
        return [results[place] for place in range(len(answers))]

    def end_answered(self) -> bool:
        """End the items whose answers are on record, where no relay is alive to do it; return
        whether any has ended.
        """
        return self._outbox.apply_commands_if_alone() > 0

    def _made(
        self, given: GivenAnswer, actor: str, found: _Delivery | None, winner: _Answer | None
    ) -> Completion | _Written:
        """Return the command that an answer becomes, or the answer that it repeats.

        Raises:
            OutboxError: nothing is to be written.
        """
        task_id = given.task_id
        content = hashlib.sha256(canonical(given.data).encode()).hexdigest()
        if found is None or not self._is_allowed(given, found):
            raise UnknownItem(f"There is no item {task_id!r}.")
        if found.state is State.PENDING and not found.attempts:
            raise UnknownItem(
                f"{task_id} is not open yet.",
                remedy="A relay opens it within seconds; run `outbox relay` if there is none.",
            )
        if winner is not None:
            is_over = found.state is State.PUBLISHED
            try:
                return _repeated(winner, given, content, is_over=is_over)
            except AnsweredAlready:
                if not given.is_message:
                    raise
        decided, its_data = self._decisions.decided(found.task, given.data)
        if given.outcome is not None and given.outcome != decided:
            raise UnexpectedOutcome(
                f"{task_id}: the answer means {decided!r}, and {given.outcome!r} was expected."
            )
        return _Written(
            found=found,
            command_id=uuid.uuid4().hex,
            actor=actor,
            given=given,
            content=content,
            arguments=completion_arguments(decided, its_data, content, given.key),
        )

    def _answered_before(
        self, found: Collection[_Delivery]
    ) -> Mapping[str, Mapping[str, Collection[str]]]:
        """Return who has answered the items that `not_by` of others names: by the key of the
        instance, then by the name of the task. For items without `not_by` nothing is read.
        """
        named = {one.task.key: self._decisions.not_by(one.task) for one in found}
        asked = {key for key, names in named.items() if names}
        if not asked:
            return {}
        types = {task_type(one.task.workflow, it) for one in found for it in named[one.task.key]}
        ended = (
            f"state = '{State.PUBLISHED}' and reason = '{Reason.COMPLETED}' and not ambiguous "
            f"and event_type in ({literals(types)}) and ordering_key in ({literals(asked)})"
        )
        earlier = self._items(self._standing(ended))
        persons: dict[str, dict[str, set[str]]] = {}
        for task_id, answer in self._winners(earlier.values()).items():
            task = earlier[task_id].task
            persons.setdefault(task.key, {}).setdefault(task.place.task, set()).add(answer.actor)
        return persons

    def _is_allowed(self, given: GivenAnswer, found: _Delivery) -> bool:
        if given.allowed is None:
            return True
        return given.allowed(WaitingItem.of(found, self._decisions.task(found.task)))

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
        stands = self._found(ids)
        if any(one.is_between_claims for one in stands.values()):
            self._outbox.apply_commands()
            stands = self._found(ids)
        winners = self._winners(stands.values())
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
            if winner.command_id == ours.command_id:
                results[place] = _counted(winner, task_id, is_over=is_over)
            else:
                try:
                    results[place] = _repeated(winner, ours.given, ours.content, is_over=is_over)
                except AnsweredAlready as error:
                    results[place] = error
        return results

    def _state_of(self, found: _Delivery) -> str:
        if found.is_over:
            return "ended"
        if found.is_held:
            return "answered" if self._winners([found]) else "open"
        return "ending" if found.attempts else "opening"

    def _one(self, task_id: str) -> _Delivery:
        """Return where an item stands.

        Raises:
            UnknownItem: there is none of this identifier.
        """
        found = self._found([task_id]).get(task_id)
        if found is None:
            raise UnknownItem(f"There is no item {task_id!r}.")
        return found

    def _found(self, ids: Sequence[str]) -> dict[str, _Delivery]:
        """Return where items stand, by all that was committed before; what is missing is none."""
        if not ids:
            return {}
        return self._items(self._standing(f"event_id in ({literals(ids)})"))

    def _standing(self, condition: str, *, limit: int | None = None) -> Sequence[Mapping[str, Any]]:
        """Return the deliveries that fulfil a condition, or those of them that expire first."""

        def narrow(everything: DataFrame) -> DataFrame:
            found = everything.where(condition).select(*_STANDING)
            if limit is None:
                return found
            return found.orderBy("lease_expires_at", "created_at", "event_id").limit(limit)

        outbox = self._outbox
        found = outbox.projection.standing(narrow, planned_by=outbox.worker_id)
        rows: Sequence[Mapping[str, Any]] = found.to_pylist()
        return rows

    def _items(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, _Delivery]:
        """Return which of some deliveries are items, in their order."""
        read = self._tasks([(row["event_id"], row["arrival"]) for row in rows])
        found: dict[str, _Delivery] = {}
        for row in rows:
            task = read.get((row["event_id"], row["arrival"]))
            if task is None:
                continue
            try:
                self._decisions.task(task)
            except NoSuchItem:
                continue
            is_held = row["state"] == State.CLAIMED and row["claimed_by"] == TO_DO
            found[task.task_id] = _Delivery(
                task=task,
                arrival=row["arrival"],
                lifecycle=row["lifecycle"],
                state=State(row["state"]),
                is_held=is_held,
                attempts=row["attempts"],
                until=row["lease_expires_at"] if is_held else None,
                reason=row["reason"],
                outcome=row["outcome"],
            )
        return found

    def _tasks(self, places: Sequence[Place]) -> Mapping[Place, TaskEvent]:
        """Return the tasks among events. What a task is never changes."""
        known = self._known if len(self._known) <= MOST_ANSWERS else {}
        read = self._reader.read([place for place in places if place not in known])
        self._known = known = {**known, **read}
        return {place: known[place] for place in places if place in known}

    def _winners(self, found: Collection[_Delivery]) -> dict[str, _Answer]:
        """Return the answers that end items, or have ended them; there may be none (yet)."""
        asked = {one.task.task_id: one for one in found if _may_be_answered(one)}
        if not asked:
            return {}
        rows = self._outbox.spark.sql(
            "select c.command_id, c.kind, c.event_id, c.requested_at, c.arguments, c.actor, "
            f"{deadline_at_its_place('c', 'c.lease')} as deadline from ("
            "select k.*, i.lease from ("
            "select *, _metadata.row_commit_version as _commit_version "
            f"from {self._outbox.tables.commands} where kind in ('{KIND}', '{EXTEND}', 'kill') "
            f"and event_id in ({literals(asked)})) as k "
            f"inner join (values {', '.join(map(_place, asked.values()))}) "
            "as i (event_id, arrival, lifecycle, lease) on k.event_id = i.event_id "
            "and k.arrival = i.arrival and k.lifecycle = i.lifecycle) as c "
            "order by c._commit_version, c.command_id"
        ).toArrow()
        commands: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows.to_pylist():
            commands.setdefault(row["event_id"], []).append(row)
        winners = {name: _winner(asked[name], its) for name, its in commands.items()}
        return {name: one for name, one in winners.items() if one is not None}

    def _append(self, written: Sequence[_Written], reason: str) -> None:
        rows = [
            {
                "command_id": one.command_id,
                "kind": KIND,
                "event_id": one.found.task.task_id,
                "arrival": one.found.arrival,
                "destination": TO_DO,
                "lifecycle": one.found.lifecycle,
                "arguments": one.arguments,
                "actor": one.actor,
                "reason": reason,
            }
            for one in written
        ]
        append_commands(self._outbox, rows)
        for one in written:
            told = {"command_id": one.command_id, "kind": KIND}
            logger.info("command_appended", extra=told)


def orphans(items: Iterable[WaitingItem], roles: Collection[str]) -> list[WaitingItem]:
    """Return the items that nobody can answer, in their order: those none of whose roles anybody
    has.

    Args:
        items: that are open.
        roles: that people and third parties have, by their keys or tokens.
    """
    return [one for one in items if not set(one.roles) & set(roles)]


def _place(found: _Delivery) -> str:
    """Return an item, its arrival and lifecycle, and when its claim ends, as a row of SQL."""
    lease = "cast(null as timestamp)" if found.until is None else instant_literal(found.until)
    task_id = text_literal(found.task.task_id)
    return f"({task_id}, {found.arrival}, {found.lifecycle}, {lease})"


def _may_be_answered(found: _Delivery) -> bool:
    """Say whether an answer may end an item, or may have ended it."""
    if found.state is State.PUBLISHED:
        return found.reason == Reason.COMPLETED
    return found.until is not None


def _winner(found: _Delivery, commands: Iterable[Mapping[str, Any]]) -> _Answer | None:
    """Return the answer that ends an item, or has ended it; None if there is none (yet).

    Args:
        found: where the item stands.
        commands: its completions, extensions and kills, in the order of the log.
    """
    for row in commands:
        if row["kind"] == EXTEND:
            continue
        if row["kind"] != KIND:  # it was killed before anybody answered
            return None
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


def _repeated(winner: _Answer, given: GivenAnswer, content: str, *, is_over: bool) -> Completion:
    """Return the answer that counts, if another one repeats it.

    Raises:
        AnsweredAlready: it does not.
    """
    is_same_key = given.key is not None and given.key == winner.key
    if content != winner.content and not (is_same_key and given.is_message):
        kind = KeyUsedAgain if is_same_key else AnsweredAlready
        raise kind(task_id=given.task_id, outcome=winner.outcome)
    return _counted(winner, given.task_id, is_over=is_over, repeated=True)


def _counted(winner: _Answer, task_id: str, *, is_over: bool, repeated: bool = False) -> Completion:
    return Completion(
        task_id=task_id,
        outcome=winner.outcome,
        command_id=winner.command_id,
        status="done" if is_over else "waiting",
        repeated=repeated,
    )


def _why_over(found: _Delivery, now: datetime) -> str:
    if found.reason == Reason.EXPIRED:
        return f"it has expired, with the outcome {found.outcome!r}"
    is_killed = found.state is State.DEAD or (found.until is not None and found.until > now)
    return "it was cancelled" if is_killed else "it has expired"


def _answer(row: Mapping[str, Any]) -> _Answer | None:
    """Return what a command says; hand-written rows may hold anything."""
    try:
        body = json.loads(row["arguments"] or "{}")
    except ValueError:
        return None
    if not isinstance(body, dict) or not isinstance(body.get("outcome"), str):
        return None
    return _Answer(
        command_id=row["command_id"],
        actor=row["actor"],
        at=row["requested_at"],
        outcome=body["outcome"],
        content=str(body.get("content", "")),
        key=body.get("key"),
    )
