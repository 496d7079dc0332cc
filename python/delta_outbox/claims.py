"""A claim: deliveries taken together, and the rows of the log that start and end it."""

from __future__ import annotations

import functools
import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.lifecycle import (
    Counters,
    Ending,
    EndOfClaim,
    Expired,
    Killed,
    Reason,
    State,
    counters_at_claim,
    decide_ending,
    delivered_ending,
)
from delta_outbox.policy import DeliveryPolicy, PolicySet
from delta_outbox.publishers.protocol import Delivered

logger = logging.getLogger(__name__)

_INSTANT: Final = pa.timestamp("us", tz="UTC")

DELIVERY_KEY: Final = ("event_id", "arrival", "destination")

DELIVERIES: Final = pa.schema(
    [
        ("event_id", pa.string()),
        ("arrival", pa.int64()),
        ("event_type", pa.string()),
        ("ordering_key", pa.string()),
        ("partition_key", pa.string()),
        ("created_at", _INSTANT),
        ("ordinal", pa.int64()),
        ("ambiguous", pa.bool_()),
        ("destination", pa.string()),
        ("lifecycle", pa.int32()),
        ("attempts", pa.int32()),
        ("publish_attempts", pa.int32()),
        ("crashes", pa.int32()),
        ("suspect", pa.int32()),
        ("available_at", _INSTANT),
        ("started_at", _INSTANT),
        ("kill_command_id", pa.string()),
        ("kill_actor", pa.string()),
        ("kill_reason", pa.string()),
    ]
)
"""A delivery as the picture shows it before its claim; started_at: where its age counts from."""

COLUMNS: Final = ", ".join(
    "greatest(appended_at, scheduled_at, replayed_at) as started_at"
    if name == "started_at"
    else name
    for name in DELIVERIES.names
)
"""What to select from the picture, as SQL, for `DELIVERIES`."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Deliveries taken together.

    Args:
        claim_id: identity of the claim; an ending names it and is void for any other.
        deliveries: columns of `DELIVERIES`, destinations by name, in order.
        policies: the policy of each delivery.
        policy_version: version of the policies that decided.
        claimed_at: when it was decided.
    """

    claim_id: str
    deliveries: pa.Table
    policies: Sequence[DeliveryPolicy] = field(repr=False)
    policy_version: str
    claimed_at: datetime

    def __len__(self) -> int:
        return int(self.deliveries.num_rows)

    @property
    def lease_seconds(self) -> float:
        """Return the shortest lease in the claim."""
        return min(policy.lease_seconds for policy in set(self.policies))


def new_claim_id() -> str:
    """Return an id that no other claim has."""
    return uuid.uuid4().hex


def make_claim(
    takeable: pa.Table,
    *,
    policies: PolicySet,
    now: datetime,
    claim_id: str,
) -> Claim:
    """Take deliveries: an event without destination gets one delivery for each of its policy's.

    Args:
        takeable: columns of `DELIVERIES`, in the order in which they are to be sent.
        policies: the delivery policies in force.
        now: the current instant.
        claim_id: identity of the new claim.
    """
    by_type = {name: policies.match(name) for name in takeable["event_type"].unique().to_pylist()}
    rows: list[int] = []
    names: list[str] = []
    chosen: list[DeliveryPolicy] = []
    types = takeable["event_type"].to_pylist()
    for row, (event_type, destination) in enumerate(
        zip(types, takeable["destination"].to_pylist(), strict=True)
    ):
        policy = by_type[event_type]
        for name in (destination,) if destination else policy.destinations:
            rows.append(row)
            names.append(name)
            chosen.append(policy)
    deliveries = takeable if len(rows) == len(types) else takeable.take(pa.array(rows, pa.int64()))
    index = deliveries.schema.get_field_index("destination")
    return Claim(
        claim_id=claim_id,
        deliveries=deliveries.set_column(index, "destination", pa.array(names, pa.string())),
        policies=chosen,
        policy_version=policies.version,
        claimed_at=now,
    )


def held_claim(rows: pa.Table, *, claim_id: str, policies: PolicySet, now: datetime) -> Claim:
    """Return a claim that a picture shows, as it was made.

    Args:
        rows: columns of `DELIVERIES`, the deliveries that are still under it.
        claim_id: its identity.
        policies: the delivery policies in force.
        now: the current instant.
    """
    # The picture shows the counters after the claim; a claim is made of those before it.
    before = pc.subtract(rows["attempts"], pa.scalar(1, pa.int32()))
    return Claim(
        claim_id=claim_id,
        deliveries=rows.set_column(rows.schema.get_field_index("attempts"), "attempts", before),
        policies=[policies.match(name) for name in rows["event_type"].to_pylist()],
        policy_version=policies.version,
        claimed_at=now,
    )


def still_live(endings: pa.Table, news: pa.Table) -> pa.Table:
    """Return the endings whose claims nobody has ended meanwhile.

    Args:
        endings: rows that were decided at an earlier position of the log.
        news: what was appended since, as `TransitionLog.news` returns it.
    """
    ended = news.filter(pc.equal(news["from_state"], "CLAIMED"))
    live = without(endings, ended, keys=(*DELIVERY_KEY, "claim_id"))
    if live.num_rows < endings.num_rows:
        logger.warning("endings_void", extra={"count": endings.num_rows - live.num_rows})
    return live


def without(rows: pa.Table, others: pa.Table, *, keys: Sequence[str] = DELIVERY_KEY) -> pa.Table:
    """Return the rows that are not among others.

    Args:
        rows: the rows, in any order, which is kept.
        others: the rows to leave out.
        keys: the columns by which a row is known; both tables have them.
    """
    gone = {tuple(row.values()) for row in others.select(keys).to_pylist()}
    kept = [tuple(row.values()) not in gone for row in rows.select(keys).to_pylist()]
    return rows.filter(pa.array(kept, pa.bool_()))


def results_without_sending(claim: Claim) -> list[EndOfClaim]:
    """Return how the deliveries of a claim end that were taken only for that.

    Args:
        claim: of deliveries that are to be killed or past their age.
    """
    given = claim.deliveries
    return [
        Killed(actor=actor, reason=reason, command_id=command_id) if command_id else Expired()
        for command_id, actor, reason in zip(
            given["kill_command_id"].to_pylist(),
            given["kill_actor"].to_pylist(),
            given["kill_reason"].to_pylist(),
            strict=True,
        )
    ]


def in_order(deliveries: pa.Table) -> pa.Table:
    """Return deliveries in the order of the outbox: the macro `position` says which that is.

    Args:
        deliveries: columns of `DELIVERIES`.
    """
    position = deliveries.select(["arrival", "ordinal", "created_at", "event_id"])
    last = pc.fill_null(position["ordinal"], np.iinfo(np.int64).max)
    keys = [(name, "ascending") for name in position.column_names]
    return deliveries.take(pc.sort_indices(position.set_column(1, "ordinal", last), sort_keys=keys))


def claim_rows(claim: Claim) -> pa.Table:
    """Return the transitions PENDING to CLAIMED, one per delivery.

    Args:
        claim: the claim to write down.
    """
    count = len(claim)
    given = claim.deliveries
    leases = [
        claim.claimed_at + timedelta(seconds=policy.lease_seconds) for policy in claim.policies
    ]
    return pa.table(
        {
            **_identity(given),
            "attempt": pc.add(given["attempts"], 1),
            **_constant(count, from_state=State.PENDING, to_state=State.CLAIMED),
            **_constant(count, reason=Reason.CLAIMED, claim_id=claim.claim_id),
            "lease_expires_at": pa.array(leases, _INSTANT),
            "claim_size": pa.repeat(pa.scalar(count, pa.int32()), count),
            "publish_attempts": given["publish_attempts"],
            "crashes": given["crashes"],
            "suspect": given["suspect"],
            "occurred_at": pa.repeat(pa.scalar(claim.claimed_at, _INSTANT), count),
            "available_at": given["available_at"],
            **_constant(count, policy_version=claim.policy_version),
        }
    )


def decide_endings(
    claim: Claim,
    results: Sequence[EndOfClaim],
    *,
    now: datetime,
    jitter: Callable[[], float],
    claim_size: int | None = None,
) -> list[Ending]:
    """Decide how each delivery of a claim ends.

    Args:
        claim: the claim, with the counters from before it.
        results: one per delivery, in the claim's order.
        now: the current instant.
        jitter: gives a random number in [0, 1).
        claim_size: deliveries that the claim began with, if some have been ended before.
    """
    given = claim.deliveries
    columns = zip(
        results,
        claim.policies,
        given["attempts"].to_pylist(),
        given["publish_attempts"].to_pylist(),
        given["crashes"].to_pylist(),
        given["suspect"].to_pylist(),
        strict=True,
    )
    size = claim_size or len(claim)
    # Of most deliveries the same has been counted; they share it.
    counted = functools.cache(_after_claim)
    return [
        # The most frequent one first: of it nothing has to be asked.
        delivered_ending(counted(*counters), result)
        if isinstance(result, Delivered)
        else decide_ending(
            counters=counted(*counters),
            result=result,
            claim_size=size,
            policy=policy,
            now=now,
            started_at=given["started_at"][row].as_py(),
            jitter=jitter(),
        )
        for row, (result, policy, *counters) in enumerate(columns)
    ]


def _after_claim(attempts: int, publish_attempts: int, crashes: int, suspect: int) -> Counters:
    return counters_at_claim(
        Counters(
            attempt=attempts, publish_attempts=publish_attempts, crashes=crashes, suspect=suspect
        )
    )


def ending_rows(
    claim: Claim, endings: Sequence[Ending], *, now: datetime, claim_size: int | None = None
) -> pa.Table:
    """Return the transitions that end a claim, one per delivery.

    Args:
        claim: the claim that ends.
        endings: one per delivery, in the claim's order.
        now: when it was decided.
        claim_size: deliveries that the claim began with, if some have been ended before.
    """
    count = len(claim)
    return pa.table(
        {
            **_identity(claim.deliveries),
            "attempt": pc.add(claim.deliveries["attempts"], 1),
            **_constant(count, from_state=State.CLAIMED, claim_id=claim.claim_id),
            "to_state": pa.array([ending.to_state for ending in endings], pa.string()),
            "reason": pa.array([ending.reason for ending in endings], pa.string()),
            "claim_size": pa.repeat(pa.scalar(claim_size or count, pa.int32()), count),
            "publish_attempts": _ints([ending.counters.publish_attempts for ending in endings]),
            "crashes": _ints([ending.counters.crashes for ending in endings]),
            "suspect": _ints([ending.counters.suspect for ending in endings]),
            "occurred_at": pa.repeat(pa.scalar(now, _INSTANT), count),
            "available_at": pa.array([ending.available_at for ending in endings], _INSTANT),
            "error": pa.array([ending.error for ending in endings], pa.string()),
            "receipt": pa.array([ending.receipt for ending in endings], pa.string()),
            "outcome": pa.array([ending.outcome for ending in endings], pa.string()),
            "outcome_data": pa.array([ending.outcome_data for ending in endings], pa.string()),
            "actor": pa.array([ending.actor for ending in endings], pa.string()),
            "command_id": pa.array([ending.command_id for ending in endings], pa.string()),
            **_constant(count, policy_version=claim.policy_version),
        }
    )


def _identity(deliveries: pa.Table) -> dict[str, pa.ChunkedArray]:
    # With the key, which says on which lane they go and is not written.
    names = ("event_id", "arrival", "destination", "lifecycle", "ordering_key")
    return {name: deliveries[name] for name in names}


def _constant(count: int, **values: str) -> dict[str, pa.Array]:
    return {name: pa.repeat(pa.scalar(str(value)), count) for name, value in values.items()}


def _ints(values: list[int]) -> pa.Array:
    return pa.array(values, pa.int32())
