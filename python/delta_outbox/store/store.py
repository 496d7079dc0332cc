"""The store: append events, retrieve and claim what is eligible, end claims."""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from delta_outbox.core.clock import Clock, SystemClock
from delta_outbox.core.errors import SequenceTaken
from delta_outbox.core.literals import instant_literal
from delta_outbox.core.settings import Settings
from delta_outbox.core.tables import Tables
from delta_outbox.delta.durability import know_places
from delta_outbox.delta.log_writer import ATTEMPTS
from delta_outbox.delta.storage_places import checked_places
from delta_outbox.lifecycle.claims import (
    Claim,
    claim_rows,
    decide_endings,
    ending_rows,
    make_claim,
    new_claim_id,
    results_without_sending,
)
from delta_outbox.lifecycle.endings import Ending, EndOfClaim
from delta_outbox.lifecycle.endings_by_column import Endings
from delta_outbox.lifecycle.policy import DeliveryPolicy, PolicySet
from delta_outbox.producer.append import AppendReport, append_events
from delta_outbox.producer.id_index import IdIndex
from delta_outbox.projection.projection import Projection, ReadView
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.session import end_own_session, own_session
from delta_outbox.runtime.statements import Statements
from delta_outbox.store.apply_commands import Commands
from delta_outbox.store.destination_states import DestinationStates
from delta_outbox.store.expired_claims import WORKERS, ExpiredClaims
from delta_outbox.store.heartbeat import is_any_alive
from delta_outbox.store.lane_change import LaneChange
from delta_outbox.store.lane_logs import LaneLogs
from delta_outbox.store.open_deliveries import OpenDeliveries
from delta_outbox.store.policies import Check, Policies
from delta_outbox.store.presence import Presence
from delta_outbox.store.transition_log import TransitionLog
from delta_outbox.store.unknown_results import UnknownResults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_outbox.producer.rejection import Rows

logger = logging.getLogger(__name__)

LANE_STEPS: Final = 3  # to end claims that are over, to close what was open, to see that it is over


@dataclass(frozen=True, kw_only=True)
class Retrieved:
    """What is eligible, and the position of the log at which that is true.

    Args:
        deliveries: columns of `claims.DELIVERIES`, in the order in which they are taken.
        sequence: the position, of the first lane if there are several; a claim that follows must
            be the next append.
    """

    deliveries: pa.Table
    sequence: int


class Store:
    """An outbox on Delta; `delta_outbox.Outbox` adds what operators ask for.

    Args:
        spark: the session; the store works in one of its own on the same Spark.
        tables: the names of the relations.
        settings: the settings.
        statements: the SQL that dbt compiled.
        clock: the time.
        home: where relative paths of the settings start.
        exclusive: this process has the home's lock, so workers of other processes are gone.
        worker_id: who claims; unique per instance.
        location: where the event log lies, as the catalog has it, if whoever opens this has
            checked that; else it is asked, and refused where two drivers can both win a commit.

    Raises:
        StoragePrecondition: the logs lie on such a store.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        tables: Tables | None = None,
        settings: Settings | None = None,
        statements: Statements,
        clock: Clock | None = None,
        home: Home | None = None,
        exclusive: bool = False,
        worker_id: str | None = None,
        location: str | None = None,
    ) -> None:
        """Check where the logs lie, open sessions, and read nothing yet."""
        self.tables = tables or Tables()
        self.settings = settings or Settings()
        if location is None:
            location = self._checked_location(spark, home)
        self.spark = own_session(spark)
        self.statements = statements
        self.clock: Clock = clock or SystemClock()
        self.home = home
        self.exclusive = exclusive
        self.location = location
        self.worker_id = worker_id or f"worker-{uuid.uuid4().hex[:12]}"
        self.projection = Projection(self.spark, self.tables, statements, clock=self.clock)
        self.destinations = DestinationStates(self.spark, self.tables, clock=self.clock)
        self.logs = LaneLogs(self.spark, self.tables, relay_id=self.worker_id, clock=self.clock)
        self._policy_source = Policies(
            self.spark,
            self.tables,
            settings=self.settings,
            clock=self.clock,
            worker_id=self.worker_id,
        )
        self._id_index = IdIndex(self.spark, self.tables.events)
        self.unknown_results = UnknownResults(self.settings, home=self.folder, clock=self.clock)
        self.deliveries = OpenDeliveries(
            self.spark, statements, clock=self.clock, policies=lambda: self.policies_in_force
        )
        self.expired_claims = ExpiredClaims(
            self.spark,
            logs=self.logs,
            unknown_results=self.unknown_results,
            policies=lambda: self.policies_in_force,
            clock=self.clock,
            worker_id=self.worker_id,
            exclusive=exclusive,
            clock_skew_seconds=self.settings.relay.clock_skew_seconds,
        )
        # Claim -> the log of its lane and its sequence there, for `end`.
        self._claimed_at: dict[str, tuple[TransitionLog, int]] = {}
        WORKERS.add(self.worker_id)

    def _checked_location(self, spark: SparkSession, home: Home | None) -> str:
        schema = self.tables.schema
        places = checked_places(
            spark, schema=schema, home=home, single_driver=self.settings.storage.single_driver
        )
        know_places(spark, schema=schema, places=places.values())
        return places["outbox_events"].location

    def close(self) -> None:
        """End the sessions of this store; nothing of it works any more."""
        self.projection.close()
        end_own_session(self.spark)

    @property
    def log(self) -> TransitionLog:
        """Return the transition log of the first lane: the only one, unless there are more."""
        return self.logs.first

    # --- producing -------------------------------------------------------------------------

    def append(
        self, events: pa.Table | DataFrame, *, lines: Sequence[int] | Rows | None = None
    ) -> AppendReport:
        """Append events, all or nothing, and say what is wrong with each that is rejected.

        Args:
            events: columns of outbox_events that a producer gives (event_id, event_type, payload;
                the others may be left out); a row per event. It is held in memory as Arrow.
            lines: what to call each row in a rejection; counted from 1 if left out.

        Returns:
            How many rows were appended and how many were there already, or the rejections.
        """
        table = events if isinstance(events, pa.Table) else events.toArrow()
        return append_events(
            self.spark,
            self.tables,
            table,
            id_index=self._id_index,
            settings=self.settings.append,
            now=self.clock.now(),
            lines=lines,
            order=self.statements.fill("order_of_contents", content="c"),
        )

    def refresh(
        self,
        *,
        planned_by: str = "outbox",
        rebuild: bool = False,
        touch: bool = False,
        latest: Mapping[str, int] | None = None,
    ) -> int:
        """Bring the projection up to everything that was committed before this call.

        Args:
            planned_by: who asks, for the record.
            rebuild: derive everything anew from the logs.
            touch: move `outbox_freshness.refreshed_at` although there is nothing new.
            latest: up to these only, as `Projection.latest_versions` has just returned them.

        Returns:
            The number of the plan that the projection stands at.
        """
        return self.projection.refresh(
            planned_by=planned_by, rebuild=rebuild, touch=touch, latest=latest
        )

    # --- processing ------------------------------------------------------------------------

    def policies(self) -> PolicySet:
        """Return the delivery policies in force; broken rows keep the last good ones.

        Cheap if nothing has changed: call it before every batch.

        Raises:
            BadPolicy: the policies break a rule and there are no earlier ones.
        """
        return self._policy_source.in_force()

    @property
    def policies_in_force(self) -> PolicySet:
        """Return the delivery policies as they were last read."""
        return self._policy_source.current or self.policies()

    def watch_policies(self, check: Check) -> PolicySet:
        """Name what new policies must pass before they are put into force; return those in force.

        Args:
            check: raises an OutboxError if this worker cannot serve them, for example because of
                a destination; then the former ones stay, and it is asked again after a while.

        Raises:
            OutboxError: the first ones do not pass.
        """
        return self._policy_source.watch(check)

    def run_tasks_by(self, policies: Callable[[], tuple[DeliveryPolicy, ...]]) -> None:
        """Deliver the tasks of workflows too, as soon as there are policies for them.

        Args:
            policies: returns them; the same object as long as they stay as they are.
        """
        self._policy_source.of_tasks = policies

    def policy_status(self) -> dict[str, str | None]:
        """Return `version`, the policies in force, and `problem`, why newer rows are not."""
        return self._policy_source.status()

    def retrieve(self, limit: int) -> Retrieved:
        """Return what is eligible now, never more than a limit, in the order of the outbox.

        Args:
            limit: deliveries, at least 0.
        """
        self.logs.catch_up()
        found = self.deliveries.eligible(self.read_view(), limit)
        return Retrieved(deliveries=found.rows, sequence=self.log.sequence)

    def read_view(self, latest: Mapping[str, int] | None = None) -> DataFrame:
        """Return the open deliveries now, and the DEAD that hold their key if a policy says so.

        Args:
            latest: as `Projection.latest_versions` has just returned them.
        """
        return self.open_deliveries(latest).frame

    def open_deliveries(self, latest: Mapping[str, int] | None = None) -> ReadView:
        """Return the same as `read_view`, and up to which version of each log that is.

        Args:
            latest: as `Projection.latest_versions` has just returned them.
        """
        with_holding = self.policies_in_force.any_hold
        return self.projection.read_view(with_holding=with_holding, latest=latest)

    def claim(self, limit: int) -> Claim | None:
        """Take what is eligible, never more than a limit; None if there is nothing.

        A claim is of one lane. While the lanes are being changed, nothing is claimed.

        Args:
            limit: events, at least 1.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        for _ in range(ATTEMPTS):
            if not self.finish_change_of_lanes():
                return None
            found = self.retrieve(limit)
            if not found.deliveries.num_rows:
                return None
            claim = self._append_claim(*self.logs.parts(found.deliveries)[0])
            if claim is not None:
                return claim
        raise SequenceTaken(writer=self.log.app_id, number=self.log.sequence + 1)

    def _append_claim(self, log: TransitionLog, deliveries: pa.Table) -> Claim | None:
        """Claim deliveries of a lane; None if somebody else has appended since it was read."""
        claim = self.new_claim(deliveries)
        try:
            log.append(claim_rows(claim))
        except SequenceTaken:
            return None
        self._claimed_at[claim.claim_id] = log, log.sequence
        return claim

    def end(self, claim: Claim, results: Sequence[EndOfClaim]) -> list[Ending]:
        """End a claim by what became of its deliveries.

        An ending counts only for a delivery that is still under this claim: where somebody else
        has ended it, by its expired lease, the result comes too late and is left out.

        Args:
            claim: as `claim` returned it.
            results: one per delivery, in the claim's order.

        Returns:
            The endings that were decided, one per delivery.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        endings = self.decide(claim, results)
        rows = ending_rows(claim, endings, now=self.clock.now())
        # The log may have been polled since the claim: what came in between counts as well.
        log = self.logs.of(claim.deliveries)
        since: int | None
        log, since = self._claimed_at.pop(claim.claim_id, (log, None))
        if since is None:  # ended here before, or claimed by another store: the log knows
            since = log.position_of(claim.claim_id, claimed_at=claim.claimed_at)
        if since is not None:
            log.append_endings(log.still_live(rows, since=since))
        return list(endings)

    def presence(self) -> Presence:
        """Return what says which relays work from this home; of no home nothing is known."""
        return Presence(self.home.relays if self.home else None)

    def release_expired_claims(self) -> int:
        """End the claims whose worker is gone, and return how many deliveries that requeues.

        What proves it: the lock of the local home, or a lease that is over by more than
        `clock_skew_seconds`. A relay also observes leases by its own clock.
        """
        self.logs.catch_up()
        read_view = self.read_view()
        expired = self.expired_claims
        claims = self.deliveries.overview(read_view).claims
        return expired.expire(
            read_view, [row["claim_id"] for row in claims if expired.is_over(row)]
        )

    def apply_commands_if_alone(self) -> int:
        """Apply the commands that nobody has applied yet, unless a relay is alive that will.

        Replays, releases of claims that are over, and kills of what is due. With a living relay
        elsewhere nothing is done: it applies them within a minute.

        Returns:
            How many transitions that took.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        if not self.exclusive and is_any_alive(
            self.spark, self.tables, clock=self.clock, presence=self.presence()
        ):
            return 0
        if not self.finish_change_of_lanes():
            return 0  # they wait for the next epoch
        count = self.apply_commands()
        if count:
            self.refresh(planned_by=self.worker_id)
        return count + self.end_what_waits_for_it()

    def finish_change_of_lanes(self) -> bool:
        """Finish a change of the lanes that was interrupted, as far as that needs no waiting.

        Returns:
            Whether none is under way (any more).
        """
        if not self.logs.epoch.is_ending:
            return True
        change = LaneChange(self)
        return any(change.step() for _ in range(LANE_STEPS))

    def apply_commands(self, *, to: int | None = None) -> int:
        """Apply commands, whoever else is alive; see `Commands.apply`."""
        return Commands(self).apply(to=to)

    def commands_applied_to(self) -> int:
        """Return the version of the command log up to which commands have been applied."""
        return Commands(self).applied_to()

    def end_what_waits_for_it(self) -> int:
        """End what is due and killed or past its age, by a claim that sends nothing."""
        count = 0
        for _ in range(ATTEMPTS):
            self.logs.catch_up()
            found = self.deliveries.endable(self.read_view())
            if not found.num_rows:
                return count
            for log, part in self.logs.parts(found):
                claim = self._append_claim(log, part)
                if claim is not None:
                    self.end(claim, results_without_sending(claim))
                    count += len(claim)
        return count

    # --- parts that the relay puts together -------------------------------------------------

    def new_claim(self, deliveries: pa.Table) -> Claim:
        """Make a claim of deliveries; nothing is written.

        Args:
            deliveries: columns of `claims.DELIVERIES`.
        """
        return make_claim(
            deliveries,
            policies=self.policies_in_force,
            now=self.clock.now(),
            claim_id=new_claim_id(),
        )

    def decide(
        self, claim: Claim, results: Sequence[EndOfClaim], *, claim_size: int | None = None
    ) -> Endings:
        """Decide the endings of a claim; nothing is written.

        Args:
            claim: the claim.
            results: one per delivery.
            claim_size: deliveries that the claim began with, if this is a part of it.
        """
        now = self.clock.now()
        return decide_endings(claim, results, now=now, jitter=random.random, claim_size=claim_size)

    @property
    def folder(self) -> Path:
        """Return where relative paths of the settings start: the home, else the working folder."""
        return self.home.root if self.home else Path.cwd()

    def now_literal(self) -> str:
        """Return the current instant as an SQL literal."""
        return instant_literal(self.clock.now())
