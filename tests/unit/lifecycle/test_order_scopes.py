"""Which deliveries wait for each other."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.lifecycle import order_scopes
from delta_outbox.lifecycle.claim_policies import ClaimPolicies
from delta_outbox.lifecycle.order_scopes import scope_of
from delta_outbox.lifecycle.policy import DeliveryPolicy, PolicySet

NAMES = ("a", "b", "c")
DESTINATIONS = st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map("|".join)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "destination": DESTINATIONS,
            "ordering": st.sampled_from(["strict", "none"]),
            "order_scope": st.sampled_from(["key", "destination"]),
        }
    ),
    min_size=1,
    max_size=4,
)


def goes_to(policy: DeliveryPolicy, destination: str) -> set[str]:
    """Return where a delivery goes, as `held_by_order` says it."""
    return {destination} if destination else set(policy.destinations)


@given(rows=ROWS, data=st.data())
def test_what_blocks_each_other_is_of_one_scope(rows: list[dict[str, str]], data: st.DataObject):
    """Deliveries of one key that share a destination, under whichever policies, are of one order
    scope; whether the order is kept over all destinations or within each is never mixed.
    """
    types = [f"t{number}" for number in range(len(rows))]
    policies = PolicySet.parse(
        [
            *({"event_type": name} | row for name, row in zip(types, rows, strict=True)),
            {"event_type": "*"},
        ]
    )
    delivery = st.tuples(st.sampled_from(types), st.sampled_from(("", *NAMES)))
    (one, at), (other, there) = data.draw(delivery), data.draw(delivery)
    first, second = policies.match(one), policies.match(other)
    scopes = (
        scope_of(first, ordering_key="k", destination=at),
        scope_of(second, ordering_key="k", destination=there),
    )
    for policy, scope in zip((first, second), scopes, strict=True):
        assert (scope is None) == (policy.ordering == "none")
    if None in scopes:
        return
    if first.order_scope != second.order_scope:
        assert scopes[0] != scopes[1]
    elif first.order_scope == "key" or goes_to(first, at) & goes_to(second, there):
        assert scopes[0] == scopes[1]


def test_a_task_goes_where_its_workflow_says() -> None:
    """An event keeps the destination of its first claim, and a task does not: its third party may
    have another name by now.
    """
    rows = PolicySet.parse([{"event_type": "*", "destination": "b"}])
    task = DeliveryPolicy(event_type="workflow:shop/pay", destinations=("new_bank",))
    deliveries = pa.table(
        {
            "event_type": ["workflow:shop/pay", "workflow:shop/pay", "paid", "paid"],
            "destination": ["", "bank", "", "a"],
        }
    )
    kinds = ClaimPolicies.by_type(deliveries["event_type"], replace(rows, tasks=(task,)))
    found = order_scopes.goes_to(deliveries, kinds)
    assert ["new_bank", "new_bank", "b", "a"] == found.to_pylist()
