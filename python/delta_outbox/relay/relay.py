"""The loop of the relay.

One append per claim carries the endings of the claim before it. What is believed has been read
back; what lost against another writer is decided again; what is in flight is always finished.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from delta_outbox.claims import DELIVERIES, Claim, claim_rows, ending_rows
from delta_outbox.errors import PublisherUnavailable, SequenceTaken
from delta_outbox.outbox import Outbox
from delta_outbox.policy import PolicySet
from delta_outbox.relay.destinations import prepare_destinations
from delta_outbox.relay.heartbeat import Heartbeat
from delta_outbox.relay.leases import LeaseWatch
from delta_outbox.relay.publishing import Publishing
from delta_outbox.relay.summary import Mode, Summary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

BATCHES_PER_PLAN: Final = 10
REFRESH_SECONDS: Final = 45.0  # the views are at most a minute behind while a relay runs
REFRESH_COMMITS: Final = 30  # a longer tail costs more to look at than to fold in

NOTHING: Final = DELIVERIES.empty_table()


class Relay:
    """A relay on one lane.

    Args:
        outbox: the store to work on; its worker id is the relay's.
        limit: events claimed at any instant and per batch, at most; `batch_size` if left out.
    """

    def __init__(self, outbox: Outbox, *, limit: int | None = None) -> None:
        """Check nothing and claim nothing yet."""
        self._outbox = outbox
        self._clock = outbox.clock
        settings = outbox.settings.relay
        self._batch_size = min(settings.batch_size, limit or settings.batch_size)
        self._heart = Heartbeat(
            outbox.spark, outbox.tables, relay_id=outbox.worker_id, clock=outbox.clock
        )
        self._leases = LeaseWatch(outbox.clock)
        self._publishing: Publishing | None = None
        self._destinations: Mapping[str, tuple[str, Mapping[str, object]]] = {}
        self._plan = NOTHING
        self._endings: pa.Table | None = None  # decided, to be appended with the next claim
        self._refreshed = float("-inf")
        self._heads: dict[str, int] = {}
        self._next_due = 0.0  # seconds until something may become takeable
        self._open = 0
        self._standing_by = False
        self._looked = False
        self._summary = Summary()

    def run(
        self,
        mode: Mode,
        *,
        max_wait: float = 60.0,
        stop: threading.Event | None = None,
        on_progress: Callable[[Summary], None] | None = None,
    ) -> Summary:
        """Run until the mode says that it is done, or until told to stop.

        Args:
            mode: once: one batch; drain: until nothing is open or all that is left waits longer
                than `max_wait`; continuous: until told to stop.
            max_wait: seconds.
            stop: set it to stop: what is in flight is finished and recorded, nothing stays claimed.
            on_progress: told after every batch.

        Returns:
            What the run did.

        Raises:
            PublisherUnavailable: a destination does not answer; nothing was claimed.
            UnknownDestination: a policy names a destination that the settings do not have.
            LogRewound: the log was restored to an older state.
        """
        stop = stop or threading.Event()
        started = self._clock.monotonic()
        self._prepare()
        self._heart.beat("started")
        try:
            self._loop(mode, max_wait, stop, on_progress)
        finally:
            self._flush()
            self._refresh()
            self._heart.beat("stopped")
        self._look()
        duration = round(self._clock.monotonic() - started, 3)
        self._summary = replace(self._summary, waiting=self._open, duration_seconds=duration)
        logger.info("relay_finished", extra=self._summary.as_dict())
        return self._summary

    # --- the loop ----------------------------------------------------------------------------

    def _loop(
        self,
        mode: Mode,
        max_wait: float,
        stop: threading.Event,
        on_progress: Callable[[Summary], None] | None,
    ) -> None:
        while not stop.is_set():
            batch = self._next_batch(mode)
            if batch.num_rows:
                self._process(batch)
                if on_progress:
                    on_progress(self._summary)
                if mode is Mode.ONCE:
                    return
                continue
            if self._endings is not None:
                self._flush()  # they may open the way for others, so look again
                continue
            if mode is Mode.ONCE or (mode is Mode.DRAIN and self._is_drained(max_wait)):
                return
            self._wait(stop)

    def _process(self, batch: pa.Table) -> None:
        """Claim, publish and decide one batch; its endings go with the next append."""
        claim = self._outbox.new_claim(batch)
        if not self._append(claim):
            return
        self._heart.beat()
        assert self._publishing is not None
        results = self._publishing.publish(claim)
        endings = self._outbox.decide(claim, results)
        self._endings = ending_rows(claim, endings, now=self._clock.now())
        self._summary = self._summary.plus(len(claim), endings)
        logger.info(
            "batch",
            extra={"claim_id": claim.claim_id, "size": len(claim), **self._summary.as_dict()},
        )
        if self._publishing.not_opened:
            destination, cause = next(iter(self._publishing.not_opened.items()))
            raise PublisherUnavailable(destination=destination, cause=cause)

    def _append(self, claim: Claim) -> bool:
        """Append the endings of the last claim and this claim at once; False if somebody was first.

        Then the endings are held against what came in between, and the plan is void: it was made
        of a log that has moved on.
        """
        rows = claim_rows(claim)
        if self._endings is not None:
            rows = pa.concat_tables([self._endings, rows], promote_options="default")
        try:
            self._outbox.log.append(rows)
        except SequenceTaken:
            logger.info("sequence_taken", extra={"sequence": self._outbox.log.sequence + 1})
            self._plan = NOTHING
            self._heads = {}
            if self._endings is not None:
                self._endings = self._outbox.still_live(self._endings)
            else:
                self._outbox.log.catch_up()
            return False
        self._endings = None
        return True

    def _flush(self) -> None:
        if self._endings is not None:
            rows, self._endings = self._endings, None
            self._outbox.append_endings(rows)
            self._plan = NOTHING
            self._heads = {}

    # --- planning ----------------------------------------------------------------------------

    def _next_batch(self, mode: Mode) -> pa.Table:
        if not self._plan.num_rows and self._endings is None:
            self._make_plan(mode)
        batch = self._plan.slice(0, self._batch_size)
        self._plan = self._plan.slice(batch.num_rows)
        return batch

    def _make_plan(self, mode: Mode) -> None:
        """Plan several batches ahead from what is takeable now."""
        if self._heart.beat() or not self._looked:
            before, self._standing_by = self._standing_by, self._owned_by_another()
            if before != self._standing_by:
                self._heads = {}  # what was left to the other is ours now: look again
        if self._clock.monotonic() - self._refreshed >= REFRESH_SECONDS:
            self._refresh(touch=True)
        heads = self._outbox.projection.heads()
        if heads == self._heads and self._clock.monotonic() < self._next_due:
            return  # nothing was committed and nothing became due since the last look
        self._outbox.log.catch_up()
        picture, tail = self._outbox.projection.picture()
        if tail > REFRESH_COMMITS:
            self._refresh()
            picture, tail = self._outbox.projection.picture()
        self._heads = heads
        self._looked = True
        asked = self._outbox.now_literal()
        self._prepare_destinations()
        if self._standing_by and mode is not Mode.ONCE:
            self._survey(picture, asked)
            return
        if self._end_claims(picture):
            self._heads = {}
            picture, _ = self._outbox.projection.picture()  # with what that has set free
        ahead = 1 if mode is Mode.ONCE else BATCHES_PER_PLAN
        self._plan = self._outbox.retrieve_from(picture, self._batch_size * ahead).deliveries
        if not self._plan.num_rows:
            self._survey(picture, asked)

    def _end_claims(self, picture: DataFrame) -> int:
        """End claims whose worker is gone or whose lease we have seen run out."""
        claims = self._outbox.live_claims(picture)
        self._leases.observe(claims)
        freed = 0
        for claim in claims:
            claim_id, worker = str(claim["claim_id"]), claim["claimed_by"]
            # Nothing of ours is in flight while we plan: a claim of ours is one that was lost.
            if (
                worker == self._outbox.worker_id
                or self._outbox.is_gone(worker)
                or self._leases.remaining(claim_id) <= 0
                or self._outbox.is_long_over(claim["lease_expires_at"])
            ):
                freed += self._outbox.expire(picture, claim_id)
        return freed

    def _survey(self, picture: DataFrame, asked: str) -> None:
        """Note what is open and when something of it may become takeable.

        Args:
            picture: the open deliveries.
            asked: an instant, before the question what is takeable; what became due since counts
                as due soon.
        """
        picture.createOrReplaceTempView("outbox_open_deliveries")
        now = self._clock.now()
        row = self._outbox.spark.sql(
            "select count(*) as open, count_if(state = 'CLAIMED') as claimed, "
            "min(case when state = 'PENDING' "
            f"and available_at > {asked} then available_at end) as due, "
            "count_if(state = 'PENDING' "
            f"and coalesce(available_at <= {asked}, true)) as due_now "
            "from outbox_open_deliveries"
        ).toArrow()
        found = row.to_pylist()[0]
        # While another relay owns the lane, what is due is its next batch.
        waits = [0.0] if self._standing_by and found["due_now"] else []
        if found["due"] is not None:
            waits.append((found["due"] - now).total_seconds())
        if found["claimed"]:
            claims = self._outbox.live_claims(picture)
            self._leases.observe(claims)
            waits += [max(0.0, self._leases.remaining(str(c["claim_id"]))) for c in claims]
        self._open = found["open"]
        self._next_due = self._clock.monotonic() + min(waits, default=float("inf"))

    def _look(self) -> None:
        picture, _ = self._outbox.projection.picture()
        self._survey(picture, self._outbox.now_literal())

    def _is_drained(self, max_wait: float) -> bool:
        if not self._open:
            return True
        return self._next_due - self._clock.monotonic() > max_wait

    def _wait(self, stop: threading.Event) -> None:
        poll = self._outbox.settings.relay.poll_seconds
        due = self._next_due - self._clock.monotonic()
        stop.wait(max(0.0, min(poll, due)) or 0.01)

    def _owned_by_another(self) -> bool:
        """Say whether another living relay was here first; a wrong guess costs time, not events."""
        if self._summary.claimed:
            return False
        for other in self._heart.earlier():
            if not self._outbox.is_gone(other):
                logger.info("standing_by", extra={"owner": other})
                return True
        return False

    # --- housekeeping ------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Check all that can be checked before anything is claimed."""
        self._prepare_destinations()
        self._refresh()

    def _prepare_destinations(self) -> None:
        """Read the policies, and check the destinations that they name for the first time."""
        if self._publishing is None:
            self._outbox.watch_policies(self._prepare_for)
        else:
            self._outbox.policies()

    def _prepare_for(self, policies: PolicySet) -> None:
        """Check the destinations of policies before they are put into force."""
        if policies.destinations <= set(self._destinations):
            return
        home = self._outbox.home.root if self._outbox.home else Path.cwd()
        self._destinations = prepare_destinations(policies, self._outbox.settings, home=home)
        self._publishing = Publishing(
            self._outbox.spark,
            self._outbox.tables,
            self._outbox.statements,
            destinations=self._destinations,
            parallelism=self._outbox.settings.relay.parallelism or os.cpu_count() or 1,
        )
        self._publishing.warm_up()

    def _refresh(self, *, touch: bool = False) -> None:
        self._outbox.refresh(planned_by=self._outbox.worker_id, touch=touch)
        self._refreshed = self._clock.monotonic()
