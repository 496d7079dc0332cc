"""What goes wrong on this machine before anything is sent costs no event anything."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from tests.unit.relay.test_contents import arrived, write
from tests.unit.relay.test_slice import rows

from delta_outbox.core.tables import Tables
from delta_outbox.lifecycle.claims import make_claim
from delta_outbox.lifecycle.endings import Counters, Crashed, LeaseExpired, decide_ending
from delta_outbox.lifecycle.policy import DeliveryPolicy, PolicySet
from delta_outbox.lifecycle.results import Delivered, NotSent, Result
from delta_outbox.lifecycle.states import State
from delta_outbox.publishers.protocol import EventBatch
from delta_outbox.relay.publish.deadline import Deadline
from delta_outbox.relay.publish.publishing import Publishing
from delta_outbox.relay.publish.publishing_pause import PublishingPause
from delta_outbox.relay.publish.slice import Job, publish_slice
from delta_outbox.runtime.statements import Statements
from delta_outbox.testing.conformance.clock import ManualClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEEN: list[bool] = []


class Looking:
    """Look whether the sign is still there when events are to be sent."""

    ordered: ClassVar[bool] = True

    def open(self, settings: Mapping[str, object]) -> None:
        self.sign = Path(str(settings["sign"]))

    def publish(self, events: EventBatch) -> list[Result]:
        SEEN.append(self.sign.exists())
        return [Delivered() for _ in events]

    def close(self) -> None:
        """Have nothing to release."""


def publishing(folder: Path) -> Publishing:
    """Return what publishes, without workers: it never comes so far."""
    without_workers: Any = None
    return Publishing(
        without_workers,
        Tables(),
        Statements(texts={}),
        destinations={"default": (f"{__name__}:Looking", {})},
        payload_formats={},
        parallelism=2,
        folder=folder,
    )


def test_what_cannot_begin_is_not_sent(tmp_path: Path) -> None:
    """Where nothing can be written down for the workers, every delivery is released, the reason is
    kept, and once there is room again it is seen.
    """
    file = write(tmp_path, "1.parquet", 0, 5, group=5)
    policies = PolicySet(policies=(DeliveryPolicy(event_type="*"),))
    claim = make_claim(arrived([file]), policies=policies, now=NOW, claim_id="c")
    folder = tmp_path / "scratch"
    one = publishing(folder)
    results = one.publish(claim)
    assert [NotSent()] * 5 == list(results)
    assert "No such file or directory" in str(one.obstacle)
    assert not one.has_room()
    folder.mkdir()
    assert one.has_room()
    assert [] == list(folder.iterdir())


def test_what_never_begins_is_tried_ever_more_seldom(tmp_path: Path) -> None:
    """Where there is room and a claim cannot be begun all the same, the pause before the next one
    doubles up to a minute; once one was begun, nothing is left of it.
    """
    one, clock = publishing(tmp_path), ManualClock()
    pause = PublishingPause(one, clock)
    assert (False, 0.0) == (pause.lasts(), pause.seconds)
    pauses = []
    for _ in range(8):
        one.obstacle, one.not_begun = "a fault that is none of the disk", one.not_begun + 1
        begun = clock.monotonic()
        while pause.lasts():
            clock.sleep(1.0)
        assert not pause.lasts()  # until the claim that is tried has failed as well
        pauses.append(clock.monotonic() - begun)
    assert [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0] == pauses
    assert sum(pauses) == pause.seconds
    one.obstacle, one.not_begun = None, 0
    assert (False, 0.0) == (pause.lasts(), pause.seconds)
    one.obstacle, one.not_begun = "again", 1
    assert pause.lasts()
    clock.sleep(1.0)
    assert not pause.lasts()


def test_without_room_nothing_is_tried(tmp_path: Path) -> None:
    """However long ago the last claim was tried: while there is no room there is no other."""
    one, clock = publishing(tmp_path / "gone"), ManualClock()
    pause = PublishingPause(one, clock)
    one.obstacle, one.not_begun = "no room", 1
    assert pause.lasts()
    clock.sleep(1000.0)
    assert pause.lasts()
    (tmp_path / "gone").mkdir()
    assert not pause.lasts()


def test_the_sign_is_gone_before_anything_is_sent(tmp_path: Path) -> None:
    """A worker says that it has begun before its publisher sees the first event; one that repeats
    a task, and sends nothing, says nothing.
    """
    sign = tmp_path / "unbegun"
    job = Job(
        claim_id="c",
        destinations={"d": (f"{__name__}:Looking", {"sign": str(sign)})},
        deadline=Deadline.after(60),
        budget=60,
        unbegun=str(sign),
    )
    for number, there in ((1, True), (0, False)):
        sign.touch()
        SEEN.clear()
        batches: list[pa.RecordBatch] = [rows({}, {}), rows({})]
        assert 2 == len(list(publish_slice(job, iter(batches), attempt_number=number)))
        assert there == sign.exists()
        assert [False] * (0 if number else 2) == SEEN


@pytest.mark.parametrize(
    ("result", "claim_size", "seconds"),
    [(Crashed(), 1, 4.0), (Crashed(), 2, None), (LeaseExpired(), 1, None)],
)
def test_a_crash_backs_off(
    result: Crashed | LeaseExpired, claim_size: int, seconds: float | None
) -> None:
    """An event that was alone in a claim that crashed waits as long as after as many failures; one
    of many, and one whose lease ran out, goes on at once.
    """
    policy = DeliveryPolicy(
        event_type="*", backoff_initial_seconds=1.0, backoff_multiplier=4.0, backoff_jitter=0.0
    )
    ending = decide_ending(
        counters=Counters(attempt=2, crashes=1, suspect=1),
        result=result,
        claim_size=claim_size,
        policy=policy,
        now=NOW,
        started_at=NOW,
        jitter=0.0,
    )
    expected = None if seconds is None else NOW + timedelta(seconds=seconds)
    assert (State.PENDING, expected) == (ending.to_state, ending.available_at)
