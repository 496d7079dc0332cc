"""A run of a relay: for how long, and what it did."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from delta_outbox.lifecycle.endings import Ending
from delta_outbox.lifecycle.endings_by_column import Endings
from delta_outbox.lifecycle.states import Reason, State


class Mode(StrEnum):
    """What ends a run."""

    ONCE = "once"
    DRAIN = "drain"
    CONTINUOUS = "continuous"


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a run of a relay did, in deliveries.

    Args:
        claimed: taken.
        published: acknowledged by the destination.
        retried: to be tried again after a failure, an unknown answer or a crash.
        dead: ended for good.
        released: PENDING again without an attempt.
        waiting: open at the end and not eligible by this run.
        duration_seconds: of the run.
    """

    claimed: int = 0
    published: int = 0
    retried: int = 0
    dead: int = 0
    released: int = 0
    waiting: int = 0
    duration_seconds: float = 0.0

    def as_dict(self) -> dict[str, int | float]:
        """Return the fields by name."""
        return asdict(self)

    def plus(self, claimed: int, endings: Iterable[Ending]) -> Summary:
        """Return this summary with one more claim in it.

        Args:
            claimed: deliveries of the claim.
            endings: how they ended.
        """
        published = retried = dead = released = 0
        for ending, count in Endings.of(endings).counts():
            if ending.to_state is State.PUBLISHED:
                published += count
            elif ending.to_state is State.DEAD:
                dead += count
            elif ending.reason is Reason.RELEASED:
                released += count
            else:
                retried += count
        return replace(
            self,
            claimed=self.claimed + claimed,
            published=self.published + published,
            retried=self.retried + retried,
            dead=self.dead + dead,
            released=self.released + released,
        )


@dataclass(frozen=True, kw_only=True)
class Run:
    """How long a relay runs, and who is told.

    Args:
        mode: what ends it.
        max_wait: seconds for which a drain waits.
        stop: set by whoever stops it.
        on_progress: told after every batch; nobody if left out.
    """

    mode: Mode
    max_wait: float
    stop: threading.Event
    on_progress: Callable[[Summary], None] | None = None

    def waits(self, seconds: float) -> bool:
        """Say whether the run goes on if nothing can be done before.

        Args:
            seconds: until then.
        """
        return self.mode is Mode.CONTINUOUS or (
            self.mode is Mode.DRAIN and seconds <= self.max_wait
        )
