"""Resolves the unknown results of a claim; what cannot be resolved stays claimed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from typing import cast

import numpy as np
import pyarrow as pa

from delta_outbox.lifecycle.claims import Claim
from delta_outbox.lifecycle.endings import Crashed, EndOfClaim
from delta_outbox.lifecycle.results import Unknown
from delta_outbox.lifecycle.results_by_column import Results
from delta_outbox.relay.claim.flight import Held
from delta_outbox.store.unknown_results import PublishResult, Unanswered, UnknownResults, Unresolved


def resolve_results(
    unknown_results: UnknownResults,
    claim: Claim,
    results: Sequence[EndOfClaim],
    *,
    wait_until_over: Callable[[], None],
) -> Results[PublishResult]:
    """Return results in which a destination that knows has said what it got.

    Args:
        unknown_results: asks it.
        claim: what was published.
        results: one per delivery, in the claim's order.
        wait_until_over: returns once nothing of the claim can be sent any more.
    """
    found: Results[PublishResult] = Results.of(results)
    unknown = [
        position for position, one in found.others.items() if isinstance(one, Crashed | Unknown)
    ]
    asked = claim.deliveries.select(["event_id", "lifecycle", "destination"])
    unanswered = {
        position: Unanswered(claim_id=claim.claim_id, claimed_at=claim.claimed_at, **row)
        for position, row in zip(
            unknown, asked.take(pa.array(unknown, pa.int64())).to_pylist(), strict=True
        )
        if unknown_results.is_asked(row["destination"])
    }
    if not unanswered:
        return found
    wait_until_over()
    answers = zip(unanswered, unknown_results.resolve(list(unanswered.values())), strict=True)
    return found.replaced({position: answer for position, answer in answers if answer is not None})


def resolved_part(
    held: Held, results: Sequence[PublishResult]
) -> tuple[Held, Sequence[EndOfClaim]]:
    """Return the part of a claim that ends, and how each of its deliveries does.

    Args:
        held: what was published.
        results: one per delivery, in the claim's order.
    """
    found: Results[PublishResult] = Results.of(results)
    stays = [position for position, one in found.others.items() if isinstance(one, Unresolved)]
    ends = cast("Results[EndOfClaim]", found.without(stays) if stays else found)
    if not stays:
        return held, ends
    kept = np.ones(len(found), dtype=np.bool_)
    kept[stays] = False
    scopes = list(compress(held.scopes, kept.tolist()))
    return replace(held, claim=held.claim.part(pa.array(kept)), scopes=scopes), ends
