"""Who asks where deliveries stand, and whether that refreshes the projection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from delta_outbox.delta.numbered_writes import NumberedWrite
from delta_outbox.projection import projection
from delta_outbox.projection.projection import MOST_TAIL, OTHERS_REFRESH, Projection, Watermark
from delta_outbox.projection.tails import LOGS
from delta_outbox.testing.conformance.clock import ManualClock

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
MOMENT = timedelta(seconds=1)


class Refreshed(Projection):
    """A projection without Spark, beside others that may have refreshed it.

    Args:
        known: how many commits of each log it has seen, as far as is known here.
        seen: how many it has seen.
        ago: how long ago it was refreshed.
        commits: how many each log has.
    """

    def __init__(self, *, known: int, seen: int, ago: timedelta, commits: int) -> None:
        clock = ManualClock(NOW)
        none: Any = None
        with (
            patch.object(projection, "own_session"),
            patch.object(projection, "Refreshing"),
            patch.object(projection, "NumberedWrites"),
        ):
            super().__init__(none, none, none, clock=clock)
        self._known = _watermark(known, NOW - timedelta(hours=1))
        self._newest = _watermark(seen, NOW - ago)
        self._commits = commits
        self.refreshes: list[Mapping[str, int]] = []
        self.folded = 0

    def latest_versions(self) -> dict[str, int]:
        return dict.fromkeys(LOGS, self._commits)

    def watermark(self, expected: NumberedWrite | None = None) -> Watermark | None:
        return self._newest

    def refresh(self, *, latest: Mapping[str, int] | None = None, **_: Any) -> int:
        assert latest is not None
        self.refreshes.append(latest)
        self._known = _watermark(self._commits, NOW)
        return 1

    def _shown(
        self, shown: str, latest: Mapping[str, int] | None, read: Any, states: Sequence[str] = ()
    ) -> tuple[Any, Mapping[str, int], int]:
        assert latest is not None
        assert self._known is not None
        self.folded = self._known.tail(latest)
        return pa.table({}), latest, 0


def _watermark(seen: int, at: datetime) -> Watermark:
    plan = NumberedWrite(number=seen, plan={log: {"to": seen} for log in LOGS}, planned_at=at)
    return Watermark(version=seen, plan=plan)


FEW, MANY = MOST_TAIL // len(LOGS), MOST_TAIL


@pytest.mark.parametrize(
    ("known", "seen", "ago", "refreshes", "folded"),
    [
        (0, 0, 2 * OTHERS_REFRESH, 1, 0),  # nobody refreshes
        (MANY - FEW, MANY - FEW, 2 * OTHERS_REFRESH, 0, FEW * len(LOGS)),  # few are folded
        (0, MANY - 1, 2 * OTHERS_REFRESH, 0, len(LOGS)),  # somebody has, a while ago
        (0, 0, OTHERS_REFRESH - MOMENT, 0, MANY * len(LOGS)),  # somebody does all the time
        (0, 0, OTHERS_REFRESH, 1, 0),
        (0, 0, -OTHERS_REFRESH, 1, 0),  # by a clock that was ahead: that says nothing
    ],
)
def test_who_asks_leaves_refreshes_to_others(
    known: int, seen: int, ago: timedelta, refreshes: int, folded: int
) -> None:
    """Who asks refreshes only where many commits are to be folded and nobody else has refreshed
    within a minute: two refreshes at once are in each other's way.
    """
    found = Refreshed(known=known, seen=seen, ago=ago, commits=MANY)
    found.standing(lambda frame: frame, planned_by="tests")
    assert (refreshes, folded) == (len(found.refreshes), found.folded)
