"""Results that did not come back: what can be settled is, what cannot stays claimed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress

import pyarrow as pa

from delta_outbox.claims import Claim
from delta_outbox.lifecycle import Crashed, EndOfClaim
from delta_outbox.publishers.protocol import Unknown
from delta_outbox.relay.flight import Held
from delta_outbox.settling import Lost, Outcome, Settling, Unsettled


def settle_results(
    settling: Settling,
    claim: Claim,
    results: Sequence[EndOfClaim],
    *,
    wait_until_over: Callable[[], None],
) -> list[Outcome]:
    """Return results in which a destination that knows has said what it got.

    Args:
        settling: asks it.
        claim: what was published.
        results: one per delivery, in the claim's order.
        wait_until_over: returns once nothing of the claim can be sent any more.
    """
    settled: list[Outcome] = list(results)
    destinations = claim.deliveries["destination"].to_pylist()
    places = [
        place
        for place, result in enumerate(results)
        if isinstance(result, Crashed | Unknown) and settling.is_asked(destinations[place])
    ]
    if not places:
        return settled
    wait_until_over()
    rows = claim.deliveries.select(["event_id", "lifecycle"]).take(pa.array(places)).to_pylist()
    lost = [
        Lost(
            claim_id=claim.claim_id,
            destination=destinations[place],
            claimed_at=claim.claimed_at,
            **row,
        )
        for place, row in zip(places, rows, strict=True)
    ]
    for place, answer in zip(places, settling.settle(lost), strict=True):
        if answer is not None:
            settled[place] = answer
    return settled


def settled_part(held: Held, results: Sequence[Outcome]) -> tuple[Held, list[EndOfClaim]]:
    """Return the part of a claim that ends, and how each of its deliveries does.

    Args:
        held: what was published.
        results: one per delivery, in the claim's order.
    """
    ends = [result for result in results if not isinstance(result, Unsettled)]
    if len(ends) == len(results):
        return held, ends
    kept = [not isinstance(result, Unsettled) for result in results]
    part = replace(
        held.claim,
        deliveries=held.claim.deliveries.filter(pa.array(kept, pa.bool_())),
        policies=list(compress(held.claim.policies, kept)),
    )
    return replace(held, claim=part, scopes=list(compress(held.scopes, kept))), ends
