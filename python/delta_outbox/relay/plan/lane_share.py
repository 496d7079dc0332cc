"""Chooses the lanes of a relay, where there are several: those that no other relay owns; and tells
what is open on those of others.

Advice, as all ownership is: where two relays take the same lane for theirs, one of them loses its
appends, and time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from delta_outbox.core.clock import NEVER
from delta_outbox.core.literals import instant_literal
from delta_outbox.lifecycle.claims import OPEN_ITEM
from delta_outbox.relay.plan.standby import STANDBY_SECONDS
from delta_outbox.relay.plan.timing import Timing
from delta_outbox.store.heartbeat import Heartbeat
from delta_outbox.store.open_deliveries import Overview
from delta_outbox.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def share_of(
    relay_id: str,
    living: Mapping[str, Collection[int]],
    *,
    lanes: int,
    most: int,
    to: Collection[int] = (),
) -> frozenset[int]:
    """Return the lanes on which a relay is to work.

    It keeps those that it has, unless one that began earlier has them too, and takes those that
    nobody has, up to its share: an equal part, the first relays one more where that does not go in.

    Args:
        relay_id: whose.
        living: the relays that are alive and the lanes of each, in the order in which they began.
        lanes: how many there are.
        most: on how many a relay may work.
        to: lanes on which something is to be done, while nothing is on its own: it begins with
            those of them that nobody has, in turn.
    """
    names = list(living)
    rank = names.index(relay_id)
    share = min(most, lanes // len(names) + (rank < lanes % len(names)))
    of_earlier = {lane for name in names[:rank] for lane in living[name]}
    of_others = {lane for name in names if name != relay_id for lane in living[name]}
    kept = [one for one in sorted(living[relay_id]) if one < lanes and one not in of_earlier]
    free = [one for one in range(lanes) if one not in of_others and one not in kept]
    behind = max(living[relay_id], default=-1) + 1
    in_turn = sorted({*to} & {*free}, key=lambda one: (one - behind) % lanes)
    return frozenset([*dict.fromkeys((*in_turn, *kept, *free))][:share])


class LaneShare:
    """The lanes of one relay.

    Args:
        outbox: the store.
        heart: says who else is alive, and tells the others.
    """

    def __init__(self, outbox: Store, heart: Heartbeat) -> None:
        self._outbox = outbox
        self._heart = heart
        self.owned: frozenset[int] = frozenset({0})
        self._unowned: frozenset[int] = frozenset()  # by nobody

    @property
    def are_several(self) -> bool:
        """Say whether there are several lanes; of one, `Planning` knows who has it."""
        return self._outbox.logs.epoch.lanes > 1

    @property
    def has_all(self) -> bool:
        """Say whether all lanes are owned."""
        return not self.are_several or len(self.owned) == self._outbox.logs.epoch.lanes

    @property
    def part(self) -> Fraction:
        """Return the part of all lanes that is owned."""
        lanes = self._outbox.logs.epoch.lanes
        return Fraction(min(len(self.owned), lanes), lanes)  # a new epoch may have fewer

    def begin(self) -> None:
        """Have none of the lanes of a new epoch, or the only one."""
        self.owned = frozenset() if self.are_several else frozenset({0})
        self._heart.work_on(self.owned)

    def choose(self, *, leaves_others: bool = True, to: Collection[int] = ()) -> bool:
        """Choose the lanes anew; say whether they are others than before.

        Args:
            leaves_others: leave to other relays what they have; else take all.
            to: as in `share_of`.
        """
        outbox, before = self._outbox, self.owned
        living: Mapping[str, Collection[int]] = {outbox.worker_id: before}
        if leaves_others and not outbox.expired_claims.is_alone:
            living = {
                name: before if name == outbox.worker_id else lanes
                for name, lanes in self._heart.living().items()
                if not outbox.expired_claims.is_gone(name)
            }
        lanes = outbox.logs.epoch.lanes
        self.owned = share_of(
            outbox.worker_id,
            living,
            lanes=lanes,
            most=outbox.settings.relay.max_lanes if leaves_others else lanes,
            to=to,
        )
        others = {lane for its in living.values() for lane in its}
        self._unowned = frozenset(range(lanes)) - self.owned - others
        self._heart.work_on(self.owned)
        return self.owned != before

    def of(self, read_view: DataFrame) -> DataFrame:
        """Return what a read view shows of the lanes that we own.

        Args:
            read_view: the open deliveries.
        """
        return read_view if self.has_all else read_view.where(self._is_owned())

    def others(self, read_view: DataFrame) -> DataFrame:
        """Return what a read view shows of the lanes of others.

        Args:
            read_view: the open deliveries.
        """
        return read_view.where(f"not ({self._is_owned()})")

    def unowned(self, read_view: DataFrame, *, condition: str) -> frozenset[int]:
        """Return the lanes of nobody on which a read view shows something.

        Args:
            read_view: the open deliveries.
            condition: which of them count, as SQL.
        """
        if not self._unowned:
            return frozenset()
        found = read_view.where(condition).selectExpr(f"{self._lane} as lane").distinct()
        return self._unowned & frozenset(found.toArrow()["lane"].to_pylist())

    def _is_owned(self) -> str:
        listed = ", ".join(map(str, sorted(self.owned)))
        return f"{self._lane} in ({listed})" if listed else "false"

    @property
    def _lane(self) -> str:
        return self._outbox.statements.fill("lane", lanes=self._outbox.logs.epoch.lanes)


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What was seen of the lanes of others.

    Args:
        versions: of the logs of events and of commands.
        open: deliveries, waiting or claimed.
        due: those that may be claimed now, and claims, which may be left to us; items that are over
            count as one.
        next_due: when the next one is, or an item is over, in monotonic seconds.
        until: monotonic seconds; before that another poll would probably show the same.
    """

    versions: tuple[int, int]
    open: int
    due: int
    next_due: float
    until: float


class OtherLanes:
    """What one relay, with nothing to do on its own lanes, has seen of the others.

    Args:
        outbox: the store.
        share: which lanes are its own.
        timing: of its polls; told when something here may become eligible.
    """

    def __init__(self, outbox: Store, share: LaneShare, timing: Timing) -> None:
        self._outbox = outbox
        self._clock = outbox.clock
        self._share = share
        self._timing = timing
        self._seen: _Seen | None = None
        self._go_on_at = 0.0  # monotonic seconds

    def forget(self) -> None:
        """Know nothing any more: the lanes are others, or have not been looked at for long."""
        self._seen = None

    @property
    def open(self) -> int | None:
        """Return how many deliveries they have, None if that is not known."""
        if self._share.has_all:
            return 0
        return None if self._seen is None else self._seen.open

    def found_work(self) -> None:
        """Note that something was to be done on our own lanes."""
        self._go_on_at = 0.0

    def to_go_on(self, read_view: DataFrame, *, own: Overview) -> frozenset[int]:
        """Return the lanes of nobody on which something is due; none for a while after we have gone
        on to some in vain. A claim that its relay has left counts as due to whoever has nothing
        open on its own lanes; else it waits there for the end of another.

        Args:
            read_view: what is open on all lanes.
            own: what is open on our own.
        """
        now = self._clock.monotonic()
        if self._share.has_all or now < self._go_on_at or not (self._seen and self._seen.due):
            return frozenset()
        at = instant_literal(self._clock.now())
        is_due = self._outbox.statements.fill("is_due", now=at)
        condition = f"state = 'PENDING' and {is_due}"
        condition += f" or {OPEN_ITEM} and lease_expires_at <= {at}"
        if not own.open:
            condition += f" or state = 'CLAIMED' and not {OPEN_ITEM}"
        lanes = self._share.unowned(read_view, condition=condition)
        if lanes:
            self._go_on_at = now + STANDBY_SECONDS
        return lanes

    def seconds_to_wait(self) -> float:
        """Return the seconds until something may become eligible, as far as is known."""
        if self._share.has_all:
            return NEVER
        if self._seen is None or self._seen.due:  # somebody else takes it, or leaves it to us
            return 0.0
        return self._seen.next_due - self._clock.monotonic()

    def seconds_quiet(self) -> float:
        """Return the seconds until another poll may be of use."""
        return 0.0 if self._seen is None else self._seen.until - self._clock.monotonic()

    def are_left_alone(self, latest: Mapping[str, int]) -> bool:
        """Say whether there are none, or a poll would show nothing that is of use.

        Args:
            latest: version of each log.
        """
        if self._share.has_all:
            return True
        is_empty = self.open == 0 and self._shows(latest)
        return is_empty or self.seconds_quiet() > 0

    def is_quiet(self, latest: Mapping[str, int]) -> bool:
        """Say whether another poll would probably show the same.

        Args:
            latest: version of each log.
        """
        return self.seconds_quiet() > 0 and self._shows(latest)

    def arrived(self, events: int, *, to: int) -> None:
        """Note that new events came.

        Args:
            events: how many are theirs.
            to: version of the event log up to which these are all.
        """
        if self._seen is not None:
            self._seen = replace(
                self._seen,
                versions=(to, self._seen.versions[1]),
                open=self._seen.open + events,
                due=self._seen.due + events,
            )

    def poll(self, read_view: DataFrame, latest: Mapping[str, int]) -> None:
        """Poll them, once it is known when something of our own lanes may become eligible.

        Args:
            read_view: what is open on all lanes.
            latest: version of each log that it was taken from.
        """
        if self._share.has_all:
            return
        found = self._outbox.deliveries.overview(self._share.others(read_view))
        due = found.due + len(found.claims) + found.has_items_over
        next_due = NEVER
        if not due:
            nexts = [one for one in (found.next_due, found.items_over) if one is not None]
            next_due = min(map(self._timing.instant_of, nexts), default=next_due)
        now = self._clock.monotonic()
        self._seen = _Seen(
            versions=_versions(latest),
            open=found.open,
            due=due,
            next_due=next_due,
            until=min(now + STANDBY_SECONDS, self._timing.next_due, next_due),
        )
        self._timing.due_no_later(next_due)

    def _shows(self, latest: Mapping[str, int]) -> bool:
        return self._seen is not None and self._seen.versions == _versions(latest)


def _versions(latest: Mapping[str, int]) -> tuple[int, int]:
    return latest["events"], latest["commands"]
