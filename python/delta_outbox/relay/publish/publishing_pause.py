"""Pauses a relay whose machine cannot begin to publish, for example on a full disk."""

from __future__ import annotations

import logging
from typing import Final

from delta_outbox.core.clock import Clock
from delta_outbox.relay.publish.publishing import Publishing

logger = logging.getLogger(__name__)

FIRST_PAUSE: Final = 1.0  # seconds before the next claim is tried
LONGEST_PAUSE: Final = 60.0


class PublishingPause:
    """Says whether a relay has to wait for its machine before it claims anything.

    Whether it can publish again shows when it tries to: after a pause that doubles with each claim
    that could not be begun.

    Args:
        publishing: tries to.
        clock: the relay's.
    """

    def __init__(self, publishing: Publishing, clock: Clock) -> None:
        self._publishing = publishing
        self._clock = clock
        self._since: float | None = None  # monotonic seconds
        self._tried = 0
        self._next_try = 0.0  # monotonic seconds

    @property
    def seconds(self) -> float:
        """Return for how long it has lasted; 0 if it does not."""
        return 0.0 if self._since is None else self._clock.monotonic() - self._since

    def lasts(self) -> bool:
        """Say whether nothing may be claimed now."""
        publishing = self._publishing
        if publishing.obstacle is None:
            if self._since is not None:
                logger.info("publishing_resumed", extra={"seconds": round(self.seconds, 3)})
            self._since, self._tried = None, 0
            return False
        now = self._clock.monotonic()
        if self._since is None:
            self._since = now
            logger.warning(
                "publishing_paused",
                extra={
                    "error": publishing.obstacle,
                    "remedy": "make room or mend it; the relay goes on by itself",
                },
            )
        if publishing.not_begun > self._tried:
            self._tried = publishing.not_begun
            doubled = min(self._tried - 1, 10)
            self._next_try = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2**doubled)
        return now < self._next_try or not publishing.has_room()
