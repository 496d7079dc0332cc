"""Plans the next claims: polls the logs, ends expired claims, applies commands, cuts a schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from delta_outbox.core.literals import listed
from delta_outbox.lifecycle.claims import without
from delta_outbox.lifecycle.order_scopes import scopes_of
from delta_outbox.lifecycle.states import OPEN_STATES
from delta_outbox.relay.backlog import find_backlog
from delta_outbox.relay.freshness import Freshness
from delta_outbox.relay.isolation import Isolation
from delta_outbox.relay.lane_share import LaneShare
from delta_outbox.relay.last_poll import LastPoll
from delta_outbox.relay.local_plan import NOTHING, LocalPlan
from delta_outbox.relay.open_claims import Claimed, OpenClaims
from delta_outbox.relay.other_lanes import OtherLanes
from delta_outbox.relay.schedule import Schedule
from delta_outbox.relay.standby import STANDBY_SECONDS, Standby
from delta_outbox.relay.timing import Timing
from delta_outbox.store.epochs import Epoch
from delta_outbox.store.heartbeat import Heartbeat
from delta_outbox.store.leases import LeaseWatch
from delta_outbox.store.open_deliveries import END_AT_ONCE, Overview
from delta_outbox.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCHES_PER_PLAN: Final = 10


class Planning:
    """Plans the work of one relay on its lanes.

    Args:
        outbox: the store.
        heart: says who else is alive.
        batch_size: deliveries per claim.
        isolation: what each destination may be asked.
    """

    def __init__(
        self, outbox: Store, heart: Heartbeat, *, batch_size: int, isolation: Isolation
    ) -> None:
        self._outbox = outbox
        self._clock = outbox.clock
        self._isolation = isolation
        self._unavailable: frozenset[str] = frozenset()  # at the last poll
        self._batch_size = batch_size
        self._leases = LeaseWatch(outbox.clock)
        self._freshness = Freshness(outbox)
        self._timing = Timing(outbox.clock)
        self._local = LocalPlan(outbox, isolation, batch_size=batch_size)
        self._schedule: Schedule | None = None
        self.to_end: pa.Table = NOTHING
        self.open = 0  # deliveries, when there was nothing to take
        self._claims = OpenClaims(outbox, self._leases)
        self._standby = Standby(outbox, heart, self._leases)
        self._share = LaneShare(outbox, heart)
        self._last = LastPoll(outbox, self._share)
        self._other_lanes = OtherLanes(outbox, self._share, self._timing)
        self._epoch: Epoch | None = None  # of the lanes, at the last poll
        self._commands_seen = 0
        self._planned_by = ""  # the version of the policies
        self._of_others: frozenset[str] = frozenset()  # claims that were alive when it changed

    @property
    def schedule(self) -> Schedule | None:
        """Return what may be taken; None if it has to be asked for."""
        return self._schedule if self._schedule is not None and len(self._schedule) else None

    def forget(self) -> None:
        """Make the plan void: it was made of a log that has moved on."""
        self._schedule = None
        self.to_end = NOTHING
        self._last.forget()

    def take_ends(self, room: int) -> pa.Table:
        """Return deliveries of one lane that are to be ended unsent; they are taken off the list.

        Args:
            room: deliveries at most.
        """
        first, *others = [part for _, part in self._outbox.logs.parts(self.to_end)] or [NOTHING]
        self.to_end = pa.concat_tables([first.slice(room), *others])
        return first.slice(0, room)

    def is_low(self, *, is_idle: bool = False, has_slot: bool = False) -> bool:
        """Say whether it is time to poll, while something is being published or held back.

        Args:
            is_idle: what is planned has to wait, and somebody could do more.
            has_slot: more could be in flight, and nothing that is planned may be.
        """
        if is_idle:
            return not self.is_fresh
        has_plan = self.schedule is not None and not (has_slot and self._local.has_more)
        return self._timing.is_over(has_plan=has_plan)

    @property
    def is_fresh(self) -> bool:
        """Say whether another poll would probably show the same."""
        return self._timing.is_fresh and not self._local.has_more

    @property
    def is_all_done(self) -> bool:
        """Say whether all that was open at the last poll is owned or has been delivered."""
        return (
            bool(self._last)
            and self._last.unowned + self._other_lanes.open == 0
            and not (self.schedule or self._local.is_waiting or self._local.has_more)
        )

    def seconds_to_wait(self) -> float:
        """Return the seconds until something may become eligible, as far as is known."""
        if self._other_lanes.due:  # somebody else takes it, or leaves it to us
            return 0.0
        return min(self._timing.next_due - self._clock.monotonic(), self._isolation.hope())

    def has_news(self) -> bool:
        """Say whether there are new events since the last poll, where the log is a folder here."""
        return self._last.has_news()

    def pause(self) -> float:
        """Return the seconds until another poll may be of use, if there is nothing to do."""
        poll = self._outbox.settings.relay.poll_seconds
        if self._last.standing_by:
            return max(poll, STANDBY_SECONDS)
        if self._other_lanes.open:
            return max(0.01, min(poll, self._other_lanes.seconds_quiet()))
        return max(0.01, min(poll, self.seconds_to_wait()))

    def poll(
        self,
        *,
        alive: Set[str],
        ahead: int,
        takes_over: bool,
        shares_lanes: bool = True,
        is_idle: bool = False,
    ) -> None:
        """Poll the logs, and plan.

        Args:
            alive: our own claims that are in flight or end with the next append.
            ahead: batches to plan.
            takes_over: whether to work beside another living relay.
            shares_lanes: where there are several, leave to others what they have.
            is_idle: as `is_low` has been told.
        """
        started = self._timing.begin()
        latest = self._latest_versions()
        moved = self._standby.saw(latest["transitions"], at=started)
        stood_by = self._last.standing_by
        if self._is_quiet(latest, alive, moved=moved, now=started):
            return
        if self._share.are_several:
            stood_by = self._choose_lanes(is_asked=shares_lanes)
        begins = self._begins_with_nothing(latest, takes_over)
        # Who stands by leaves it to the owner; where that has died, what it has left comes first.
        if not self._last.standing_by:
            self._freshness.keep(
                latest, is_publishing=bool(alive), is_read_next=not self._last.is_all_owned(latest)
            )
        unavailable = self._isolation.unavailable()
        is_same = unavailable == self._unavailable
        may_age = self.schedule is not None and self._outbox.policies_in_force.any_age
        is_known = self._last.shows(latest) and not may_age
        if is_same and is_known and started < self._timing.next_due:
            self._timing.extend(started)
            return
        if (
            is_same
            and (begins or self._last.is_all_owned(latest))
            and self._plan_locally(latest, alive=alive, ahead=ahead, is_idle=is_idle)
        ):
            self._timing.end(started, is_cheap=True)
            return
        self._local.clear()
        self._unavailable = unavailable
        self._outbox.logs.catch_up(latest["transitions"])
        everything = self._outbox.read_view(latest)
        read_view = self._share.of(everything)
        found = self._outbox.deliveries.overview(read_view)
        self._leases.observe(found.claims, since=self._standby.at_rest_since)
        self._last.standing_by = self._stands_by(found.claims, takes_over=takes_over)
        self._schedule, self._claims.are_unresolved = None, False
        self._last.saw(latest)
        self.to_end = NOTHING
        if not self._last.standing_by:
            if stood_by:
                self._isolation.load(again=True)  # the other one may have left a breaker open
            seen = self._outbox.logs.positions
            requeued = self._claims.end(
                read_view, found.claims, alive=alive
            ) + self._apply_commands(latest)
            if self._outbox.logs.epoch != self._epoch:
                self._begin_epoch()  # an append has lost to the end of the former one
                return
            # Either may have gone past what others appended, also if it appended nothing itself:
            # a claim that is planned without that would not lose to it.
            if requeued or self._outbox.logs.positions != seen:
                # What operators have asked for meanwhile is for the next poll.
                latest = {
                    **self._outbox.projection.latest_versions(),
                    "commands": latest["commands"],
                }
                everything, found = self._read_view_anew(latest)
                read_view = self._share.of(everything)
                self._last.saw(latest)
            if self._plan(read_view, latest, ahead=ahead, alive=alive, found=found):
                self._timing.end(started)
                return
        self._note_unowned(everything, found, latest, alive)
        if self._claims.are_unresolved:  # to be asked again, whether anything moves or not
            self._last.forget()
            pause = self._outbox.unknown_results.seconds_to_wait()
            self._timing.due_no_later(self._clock.monotonic() + pause)
        self._timing.end(started)

    def _read_view_anew(self, latest: dict[str, int]) -> tuple[DataFrame, Overview]:
        """Return what is open now, and of our lanes how much of it."""
        everything = self._outbox.read_view(latest)
        found = self._outbox.deliveries.overview(self._share.of(everything))
        self._leases.observe(found.claims)
        return everything, found

    def _note_unowned(
        self, everything: DataFrame, found: Overview, latest: dict[str, int], alive: Set[str]
    ) -> None:
        """Note how much is open that this relay has neither planned nor claimed."""
        claimed = sum(claim["deliveries"] for claim in found.claims if claim["claim_id"] in alive)
        planned = self.schedule
        self._last.unowned = (
            found.open - claimed - self.to_end.num_rows - (len(planned) if planned else 0)
        )
        if self.schedule is None and not self.to_end.num_rows:
            self._note(found)
            if self._share.are_several:
                self._poll_other_lanes(everything, latest, alive)
        else:  # what is left may be taken as soon as this is used up
            self._timing.next_due = float("inf") if self._last.unowned == 0 else 0.0

    def _choose_lanes(self, *, is_asked: bool) -> bool:
        """Choose our lanes; say whether others may have worked on them before."""
        gained = self._share.choose(is_asked=is_asked)
        if gained:  # what is left of the others is not known
            self._last.forget()
            self._other_lanes.forget()
        self._last.standing_by = not self._share.owned
        return gained

    def _stands_by(self, claims: Sequence[Claimed], *, takes_over: bool) -> bool:
        """Say whether to leave the work to another relay."""
        if self._share.are_several:
            return not self._share.owned
        return not takes_over and self._standby.has_owner(claims)

    def _latest_versions(self) -> dict[str, int]:
        """Return the latest versions of the logs, asked for once it is known which lanes there are:
        so they show how the epoch before ended.
        """
        if self._outbox.logs.epoch != self._epoch:
            self._begin_epoch()
        return self._outbox.projection.latest_versions()

    def _begin_epoch(self) -> None:
        """Forget what was true of the lanes of another epoch."""
        self._epoch = self._outbox.logs.epoch
        self.forget()
        self._share.begin()
        self._last.standing_by, self._commands_seen = False, 0
        self._other_lanes.forget()
        self._timing.next_due = self._clock.monotonic()

    def _is_quiet(
        self, latest: Mapping[str, int], alive: Set[str], *, moved: bool, now: float
    ) -> bool:
        """Say whether nothing can be for us but what another relay leaves to us."""
        if self._share.are_several:
            return (
                self._other_lanes.is_quiet(latest)
                and now < self._timing.next_due
                and not alive
                and self.schedule is None
                and not self.to_end.num_rows
            )
        if not self._last.standing_by:
            return False
        self._timing.extend(now)
        if moved:  # what is left is not known
            self._last.forget()
            self._timing.next_due = now
        return self._standby.goes_on(moved=moved, now=now)

    def _poll_other_lanes(
        self, everything: DataFrame, latest: dict[str, int], alive: Set[str]
    ) -> None:
        """Poll the lanes of others, with nothing to do on our own; go on to those that nobody has,
        if a relay may not have them all at once.
        """
        self._other_lanes.poll(everything, latest)
        if self._other_lanes.due and not alive and self._share.choose(goes_on=True):
            self._last.forget()
            self._other_lanes.poll_again()

    def plan_new_events(self, *, alive: Set[str], ahead: int) -> None:
        """Plan what is new, if that is all there is to it, so that its claims go on record together
        with endings that are not there yet.

        Nothing that such an ending requeues is among it: that could be claimed too early.

        Args:
            alive: our own claims that are in flight or end with the next append.
            ahead: batches to plan.
        """
        if self.schedule is not None or self._local.is_waiting:
            return
        latest = self._outbox.projection.latest_versions()
        if (
            self._last.is_all_owned(latest)
            and latest["events"] > self._last.versions["events"]
            and self._isolation.unavailable() == self._unavailable
        ):
            started = self._clock.monotonic()
            if self._plan_locally(latest, alive=alive, ahead=ahead):
                self._timing.end(started)

    def requeue(self, deliveries: pa.Table) -> None:
        """Note that deliveries which were claimed are open again.

        Args:
            deliveries: columns of `claims.DELIVERIES`, as they are after their claim. That it has
                ended is on record before the next poll.
        """
        self._local.waiting.add(deliveries)
        self._heed_waiting()

    def block(self, *, waits: Set[str | None], dead: Set[str | None]) -> None:
        """Block some order scopes until the next poll: something of theirs was not delivered.
        Endings that say so are on record before that.

        Args:
            waits: those in which it is open again.
            dead: those in which it is DEAD: by the policy, what is behind it may go on.
        """
        if self._schedule is None:
            return
        self._schedule.block(waits)
        if self._schedule.block(dead):
            self._local.waiting.let_go()
            self._heed_waiting()

    def _heed_waiting(self) -> None:
        """Poll again when something of what waits may go on."""
        due_at = self._local.waiting.due_at
        if due_at is not None:
            self._timing.due_no_later(self._timing.instant_of(due_at))

    def _begins_with_nothing(self, latest: dict[str, int], takes_over: bool) -> bool:
        """Say whether a relay that has not polled yet finds nothing open but new events.

        The projection says so if it has seen all transitions, and all kills.
        """
        if self._last or self._planned_by:
            return False
        seen = self._outbox.projection.known_watermark()
        if seen is None or any(
            seen.versions[log] != latest[log] for log in ("transitions", "commands")
        ):
            return False
        if not self._share.has_all or self._stands_by([], takes_over=takes_over):
            return False
        if self._outbox.projection.is_anything_open(seen):
            return False
        self._outbox.logs.catch_up(latest["transitions"])
        positions = self._outbox.logs.positions
        if self._apply_commands(latest) or self._outbox.logs.positions != positions:
            return False
        if self._outbox.logs.epoch != self._epoch:
            return False  # an append has lost to the end of the epoch
        self._planned_by = self._outbox.policies_in_force.version
        self._last.saw({**latest, "events": seen.versions["events"]})
        return True

    def _plan_locally(
        self, latest: dict[str, int], *, alive: Set[str], ahead: int, is_idle: bool = False
    ) -> bool:
        """Plan what is new and what was requeued, where all else that is open is owned already and
        `Schedule` keeps its order; False if a read view has to be asked for.
        """
        if not self._may_plan_locally(alive):
            return False
        after, to = self._last.versions["events"], latest["events"]
        planned = self._local.plan(
            self._schedule,
            after=after,
            to=to,
            ahead=ahead,
            is_publishing=bool(alive),
            is_idle=is_idle,
        )
        if planned is None:
            return False
        self._freshness.planned(planned.new)
        self._schedule = planned.schedule
        self._last.saw({**latest, "events": planned.reached})
        due_at = self._local.waiting.due_at
        self._timing.next_due = float("inf") if due_at is None else self._timing.instant_of(due_at)
        if planned.schedule is None and self._local.has_more:  # none of what was read is due
            self._timing.next_due = self._clock.monotonic()
        return True

    def _may_plan_locally(self, alive: Set[str]) -> bool:
        """Say whether nothing decides on what is eligible but the order of keys and the clock."""
        policies = self._outbox.policies_in_force
        return not (
            self.to_end.num_rows
            or self._claims.are_unresolved
            or policies.any_hold
            or policies.any_age
            or policies.version != self._planned_by
            or self._of_others & alive
            or self._isolation.unavailable()
        )

    def _plan_backlog(
        self,
        read_view: DataFrame,
        latest: dict[str, int],
        counts: pa.Table,
        *,
        ahead: int,
        alive: Set[str],
        found: Overview,
    ) -> bool:
        """Plan a backlog as `_plan_locally` plans what is new, so that nobody has to ask for all of
        it again; False if the read view has to say what is eligible.
        """
        if (
            self._local.is_full
            or not self._share.has_all
            or any(claim["claim_id"] not in alive for claim in found.claims)
            or not self._may_plan_locally(alive)
        ):
            return False
        backlog = find_backlog(
            self._outbox, read_view, counts, to=latest["events"], limit=self._batch_size * ahead
        )
        if backlog is None:
            return False
        self._local.waiting.add(backlog.tried)
        self._last.saw({**latest, "events": backlog.reached})
        self._last.unowned = 0
        if self._plan_locally(latest, alive=alive, ahead=ahead):
            return True
        self._local.clear()
        self._last.saw(latest)
        return False

    def _plan(
        self,
        read_view: DataFrame,
        latest: dict[str, int],
        *,
        ahead: int,
        alive: Set[str],
        found: Overview,
    ) -> bool:
        """Plan from a read view; say whether all that is open is known, and need not be asked for
        again.
        """
        policies = self._outbox.policies_in_force
        if policies.version != self._planned_by:
            self._planned_by, self._of_others = policies.version, frozenset(alive)
        ends = latest["commands"] > 0 or policies.any_age
        self.to_end = self._outbox.deliveries.endable(read_view) if ends else NOTHING
        if self.to_end.num_rows >= END_AT_ONCE:  # what is more of it must not be taken
            return False
        # What is owned blocks its keys if it is unresolved, and while it is
        # in flight by other policies: what it keeps in order is not told by the names of their
        # scopes.
        is_held = self._claims.are_unresolved or bool(self._of_others & alive)
        held_by = None if is_held else self._outbox.worker_id
        per_destination = self._isolation.per_destination(batch_size=self._batch_size, ahead=ahead)
        self._unavailable = per_destination.unavailable if per_destination else frozenset()
        limit, counts = self._batch_size * ahead, None
        if found.pending <= limit:
            self._local.is_full = False
        elif per_destination is None or not (per_destination.unavailable or self._local.is_full):
            counts = self._outbox.deliveries.by_commit(read_view)
            if self._plan_backlog(read_view, latest, counts, ahead=ahead, alive=alive, found=found):
                return True
        eligible = self._outbox.deliveries.eligible(
            read_view,
            limit,
            held_by=held_by,
            per_destination=per_destination,
            found=found,
            counts=counts,
        )
        if self.to_end.num_rows:
            eligible = without(eligible, self.to_end)
        if not eligible.num_rows:
            return False
        self._schedule = self._local.schedule_of(eligible, scopes_of(eligible, policies))
        return False

    def _apply_commands(self, latest: dict[str, int]) -> int:
        """Append what operators ask for; returns how many transitions that made."""
        if latest["commands"] <= self._commands_seen:
            return 0
        count = self._outbox.apply_commands()
        self._isolation.reload()
        self._commands_seen = latest["commands"]
        return count

    def finish(self) -> None:
        """Refresh the projection, and count what is open."""
        try:
            self._freshness.refresh()
        finally:
            self._freshness.close()
        if self.is_all_done:
            self.open = 0
            return
        row = self._outbox.spark.sql(
            f"select count(*) as open from {self._outbox.tables.state} "
            f"where state in ({listed(OPEN_STATES)})"
        ).first()
        self.open = int(row["open"]) if row is not None else 0

    def _note(self, found: Overview) -> None:
        """Note what is open, and when something of it may become eligible."""
        # What became due since the question was asked counts as due soon; and while another
        # relay owns the lane, what is due is its next batch.
        waits = [0.0] if self._last.standing_by and found.due else []
        if found.next_due is not None:
            waits.append((found.next_due - self._clock.now()).total_seconds())
        leases = self._claims.seconds_left(found.claims)
        waits += leases
        self.open = found.open
        self._standby.polled(leases)
        self._timing.next_due = self._clock.monotonic() + min(waits, default=float("inf"))

    def start(self) -> None:
        """Make sure that there is a projection to plan with."""
        self._freshness.start()
