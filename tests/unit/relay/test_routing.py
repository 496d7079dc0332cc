"""Whole columns say of a claim what the rules say of each delivery."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_outbox.lifecycle.claims import DELIVERIES, make_claim
from delta_outbox.lifecycle.order_scopes import scope_of
from delta_outbox.lifecycle.policy import PolicySet, message_key, render_route
from delta_outbox.lifecycle.policy_columns import PayloadFormat
from delta_outbox.relay.publish.routing import ROUTED, route_claim, sendable
from delta_outbox.store.lanes import lane_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROUTES = ("", "{event_type}", "fixed", "{ordering_key}.{event_type}", "{partition_key}/{event_id}")
POLICIES = st.builds(
    lambda routes, orderings, scopes, formats: PolicySet.parse(
        [
            {
                "event_type": pattern,
                "destination": destination,
                "route": route,
                "ordering": ordering,
                "order_scope": scope,
                "format": format_,
            }
            for pattern, destination, route, ordering, scope, format_ in zip(
                ("a.*", "b.*", "*"),
                ("x", "y|z", "x|y"),
                routes,
                orderings,
                scopes,
                formats,
                strict=True,
            )
        ]
    ),
    st.tuples(*[st.sampled_from(ROUTES)] * 3),
    st.tuples(*[st.sampled_from(["strict", "none"])] * 3),
    st.tuples(*[st.sampled_from(["key", "destination"])] * 3),
    st.tuples(*[st.sampled_from(PayloadFormat)] * 3),
)
KEYS = st.none() | st.sampled_from(["", "k", "ключ", "k\x00"])
ROWS = st.lists(
    st.tuples(st.sampled_from(["a.b", "a.c", "b.c", "c"]), KEYS, KEYS, st.integers(0, 3)),
    max_size=9,
)


@settings(deadline=None)
@given(policies=POLICIES, rows=ROWS, slices=st.integers(1, 4))
def test_columns_say_what_the_rules_say(
    policies: PolicySet, rows: list[tuple[str, str | None, str | None, int]], slices: int
) -> None:
    """Slice, key, scope, route and format of every delivery are those of the rules, and whoever
    lacks a value that its route names is left out and named.
    """
    eligible = pa.Table.from_pylist(
        [
            {
                "event_id": f"e-{number}",
                "arrival": number,
                "event_type": event_type,
                "ordering_key": ordering_key,
                "partition_key": partition_key,
                "destination": "",
                "lifecycle": 1,
                "attempts": attempts,
            }
            for number, (event_type, ordering_key, partition_key, attempts) in enumerate(rows)
        ],
        schema=DELIVERIES,
    )
    claim = make_claim(eligible, policies=policies, now=NOW, claim_id="c")
    expected = []
    for number, (policy, row) in enumerate(
        zip(claim.policies, claim.deliveries.to_pylist(), strict=True)
    ):
        keys = {"ordering_key": row["ordering_key"], "partition_key": row["partition_key"]}
        route = render_route(policy, event_type=row["event_type"], event_id=row["event_id"], **keys)
        expected.append(
            {
                "position": number,
                "slice": lane_of(
                    ordering_key=row["ordering_key"], event_id=row["event_id"], lanes=slices
                ),
                "id": row["event_id"],
                "at_arrival": row["arrival"],
                "destination": row["destination"],
                "lifecycle": 1,
                "attempt": row["attempts"] + 1,
                "key": message_key(policy, **keys),
                "scope": scope_of(
                    policy, ordering_key=row["ordering_key"], destination=row["destination"]
                ),
                "route": route,
                "format": None if policy.format is PayloadFormat.RAW else policy.format,
            }
        )
    routed = route_claim(claim, slices=slices)
    assert (ROUTED, expected) == (routed.schema, routed.to_pylist())


@given(st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), max_size=12))
def test_nothing_is_sent_behind_what_has_no_route(rows: list[tuple[str | None, bool]]) -> None:
    """A delivery is sent if it has a route and all before it in its scope has one."""
    routed = pa.Table.from_pylist(
        [
            {"position": number, "scope": scope, "route": "r" if has_route else None}
            for number, (scope, has_route) in enumerate(rows)
        ],
        schema=ROUTED,
    )
    sent, unroutable, later = sendable(routed)
    expected: dict[str, list[int]] = {"sent": [], "unroutable": [], "later": []}
    for number, (scope, has_route) in enumerate(rows):
        before = [route for other, route in rows[:number] if other == scope and scope is not None]
        if not has_route:
            expected["unroutable"].append(number)
        else:
            expected["sent" if all(before) else "later"].append(number)
    assert expected == {
        "sent": sent["position"].to_pylist(),
        "unroutable": unroutable,
        "later": later,
    }
