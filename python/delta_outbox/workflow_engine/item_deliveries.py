"""Where items stand, with what their authors have declared, and commands about them."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.core.arrow import is_one_of
from delta_outbox.core.errors import BadSettings, OutboxError
from delta_outbox.core.reserved_names import TO_DO, WORKFLOWS
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.lifecycle.claims import OPEN_UNTIL, open_until
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.operations.command_log import append_commands
from delta_outbox.store.apply_commands import OF_ITEMS
from delta_outbox.workflow_engine.derivation.events import TaskEvent
from delta_outbox.workflow_engine.item_decisions import (
    ItemDecisions,
    NoSuchItem,
    UndecidedAnswer,
)
from delta_outbox.workflow_engine.task_reader import TaskPlace, TaskReader, literals
from delta_outbox.workflow_engine.workflow_plans import WorkflowPlans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_outbox.railway.tasks import ToDo
    from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)

MOST_KEPT: Final = 10_000  # tasks that are kept in memory
# What is read at once of what was committed since; after more, items are asked for anew.
MOST_FOLLOWED: Final = 200  # commits
MOST_READ: Final = 100_000  # rows

_STANDING: Final = (
    *("event_id", "arrival", "lifecycle", "attempts", "created_at", "reason", "outcome"),
    *("changed_at", *OPEN_UNTIL),
)
_FIRST: Final = ("lease_expires_at", "created_at", "event_id")


class UnknownItem(OutboxError):
    """No item has this identifier: it is none yet, or another one."""

    code = "UNKNOWN_ITEM"
    remedy = "Name the task identifier of an item: `outbox todo list`."


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
        found: Delivery,
        task: ToDo[Any, Any, Any, Any],
        *,
        roles: Collection[str],
        assigned_to: str | None = None,
    ) -> WaitingItem:
        """Return an item that is open.

        Args:
            found: where it stands.
            task: as its author has declared it.
            roles: who may answer it.
            assigned_to: who takes care of it.
        """
        return cls(
            task_id=found.task.task_id,
            workflow=found.task.workflow,
            instance=found.task.instance,
            task=found.task.place.task,
            title=task.business_name(),
            visit=found.task.place.visit,
            roles=tuple(sorted(roles)),
            opened_at=found.task.created_at,
            due_at=found.task.due_at,
            expires_at=found.expires_at,
            assigned_to=assigned_to,
        )


class UndecidedItem(UndecidedAnswer):
    """The code that shows an item has failed; who may not see the item must not learn of it."""

    def __init__(self, error: UndecidedAnswer, item: WaitingItem) -> None:
        """Keep what was said, and of which item."""
        super().__init__(str(error), remedy=error.remedy)
        self.item = item


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """Where an item stands.

    Args:
        task: what was opened.
        arrival: position of its event in the log.
        lifecycle: number of its life.
        state: of its delivery.
        attempts: how often it was claimed.
        until: until when somebody may answer it; None if nobody may.
        reason: of its last transition.
        outcome: that it has ended with.
        changed_at: when its last transition happened.
    """

    task: TaskEvent
    arrival: int
    lifecycle: int
    state: State
    attempts: int
    until: datetime | None
    reason: str | None
    outcome: str | None
    changed_at: datetime

    @property
    def expires_at(self) -> datetime | None:
        """Return when it expires, None if never; while it is open, its claim says so."""
        return self.until or self.task.expires_at if self.task.expires_at else None

    @property
    def is_opening(self) -> bool:
        """Say whether nobody has claimed it for people yet."""
        return self.state is State.PENDING and not self.attempts

    @property
    def is_over(self) -> bool:
        """Say whether it has ended."""
        return self.state in (State.PUBLISHED, State.DEAD)

    def is_past(self, now: datetime) -> bool:
        """Say whether no answer counts any more that comes now; maybe nobody has ended it yet.

        Args:
            now: the current instant.
        """
        return self.is_over or (self.until is not None and self.until <= now)

    @property
    def is_between_claims(self) -> bool:
        """Say whether an extension may have released it, and nobody has claimed it anew yet."""
        return self.state is State.PENDING and self.reason == Reason.RELEASED

    def command(self, kind: str, arguments: str, *, actor: str, reason: str) -> dict[str, object]:
        """Return a new command about it, as `append` takes it.

        Args:
            kind: of the command.
            arguments: as JSON.
            actor: who asks, one line.
            reason: why, one line.
        """
        return {
            "command_id": uuid.uuid4().hex,
            "kind": kind,
            "event_id": self.task.task_id,
            "arrival": self.arrival,
            "destination": TO_DO,
            "lifecycle": self.lifecycle,
            "arguments": arguments,
            "actor": actor,
            "reason": reason,
        }


class ItemDeliveries:
    """Where the items of one outbox stand.

    Args:
        outbox: with `[workflows] modules` in its settings.
        folder: that the modules are found from.
    """

    def __init__(self, outbox: Store, folder: Path) -> None:
        self._outbox = outbox
        self._folder = folder
        self._reader = TaskReader(outbox.spark, outbox.tables, clock=outbox.clock)
        self._known: Mapping[TaskPlace, TaskEvent] = {}
        self._log_reader = LogReader(outbox.spark)
        self._plans = WorkflowPlans(
            NumberedWrites(outbox.spark, outbox.tables, writer=WORKFLOWS, clock=outbox.clock)
        )
        # Items that were open, and of which nothing came since.
        self._open: dict[str, Delivery] = {}
        self._versions: Mapping[str, int] = {}  # of the logs, up to which that is known

    @cached_property
    def decisions(self) -> ItemDecisions:
        """Return what the authors of items have declared.

        Raises:
            BadSettings: no module of workflows is named.
        """
        settings = self._outbox.settings
        if not settings.workflows.modules:
            raise BadSettings(
                "No module of workflows is named, so nobody can say what an answer means.",
                remedy='Add `[workflows] modules = ["..."]` to outbox.toml.',
            )
        return ItemDecisions(settings.workflows.modules, self._folder, settings.of_third_parties)

    def found(self, ids: Sequence[str]) -> dict[str, Delivery]:
        """Return where items stand, by all that was committed before; what is missing is none.

        Args:
            ids: task identifiers.
        """
        if not ids:
            return {}
        self._follow()
        known = {task_id: self._open[task_id] for task_id in ids if task_id in self._open}
        unknown = [task_id for task_id in ids if task_id not in known]
        if not unknown:
            return known
        return {**known, **self._asked(f"event_id in ({literals(unknown)})")}

    def where(
        self, condition: str, *, limit: int | None = None, of_each_type: bool = False
    ) -> dict[str, Delivery]:
        """Return the items whose deliveries fulfil a condition.

        Args:
            condition: on their rows, as SQL.
            limit: only so many, those that expire first, in that order.
            of_each_type: so many of each event type.
        """
        self._follow()
        return self._asked(condition, limit, of_each_type=of_each_type)

    def _asked(
        self, condition: str, limit: int | None = None, *, of_each_type: bool = False
    ) -> dict[str, Delivery]:
        found = self._items(self._standing(condition, limit, of_each_type=of_each_type))
        self._open |= {task_id: one for task_id, one in found.items() if not one.is_over}
        return found

    def _follow(self) -> None:
        """Forget of the items that were open those which commits have named since."""
        open_, before = self._open, self._versions
        self._open, self._versions = {}, self._outbox.projection.latest_versions()
        moved = self._moved(before, [*open_]) if 0 < len(open_) <= MOST_KEPT else None
        if moved is not None:
            self._open = {name: one for name, one in open_.items() if name not in moved}

    def _moved(self, before: Mapping[str, int], names: Sequence[str]) -> set[str] | None:
        """Return which items have been named since by what changes where they stand; None if that
        takes longer than to ask anew. To read what some commits have added takes a tenth of the
        second that a read view takes.

        Args:
            before: versions of the logs.
            names: of the items.
        """
        tables, latest = self._outbox.tables, self._versions
        if any(not 0 <= latest[log] - before[log] <= MOST_FOLLOWED for log in before):
            return None
        moved: set[str] = set()
        for log in ("transitions", "commands"):
            if latest[log] == before[log]:
                continue
            columns = ("event_id", "kind") if log == "commands" else ("event_id",)
            rows = self._log_reader.few_added(
                tables[f"outbox_{log}"],
                after=before[log],
                to=latest[log],
                columns=columns,
                most=MOST_READ,
            )
            if rows is None:
                return None
            # An answer changes nothing before it is applied, which is a transition.
            moved |= {
                one["event_id"]
                for one in rows.filter(is_one_of(rows["event_id"], names)).to_pylist()
                if one.get("kind") not in OF_ITEMS
            }
        return moved

    def _standing(
        self, condition: str, limit: int | None, *, of_each_type: bool
    ) -> Sequence[Mapping[str, Any]]:
        def narrow(everything: DataFrame) -> DataFrame:
            found = everything.where(condition)
            if limit is None:
                return found.select(*_STANDING)
            if of_each_type:
                order = f"partition by event_type order by {', '.join(_FIRST)}"
                placed = found.selectExpr("*", f"row_number() over ({order}) as place")
                return placed.where(f"place <= {limit}").select(*_STANDING).orderBy(*_FIRST)
            return found.select(*_STANDING).orderBy(*_FIRST).limit(limit)

        outbox = self._outbox
        found = outbox.projection.standing(narrow, planned_by=outbox.worker_id)
        rows: Sequence[Mapping[str, Any]] = found.to_pylist()
        return rows

    def open_to(
        self, task_id: str, found: Delivery | None, allowed: Callable[[WaitingItem], bool] | None
    ) -> Delivery:
        """Return an item that somebody may do something with, whatever has become of it.

        Args:
            task_id: that was named.
            found: where it stands; None: there is none.
            allowed: says of the item whether it may be; if not, it is as if there were none.

        Raises:
            UnknownItem: there is none, or it is not open yet.
        """
        if found is None or not self._is_allowed(found, allowed):
            raise UnknownItem(f"There is no item {task_id!r}.")
        if found.is_opening:
            raise UnknownItem(
                f"{task_id} is not open yet.",
                remedy="A relay opens it within seconds; run `outbox relay` if there is none.",
            )
        return found

    def _is_allowed(self, found: Delivery, allowed: Callable[[WaitingItem], bool] | None) -> bool:
        return allowed is None or allowed(self.waiting(found))

    def waiting(self, found: Delivery, *, assigned_to: str | None = None) -> WaitingItem:
        """Return an item as those see it who may answer it.

        Args:
            found: where it stands.
            assigned_to: who takes care of it.
        """
        roles = self.roles(found.task)
        task = self.decisions.task(found.task)
        return WaitingItem.of(found, task, roles=roles, assigned_to=assigned_to)

    def roles(self, event: TaskEvent) -> Collection[str]:
        """Return who may answer an item: by the rows of its version, as the views have it.

        Args:
            event: of the item.
        """
        routing = self._plans.routing(event)
        if routing is None:
            return self.decisions.task(event).roles
        return routing.roles(event.place.task)

    def roles_of_types(self) -> Mapping[tuple[str, str], Collection[str]]:
        """Return who may answer items, by workflow and task; some of them, where there are several
        versions.
        """
        return self._plans.roles()

    def knows(self, event: TaskEvent, outcome: str) -> bool:
        """Say whether the version of an item has an outcome; the code may be of another one.

        Args:
            event: of the item.
            outcome: that was decided.
        """
        routing = self._plans.routing(event)
        return routing is None or outcome in routing.outcomes(event.place.task)

    def append(self, commands: Sequence[Mapping[str, object]]) -> None:
        """Append commands about items in one commit.

        Args:
            commands: as `Delivery.command` returns them.
        """
        append_commands(self._outbox, commands)
        for one in commands:
            told = {"command_id": one["command_id"], "kind": one["kind"]}
            logger.info("command_appended", extra=told)

    def _items(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Delivery]:
        """Return which of some deliveries are items, in their order."""
        read = self._tasks([(row["event_id"], row["arrival"]) for row in rows])
        found: dict[str, Delivery] = {}
        for row in rows:
            task = read.get((row["event_id"], row["arrival"]))
            if task is None:
                continue
            try:
                self.decisions.task(task)
            except NoSuchItem:
                continue
            found[task.task_id] = Delivery(
                task=task,
                arrival=row["arrival"],
                lifecycle=row["lifecycle"],
                state=State(row["state"]),
                attempts=row["attempts"],
                until=open_until(row),
                reason=row["reason"],
                outcome=row["outcome"],
                changed_at=row["changed_at"],
            )
        return found

    def _tasks(self, places: Sequence[TaskPlace]) -> Mapping[TaskPlace, TaskEvent]:
        """Return the tasks among events. What a task is never changes."""
        known = self._known if len(self._known) <= MOST_KEPT else {}
        read = self._reader.read([place for place in places if place not in known])
        self._known = known = {**known, **read}
        return {place: known[place] for place in places if place in known}
