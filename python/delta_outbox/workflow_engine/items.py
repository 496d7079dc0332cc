"""To-Do items: who answers one gives data, and the code of its author decides what that means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from delta_outbox.core.errors import OutboxError
from delta_outbox.core.instants import iso_text
from delta_outbox.core.literals import instant_literal
from delta_outbox.lifecycle.claims import OPEN_ITEM
from delta_outbox.railway.modules import project_folder
from delta_outbox.workflow_engine.instances import Instances, TasksReport
from delta_outbox.workflow_engine.item_answers import (
    MOST_ANSWERS,
    Answers,
    Completion,
    GivenAnswer,
    winner,
)
from delta_outbox.workflow_engine.item_decisions import (
    NoSuchItem,
    UndecidedAnswer,
    has_slow_patterns,
)
from delta_outbox.workflow_engine.item_deliveries import (
    Delivery,
    ItemDeliveries,
    UndecidedItem,
    UnknownItem,
    WaitingItem,
)
from delta_outbox.workflow_engine.item_history import COMMANDS, history
from delta_outbox.workflow_engine.item_holds import HoldRequest, Holds
from delta_outbox.workflow_engine.task_reader import literals
from delta_outbox.workflow_engine.task_requests import Selection, task_request

if TYPE_CHECKING:
    from delta_outbox.store.store import Store


@dataclass(frozen=True, kw_only=True)
class ItemType:
    """A To-Do task of a workflow, of which there may be many items.

    Args:
        workflow: its name.
        task: its name in the workflow.
        title: its name for people.
        roles: who may answer them; of several versions, any of them.
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
        self._deliveries = ItemDeliveries(outbox, folder or project_folder(Path.cwd()))
        self._answers = Answers(outbox, self._deliveries, ends_items=ends_items)
        self._holds = Holds(outbox, self._deliveries, self._answers)

    def show(self, task_id: str) -> dict[str, Any]:
        """Return an item: what whoever answers may see, what an answer must look like, what it may
        come to, what has happened to it (see `Happening`), and what has come of it. Instants are
        ISO 8601 in UTC.

        Args:
            task_id: the task identifier.

        Raises:
            UnknownItem: there is no such item.
            BadSettings: no module of workflows is named.
        """
        (found,) = self.show_many([task_id])
        if isinstance(found, OutboxError):
            raise found
        return found

    def show_many(self, task_ids: Sequence[str]) -> list[dict[str, Any] | OutboxError]:
        """Return several items as `show` does; that takes hardly longer than one.

        Args:
            task_ids: task identifiers.

        Returns:
            For each, in their order, what `show` would return or raise.

        Raises:
            BadSettings: no module of workflows is named.
        """
        stands = self._deliveries.found(task_ids)
        commands = self._answers.commands(stands.values(), COMMANDS)
        holders = self._holds.holders(stands.values())
        shown: list[dict[str, Any] | OutboxError] = []
        for task_id in task_ids:
            found = stands.get(task_id)
            if found is None:
                shown.append(UnknownItem(f"There is no item {task_id!r}."))
                continue
            its, holder = commands.get(task_id, []), holders.get(task_id)
            try:
                shown.append(self._shown(found, its, assigned_to=holder))
            except UndecidedAnswer as error:
                item = self._deliveries.waiting(found, assigned_to=holder)
                shown.append(UndecidedItem(error, item))
        return shown

    def _shown(
        self, found: Delivery, commands: Sequence[Mapping[str, Any]], *, assigned_to: str | None
    ) -> dict[str, Any]:
        task = self._deliveries.decisions.task(found.task)
        answer = winner(found, commands)
        return {
            "task_id": found.task.task_id,
            "workflow": found.task.workflow,
            "instance": found.task.instance,
            "task": found.task.place.task,
            "title": task.business_name(),
            "visit": found.task.place.visit,
            "state": _state_of(found, is_answered=answer is not None, now=self._outbox.clock.now()),
            "outcome": found.outcome,
            "opened_at": iso_text(found.task.created_at),
            "due_at": found.task.due_at and iso_text(found.task.due_at),
            "expires_at": found.expires_at and iso_text(found.expires_at),
            "roles": sorted(self._deliveries.roles(found.task)),
            "assigned_to": assigned_to,
            "history": [asdict(one) for one in history(found, commands, answer)],
            "read_model": self._deliveries.decisions.read_model(found.task),
            "outcomes": [str(one) for one in type(task).outcomes()],
            "contract": task.contract.model_json_schema(),
        }

    def waiting(
        self,
        *,
        role: str | None = None,
        limit: int = MOST_ANSWERS,
        of_each_task: bool = False,
    ) -> list[WaitingItem]:
        """Return the items that are open, those first that expire first.

        Args:
            role: only those that it may answer, of the first `limit` of each task.
            limit: items at most.
            of_each_task: so many of each task, and not of all together; without a role only.

        Raises:
            BadSettings: no module of workflows is named.
        """
        types = self._deliveries.decisions.event_types()
        if not types:
            return []
        is_open = (
            f"{OPEN_ITEM} and lease_expires_at > {instant_literal(self._outbox.clock.now())} "
            f"and not ambiguous and event_type in ({literals(types)})"
        )
        # Roles stand in the rows of each item's version, not in the logs.
        of_each_task = of_each_task or role is not None
        found = self._deliveries.where(is_open, limit=limit, of_each_type=of_each_task)
        holders = self._holds.holders(found.values())
        waiting = [
            self._deliveries.waiting(one, assigned_to=holders.get(task_id))
            for task_id, one in found.items()
        ]
        if role is None:
            return waiting
        return [one for one in waiting if role in one.roles][:limit]

    def holders(self, task_ids: Sequence[str]) -> dict[str, str]:
        """Return who takes care of items: by identifier, without those that nobody holds. It is
        read from the command log, so an assignment of a moment ago counts.

        Args:
            task_ids: of items.
        """
        return self._holds.holders(self._deliveries.found(task_ids).values())

    def hold_many(
        self, requests: Sequence[HoldRequest], *, reason: str
    ) -> list[str | OutboxError | None]:
        """Let people take items that they look at, and give them back, with one append. Who takes
        an item leaves alone what somebody else holds. `assign` selects items, and hands them on.

        Args:
            requests: of several about one item each is judged by what came of the one before.
            reason: why, one line.

        Returns:
            For each request, in their order, who holds the item then, None for nobody; or its
            error: `UnknownItem`, `NotOpen` or `HeldByAnother`, of which nothing was written, or
            `HeldByAnother` if somebody has taken the item in the same moment and holds it now.

        Raises:
            WrongUsage: a person or the reason breaks a rule.
        """
        return self._holds.change(requests, reason=reason)

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
        roles = self._deliveries.roles_of_types()
        return [
            ItemType(
                workflow=workflow,
                task=task.task_name(),
                title=task.business_name(),
                roles=tuple(sorted({*task.roles, *roles.get((workflow, task.task_name()), ())})),
                outcomes=tuple(str(one) for one in type(task).outcomes()),
                contract=task.contract.model_json_schema(),
                has_slow_patterns=has_slow_patterns(task.contract),
                topic=task.topic,
            )
            for workflow, task in self._deliveries.decisions.to_dos()
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
            return self._deliveries.decisions.correlated(workflow, task, data)
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
        return self._answers.give(answers, actor=actor, reason=reason)

    def warm_up(self) -> None:
        """Ask once what an answer asks, so that the first one does not wait until Spark has loaded
        and compiled what that takes.
        """
        waiting = self.waiting(limit=1)
        self._answers.winners(self._deliveries.found([one.task_id for one in waiting]).values())
        self._deliveries.where("event_id in ('')")  # as one is looked for that is not remembered
        self._holds.warm_up()

    def end_answered(self) -> bool:
        """End the items whose answers are on record, where no relay is alive to do it; return
        whether any has ended.
        """
        return self._answers.end_answered()


def _state_of(found: Delivery, *, is_answered: bool, now: datetime) -> str:
    if found.is_over:
        return "ended"
    if found.until is None:
        return "ending" if found.attempts else "opening"
    if is_answered:
        return "answered"
    return "ending" if found.is_past(now) else "open"
