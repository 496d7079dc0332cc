"""Plans by list and watch: the window lists what is open once, and follows what the logs get since.

One rule decides which of the two: when in doubt, list again. To be wrong is harmless, for a claim
that was made of something older loses its append; so wherever the position moves past rows of
others, what was planned before is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.errors import LaneClosed
from delta_outbox.core.literals import listed
from delta_outbox.delta.log_reader import Added
from delta_outbox.lifecycle.claims import OPEN_ITEM
from delta_outbox.lifecycle.states import OPEN_STATES
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.plan.arrivals import Arrivals
from delta_outbox.relay.plan.freshness import Freshness
from delta_outbox.relay.plan.lane_share import LaneShare, OtherLanes
from delta_outbox.relay.plan.left_out import LeftOut
from delta_outbox.relay.plan.listing import Listed, Listing, Opened
from delta_outbox.relay.plan.others_claims import OthersClaims
from delta_outbox.relay.plan.plan import NOTHING, Plan
from delta_outbox.relay.plan.standby import STANDBY_SECONDS, Standby
from delta_outbox.relay.plan.timing import Spare, Timing
from delta_outbox.relay.plan.window import Window
from delta_outbox.store.apply_commands import Commands
from delta_outbox.store.epochs import Epoch
from delta_outbox.store.heartbeat import Heartbeat
from delta_outbox.store.leases import LeaseWatch
from delta_outbox.store.store import Store

BATCHES_PER_PLAN: Final = 10


@dataclass(kw_only=True)
class _Poll:
    """One poll.

    Args:
        latest: version of each log.
        alive: our own claims that are in flight; the endings of all others are on record.
        started: monotonic seconds.
        asked_at: the logs were asked after that.
        takes_over: whether to work beside another living relay.
        is_idle: as `Spare` says.
    """

    latest: dict[str, int]
    alive: Set[str]
    started: float
    asked_at: datetime
    takes_over: bool = False
    is_idle: bool = False


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
        self._batch_size = batch_size
        self._room = batch_size * BATCHES_PER_PLAN
        self._leaves_others = True
        self._leases = LeaseWatch(outbox.clock)
        self._freshness = Freshness(outbox)
        self._timing = Timing(outbox.clock)
        self._arrivals = Arrivals(outbox)
        self._standby = Standby(outbox, heart, self._leases)
        self._share = LaneShare(outbox, heart)
        self._other_lanes = OtherLanes(outbox, self._share, self._timing)
        self._listing = Listing(outbox, isolation, self._share, self._leases, batch_size=batch_size)
        self._plan = self._new_plan()
        self._has_begun = False  # it has planned once
        self._is_stuck = False  # it is of no use to read on: all that is open has to be listed
        self._commands_seen = 0
        self._in_doubt: Set[str] = frozenset()  # claims in flight as commands were last applied
        self._epoch: Epoch | None = None  # of the lanes, at the last poll
        self._stands_by = False
        self.open = 0  # deliveries, in the end

    # --- the plan ----------------------------------------------------------------------------

    def _new_plan(self) -> Plan:
        return Plan(
            self._outbox,
            self._isolation,
            self._timing,
            batch_size=self._batch_size,
            room=self._room,
        )

    def forget(self) -> None:
        """Make the plan void: it was made of a log that has moved on."""
        self._plan = self._new_plan()

    def select(self) -> Window | None:
        """Return the window, with what may be claimed now; None if that is nothing, as far as is
        known.
        """
        return self._plan.window if self._plan.select() else None

    @property
    def claimed_for(self) -> set[str]:
        """Return the destinations of what the window holds that was claimed before."""
        return self._plan.window.claimed_for

    @property
    def has_work(self) -> bool:
        """Say whether something may be claimed, or is to be ended unsent."""
        return self._plan.has_work()

    def take_ends(self, room: int) -> pa.Table:
        """Return deliveries of one lane that are to be ended unsent; they leave the window.

        Args:
            room: deliveries at most.
        """
        return self._plan.window.take_ends(room) if self.has_work else NOTHING

    def requeue(self, claim_id: str, deliveries: pa.Table) -> None:
        """Note that deliveries which were claimed are open again, or DEAD and hold their key.

        They are in the window from the next poll on, when that is on record; until then nothing is
        taken of their order scopes. Those of a lane that another relay has now are left to it.
        Where commands were applied while they were in flight, they may be killed, and all that is
        open is listed instead.

        Args:
            claim_id: the claim.
            deliveries: what is left of it, as the window has them.
        """
        deliveries = self._of_our_lanes(deliveries)
        if not deliveries.num_rows:
            return
        self._timing.due_no_later(self._clock.monotonic())
        if claim_id in self._in_doubt:
            self.forget()
        else:
            self._plan.requeue(deliveries)

    # --- when to poll ------------------------------------------------------------------------

    def is_due(self, spare: Spare | None = None) -> bool:
        """Say whether to poll, with nothing to claim.

        Args:
            spare: what could go beside what is in flight; None if nothing is.
        """
        if spare is None or spare.is_idle:
            return self.select() is None or not self._is_fresh
        if self._clock.monotonic() >= self._plan.others.over_at:
            return True
        return self._timing.is_over(has_plan=not self.awaits_news(spare))

    def awaits_news(self, spare: Spare) -> bool:
        """Say whether what comes may go at once: nothing is planned, or what is has to wait, and
        another poll takes in what is new.

        Args:
            spare: what could go beside what is in flight.
        """
        if self.select() is None:
            return True
        return spare.has_slot and self._plan.is_whole and not self._plan.has_enough

    @property
    def _is_fresh(self) -> bool:
        """Say whether another poll would probably show the same."""
        is_full = self._plan.has_enough and not self._plan.may_others_go_on()
        return self._timing.is_fresh and (is_full or not self._plan.has_more)

    @property
    def is_all_done(self) -> bool:
        """Say whether all that was open at the last poll has been claimed by this relay."""
        return self._plan.is_all_done and self._other_lanes.open == 0

    def seconds_to_wait(self) -> float:
        """Return the seconds until something may become eligible, as far as is known."""
        return min(
            self._timing.next_due - self._clock.monotonic(),
            self._isolation.seconds_to_probe(),
            self._other_lanes.seconds_to_wait(),
        )

    def list_by(self, at: datetime) -> None:
        """List what is open again: something that this relay has given away may be over.

        Args:
            at: the instant, by which.
        """
        instant = self._timing.instant_of(at)
        self._plan.left_out.list_by(instant)
        self._timing.due_no_later(instant)

    @property
    def part(self) -> Fraction:
        """Return the part of all lanes that we work on; none of the only one, standing by."""
        return Fraction(0) if self._stands_by else self._share.part

    def has_news(self) -> bool:
        """Say whether there are new events since the last poll, where the log is a folder here. A
        relay that stands by leaves them to the other one; its news is that this one has ended.
        """
        if self._stands_by:
            return self._standby.owner_has_left()
        latest = self._outbox.projection.latest_version_here(self._outbox.tables.events)
        return latest is not None and latest > self._plan.versions.get("events", latest)

    def pause(self) -> float:
        """Return the seconds until another poll may be of use, if there is nothing to do."""
        poll = self._outbox.settings.relay.poll_seconds
        if self._stands_by:
            return max(poll, STANDBY_SECONDS)
        if self._other_lanes.open:
            return max(0.01, min(poll, self._other_lanes.seconds_quiet()))
        return max(0.01, min(poll, self.seconds_to_wait()))

    # --- polls -------------------------------------------------------------------------------

    def start(self, *, once: bool = False) -> None:
        """Begin a run: say how it plans, and make sure that there is a projection to plan with.

        Args:
            once: plan a single batch, of all lanes, also of those that others have.
        """
        if once:
            self._room = self._batch_size
            self.forget()
        self._leaves_others = not once
        self._freshness.start()

    def has_unseen_events(self) -> bool:
        """Say whether there are events that the projection has not seen; False where that costs a
        query.
        """
        seen = self._outbox.projection.known_watermark()
        latest = self._outbox.projection.latest_version_here(self._outbox.tables.events)
        return seen is not None and latest is not None and latest > seen.versions["events"]

    def poll(self, *, alive: Set[str], takes_over: bool, is_idle: bool = False) -> None:
        """Poll the logs, and plan.

        Args:
            alive: our own claims that are in flight; the endings of all others are on record.
            takes_over: whether to work beside another living relay.
            is_idle: as `Spare` says.
        """
        self._enter_epoch()
        # Asked for when it is known which lanes there are: so they show how the last epoch ended.
        poll = _Poll(
            alive=alive,
            takes_over=takes_over,
            is_idle=is_idle,
            started=self._timing.begin(),
            asked_at=self._clock.now(),
            latest=self._outbox.projection.latest_versions(),
        )
        moved = self._standby.saw(poll.latest["transitions"])
        if not self._is_quiet(poll, moved=moved):
            has_listed = self._replan(poll)
            if not self._stands_by:  # else the owner keeps the views fresh
                self._freshness.keep(poll.latest, has_listed=has_listed)

    def _replan(self, poll: _Poll) -> bool:
        """Plan, and say whether what is open was listed for that."""
        stood_by = self._stands_by
        if self._share.are_several:
            stood_by = self._choose_lanes()
        elif not self._has_begun:
            self._stands_by = self._has_owner([], takes_over=poll.takes_over)
        self._begin_with_nothing(poll)
        if not (self._apply_to_items(poll) and self._end_claims_of_others(poll)):
            self._timing.end(poll.started)
            return False
        follows, end = self._follows(poll), None
        shows_all = self._plan.shows(poll.latest, follows=follows)
        if shows_all and poll.started < self._timing.next_due:
            self._plan.versions = dict(poll.latest)
            end = self._timing.extend
        elif follows and self._follow(poll):
            end = partial(self._timing.end, is_cheap=True)
        if end is not None and not (follows and self._needs_work(poll)):
            end(poll.started)
            return False
        if not self._stands_by:  # where the owner has died, what it has left comes first
            self._freshness.shorten(poll.latest)
        opened = self._resync(poll, stood_by=stood_by)
        self._other_lanes.forget()
        if self.has_work:
            self._other_lanes.found_work()
        elif opened is not None and self._share.are_several:
            self._poll_other_lanes(opened, poll.alive)
        self._timing.end(poll.started)
        return True

    def plan_new_events(self, *, alive: Set[str]) -> None:
        """Plan what is new, if that is all there is to it, so that its claims go on record together
        with endings that are not there yet.

        Args:
            alive: our own claims that are in flight.
        """
        if self.select() is not None:
            return
        poll = _Poll(
            alive=alive,
            started=self._clock.monotonic(),
            asked_at=self._clock.now(),
            latest=self._outbox.projection.latest_versions(),
        )
        if (
            self._follows(poll)
            and poll.latest["events"] > self._plan.versions["events"]
            and self._follow(poll, are_on_record=False)
        ):
            self._timing.end(poll.started)

    # --- watch -------------------------------------------------------------------------------

    def _follows(self, poll: _Poll) -> bool:
        """Say whether nothing has to be listed, but for what is new."""
        return not self._stands_by and self._plan.follows(
            poll.latest, at=poll.started, lanes=self._share.owned
        )

    def _needs_work(self, poll: _Poll) -> bool:
        """Say whether there is nothing to do on our own lanes, and something may be on others."""
        return not (poll.alive or self.has_work or self._other_lanes.are_left_alone(poll.latest))

    def _follow(self, poll: _Poll, *, is_listed: bool = False, are_on_record: bool = True) -> bool:
        """Take what is open again and what is new into the window; False if it has to be listed.
        As long as somebody waits for the first batches, only these are read.

        Args:
            poll: the latest versions, and what is in flight.
            is_listed: the window has just been listed; else what is eligible, with nothing in
                flight, could not be claimed.
            are_on_record: the endings of what is open again.
        """
        plan, to = self._plan, poll.latest["events"]
        is_eligible, after = plan.select(), plan.versions["events"]
        if (
            plan.has_enough
            and after < to
            and ((poll.is_idle and not is_listed) or (not poll.alive and plan.may_others_go_on()))
        ):
            self._is_stuck = True
            return False
        new, reached = NOTHING, after
        limit = plan.missing(are_first=not poll.alive and (is_listed or not is_eligible))
        if after < to and limit:
            found = self._arrivals.read(after=after, to=to, limit=limit)
            if found is None:
                return False
            reached = found.to
            new = plan.left_out.none_behind(
                self._ours(found), self._outbox.policies_in_force, self._timing
            )
            if plan.left_out.again_at <= self._clock.monotonic():  # something is too old already
                self._is_stuck = True
                return False
            self._freshness.planned(found.rows.num_rows)
        plan.add(
            new,
            versions={**poll.latest, "events": reached},
            has_more=reached < to,
            are_on_record=are_on_record,
        )
        return True

    def _ours(self, found: Added) -> pa.Table:
        """Return what is of our lanes, and note that the others have the rest."""
        ours = self._of_our_lanes(found.rows)
        if not self._share.has_all:
            self._other_lanes.arrived(found.rows.num_rows - ours.num_rows, to=found.to)
        return ours

    def _of_our_lanes(self, deliveries: pa.Table) -> pa.Table:
        if self._share.has_all:
            return deliveries
        return deliveries.filter(
            pc.is_in(
                pa.array(self._outbox.logs.epoch.lanes_of(deliveries), pa.int32()),
                pa.array(sorted(self._share.owned), pa.int32()),
            )
        )

    def _begin_with_nothing(self, poll: _Poll) -> None:
        """Begin with an empty window, if a relay that has not polled yet finds nothing open but new
        events. The projection says so if it has seen all transitions and kills, and no command
        waits that may open something.
        """
        if self._has_begun:
            return
        seen = self._outbox.projection.known_watermark()
        if seen is None or any(
            seen.versions[log] != poll.latest[log] for log in ("transitions", "commands")
        ):
            return
        if not self._share.has_all or self._stands_by:
            return
        if self._outbox.policies_in_force.any_hold:  # what is DEAD and holds its key is listed
            return
        if self._outbox.projection.is_anything_open(seen):
            return
        if poll.latest["commands"] > self._commands_seen:
            if self._outbox.commands_applied_to() < poll.latest["commands"]:
                return
            if self._outbox.projection.latest_versions() != poll.latest:
                return  # they may have been applied meanwhile
            self._isolation.reload()
            self._commands_seen = poll.latest["commands"]
        self._outbox.logs.catch_up(poll.latest["transitions"])
        versions = {**poll.latest, "events": seen.versions["events"]}
        self._plan.hold(NOTHING, LeftOut(), versions=versions, is_whole=True, others=OthersClaims())
        self._has_begun = True

    # --- list --------------------------------------------------------------------------------

    def _resync(self, poll: _Poll, *, stood_by: bool) -> Opened | None:
        """List what is open, apply commands, end claims that are over, and make the window anew;
        None if the epoch has ended meanwhile.

        Args:
            poll: the latest versions, and what is in flight; has those that were listed in the end.
            stood_by: others may have worked on our lanes.
        """
        self.forget()
        self._outbox.logs.catch_up(poll.latest["transitions"])
        self._listing.is_unresolved = False  # until claims are ended, and some cannot be
        opened = self._listing.open(poll.latest, at=poll.started, since=self._standby.at_rest_since)
        self._stands_by = self._is_left_to_others(opened.found.claims, takes_over=poll.takes_over)
        if self._stands_by:
            left_out = LeftOut(unavailable=self._isolation.unavailable())
            others = OthersClaims(claims=opened.found.claims)
            nothing = Listed(rows=NOTHING, reached=None, left_out=left_out, others=others)
            self._take(nothing, opened)
            return opened
        if stood_by:
            self._isolation.follow()  # the other one may have left a breaker open
        # Commands first: an answer that came in time counts, also if its item is over by now.
        seen = self._outbox.logs.positions
        self._apply_commands(poll)
        if self._enter_epoch():  # an append has lost to the end of the former one
            return None
        opened, seen = self._opened_since(seen, opened, poll.latest), self._outbox.logs.positions
        self._listing.end_claims(opened, in_flight=poll.alive, answered_to=poll.asked_at)
        if self._enter_epoch():
            return None
        opened = self._opened_since(seen, opened, poll.latest)
        self._is_stuck = self._is_stuck and opened.found.listable > self._room
        for leaves_untried in (not self._is_stuck, False):
            listed = self._listing.list_open(
                opened, room=self._room, in_flight=poll.alive, leaves_untried=leaves_untried
            )
            self._take(listed, opened)
            poll.latest = dict(opened.versions)
            if not self._plan.is_whole or self._follow(poll, is_listed=True):
                break
        return opened

    def _opened_since(
        self, seen: tuple[int, ...], opened: Opened, latest: Mapping[str, int]
    ) -> Opened:
        """Open what is open anew, if the logs were read beyond some positions: a claim that is
        planned without what others appended there would not lose to it.
        """
        if self._outbox.logs.positions == seen:
            return opened
        # What operators have asked for meanwhile is for the next poll.
        at, now = self._outbox.clock.monotonic(), self._outbox.projection.latest_versions()
        return self._listing.open({**now, "commands": latest["commands"]}, at=at)

    def _take(self, listed: Listed, opened: Opened) -> None:
        """Make the plan of what was listed."""
        self.forget()
        versions, is_whole = dict(opened.versions), listed.reached is not None
        if listed.reached is not None:
            versions["events"] = listed.reached
        self._plan.hold(
            listed.rows,
            listed.left_out,
            versions=versions,
            is_whole=is_whole,
            others=listed.others,
        )
        self._has_begun = True
        if not is_whole:
            self._note(opened)

    def _note(self, opened: Opened) -> None:
        """Note when something may become eligible, of what is not in the window."""
        if self.has_work:
            self._timing.next_due = 0.0  # what is left may be taken as soon as this is used up
            return
        # What became due since the question was asked counts as due soon; and while another
        # relay owns the lane, what is due is its next batch.
        found = opened.found
        leases = self._listing.leases_left(found)
        waits = [*leases, *([0.0] if self._stands_by and found.due else [])]
        if found.next_due is not None:
            waits.append((found.next_due - self._clock.now()).total_seconds())
        self._standby.polled(leases)
        now = self._clock.monotonic()
        self._timing.next_due = min([self._plan.left_out.again_at, *(now + wait for wait in waits)])

    # --- lanes, other relays, commands ---------------------------------------------------------

    def _choose_lanes(self) -> bool:
        """Choose our lanes; say whether others may have worked on them before."""
        gained = self._share.choose(leaves_others=self._leaves_others)
        if gained:  # what is left of the others is not known
            self.forget()
            self._other_lanes.forget()
        self._stands_by = not self._share.owned
        return gained

    def _is_left_to_others(self, claims: Sequence[Mapping[str, Any]], *, takes_over: bool) -> bool:
        """Say whether to leave the work to another relay."""
        if self._share.are_several:
            return not self._share.owned
        has_owner = self._has_owner(claims, takes_over=takes_over)
        if has_owner:
            self._standby.begins()
        return has_owner

    def _has_owner(self, claims: Sequence[Mapping[str, Any]], *, takes_over: bool) -> bool:
        return not takes_over and self._standby.has_owner(claims)

    def _enter_epoch(self) -> bool:
        """Forget what was true of the lanes of another epoch; say whether there is a new one."""
        if self._outbox.logs.epoch == self._epoch:
            return False
        self._epoch = self._outbox.logs.epoch
        self.forget()
        self._share.begin()
        self._stands_by, self._commands_seen = False, 0
        self._other_lanes.forget()
        self._timing.next_due = self._clock.monotonic()
        return True

    def _is_quiet(self, poll: _Poll, *, moved: bool) -> bool:
        """Say whether nothing can be for us but what another relay leaves to us."""
        if self._share.are_several:
            return (
                self._other_lanes.is_quiet(poll.latest)
                and poll.started < self._timing.next_due
                and not poll.alive
                and not self.has_work
            )
        if not self._stands_by:
            return False
        self._timing.extend(poll.started)
        if moved:  # what is left is not known
            self.forget()
            self._timing.next_due = poll.started
        return self._standby.goes_on(moved=moved, now=poll.started)

    def _poll_other_lanes(self, opened: Opened, alive: Set[str]) -> None:
        """Poll the lanes of others, with nothing to do on our own; go on to those that nobody has
        and on which something is due, if a relay may not have them all at once.
        """
        self._other_lanes.poll(opened.everything, opened.versions)
        to = () if alive else self._other_lanes.to_go_on(opened.everything, own=opened.found)
        if to and self._share.choose(to=to):
            self.forget()
            self._other_lanes.forget()
            self._timing.next_due = self._clock.monotonic()

    def _apply_commands(self, poll: _Poll) -> None:
        """Append what operators ask for."""
        if poll.latest["commands"] <= self._commands_seen:
            return
        self._in_doubt = poll.alive
        self._outbox.apply_commands()
        self._isolation.reload()
        self._commands_seen = poll.latest["commands"]

    def _apply_to_items(self, poll: _Poll) -> bool:
        """Apply what people say of items, if nothing else is asked for; False if the epoch has
        ended meanwhile. The window holds no item that a person has, and nothing waits in order
        behind one, so it stays as it is.
        """
        latest = poll.latest
        asked, seen = latest["commands"], self._plan.versions.get("commands", latest["commands"])
        if (
            not self._plan.is_whole
            or self._stands_by
            or asked <= seen
            or not Commands(self._outbox).are_of_items(after=seen, to=asked)
        ):
            return True

        def apply() -> None:
            self._outbox.apply_commands(to=asked)
            self._commands_seen = self._plan.versions["commands"] = asked

        return self._append(poll, apply)

    def _end_claims_of_others(self, poll: _Poll) -> bool:
        """End the claims of others that are over, by what was listed of them; False if the epoch
        has ended meanwhile. As long as the plan follows, nobody else has.
        """
        plan = self._plan
        if (
            poll.started < plan.others.over_at
            or plan.others.held is None
            or not self._follows(poll)
        ):
            return True

        def end() -> None:
            expired = self._outbox.expired_claims
            try:
                ended = plan.others.release(
                    expired, self._leases, at=poll.started, in_flight=poll.alive
                )
            except LaneClosed:  # of a table that was rewound; they end in the next epoch
                self.forget()
                return
            if expired.has_unresolved:  # a claim may be there still, in part
                self.forget()
                return
            others = plan.others.without(ended, self._leases, now=self._clock.monotonic())
            if not plan.release(ended, others=others):
                self.forget()

        return self._append(poll, end)

    def _append(self, poll: _Poll, append: Callable[[], None]) -> bool:
        """Append something that the plan takes in; False if the epoch has ended meanwhile.

        Args:
            poll: has the versions after that, in the end.
            append: does it.
        """
        passed = self._outbox.logs.passed(self._share.owned)
        append()
        if self._enter_epoch():
            return False
        if self._outbox.logs.passed(self._share.owned) != passed:
            self.forget()  # the position has moved past what others have appended
        now = self._outbox.projection.latest_versions()
        self._standby.saw(now["transitions"])  # what has come meanwhile was not there before
        # What operators have asked for meanwhile is for the next poll.
        poll.latest = {**now, "commands": poll.latest["commands"]}
        return True

    # --- the end -----------------------------------------------------------------------------

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
            f"where state in ({listed(OPEN_STATES)}) "
            f"and not {OPEN_ITEM}"
        ).first()
        self.open = int(row["open"]) if row is not None else 0
