"""The delivery policies of tasks: each goes to its third party, or to `todo` if it waits for a
person, in no order, and is never DEAD by itself.

They stand before the rows of `delivery_policies`, because the first row that matches wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from delta_outbox.core.reserved_names import NOBODY, RESERVED, TO_DO
from delta_outbox.lifecycle.policy import DeliveryPolicy
from delta_outbox.lifecycle.policy_columns import Ordering
from delta_outbox.railway.routing import Routing
from delta_outbox.workflow_engine.derivation.events import task_type
from delta_outbox.workflow_engine.derivation.plans import Plan

_LEASE: Final = 60.0  # seconds, of what is not attempted
BESIDE: Final = 60.0  # seconds of a lease that are left beside a look-up and a call
LONGEST_LEASE: Final = 86_400.0  # seconds
MOST_ATTEMPTS: Final = 1_000_000
MOST_CRASHES: Final = 1000


def task_policies(plans: Sequence[Plan]) -> tuple[DeliveryPolicy, ...]:
    """Return the delivery policies of tasks. A task that only former workflows have may still be
    open in an instance that began with them.

    Args:
        plans: all that instances may have started with, the one in force last.
    """
    found: dict[str, DeliveryPolicy] = {}
    for plan in plans:
        for name, version in plan.versions.items():
            for task, row in version.routing.tasks.items():
                to, lease = (
                    (TO_DO, _LEASE)
                    if version.routing.is_to_do(task)
                    else (row["third_party"], _lease(version.routing, row))
                )
                event_type = task_type(name, task)
                found[event_type] = _policy(event_type, to, lease)
    return (*map(found.__getitem__, sorted(found)), _policy(f"{RESERVED}*", NOBODY, _LEASE))


def _lease(routing: Routing, row: dict[str, str]) -> float:
    needed = 2 * float(row["time_limit_seconds"]) + BESIDE
    return min(max(float(routing.row["lease_seconds"]), needed), LONGEST_LEASE)


def _policy(event_type: str, destination: str, lease: float) -> DeliveryPolicy:
    return DeliveryPolicy(
        event_type=event_type,
        destinations=(destination,),
        ordering=Ordering.NONE,
        max_attempts=MOST_ATTEMPTS,
        max_crashes=MOST_CRASHES,
        lease_seconds=lease,
    )
