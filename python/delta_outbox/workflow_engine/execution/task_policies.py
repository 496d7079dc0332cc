"""The delivery policies of tasks: each goes to its third party, or to `todo` if it waits for a
person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.lifecycle.policy import UNSERVED, DeliveryPolicy, task_policy
from delta_outbox.railway.routing import Routing
from delta_outbox.railway.rows import Row
from delta_outbox.workflow_engine.derivation.events import task_type
from delta_outbox.workflow_engine.derivation.plans import Plan

BESIDE: Final = 60.0  # seconds of a lease that are left beside a look-up and a call
LONGEST_LEASE: Final = 86_400.0  # seconds


def task_policies(plans: Sequence[Plan]) -> tuple[DeliveryPolicy, ...]:
    """Return the delivery policies of tasks. A task that only former workflows have may still be
    open in an instance that began with them; and one that has another time limit by now keeps to
    the limit that its instance began with, so its lease is the longest of these.

    Args:
        plans: the last ones, the one in force last. Where an instance began with an earlier one
            whose limit is longer, its first claim shows that (`with_lease`).
    """
    found: dict[str, DeliveryPolicy] = {}
    for plan in plans:
        for name, version in plan.versions.items():
            for task in version.routing.tasks:
                event_type = task_type(name, task)
                policy = _policy(version.routing, event_type, task)
                former = found.get(event_type, policy)
                if not version.routing.is_to_do(task):
                    lease = max(former.lease_seconds, policy.lease_seconds)
                    policy = replace(policy, lease_seconds=lease)
                found[event_type] = policy
    return tuple(map(found.__getitem__, sorted(found)))


def _policy(routing: Routing, event_type: str, task: str) -> DeliveryPolicy:
    if routing.is_to_do(task):
        return task_policy(event_type, TO_DO, lease_seconds=UNSERVED.lease_seconds)
    row = routing.tasks[task]
    lease = min(max(float(routing.row["lease_seconds"]), lease_needed(row)), LONGEST_LEASE)
    return task_policy(event_type, row["third_party"], lease_seconds=lease)


def lease_needed(row: Row) -> float:
    """Return the seconds that a claim must last for an attempt of a task.

    Args:
        row: of the task, which has a time limit.
    """
    return min(2 * float(row["time_limit_seconds"]) + BESIDE, LONGEST_LEASE)


def with_lease(
    policies: Sequence[DeliveryPolicy], event_type: str, seconds: float
) -> tuple[DeliveryPolicy, ...]:
    """Return delivery policies by which claims of a task last at least so long.

    Args:
        policies: of tasks.
        event_type: of the task.
        seconds: of its lease.
    """
    return tuple(
        replace(one, lease_seconds=max(one.lease_seconds, seconds))
        if one.event_type == event_type
        else one
        for one in policies
    )
