"""Which deliveries wait for each other."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.lifecycle.order_scopes import further_scopes, scope_of, scopes_of
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
def test_what_blocks_each_other_shares_a_scope(rows: list[dict[str, str]], data: st.DataObject):
    """Deliveries of one key, under whichever policies, share an order scope if and only if their
    order is kept over all destinations, or they have a destination in common.
    """
    types = [f"t{number}" for number in range(len(rows))]
    policies = PolicySet.parse(
        [
            *({"event_type": name} | row for name, row in zip(types, rows, strict=True)),
            {"event_type": "*"},
        ]
    )
    delivery = st.tuples(st.sampled_from(types), st.sampled_from(("", *NAMES)))
    one, other = data.draw(delivery), data.draw(delivery)
    scopes = [scopes_by(policies, *each) for each in (one, other)]
    first, second = (policies.match(name) for name, _ in (one, other))
    for policy, found in zip((first, second), scopes, strict=True):
        assert (not found) == (policy.ordering == "none")
    if not all(scopes):
        return
    share = first.order_scope == second.order_scope and (
        first.order_scope == "key" or bool(goes_to(first, one[1]) & goes_to(second, other[1]))
    )
    assert share == bool(scopes[0] & scopes[1])


def scopes_by(policies: PolicySet, event_type: str, destination: str) -> set[str]:
    """Return all order scopes of a delivery of the key `k`."""
    table = pa.table(
        {"event_type": [event_type], "ordering_key": ["k"], "destination": [destination]}
    )
    first, (_, further) = scopes_of(table, policies), further_scopes(table, policies)
    assert (
        scope_of(policies.match(event_type), ordering_key="k", destination=destination)
        == first[0].as_py()
    )
    return {*first.to_pylist(), *further.to_pylist()} - {None}
