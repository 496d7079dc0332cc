"""Names order scopes, within which events are sent in arrival order and wait for each other, and
the destinations of each delivery.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.reserved_names import RESERVED
from delta_outbox.lifecycle.claim_policies import ClaimPolicies
from delta_outbox.lifecycle.policy import UNSERVED, DeliveryPolicy, PolicySet
from delta_outbox.lifecycle.policy_columns import Ordering, OrderScope


# twin: macros/eligibility/deliveries_in_scopes.sql::deliveries_in_scopes
def scope_of(policy: DeliveryPolicy, *, ordering_key: str | None, destination: str) -> str | None:
    """Return the order scope of a delivery, None if it neither waits nor blocks.

    Args:
        policy: the policy of the event.
        ordering_key: as the event carries it.
        destination: of the delivery, empty before its first claim.
    """
    if policy.ordering is not Ordering.STRICT or ordering_key is None:
        return None
    return f"{within(policy, destination)}\x00{ordering_key}"


def scopes_of(deliveries: pa.Table, policies: PolicySet) -> pa.StringArray:
    """Return the order scope of each delivery, by whole columns.

    Args:
        deliveries: columns event_type, ordering_key and destination.
        policies: the delivery policies in force.
    """
    kinds = pa.table(
        {
            "event_type": deliveries["event_type"],
            "destination": deliveries["destination"],
        }
    )
    known = kinds.group_by(["event_type", "destination"]).aggregate([]).to_pylist()
    limits = {}
    for row in known:
        policy = policies.match(row["event_type"])
        if policy.ordering is Ordering.STRICT:
            limits[f"{row['event_type']}\x00{row['destination']}"] = within(
                policy, row["destination"]
            )
    joined = pc.binary_join_element_wise(
        deliveries["event_type"], deliveries["destination"], "\x00"
    )
    place = pc.index_in(joined, value_set=pa.array(list(limits), pa.string()))
    prefix = pc.take(pa.array(list(limits.values()), pa.string()), place)
    scopes = pc.binary_join_element_wise(prefix, deliveries["ordering_key"], "\x00")
    return scopes.combine_chunks() if isinstance(scopes, pa.ChunkedArray) else scopes


def goes_to(deliveries: pa.Table, kinds: ClaimPolicies) -> pa.StringArray:
    """Return the destinations of each delivery, joined by `|` where its event was never claimed.

    A delivery keeps the destination of its first claim. But a task goes where its workflow says:
    its third party may have another name by now.

    Args:
        deliveries: column destination, empty before the first claim.
        kinds: the policy of each.
    """
    by_policy = kinds.column(lambda policy: "|".join(policy.destinations), pa.string())
    claimed_for = deliveries["destination"]
    of_tasks = kinds.column(_is_for_tasks, pa.bool_())
    is_open = pc.or_(pc.equal(claimed_for, ""), of_tasks)
    goes = pc.if_else(is_open, by_policy, claimed_for)
    return goes.combine_chunks() if isinstance(goes, pa.ChunkedArray) else goes


def _is_for_tasks(policy: DeliveryPolicy) -> bool:
    return policy.event_type.startswith(RESERVED) and policy is not UNSERVED


def within(policy: DeliveryPolicy, destination: str) -> str:
    """Return what limits a strict scope besides the key; nothing if it spans all destinations.

    Args:
        policy: the policy of the event, of a `PolicySet`.
        destination: of the delivery, empty before its first claim.
    """
    if policy.order_scope is OrderScope.KEY:
        return ""
    name = destination or policy.destinations[0]
    return policy.together.get(name, name)
