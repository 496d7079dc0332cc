"""Summarises the transitions of a tail, claim by claim."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

KIND: Final = ("claim_id", "destination", "to_state", "reason")
"""What transitions are grouped by."""
MOST_OVER: Final = 1000  # claims that are named in a condition
NOTHING: Final = (0, -1)  # of the arrivals
_CLAIM_ID: Final = re.compile(r"[0-9a-f]{32}")  # as `claims.new_claim_id` makes them


@dataclass(frozen=True, kw_only=True)
class TailClaims:
    """What was found of the transitions of a tail, looked at claim by claim.

    Args:
        replays: one is a replay.
        several_destinations: they are of more than one.
        more_than_one: a delivery may have more than one of them that is not over.
        over: the claims all of whose endings are there as well.
        deliveries: about how many they are about, counted once for each claim.
        arrivals: the first and the last arrival of their events.
    """

    replays: bool
    several_destinations: bool
    more_than_one: bool
    over: Sequence[str]
    deliveries: int
    arrivals: tuple[int, int]


def claims_of(groups: Iterable[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return transitions by claim, as `read_claims` takes them.

    Args:
        groups: of transitions by `KIND`, of their arrivals, as `LogReader.groups` returns them.
    """
    claims: dict[str | None, dict[str, Any]] = {}
    for group in groups:
        claim = claims.setdefault(
            group["claim_id"],
            {
                "claim_id": group["claim_id"],
                "replays": False,
                "first": group["destination"],
                "last": group["destination"],
                "first_arrival": group["least"],
                "last_arrival": group["greatest"],
                **dict.fromkeys(("transitions", "claimed", "set_free"), 0),
            },
        )
        claim["replays"] |= group["reason"] == "replayed"
        claim["first"] = min(claim["first"], group["destination"])
        claim["last"] = max(claim["last"], group["destination"])
        claim["first_arrival"] = min(claim["first_arrival"], group["least"])
        claim["last_arrival"] = max(claim["last_arrival"], group["greatest"])
        claim["transitions"] += group["rows"]
        claim["claimed"] += group["rows"] * (group["to_state"] == "CLAIMED")
        claim["set_free"] += group["rows"] * (group["to_state"] == "PENDING")
    return list(claims.values())


def read_claims(by_claim: Sequence[Mapping[str, Any]]) -> TailClaims:
    """Tell what a tail holds from its transitions.

    Args:
        by_claim: of each claim, and of what has none: claim_id; replays, whether one is a replay;
            first and last, its least and greatest destination; transitions, how many; claimed and
            set_free, how many of them lead to CLAIMED and to PENDING; first_arrival and
            last_arrival of their events.
    """
    over: list[str] = []
    more = False
    for claim in by_claim:
        claimed, ended = claim["claimed"], claim["transitions"] - claim["claimed"]
        if claimed and claimed == ended and _CLAIM_ID.fullmatch(claim["claim_id"] or ""):
            over.append(claim["claim_id"])
        # What has ended for good, or is only claimed, has nothing after or before it in the tail.
        elif claimed and ended:
            more = True
        more = more or claim["set_free"] > 0
    if len(over) > MOST_OVER:
        over, more = [], True
    return TailClaims(
        replays=any(claim["replays"] for claim in by_claim),
        several_destinations=len(
            {name for claim in by_claim for name in (claim["first"], claim["last"])}
        )
        > 1,
        more_than_one=more,
        over=over,
        deliveries=sum(
            max(claim["claimed"], claim["transitions"] - claim["claimed"]) for claim in by_claim
        ),
        arrivals=(
            min((claim["first_arrival"] for claim in by_claim), default=NOTHING[0]),
            max((claim["last_arrival"] for claim in by_claim), default=NOTHING[1]),
        ),
    )
