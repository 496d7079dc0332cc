"""Chooses the lanes of a relay, where there are several: those that no other relay owns.

Advice, as all ownership is: where two relays take the same lane for theirs, one of them loses its
appends, and time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from delta_outbox.store.heartbeat import Heartbeat
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

    def begin(self) -> None:
        """Have none of the lanes of a new epoch, or the only one."""
        self.owned = frozenset() if self.are_several else frozenset({0})
        self._heart.work_on(self.owned)

    def choose(self, *, is_asked: bool = True, to: Collection[int] = ()) -> bool:
        """Choose the lanes anew; say whether they are others than before.

        Args:
            is_asked: leave to other relays what they have; else take all.
            to: as in `share_of`.
        """
        outbox, before = self._outbox, self.owned
        living: Mapping[str, Collection[int]] = {outbox.worker_id: before}
        if is_asked and not outbox.expired_claims.is_alone:
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
            most=outbox.settings.relay.max_lanes if is_asked else lanes,
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
