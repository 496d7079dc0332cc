"""Answers questions about workflows, from dbt's views: items, instances, counts.

As operations/inspection.py: refresh first, values are literals of the DataFrame API, instants come
back as ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from delta_outbox.core.reserved_names import RESERVED
from delta_outbox.operations.inspection import instant, rows_of
from delta_outbox.operations.inspection_filter import DEFAULT_LIMIT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_outbox.railway.drawing import Counts
    from delta_outbox.store.store import Store

Rows = list[dict[str, object]]


def items(
    outbox: Store,
    *,
    workflow: str | None = None,
    role: str | None = None,
    ended: bool = False,
    assigned_to: str | None = None,
    unassigned: bool = False,
    answerers: Collection[str] | None = None,
    limit: int = DEFAULT_LIMIT,
) -> tuple[Rows, bool]:
    """Return items, and whether there are more. Open ones come in the order in which they expire,
    ended ones with the last first.

    Args:
        outbox: where to look.
        workflow: only of this one.
        role: only those that it may answer.
        ended: those that have ended, and not those that are open.
        assigned_to: only those that this person takes care of.
        unassigned: only those that nobody takes care of.
        answerers: the roles that anybody has; only those that none of them may answer.
        limit: rows at most.
    """
    from pyspark.sql import functions as F  # noqa: N812

    found = outbox.spark.table(outbox.tables["todo_items"]).where(
        F.col("state") == F.lit("ended" if ended else "open")
    )
    if workflow is not None:
        found = found.where(F.col("workflow") == F.lit(workflow))
    if role is not None:
        found = found.where(F.array_contains(F.split("roles", r"\|"), role))
    if assigned_to is not None:
        found = found.where(F.col("assigned_to") == F.lit(assigned_to))
    if unassigned:
        found = found.where(F.col("assigned_to").isNull())
    for name in answerers or ():
        found = found.where(~F.array_contains(F.split("roles", r"\|"), name))
    first = F.col("ended_at").desc() if ended else F.col("expires_at").asc_nulls_last()
    return _limited(found.orderBy(first, "opened_at", "task_id"), limit)


def _limited(frame: DataFrame, limit: int) -> tuple[Rows, bool]:
    rows = rows_of(frame.limit(limit + 1))
    return rows[:limit], len(rows) > limit


def instances(
    outbox: Store,
    *,
    instances: Sequence[str] = (),
    workflow: str | None = None,
    states: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = DEFAULT_LIMIT,
) -> tuple[Rows, bool]:
    """Return instances, the last that was started first, and whether there are more.

    Args:
        outbox: where to look.
        instances: only these: their business keys, or their keys among those of all workflows.
        workflow: only of this one.
        states: only in these (`workflow_states.STATES`).
        since: started at this instant or later.
        until: started before this instant.
        limit: rows at most.
    """
    from pyspark.sql import functions as F  # noqa: N812

    found = outbox.spark.table(outbox.tables["workflow_instances"])
    if instances:
        names = list(instances)
        found = found.where(F.col("instance").isin(names) | F.col("instance_key").isin(names))
    if workflow is not None:
        found = found.where(F.col("workflow") == F.lit(workflow))
    if states:
        found = found.where(F.col("state").isin(list(states)))
    if since is not None:
        found = found.where(F.col("started_at") >= instant(since))
    if until is not None:
        found = found.where(F.col("started_at") < instant(until))
    order = (F.col("started_at").desc_nulls_last(), "workflow", "instance")
    return _limited(found.orderBy(*order), limit)


def tasks(outbox: Store, instance_key: str) -> Rows:
    """Return the tasks of an instance, in their order.

    Args:
        outbox: where to look.
        instance_key: its key among those of all workflows.
    """
    from pyspark.sql import functions as F  # noqa: N812

    found = outbox.spark.table(outbox.tables["workflow_tasks"])
    its = found.where(F.col("instance_key") == F.lit(instance_key))
    return rows_of(its.orderBy("number"))


def attempts(outbox: Store, instance_key: str) -> Rows:
    """Return the attempts of the tasks of an instance, in their order.

    Args:
        outbox: where to look.
        instance_key: its key among those of all workflows.
    """
    from pyspark.sql import functions as F  # noqa: N812

    found = outbox.spark.table(outbox.tables["task_attempts"])
    its = found.where(F.col("instance_key") == F.lit(instance_key))
    return rows_of(its.orderBy("began_at", "attempt"))


def kills(outbox: Store, task_ids: Sequence[str]) -> Rows:
    """Return the commands that were to end tasks.

    Args:
        outbox: where to look.
        task_ids: of the tasks.
    """
    from pyspark.sql import functions as F  # noqa: N812

    found = outbox.spark.table(outbox.tables.commands)
    its = (F.col("kind") == F.lit("kill")) & F.col("event_id").isin(list(task_ids))
    columns = ("command_id", "event_id", "arguments", "actor", "reason", "requested_at")
    return rows_of(found.where(its).select(*columns).orderBy("requested_at", "command_id"))


def late_answers(outbox: Store, instance_key: str) -> Rows:
    """Return the answers to tasks of an instance that did not count, in the order of their log.

    Args:
        outbox: where to look.
        instance_key: its key among those of all workflows.
    """
    from pyspark.sql import functions as F  # noqa: N812

    found = outbox.spark.table(outbox.tables["late_answers"])
    columns = ("task_id", "task", "title", "answer", "actor", "requested_at", "command_id", "cause")
    its = found.where(F.col("instance_key") == F.lit(instance_key))
    return rows_of(its.orderBy("command_version", "command_id").select(*columns))


def was_purged(outbox: Store, instance: str) -> bool:
    """Say whether an instance has ended, and its end was purged.

    Args:
        outbox: where to look.
        instance: its business key, or its key among those of all workflows.
    """
    from pyspark.sql import functions as F  # noqa: N812

    event_id = F.col("event_id")
    of_key = event_id.startswith(RESERVED) & event_id.endswith(f"/{instance}")
    found = outbox.spark.table(outbox.tables.purged).where(of_key | (event_id == F.lit(instance)))
    return found.first() is not None


def ignored_starts(outbox: Store, instance: str) -> Rows:
    """Return the start events that began nothing, of an instance or of one start event.

    Args:
        outbox: where to look.
        instance: its business key, or the id of the event.
    """
    from pyspark.sql import functions as F  # noqa: N812

    found = outbox.spark.table(outbox.tables["ignored_starts"])
    its = (F.col("instance") == F.lit(instance)) | (F.col("event_id") == F.lit(instance))
    return rows_of(found.where(its).orderBy("ignored_at").limit(DEFAULT_LIMIT))


def flows(outbox: Store) -> dict[str, Counts]:
    """Return what has flowed through each workflow, for its drawing. All of the past is read.

    Args:
        outbox: where to look.
    """
    # It brings all of `railway`, which the other questions do not need.
    from delta_outbox.railway.drawing import Counts

    table = outbox.tables
    started = outbox.spark.sql(
        f"select workflow, count(*) as instances from {table['workflow_instances']} group by all"
    ).collect()
    ended: dict[str, dict[tuple[str, str], int]] = {}
    for row in outbox.spark.sql(
        "select workflow, task, coalesce(outcome, '') as outcome, count(*) as tasks "
        f"from {table['workflow_tasks']} where cause is not null group by all"
    ).collect():
        ended.setdefault(row["workflow"], {})[row["task"], row["outcome"]] = row["tasks"]
    return {
        row["workflow"]: Counts(started=row["instances"], ended=ended.get(row["workflow"], {}))
        for row in started
    }


def workflow_status(outbox: Store) -> dict[str, object]:
    """Return what `outbox status` says of workflows. Nothing of the past is read for it, but for
    what became uncertain in the last day.

    Args:
        outbox: where to look.
    """
    table, now = outbox.tables, outbox.now_literal()
    states = {
        row["state"]: int(row["instances"])
        for row in outbox.spark.sql(
            f"select state, count(*) as instances from {table['workflow_instances']} "
            "where state <> 'ended' group by state"
        ).collect()
    }
    (open_,) = outbox.spark.sql(
        "select count_if(category = 'to_do') as items, "
        f"count_if(expires_at <= {now} + interval 1 hour) as expire "
        f"from {table['workflow_tasks']} where delivery_state in ('PENDING', 'CLAIMED')"
    ).collect()
    (past,) = outbox.spark.sql(
        f"select count(*) as uncertain from {table['uncertain_outcomes']} "
        f"where cause = 'uncertain' and ended_at >= {now} - interval 1 day"
    ).collect()
    (newest,) = outbox.spark.sql(
        f"select max(number) as number from {table.progress} where writer = 'workflows'"
    ).collect()
    return {
        "in_force": newest["number"],
        "open_instances": sum(states.values()),
        "by_state": states,
        "open_items": int(open_["items"]),
        "expire_within_the_hour": int(open_["expire"]),
        "uncertain_in_a_day": int(past["uncertain"]),
    }
