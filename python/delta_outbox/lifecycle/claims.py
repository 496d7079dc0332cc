"""Makes claims: the deliveries taken together, and the transitions that start and end them."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.arrow import kinds_of, mask_of, rows_where
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.lifecycle.claim_policies import ClaimPolicies
from delta_outbox.lifecycle.endings import (
    Counters,
    Ending,
    EndOfClaim,
    Expired,
    Killed,
    counters_at_claim,
    decide_ending,
    delivered_ending,
)
from delta_outbox.lifecycle.endings_by_column import Endings
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.results import Delivered
from delta_outbox.lifecycle.results_by_column import RECEIPT_COLUMNS, Results
from delta_outbox.lifecycle.states import Reason, State

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
        ("payload_bytes", pa.int32()),
        ("blocks", pa.bool_()),
    ]
)
"""A delivery as the read view shows it before its claim; started_at: where its age counts from;
payload_bytes: null where neither the log nor the payload has told it; see
relay/publish/event_places.py; blocks: it is not PENDING, and only blocks what comes after it in its
order scope, because somebody has claimed it, or because it is DEAD and holds its key; available_at:
of what is claimed, when the lease is over; null of what is DEAD."""

_MADE: Final = {
    "started_at": "greatest(appended_at, scheduled_at, replayed_at) as started_at",
    "blocks": "state <> 'PENDING' as blocks",
    "available_at": "case state when 'PENDING' then available_at "
    "when 'CLAIMED' then lease_expires_at end as available_at",
}
# twin: macros/eligibility/age_from.sql::age_from
COLUMNS: Final = ", ".join(_MADE.get(name, name) for name in DELIVERIES.names)
"""What to select from the read view, as SQL, for `DELIVERIES`."""


OPEN_ITEM: Final = f"(state = '{State.CLAIMED}' and claimed_by = '{TO_DO}')"
"""The condition, as SQL, that a delivery is an item that waits for a person. No worker has it."""

OPEN_UNTIL: Final = ("state", "claimed_by", "lease_expires_at")


def open_until(row: Mapping[str, Any]) -> datetime | None:
    """Return until when somebody may answer an item; None where it is not open. What an extension
    has released is not, until its claim is made anew.

    Args:
        row: of the projection, with the columns `OPEN_UNTIL`.
    """
    is_open = row["state"] == State.CLAIMED and row["claimed_by"] == TO_DO
    until: datetime | None = row["lease_expires_at"] if is_open else None
    return until


_COUNTED: Final = ("attempts", "publish_attempts", "crashes", "suspect")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Deliveries taken together.

    Args:
        claim_id: identity of the claim; an ending names it and is void for any other.
        deliveries: columns of `DELIVERIES`, destinations by name, in order.
        policies: the policy of each delivery.
        policy_version: version of the policies that decided.
        claimed_at: when it was decided.
        held_by: who holds it; None: who has made it.
        held_until: end of its lease; None: as the policies say.
    """

    claim_id: str
    deliveries: pa.Table
    policies: ClaimPolicies = field(repr=False)
    policy_version: str
    claimed_at: datetime
    held_by: str | None = None
    held_until: datetime | None = None

    def __len__(self) -> int:
        return int(self.deliveries.num_rows)

    @property
    def lease_seconds(self) -> float:
        """Return the shortest lease in the claim."""
        return min(policy.lease_seconds for policy in self.policies.present)

    def part(self, kept: pa.Array) -> Claim:
        """Return this claim with some of its deliveries only.

        Args:
            kept: of each, whether it is one of them.
        """
        return replace(
            self,
            deliveries=pa.Table.filter(self.deliveries, kept),
            policies=self.policies.at(rows_where(kept)),
        )

    def singles(self) -> list[Claim]:
        """Return a claim of its own for each delivery."""
        return [
            replace(
                self,
                claim_id=new_claim_id(),
                deliveries=self.deliveries.slice(place, 1),
                policies=self.policies[place : place + 1],
            )
            for place in range(len(self))
        ]


def new_claim_id() -> str:
    """Return an id that no other claim has."""
    return uuid.uuid4().hex


def make_claim(
    eligible: pa.Table,
    *,
    policies: PolicySet,
    now: datetime,
    claim_id: str,
) -> Claim:
    """Take deliveries: an event without destination gets one delivery for each of its policy's.

    Args:
        eligible: columns of `DELIVERIES`, in the order in which they are to be sent.
        policies: the delivery policies in force.
        now: the current instant.
        claim_id: identity of the new claim.
    """
    chosen = ClaimPolicies.by_type(eligible["event_type"], policies)
    named = mask_of(pc.not_equal(eligible["destination"], ""))
    counts = np.array([len(policy.destinations) for policy in chosen.kinds], dtype=np.int64)
    copies = np.where(named, 1, counts[chosen.codes])
    deliveries = eligible
    if np.any(copies != 1):
        rows = np.repeat(np.arange(eligible.num_rows), copies)
        chosen, deliveries, named = chosen.at(rows), eligible.take(pa.array(rows)), named[rows]
    # The number of each delivery within its event says which destination of the policy it is for.
    number = np.arange(len(chosen)) - np.repeat(np.cumsum(copies) - copies, copies)
    theirs = [name for policy in chosen.kinds for name in policy.destinations]
    which = (np.cumsum(counts) - counts)[chosen.codes] + number
    names = pc.if_else(
        pa.array(named),
        deliveries["destination"],
        pa.array(theirs, pa.string()).take(pa.array(which)),
    )
    index = deliveries.schema.get_field_index("destination")
    return Claim(
        claim_id=claim_id,
        deliveries=deliveries.set_column(index, "destination", names),
        policies=chosen,
        policy_version=policies.version,
        claimed_at=now,
    )


def held_claim(rows: pa.Table, *, claim_id: str, policies: PolicySet, now: datetime) -> Claim:
    """Return a claim that a read view shows, as it was made.

    Args:
        rows: columns of `DELIVERIES`, the deliveries that are still under it.
        claim_id: its identity.
        policies: the delivery policies in force.
        now: the current instant.
    """
    # The read view shows them as they are after the claim; a claim is made of what was before it.
    before = {
        "attempts": pc.subtract(rows["attempts"], pa.scalar(1, pa.int32())),
        "blocks": pa.repeat(pa.scalar(False), rows.num_rows),
    }
    return Claim(
        claim_id=claim_id,
        deliveries=_with(rows, before),
        policies=ClaimPolicies.by_type(rows["event_type"], policies),
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
    if not others.num_rows:
        return rows
    gone = {tuple(row.values()) for row in others.select(keys).to_pylist()}
    kept = [tuple(row.values()) not in gone for row in rows.select(keys).to_pylist()]
    return rows.filter(pa.array(kept, pa.bool_()))


def joined(*tables: pa.Table) -> pa.Table:
    """Return the rows of tables of deliveries, of which some may know more columns.

    Args:
        tables: at least one.
    """
    given = [table for table in tables if table.num_rows] or [*tables[:1]]
    if len(given) == 1:
        return given[0]
    return pa.concat_tables(given, promote_options="default").unify_dictionaries()


def requeued(deliveries: pa.Table, endings: pa.Table) -> pa.Table:
    """Return the deliveries of a claim that are open again, as they are after it.

    Args:
        deliveries: of the claim, as they were before it.
        endings: as `claims.ending_rows` makes them, one per delivery.
    """
    is_open = pc.equal(endings["to_state"], State.PENDING)
    if not pc.any(is_open).as_py():
        return deliveries.slice(0, 0)
    table, endings = deliveries.filter(is_open), endings.filter(is_open)
    after = {
        "attempts": endings["attempt"],
        "publish_attempts": endings["publish_attempts"],
        "crashes": endings["crashes"],
        "suspect": endings["suspect"],
        "available_at": endings["available_at"],
    }
    return _with(table, after)


def _with(deliveries: pa.Table, columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """Return deliveries with other values in some columns."""
    for name, column in columns.items():
        field = DELIVERIES.field(name)
        index = deliveries.schema.get_field_index(name)
        deliveries = deliveries.set_column(index, field, column.cast(field.type))
    return deliveries


def left_after(deliveries: pa.Table, endings: pa.Table, policies: PolicySet) -> pa.Table:
    """Return what a window may need of the deliveries of a claim that has ended: those that are
    open again, and those that are DEAD and hold their key, as ones that only block what comes
    after them. One that was killed holds nothing.

    Args:
        deliveries: of the claim, as they were before it.
        endings: as `ending_rows` makes them, one per delivery.
        policies: the delivery policies in force.
    """
    left = requeued(deliveries, endings)
    if not policies.any_hold:
        return left
    by_itself = pc.and_(
        pc.equal(endings["to_state"], State.DEAD),
        pc.not_equal(endings["reason"], Reason.OPERATOR),
    )
    if not pc.any(by_itself).as_py():
        return left
    dead = deliveries.filter(by_itself)
    dead = dead.filter(dead["kill_command_id"].is_null())
    dead = dead.filter(ClaimPolicies.by_type(dead["event_type"], policies).hold)
    count = dead.num_rows
    holds = {
        "blocks": pa.repeat(pa.scalar(True), count),
        "available_at": pa.nulls(count, _INSTANT),
    }
    return joined(left, _with(dead, holds))


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


# twin: macros/eligibility/position.sql::position
def in_order(deliveries: pa.Table) -> pa.Table:
    """Return deliveries in the order of the outbox.

    Args:
        deliveries: columns of `DELIVERIES`.
    """
    position = deliveries.select(["arrival", "ordinal", "created_at", "event_id"])
    last = pc.fill_null(position["ordinal"], np.iinfo(np.int64).max)
    # Where each row of a commit has a number of its own, two columns say all.
    arrival, ordinal = deliveries["arrival"].to_numpy(), last.to_numpy()
    if _ascends(arrival, ordinal):
        return deliveries
    order = np.lexsort((ordinal, arrival))
    if _ascends(arrival[order], ordinal[order]):
        return deliveries.take(pa.array(order))
    keys = [(name, "ascending") for name in position.column_names]
    return deliveries.take(pc.sort_indices(position.set_column(1, "ordinal", last), sort_keys=keys))


def _ascends(arrival: np.ndarray, ordinal: np.ndarray) -> bool:
    later, same = np.diff(arrival) > 0, np.diff(arrival) == 0
    return bool(np.all(later | (same & (np.diff(ordinal) > 0))))


def claim_rows(claim: Claim) -> pa.Table:
    """Return the transitions PENDING to CLAIMED, one per delivery.

    Args:
        claim: the claim to write down.
    """
    count = len(claim)
    given = claim.deliveries
    leases = claim.policies.column(
        lambda policy: (
            claim.held_until or claim.claimed_at + timedelta(seconds=policy.lease_seconds)
        ),
        _INSTANT,
    )
    return pa.table(
        {
            **_identity(given),
            "attempt": pc.add(given["attempts"], 1),
            **_constant(count, from_state=State.PENDING, to_state=State.CLAIMED),
            **_constant(count, reason=Reason.CLAIMED, claim_id=claim.claim_id),
            "relay_id": pa.repeat(pa.scalar(claim.held_by, pa.string()), count),
            "lease_expires_at": leases,
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
) -> Endings:
    """Decide how each delivery of a claim ends.

    Args:
        claim: the claim, with the counters from before it.
        results: one per delivery, in the claim's order.
        now: the current instant.
        jitter: gives a random number in [0, 1).
        claim_size: deliveries that the claim began with, if some have been ended before.
    """
    found = Results.of(results)
    if len(found) != len(claim):
        raise ValueError(
            f"decide_endings: the argument `results` must have {len(claim)} of them, one for each "
            f"delivery. Got: {len(found)}."
        )
    # Of most deliveries the same has been counted: what was delivered has few kinds of endings.
    counted = claim.deliveries.select(_COUNTED)
    codes, firsts = kinds_of(*(column.to_numpy() for column in counted.columns))
    counters = [_after_claim(**row) for row in counted.take(pa.array(firsts)).to_pylist()]
    kinds = [delivered_ending(one, Delivered()) for one in counters]
    others = (
        claim.deliveries["started_at"].take(pa.array(list(found.others), pa.int64())).to_pylist()
    )
    size = claim_size or len(claim)
    for (place, result), started_at in zip(found.others.items(), others, strict=True):
        kinds.append(
            delivered_ending(counters[codes[place]], result)
            if isinstance(result, Delivered)
            else decide_ending(
                counters=counters[codes[place]],
                result=result,
                claim_size=size,
                policy=claim.policies[place],
                now=now,
                started_at=started_at,
                jitter=jitter(),
            )
        )
        codes[place] = len(kinds) - 1
    return Endings(kinds, codes, found.receipts)


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
    count, ends = len(claim), Endings.of(endings)
    text, number = pa.string(), pa.int32()
    return pa.table(
        {
            **_identity(claim.deliveries),
            "attempt": pc.add(claim.deliveries["attempts"], 1),
            **_constant(count, from_state=State.CLAIMED, claim_id=claim.claim_id),
            "to_state": ends.column(lambda one: one.to_state, text),
            "reason": ends.column(lambda one: one.reason, text),
            "claim_size": pa.repeat(pa.scalar(claim_size or count, pa.int32()), count),
            "publish_attempts": ends.column(lambda one: one.counters.publish_attempts, number),
            "crashes": ends.column(lambda one: one.counters.crashes, number),
            "suspect": ends.column(lambda one: one.counters.suspect, number),
            "occurred_at": pa.repeat(pa.scalar(now, _INSTANT), count),
            "available_at": ends.column(lambda one: one.available_at, _INSTANT),
            "error": ends.column(lambda one: one.error, text),
            **{name: ends.receipts(name) for name in RECEIPT_COLUMNS},
            "actor": ends.column(lambda one: one.actor, text),
            "command_id": ends.column(lambda one: one.command_id, text),
            **_constant(count, policy_version=claim.policy_version),
        }
    )


def _identity(deliveries: pa.Table) -> dict[str, pa.ChunkedArray]:
    # With the key, which says on which lane they go and is not written.
    names = ("event_id", "arrival", "destination", "lifecycle", "ordering_key")
    return {name: deliveries[name] for name in names}


def _constant(count: int, **values: str) -> dict[str, pa.Array]:
    return {name: pa.repeat(pa.scalar(str(value)), count) for name, value in values.items()}
