"""Asks destinations what became of deliveries whose result is unknown, before they are ended.

Only destinations whose publisher offers `recovery` (see publishers.protocol) are asked, so nothing
costs more for the others. As long as one cannot say, what it is asked about stays claimed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.clock import Clock
from delta_outbox.core.redaction import describe
from delta_outbox.core.secrets import hiding, secrets_of
from delta_outbox.core.settings import Settings
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.lifecycle.endings import Crashed, EndOfClaim, LeaseExpired
from delta_outbox.lifecycle.results import Delivered, Unknown
from delta_outbox.lifecycle.results_by_column import Results
from delta_outbox.publishers.protocol import Recover, UnresolvedClaim
from delta_outbox.publishers.registry import find_publisher, prepare_settings

logger = logging.getLogger(__name__)

PATIENCE: Final = 20.0  # seconds for an answer
FIRST_PAUSE: Final = 1.0  # seconds after a question without answer, doubled each time
LONGEST_PAUSE: Final = 64.0  # seconds; longer than a drain waits


@dataclass(frozen=True, kw_only=True, slots=True)
class Unanswered:
    """A delivery that was sent, perhaps, and whose result nobody has.

    Args:
        claim_id: the claim that it is under.
        destination: by name.
        event_id: of the event.
        lifecycle: of the delivery.
        claimed_at: when it was claimed, by the clock of whoever claimed.
    """

    claim_id: str
    destination: str
    event_id: str
    lifecycle: int
    claimed_at: datetime

    @property
    def delivery_id(self) -> str:
        """Return the identity on the wire, as `publishers.Event` has it."""
        return self.event_id if self.lifecycle == 0 else f"{self.event_id}:{self.lifecycle}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Unresolved:
    """Whether it was delivered cannot be said yet: it stays claimed."""


PublishResult = EndOfClaim | Unresolved
"""What became of a delivery that was published."""

Resolved = Delivered | Unresolved | None
"""What is known of an unanswered delivery; None: it was not delivered, or nobody can say ever."""


@dataclass(kw_only=True)
class _Destination:
    recover: Recover | None
    secrets: tuple[str, ...] = ()
    failures: int = 0
    not_before: float = float("-inf")  # monotonic seconds


class UnknownResults:
    """Asks destinations about unanswered deliveries.

    Args:
        settings: where the destinations are described.
        home: the folder that relative paths of the settings start from.
        clock: the time.
    """

    def __init__(self, settings: Settings, *, home: Path, clock: Clock) -> None:
        self._settings = settings
        self._home = home
        self._clock = clock
        self._known: dict[str, _Destination] = {}

    def is_asked(self, destination: str) -> bool:
        """Say whether a destination knows what it got.

        Args:
            destination: its name.
        """
        return self._of(destination).recover is not None

    def resolve(self, unanswered: Sequence[Unanswered]) -> list[Resolved]:
        """Say of each delivery what is known of it.

        Args:
            unanswered: deliveries, after the deadline of all that was sent under their claims.
        """
        asked = {one.destination for one in unanswered if self.is_asked(one.destination)}
        answers = {name: self._ask(name, unanswered) for name in sorted(asked)}
        resolved: list[Resolved] = []
        for one in unanswered:
            answer = answers.get(one.destination, {})
            if answer is None:
                resolved.append(Unresolved())
            else:
                resolved.append(answer.get(one.claim_id, {}).get(one.delivery_id))
        return resolved

    def of_published(
        self,
        claim: Claim,
        results: Sequence[EndOfClaim],
        *,
        wait_until_over: Callable[[], None],
    ) -> Results[PublishResult]:
        """Return what became of a claim, where a destination that knows has said what it got.

        Args:
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
            if self.is_asked(row["destination"])
        }
        if not unanswered:
            return found
        wait_until_over()
        answers = zip(unanswered, self.resolve(list(unanswered.values())), strict=True)
        return found.replaced({place: answer for place, answer in answers if answer is not None})

    def of_held(self, held: pa.Table) -> tuple[pa.Table, list[EndOfClaim], bool]:
        """Return how deliveries end whose claims are over.

        Args:
            held: event_id, destination, lifecycle, claim_id and claimed_at of each.

        Returns:
            The rows that end, how each of them does, and whether others have to stay claimed.
        """
        names = ("claim_id", "destination", "event_id", "lifecycle", "claimed_at")
        if not any(self.is_asked(name) for name in held["destination"].unique().to_pylist()):
            return held, [LeaseExpired()] * held.num_rows, False
        resolved = self.resolve([Unanswered(**row) for row in held.select(names).to_pylist()])
        stays = [isinstance(one, Unresolved) for one in resolved]
        ends: list[EndOfClaim] = [
            one or LeaseExpired() for one in resolved if not isinstance(one, Unresolved)
        ]
        return held.filter(pc.invert(pa.array(stays, pa.bool_()))), ends, any(stays)

    def seconds_to_wait(self) -> float:
        """Return the seconds until a destination without answer is asked again; 0: none waits."""
        now = self._clock.monotonic()
        waits = [one.not_before - now for one in self._known.values() if one.failures]
        return min((wait for wait in waits if wait > 0), default=0.0)

    def _ask(
        self, destination: str, unanswered: Iterable[Unanswered]
    ) -> Mapping[str, Mapping[str, Delivered]] | None:
        """Return what was delivered, by claim and delivery; None if that cannot be said now."""
        known = self._of(destination)
        if known.recover is None or self._clock.monotonic() < known.not_before:
            return None
        claimed: dict[str, datetime] = {}
        for one in unanswered:
            if one.destination == destination:
                at = one.claimed_at.astimezone(UTC)
                claimed[one.claim_id] = min(at, claimed.get(one.claim_id, at))
        skew = timedelta(seconds=self._settings.relay.clock_skew_seconds)
        claims = [
            UnresolvedClaim(claim_id=claim_id, destination=destination, since=at - skew)
            for claim_id, at in claimed.items()
        ]
        try:
            with hiding(known.secrets):
                found = known.recover(claims, PATIENCE)
        except Exception as error:  # noqa: BLE001 - anybody's code; it cannot say
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**known.failures)
            known.failures += 1
            known.not_before = self._clock.monotonic() + pause
            logger.warning(
                "claims_unresolved",
                extra={
                    "destination": destination,
                    "claims": len(claims),
                    "error": describe(error, secrets=known.secrets),
                },
            )
            return None
        known.failures = 0
        delivered = sum(len(one) for one in found.values())
        extra = {"destination": destination, "claims": len(claims), "delivered": delivered}
        logger.info("claims_resolved", extra=extra)
        return found

    def _of(self, destination: str) -> _Destination:
        if destination not in self._known:
            self._known[destination] = self._look_up(destination)
        return self._known[destination]

    def _look_up(self, destination: str) -> _Destination:
        described = self._settings.publishers.get(destination)
        if described is None:  # nobody knows any more what it was
            return _Destination(recover=None)
        publisher = find_publisher(described.type, destination=destination)
        offered = getattr(publisher, "recovery", None)
        if offered is None:
            return _Destination(recover=None)
        prepared = prepare_settings(
            publisher, described.settings, destination=destination, home=self._home
        )
        secrets = secrets_of(prepared)
        with hiding(secrets):
            return _Destination(recover=offered(prepared), secrets=secrets)
