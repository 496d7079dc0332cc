"""To-Do items: who answers one gives data, and the code of its author decides what that means."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pydantic import ValidationError

from delta_outbox.core.errors import OutboxError, WrongUsage
from delta_outbox.core.literals import text_literal
from delta_outbox.core.redaction import describe
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.lifecycle.states import State
from delta_outbox.operations.argument_rules import MAX_ACTOR, MAX_TEXT, Arguments
from delta_outbox.operations.command_log import append_command
from delta_outbox.railway.author_decisions import DECISION_LIMIT, within
from delta_outbox.railway.modules import load
from delta_outbox.railway.outcomes import Decided
from delta_outbox.railway.providers import tasks_of
from delta_outbox.railway.tasks import ToDo
from delta_outbox.railway.triggers import Item, Trigger
from delta_outbox.store.completions import KIND, completion_arguments
from delta_outbox.workflow_engine.derivation.events import TaskEvent
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
    remedy = "Name the task identifier of an open item."


class ItemClosed(OutboxError):
    """The item has an outcome, or has expired: an answer changes nothing any more."""

    code = "ITEM_CLOSED"
    remedy = "Nothing is to be done; `outbox show` says what has become of it."


class BadAnswer(OutboxError):
    """The data is not what the contract of the item asks for; nothing was written."""

    code = "BAD_ANSWER"
    remedy = "Give the data as the contract of the item has it."


class UndecidedAnswer(OutboxError):
    """The code that decides about answers has failed; the item stays open."""

    code = "UNDECIDED_ANSWER"
    remedy = "Mend `decide` or `correlate` of the task."


@dataclass(frozen=True, kw_only=True)
class Completion:
    """An answer that is on record.

    Args:
        command_id: of the command.
        outcome: that was decided.
    """

    command_id: str
    outcome: str


@dataclass(frozen=True, kw_only=True)
class _Open:
    arrival: int
    lifecycle: int
    until: datetime
    task: TaskEvent


class Items:
    """The items of one outbox.

    Args:
        outbox: the store.
        modules: that hold the workflows.
        folder: that they are found from.
    """

    def __init__(self, outbox: Store, *, modules: Sequence[str], folder: Path) -> None:
        self._outbox = outbox
        self._workflows = {one.name: one for one in load(modules, folder)}
        self._tasks = tasks_of(modules, outbox.settings.of_third_parties)
        self._reader = TaskReader(outbox.spark, outbox.tables, clock=outbox.clock)

    def complete(
        self, task_id: str, data: Mapping[str, Any], *, actor: str, reason: str
    ) -> Completion:
        """Answer an open item. The command is on record when this returns; where no relay is alive
        it is applied as well.

        Args:
            task_id: the task identifier.
            data: as the contract of the item asks for it.
            actor: who answers, one line.
            reason: why, one line.

        Raises:
            WrongUsage: actor or reason break a rule.
            UnknownItem: there is no such item.
            ItemClosed: it is over.
            BadAnswer: the data breaks the contract, or is about another item.
            UndecidedAnswer: the author's code has failed.
        """
        given = Arguments()
        who = given.line("actor", actor, MAX_ACTOR), given.line("reason", reason, MAX_TEXT)
        if given.problems:
            raise WrongUsage(f"complete: {'; '.join(given.problems)}.")
        found = self._open(task_id)
        decided = self._decided(found.task, data)
        if found.until < self._outbox.clock.now():  # while the author's code decided
            raise ItemClosed(f"{task_id} has expired.")
        command_id = uuid.uuid4().hex
        self._append(task_id, found, decided, command_id, *who)
        self._outbox.apply_commands_if_alone()
        return Completion(command_id=command_id, outcome=str(decided.outcome))

    def _open(self, task_id: str) -> _Open:
        outbox = self._outbox
        outbox.refresh(planned_by=outbox.worker_id)
        rows = outbox.spark.sql(
            "select arrival, lifecycle, state, claimed_by, lease_expires_at, outcome "
            f"from {outbox.tables.state} where event_id = {text_literal(task_id)}"
        ).toArrow()
        read = self._reader.read([(task_id, row["arrival"]) for row in rows.to_pylist()])
        for row in rows.to_pylist():
            task = read.get((task_id, row["arrival"]))
            if task is None or not self._is_item(task):
                continue
            if row["state"] != State.CLAIMED or row["claimed_by"] != TO_DO:
                if row["state"] == State.PENDING:
                    raise UnknownItem(f"{task_id} is not open yet.", remedy="Ask again.")
                raise ItemClosed(f"{task_id} is over, with the outcome {row['outcome']}.")
            if row["lease_expires_at"] < outbox.clock.now():
                raise ItemClosed(f"{task_id} has expired.")
            return _Open(
                arrival=row["arrival"],
                lifecycle=row["lifecycle"],
                until=row["lease_expires_at"],
                task=task,
            )
        raise UnknownItem(f"There is no item {task_id!r}.")

    def _is_item(self, task: TaskEvent) -> bool:
        workflow = self._workflows.get(task.workflow)
        named = {one.task_name(): one for one in workflow.tasks} if workflow else {}
        return issubclass(named.get(task.place.task, object), ToDo)

    def _decided(self, event: TaskEvent, data: Mapping[str, Any]) -> Decided[Any]:
        workflow = self._workflows[event.workflow]
        kind = next(one for one in workflow.tasks if one.task_name() == event.place.task)
        task: Any = self._tasks[kind]
        try:
            answer = task.contract.model_validate(data)
        except ValidationError as error:
            raise BadAnswer(f"{event.task_id}: {_problems(error)}.") from None
        trigger: Trigger[Any] = Trigger(
            instance=event.instance,
            start=workflow.parse(event.origin.payload),
            visit=event.place.visit,
            facts=event.place.facts,
        )

        def ask(function: str, *arguments: Any) -> Any:
            try:
                return within(DECISION_LIMIT, lambda: getattr(task, function)(*arguments))
            except Exception as error:
                logger.warning("item_undecided", extra={"error": describe(error)})
                raise UndecidedAnswer(
                    f"{event.task_id}: {type(error).__name__} in {kind.__name__}.{function}."
                ) from error

        if ask("correlate", answer) != event.task_id:
            raise BadAnswer(f"{event.task_id}: the data is about another item.")
        item: Item[Any] = Item(
            task_id=event.task_id,
            read_model=ask("read_model", trigger),
            due_at=event.due_at,
            expires_at=event.expires_at,
        )
        decided = ask("decide", item, answer)
        if not isinstance(decided, Decided) or not isinstance(decided.outcome, kind.outcomes()):
            raise UndecidedAnswer(f"{event.task_id}: {kind.__name__} has decided what it cannot.")
        return decided

    def _append(
        self,
        task_id: str,
        found: _Open,
        decided: Decided[Any],
        command_id: str,
        actor: str,
        reason: str,
    ) -> None:
        outbox = self._outbox
        row = {
            "command_id": command_id,
            "kind": KIND,
            "event_id": task_id,
            "arrival": found.arrival,
            "destination": TO_DO,
            "lifecycle": found.lifecycle,
            "arguments": completion_arguments(str(decided.outcome), dict(decided.data)),
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


def _problems(error: ValidationError) -> str:
    """Return what is wrong, without what was given."""
    return "; ".join(
        f"/{'/'.join(map(str, one['loc']))}: {one['type'].replace('_', ' ')}"
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    )
