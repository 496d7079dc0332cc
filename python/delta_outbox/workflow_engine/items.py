"""To-Do items: who answers one gives data, and the code of its author decides what that means.

An answer is a command. Of several for one item the first in the command log counts, so who answers
learns at once whether it was this one, whoever applies it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from delta_outbox.core.errors import BadSettings, OutboxError, WrongUsage
from delta_outbox.core.instants import iso_text
from delta_outbox.core.literals import instant_literal, text_literal
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.operations.argument_rules import MAX_ACTOR, MAX_TEXT, Arguments
from delta_outbox.operations.command_log import append_command
from delta_outbox.railway.modules import project_folder
from delta_outbox.store.completions import KIND, completion_arguments
from delta_outbox.store.extensions import KIND as EXTEND
from delta_outbox.store.extensions import deadline_at_its_place
from delta_outbox.workflow_engine.derivation.events import TaskEvent
from delta_outbox.workflow_engine.item_decisions import (
    ItemDecisions,
    NoSuchItem,
    canonical,
)
from delta_outbox.workflow_engine.task_reader import TaskReader

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)

_VIEW: Final = "outbox_completion"
_ROW: Final = pa.schema(
    [
        ("command_id", pa.string()),
        ("kind", pa.string()),
        ("event_id", pa.string()),
        ("arrival", pa.int64()),
        ("destination", pa.string()),
        ("lifecycle", pa.int32()),
        ("arguments", pa.string()),
        ("actor", pa.string()),
        ("reason", pa.string()),
    ]
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
    def is_between_claims(self) -> bool:
        """Say whether an extension may have released it, and nobody has claimed it anew yet."""
        return self.state is State.PENDING and self.reason == Reason.RELEASED


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """A completion in the command log."""

    command_id: str
    at: datetime
    outcome: str
    content: str


class Items:
    """The items of one outbox.

    Args:
        outbox: with `[workflows] modules` in its settings.
        folder: that the modules are found from; if left out, the nearest folder with a
            dbt_project.yml, from the working folder upwards.
    """

    def __init__(self, outbox: Store, *, folder: Path | None = None) -> None:
        self._outbox = outbox
        self._folder = folder or project_folder(Path.cwd())
        self._reader = TaskReader(outbox.spark, outbox.tables, clock=outbox.clock)

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
        found = self._found(task_id)
        task = self._decisions.task(found.task)
        return {
            "task_id": task_id,
            "workflow": found.task.workflow,
            "instance": found.task.instance,
            "task": found.task.place.task,
            "visit": found.task.place.visit,
            "state": self._state_of(found),
            "outcome": found.outcome,
            "opened_at": iso_text(found.task.created_at),
            "due_at": found.task.due_at and iso_text(found.task.due_at),
            "expires_at": found.expires_at and iso_text(found.expires_at),
            "roles": sorted(task.roles),
            "read_model": self._decisions.read_model(found.task),
            "outcomes": [str(one) for one in type(task).outcomes()],
            "contract": task.contract.model_json_schema(),
        }

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
            AnsweredAlready: another answer counts.
            AnsweredTooLate: the item has expired, or was cancelled.
        """
        given = Arguments()
        who = given.line("actor", actor, MAX_ACTOR), given.line("reason", reason, MAX_TEXT)
        if given.problems:
            raise WrongUsage(f"todo complete: {'; '.join(given.problems)}.")
        content = hashlib.sha256(canonical(data).encode()).hexdigest()
        found = self._found(task_id)
        if found.state is State.PENDING and not found.attempts:
            raise UnknownItem(
                f"{task_id} is not open yet.",
                remedy="A relay opens it within seconds; run `outbox relay` if there is none.",
            )
        winner = self._winner(found)
        if winner is not None:
            return self._repeated(found, winner, content)
        decided, its_data = self._decisions.decided(found.task, data)
        if outcome is not None and outcome != decided:
            raise UnexpectedOutcome(
                f"{task_id}: the answer means {decided!r}, and {outcome!r} was expected."
            )
        arguments = completion_arguments(decided, its_data, content)
        command_id = uuid.uuid4().hex
        self._append(found, arguments, command_id, *who)
        if found.until is not None and self._outbox.clock.now() >= found.until:
            # Somebody may be ending it as expired: whoever is first in the log of transitions.
            self._outbox.apply_commands()
        found = self._found(task_id)
        if found.is_between_claims:
            self._outbox.apply_commands()
            found = self._found(task_id)
        winner = self._winner(found)
        if winner is None:
            why = _why_over(found, self._outbox.clock.now())
            raise AnsweredTooLate(f"{task_id} is over: {why}.")
        if winner.command_id != command_id:
            return self._repeated(found, winner, content)
        is_over = self._outbox.apply_commands_if_alone() > 0 or found.state is State.PUBLISHED
        return _counted(winner, task_id, is_over=is_over)

    def _repeated(self, found: _Delivery, winner: _Answer, content: str) -> Completion:
        task_id = found.task.task_id
        if winner.content != content:
            raise AnsweredAlready(
                f"{task_id}: somebody was faster, with the outcome {winner.outcome!r}."
            )
        return _counted(winner, task_id, is_over=found.state is State.PUBLISHED, repeated=True)

    def _state_of(self, found: _Delivery) -> str:
        if found.state in (State.PUBLISHED, State.DEAD):
            return "ended"
        if found.is_held:
            return "answered" if self._winner(found) else "open"
        return "ending" if found.attempts else "opening"

    def _found(self, task_id: str) -> _Delivery:
        """Return where an item stands, by all that was committed before.

        Raises:
            UnknownItem: there is none of this identifier.
        """
        outbox = self._outbox
        outbox.refresh(planned_by=outbox.worker_id)
        rows = (
            outbox.spark.sql(
                "select arrival, lifecycle, state, claimed_by, attempts, lease_expires_at, reason, "
                f"outcome from {outbox.tables.state} where event_id = {text_literal(task_id)}"
            )
            .toArrow()
            .to_pylist()
        )
        read = self._reader.read([(task_id, row["arrival"]) for row in rows])
        for row in rows:
            task = read.get((task_id, row["arrival"]))
            if task is None:
                continue
            try:
                self._decisions.task(task)
            except NoSuchItem:
                continue
            is_held = row["state"] == State.CLAIMED and row["claimed_by"] == TO_DO
            return _Delivery(
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
        raise UnknownItem(f"There is no item {task_id!r}.")

    def _winner(self, found: _Delivery) -> _Answer | None:
        """Return the answer that ends an item, or has ended it; None if there is none (yet)."""
        if found.state is State.PUBLISHED and found.reason != Reason.COMPLETED:
            return None
        if found.state is not State.PUBLISHED and found.until is None:
            return None
        commands = self._outbox.tables.commands
        rows = self._outbox.spark.sql(
            "select c.command_id, c.kind, c.requested_at, c.arguments, c._commit_version, "
            f"{deadline_at_its_place('c', 'c.lease')} as deadline from ("
            "select *, _metadata.row_commit_version as _commit_version, "
            f"{'null' if found.until is None else instant_literal(found.until)} as lease "
            f"from {commands} where kind in ('{KIND}', '{EXTEND}', 'kill') "
            f"and event_id = {text_literal(found.task.task_id)} "
            f"and arrival = {found.arrival} and lifecycle = {found.lifecycle}) as c "
            f"order by c._commit_version, c.command_id"
        ).toArrow()
        for row in rows.to_pylist():
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

    def _append(
        self, found: _Delivery, arguments: str, command_id: str, actor: str, reason: str
    ) -> None:
        outbox = self._outbox
        row = {
            "command_id": command_id,
            "kind": KIND,
            "event_id": found.task.task_id,
            "arrival": found.arrival,
            "destination": TO_DO,
            "lifecycle": found.lifecycle,
            "arguments": arguments,
            "actor": actor,
            "reason": reason,
        }
        rows = pa.Table.from_pylist([row], schema=_ROW)
        outbox.spark.createDataFrame(rows).createOrReplaceTempView(_VIEW)
        columns = ", ".join(_ROW.names)
        append_command(
            outbox,
            f"insert into {outbox.tables.commands} ({columns}, requested_at) "
            f"select {columns}, {outbox.now_literal()} from {_VIEW}",
        )
        logger.info("command_appended", extra={"command_id": command_id, "kind": KIND})


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
        at=row["requested_at"],
        outcome=body["outcome"],
        content=str(body.get("content", "")),
    )
