"""Keeps the views fresh while a relay runs: at intervals, beside whatever else it does."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from delta_outbox.store.store import Store

TAIL_COMMITS: Final = 30  # who lists with a longer tail had better have a shorter one next time
MOST_COMMITS: Final = 500  # with a longer tail, refreshing first is faster than listing
TAIL_EVENTS: Final = 1_000_000  # more than this is not left to one refresh


class Freshness:
    """Refreshes the projection for one relay.

    Args:
        outbox: the store.
    """

    def __init__(self, outbox: Store) -> None:
        self._outbox = outbox
        self._clock = outbox.clock
        self._every = outbox.settings.relay.refresh_seconds
        self._planned = 0  # events since the last refresh
        self._since = float("-inf")  # monotonic seconds: the views are no older, or we have begun
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="refresh")
        self._running: Future[None] | None = None

    def start(self) -> None:
        """Begin to count; refresh only if the projection is not there yet."""
        if self._outbox.projection.known_watermark() is None:
            self.refresh()
        self._since = self._clock.monotonic()

    def planned(self, events: int) -> None:
        """Note that new events were planned without a read view.

        Args:
            events: how many.
        """
        self._planned += events

    def keep(self, latest: Mapping[str, int], *, has_listed: bool) -> None:
        """Refresh if it is time, or if the tails have grown long. That runs beside the rest, and
        whoever asks meanwhile sees the projection as it was, with longer tails.

        Args:
            latest: version of each log, as this poll has asked for them.
            has_listed: whether what is open was listed with them.
        """
        if self._running is not None:
            if not self._running.done():
                return
            self._wait()
        is_time = self._clock.monotonic() - self._since >= self._every
        is_long = has_listed and self._outbox.projection.tail(latest) > TAIL_COMMITS
        if is_time or is_long or self._planned > TAIL_EVENTS:
            self._planned = 0
            self._running = self._thread.submit(self._refresh, latest)

    def shorten(self, latest: Mapping[str, int]) -> None:
        """Refresh before what is open is listed, if the tails are so long that this takes less.

        Args:
            latest: as `keep` takes it.
        """
        tail = self._outbox.projection.tail
        if tail(latest) > MOST_COMMITS:
            self._wait()  # for one that runs
        if tail(latest) > MOST_COMMITS:
            self._planned = 0
            self._refresh(latest)

    def refresh(self) -> None:
        """Bring the projection up to date now."""
        self._wait()
        self._refresh(None)

    def close(self) -> None:
        """End the thread, once it is done."""
        self._thread.shutdown()

    def _refresh(self, latest: Mapping[str, int] | None) -> None:
        # With `touch`, so that the views say how old they are although nothing is new.
        self._outbox.refresh(
            planned_by=self._outbox.worker_id, touch=latest is not None, latest=latest
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
