"""Summarises the transitions of a tail, claim by claim."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

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
