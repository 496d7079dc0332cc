"""Endings that are not on record yet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_outbox.core.errors import LaneClosed, SequenceTaken
from delta_outbox.lifecycle.claims import DELIVERIES, make_claim
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.relay.claim.decided import Decided

if TYPE_CHECKING:
    from delta_outbox.store.transition_log import TransitionLog

CLAIM = make_claim(
    DELIVERIES.empty_table(),
    policies=PolicySet.parse([{"event_type": "*", "destination": "d"}]),
    now=datetime(2026, 1, 1, tzinfo=UTC),
    claim_id="c",
)


class Lane:
    """A log that others may have appended to."""

    def __init__(self) -> None:
        self.sequence = 0
        self.rows: list[str] = []
        self.lost: Exception | None = None  # what the next append raises
        self.loses = False  # whether somebody else is always first
        self.app_id = "w"
        self.void = set[
            str
        ]()  # of which others have ended the claim, as is seen at the end of the log
        self._seen = set[str]()

    def append(self, rows: pa.Table) -> None:
        """Take rows, or lose."""
        lost, self.lost = self.lost, None
        if lost is not None or self.loses:
            raise lost or SequenceTaken(writer="w", number=1)
        self.sequence += 1
        self.rows += rows["event_id"].to_pylist()

    def catch_up(self) -> None:
        """Go to the end of the log."""
        self._seen = set(self.void)

    def without_void(self, parts: Sequence[tuple[int, pa.Table]]) -> list[pa.Table]:
        """Leave out what others have ended."""
        assert all(claimed == 7 for claimed, _ in parts)
        ended = pa.array(sorted(self._seen), pa.string())
        return [rows.filter(pc.invert(pc.is_in(rows["event_id"], ended))) for _, rows in parts]


@pytest.fixture
def lanes() -> list[Lane]:
    """Return two lanes."""
    return [Lane(), Lane()]


@pytest.fixture
def forgotten() -> list[bool]:
    """Return a list that grows as a plan is forgotten."""
    return []


@pytest.fixture
def late() -> list[str]:
    """Return a list that takes the events of what came too late."""
    return []


@pytest.fixture
def decided(lanes: list[Lane], forgotten: list[bool], late: list[str]) -> Decided:
    """Return endings of both lanes: of a claim of "a" and "b", and of "c"."""
    made = Decided(
        lambda: forgotten.append(True), lambda rows: late.extend(rows["event_id"].to_pylist())
    )
    for lane, names in zip(lanes, (["a", "b"], ["c"]), strict=True):
        made.add(log(lane), pa.table({"event_id": names}), claimed=7)
    return made


def log(lane: Lane) -> TransitionLog:
    """Return a lane as what it stands for."""
    return cast("TransitionLog", lane)


def test_endings_go_with_the_next_append_of_their_lane(
    decided: Decided, lanes: list[Lane], forgotten: list[bool]
) -> None:
    """Each lane takes its own, once; then there are none any more."""
    assert decided.append(log(lanes[0]), [])
    assert (["a", "b"], []) == (lanes[0].rows, lanes[1].rows)
    assert [log(lanes[1])] == decided.lanes
    assert decided.append(log(lanes[1]), [])
    assert decided.append(log(lanes[1]), [])
    assert (["c"], 1) == (lanes[1].rows, lanes[1].sequence)
    assert not decided
    assert [] == forgotten


def test_what_lost_goes_again_but_for_what_others_have_ended(
    decided: Decided, lanes: list[Lane], forgotten: list[bool]
) -> None:
    """An append that lost is void with its plan; of the endings those are left that still hold."""
    lanes[0].lost, lanes[0].void = SequenceTaken(writer="w", number=1), {"a"}
    assert not decided.append(log(lanes[0]), [])
    assert [] == lanes[0].rows
    assert [True] == forgotten
    assert decided
    assert decided.append(log(lanes[0]), [])
    assert ["b"] == lanes[0].rows
    assert [True, True] == forgotten


@pytest.mark.parametrize("in_the_end", [False, True])
def test_of_a_claim_that_others_have_ended_nothing_counts(
    decided: Decided, lanes: list[Lane], late: list[str], *, in_the_end: bool
) -> None:
    """What became of it is told once, whether others were seen before an append or lost it."""
    lanes[1].lost, lanes[1].void = SequenceTaken(writer="w", number=1), {"c"}
    if in_the_end:
        decided.finish()
    else:
        assert not decided.append(log(lanes[1]), [])
        assert [] == late
        assert decided.append(log(lanes[1]), [])
    assert (["c"], []) == (late, lanes[1].rows)
    assert log(lanes[1]) not in decided.lanes


def test_whoever_loses_each_race_says_so_in_the_end(decided: Decided, lanes: list[Lane]) -> None:
    """What is decided stays, for whoever finishes it later."""
    lanes[0].loses = True
    with pytest.raises(SequenceTaken):
        decided.finish()
    assert [log(lanes[0])] == decided.lanes


def test_nothing_is_left_of_a_lane_that_is_closed(
    decided: Decided, lanes: list[Lane], late: list[str]
) -> None:
    """Its claims have been ended, all of them, and a new claim that loses leaves nothing either;
    the other lane has its own still.
    """
    for lost in (LaneClosed(writer="w", number=1, lane=0), SequenceTaken(writer="w", number=1)):
        lanes[0].lost = lost
        assert not decided.append(log(lanes[0]), [CLAIM])
    assert [log(lanes[1])] == decided.lanes
    assert ([], ["a", "b"]) == (lanes[0].rows, late)


def test_in_the_end_each_lane_is_on_record_whatever_became_of_the_others(
    decided: Decided, lanes: list[Lane]
) -> None:
    """The error of one is raised after the others; a lane that is closed is none."""
    lanes[0].lost = LaneClosed(writer="w", number=1, lane=0)
    lanes[1].lost = ValueError("the disk")
    decided.add(log(third := Lane()), pa.table({"event_id": ["d"]}), claimed=7)
    with pytest.raises(ValueError, match="the disk"):
        decided.finish()
    assert ["d"] == third.rows
    assert [log(lanes[1])] == decided.lanes
    decided.finish()
    assert (["c"], False) == (lanes[1].rows, bool(decided))
