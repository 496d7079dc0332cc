"""Keeps the views fresh while a relay runs: at intervals, beside what is being published."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from delta_outbox.outbox import Outbox

TAIL_COMMITS: Final = 30  # a longer tail costs more to look at than to fold in


class Freshness:
    """Refreshes the projection for one relay.

    Args:
        outbox: the store.
    """

    def __init__(self, outbox: Outbox) -> None:
        """Refresh nothing yet."""
        self._outbox = outbox
        self._clock = outbox.clock
        self._every = outbox.settings.relay.refresh_seconds
        self._since = float("-inf")  # monotonic seconds: the views are no older, or we have begun
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="refresh")
        self._running: Future[None] | None = None

    def start(self) -> None:
        """Begin to count; refresh only if the projection is not there yet."""
        if self._outbox.projection.known_watermark() is None:
            self.refresh()
        self._since = self._clock.monotonic()

    def keep(self, heads: Mapping[str, int], *, is_busy: bool) -> None:
        """Refresh if it is time, or if the tails have grown long.

        Args:
            heads: of the logs, as they have just been asked for.
            is_busy: whether something is being published; then the refresh runs beside it, and
                whoever looks meanwhile sees the projection as it was, with longer tails.
        """
        if self._running is not None:
            if not self._running.done():
                return
            self._wait()
        is_time = self._clock.monotonic() - self._since >= self._every
        if not is_time and self._outbox.projection.tail(heads) <= TAIL_COMMITS:
            return
        if is_busy:
            self._running = self._thread.submit(self._refresh, heads)
        else:
            self._refresh(heads)

    def refresh(self) -> None:
        """Bring the projection up to date now."""
        self._wait()
        self._refresh(None)

    def close(self) -> None:
        """End the thread, once it is done."""
        self._thread.shutdown()

    def _refresh(self, heads: Mapping[str, int] | None) -> None:
        # With `touch`, so that the views say how old they are although nothing is new.
        self._outbox.refresh(
            planned_by=self._outbox.worker_id, touch=heads is not None, heads=heads
        )
        self._since = self._clock.monotonic()

    def _wait(self) -> None:
        """Wait for the refresh that runs beside us.

        Raises:
            Exception: what it raised.
        """
        running, self._running = self._running, None
        if running is not None:
            running.result()
