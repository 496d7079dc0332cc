"""Routes the deliveries of a claim, by whole columns: slice, key, order scope and route."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import kinds_of
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.lifecycle.order_scopes import within
from delta_outbox.lifecycle.policy import DeliveryPolicy, render_route
from delta_outbox.lifecycle.policy_columns import Ordering, PayloadFormat, placeholders

ROUTED: Final = pa.schema(
    [
        ("position", pa.int32()),
        ("slice", pa.int32()),
        ("id", pa.string()),
        ("at_arrival", pa.int64()),
        ("destination", pa.string()),
        ("lifecycle", pa.int32()),
        ("attempt", pa.int32()),
        ("key", pa.string()),
        ("scope", pa.string()),
        ("route", pa.string()),
        ("format", pa.string()),
    ]
)
"""A delivery and where it goes; position: in the claim; format: null if raw."""


def route_claim(claim: Claim, *, slices: int) -> pa.Table:
    """Say where each delivery goes; what has one key is in one slice.

    Each column is what `policy.message_key`, `policy.render_route`, `order_scopes.scope_of` and
    `store.lanes.lane_of` say of each delivery.

    Args:
        claim: the claim.
        slices: at least 1.

    Returns:
        Columns of `ROUTED`; the route is null where it names a value that the delivery lacks.
    """
    given = claim.deliveries
    named = given.select(["event_type", "destination"])
    # The type says which policy it is.
    codes, rows = kinds_of(
        *(pc.dictionary_encode(name.combine_chunks()).indices.to_numpy() for name in named.columns)
    )
    firsts = [
        (claim.policies[row], *kind.values())
        for row, kind in zip(rows.tolist(), named.take(pa.array(rows)).to_pylist(), strict=True)
    ]
    of_kind = pa.array(codes)

    def by_kind(values: Sequence[object], kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind).take(of_kind)

    strict = [policy.ordering is Ordering.STRICT for policy, _, _ in firsts]
    ordering_key, partition_key = given["ordering_key"], given["partition_key"]
    prefix = [
        within(policy, destination) if is_strict else None
        for (policy, _, destination), is_strict in zip(firsts, strict, strict=True)
    ]
    raw = PayloadFormat.RAW
    formats = [None if policy.format is raw else policy.format for policy, _, _ in firsts]
    routes = _routes(claim, firsts, codes)
    return pa.table(
        {
            "position": np.arange(len(claim), dtype=np.int32),
            "slice": _slices(pc.coalesce(ordering_key, given["event_id"]), slices),
            "id": given["event_id"],
            "at_arrival": given["arrival"],
            "destination": given["destination"],
            "lifecycle": given["lifecycle"],
            "attempt": pc.add(given["attempts"], pa.scalar(1, pa.int32())),
            "key": pc.if_else(
                by_kind(strict, pa.bool_()),
                pc.coalesce(ordering_key, partition_key),
                pc.coalesce(partition_key, ordering_key),
            ),
            "scope": pc.binary_join_element_wise(
                by_kind(prefix, pa.string()), ordering_key, pa.scalar("\x00")
            ),
            "route": routes,
            "format": by_kind(formats, pa.string()),
        },
        schema=ROUTED,
    )


def sendable(routed: pa.Table) -> tuple[pa.Table, list[int], list[int]]:
    """Part what may be sent from what has no route and from what follows that.

    Args:
        routed: as `route_claim` returns it.

    Returns:
        Columns of `ROUTED` of what may be sent; the positions of those without a route; the
        positions of those that follow one of these in its order scope.
    """
    if not routed["route"].null_count:
        return routed, [], []
    has_no_route = pc.is_null(routed["route"])
    unroutable = routed.filter(has_no_route)
    routed = routed.filter(pc.invert(has_no_route))
    first: dict[str, int] = {}
    for position, scope in zip(
        unroutable["position"].to_pylist(), unroutable["scope"].to_pylist(), strict=True
    ):
        if scope is not None:
            first.setdefault(scope, position)
    behind = pa.array(
        [
            scope in first and position > first[scope]
            for position, scope in zip(
                routed["position"].to_pylist(), routed["scope"].to_pylist(), strict=True
            )
        ],
        pa.bool_(),
    )
    return (
        routed.filter(pc.invert(behind)),
        unroutable["position"].to_pylist(),
        routed["position"].filter(behind).to_pylist(),
    )


def _slices(scopes: pa.ChunkedArray, slices: int) -> pa.Array:
    """Return the slice of each delivery, each key looked at once; see `store.lanes.lane_of`."""
    encoded = pa.chunked_array(scopes, pa.string()).combine_chunks().dictionary_encode()
    numbers = [zlib.crc32(scope.encode()) % slices for scope in encoded.dictionary.to_pylist()]
    return pa.array(numbers, pa.int32()).take(encoded.indices)


def _routes(
    claim: Claim, kinds: Sequence[tuple[DeliveryPolicy, str, str]], codes: np.ndarray
) -> pa.Array:
    """Return the route of each delivery, null where a value is missing that it names."""
    routes: list[str | None] = []
    single: list[int] = []  # kinds whose deliveries each have a route of their own
    for code, (policy, event_type, _) in enumerate(kinds):
        if set(placeholders(policy.route)) <= {"event_type"}:
            routes.append(render_route(policy, event_type=event_type, event_id=""))
        else:
            routes.append(None)
            single.append(code)
    if not single:
        return pa.array(routes, pa.string()).take(pa.array(codes))
    rendered = np.array([*routes], dtype=object)[codes]
    given = claim.deliveries
    rows = np.flatnonzero(np.isin(codes, single))
    chosen = given.take(pa.array(rows))
    for row, event_type, event_id, ordering_key, partition_key in zip(
        rows.tolist(),
        chosen["event_type"].to_pylist(),
        chosen["event_id"].to_pylist(),
        chosen["ordering_key"].to_pylist(),
        chosen["partition_key"].to_pylist(),
        strict=True,
    ):
        rendered[row] = render_route(
            claim.policies[row],
            event_type=event_type,
            event_id=event_id,
            ordering_key=ordering_key,
            partition_key=partition_key,
        )
    return pa.array(rendered, pa.string())
