"""A crash at every point where one could matter, and what the outbox makes of it.

All crashes happen in one house, one after the other; the last relay delivers what they have left.
What each leaves is read from the files of the logs and from Kafka, by an oracle that shares no code
with the product.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import pytest
from tests.faults.conftest import TOPIC, event_id, wait_for
from tests.faults.crashes.conftest import BLOCK, LARGE, URGENT, Crash, Scene, ended
from tests.faults.oracle import Row, check_deliveries, copies_in, rows_of

pytestmark = pytest.mark.rest

KILLED = -signal.SIGKILL
LOOK = 256  # messages that a worker hands to Kafka's client between two looks at the clock
OPERATOR = ("--actor", "ops", "--reason", "asked for", "--apply")

CLAIMED = {"claimed": BLOCK}  # a claim is on record, and nothing of it was sent
SENT = {"claimed": BLOCK, "sent": BLOCK}  # all of it was sent, and nothing of that is on record
RECORDED = {"sent": BLOCK, "recorded": BLOCK}

EVERY_POINT = os.environ.get("OUTBOX_CRASH_POINTS") == "all"  # `make soak` wants them all

# One that leaves a claim, one that leaves what was sent.
CRASHES = [("transitions.committed@1", CLAIMED), ("publish.after@1", SENT)]
if EVERY_POINT:
    CRASHES += [
        ("transitions.before@1", {}),
        ("transitions.after@1", CLAIMED),
        ("publish.before@1", CLAIMED),
        ("transitions.before@2", SENT),
        ("transitions.committed@2", RECORDED),
    ]

# A refresh finishes what others have begun before it plans: so does the next one with what it left.
REFRESHES = [("plan.committed@1", 1)]
if EVERY_POINT:
    REFRESHES += [("plan.before@1", 0), ("plan.after@1", 1), ("rows.before@1", 1)]
    REFRESHES += [("rows.after@1", 0)]


def test_thawed_relay_changes_nothing(scene: Scene, record_testsuite_property) -> None:
    """A relay that freezes in the middle of a batch, together with its worker, and goes on after
    another has taken over: its endings are refused, and what it still sends is what it had in hand.
    """
    scene.sql(scene.some(LARGE, event_type=URGENT))
    before = scene.topic.size()
    scene.mark.unlink()
    # Not once: a busy machine may use up a deadline before anything is sent.
    relay = scene.house.start("relay", "--drain")
    worker = None
    try:
        wait_for(lambda: _named_by(scene.mark) or relay.poll() is not None)
        assert relay.poll() is None, scene.house.errors.read_text()[-3000:]
        worker = psutil.Process(_named_by(scene.mark))
        wait_for(lambda: worker.status() == psutil.STATUS_STOPPED)
        _wait_for_the_other(scene, before=before)
        relay.send_signal(signal.SIGSTOP)
        stopped = time.time()
        (claim,) = {history[-1]["claim_id"] for history in scene.histories().values()}
        assert set(scene.given) == scene.in_flight()

        code, summary = scene.house.run("relay", "--drain")

        assert (0, LARGE, 0) == (code, summary["published"], summary["dead"])
        taken_over = scene.histories()
        sent = _counts(scene)
        in_hand = _in_hand(scene, sent)
        worker.resume()
        relay.send_signal(signal.SIGCONT)
        scene.house.end(relay)
    finally:
        if worker is not None and worker.is_running():
            worker.resume()
        ended(relay)
    late = _counts(scene) - sent
    record_testsuite_property("sent_after_the_thaw", late.total())
    record_testsuite_property(
        "recovery_seconds frozen", round(_last_delivery(taken_over) - stopped, 1)
    )
    assert taken_over == scene.histories()
    assert {"lease_expired"} == {
        row["reason"]
        for history in taken_over.values()
        for row in history
        if row["claim_id"] == claim and row["from_state"] == "CLAIMED"
    }
    assert set(late) <= in_hand
    assert {1} >= set(late.values())
    check_deliveries(copies_in(scene.topic.bootstrap, TOPIC), taken_over, scene.given)


def _named_by(mark: Path) -> int:
    """Return the process that has made a mark, 0 as long as there is none."""
    text = mark.read_text() if mark.exists() else ""
    return int(text) if text.endswith("\n") else 0


def _wait_for_the_other(scene: Scene, *, before: int) -> None:
    """Wait until the worker that is not frozen has sent all that it has, which takes an instant:
    the frozen one has sent no more than it has in hand.

    Args:
        scene: the house.
        before: messages that were in the topic before.
    """
    sizes = [before]

    def is_over() -> bool:
        sizes.append(scene.topic.size())
        return before + LOOK < sizes[-2] == sizes[-1]

    wait_for(is_over, interval=1.0)


def _counts(scene: Scene) -> Counter[str]:
    return Counter(copy.event_id for copy in copies_in(scene.topic.bootstrap, TOPIC))


def _in_hand(scene: Scene, sent: Counter[str]) -> set[str]:
    """Return what a frozen worker had in hand: it has handed over that much of its keys.

    Its keys are those of which something was sent only once, by whoever has taken over.
    """
    keys = {scene.given[one]["ordering_key"] for one, count in sent.items() if count == 1}
    its = [one for one in sorted(sent) if scene.given[one]["ordering_key"] in keys]
    assert LOOK < len(its) < len(sent)
    return set(its[:LOOK])


def _last_delivery(histories: Mapping[str, Sequence[Row]]) -> float:
    return max(history[-1]["occurred_at"].timestamp() for history in histories.values())


@pytest.mark.parametrize(("point", "expected"), CRASHES, ids=[point for point, _ in CRASHES])
def test_killed_relay_leaves_what_its_point_says(
    scene: Scene, point: str, expected: dict[str, int]
) -> None:
    """A relay that is killed at a point leaves exactly what lies before it: a claim comes before
    its messages, they before its endings; and the next one can go on.
    """
    scene.sql(scene.some(BLOCK))
    size, before = scene.topic.size(), _states(scene)

    code = scene.killed(f"{point}=driver", "relay", "--once", "--limit", str(BLOCK))

    assert KILLED == code
    after = _states(scene)
    left = {
        "claimed": after["CLAIMED"] - before["CLAIMED"],
        "sent": scene.topic.size() - size,
        "recorded": after["PUBLISHED"] - before["PUBLISHED"],
    }
    assert expected == {name: count for name, count in left.items() if count}


@pytest.mark.parametrize(("point", "unfinished"), REFRESHES, ids=[point for point, _ in REFRESHES])
def test_killed_refresh_leaves_at_most_its_plan(scene: Scene, point: str, unfinished: int) -> None:
    """A refresh that is killed leaves nothing, or a plan whose rows the next one writes."""
    scene.refresh_after_no_news()
    scene.sql(scene.some(1))

    assert KILLED == scene.killed(f"{point}=driver", "refresh")

    assert unfinished == scene.unfinished_plans()


def _states(scene: Scene) -> Counter[str]:
    return Counter(history[-1]["to_state"] for history in scene.histories().values())


def test_killed_writers_write_once(scene: Scene, tmp_path: Path) -> None:
    """A producer and an operator that are killed before their append have written nothing; killed
    after it they have written all, and whoever tries again writes nothing twice.
    """
    file = tmp_path / "events.jsonl"
    asked, first = scene.published(), len(scene.given)
    with file.open("w") as stream:
        for number in range(first, first + BLOCK):
            event = {"event_id": event_id(number), "event_type": TOPIC, "payload": number}
            event |= {"ordering_key": "appended", "ordinal": number}
            stream.write(f"{json.dumps(event)}\n")
            scene.given[event_id(number)] = {
                "ordering_key": "appended",
                "payload": str(number).encode(),
            }
    append = ("append", str(file))
    replay = ("replay", "--state", "PUBLISHED", "--id", asked, *OPERATOR)
    for moment, expected in (("before", 0), ("after", 1)):
        writers = [
            scene.house.start(*append, OUTBOX_FAILPOINT=f"events.{moment}@1=driver"),
            scene.house.start(*replay, OUTBOX_FAILPOINT=f"command.{moment}@1=driver"),
        ]
        assert [KILLED, KILLED] == [writer.wait() for writer in writers]
        assert ["", ""] == [ended(writer) for writer in writers]
        events = Counter(row["event_id"] for row in rows_of(scene.house.log("events")))
        assert [expected] * BLOCK == [events[event_id(first + number)] for number in range(BLOCK)]
        assert expected == len(rows_of(scene.house.log("commands")))
    writers = [scene.house.start(*append), scene.house.start(*replay)]
    (code, report), _ = [scene.house.end(writer) for writer in writers]
    assert (0, 0, BLOCK) == (code, report["appended"], report["already_present"])


def test_killed_relay_jvm_and_group_leave_nothing_running(scene: Scene) -> None:
    """Without its JVM, in the middle of taking over from others, a relay with a session of its own
    ends with an error. Killed, it takes its JVM with it; with all that it has started, in the
    middle of a batch, it ends at once (in `make soak`; tests/acceptance kills such a driver, too).
    """
    scene.sql(scene.some(3 * LARGE))
    scene.stop_serving()
    assert 2 == scene.killed("transitions.committed@2=jvm", "relay", "--drain")
    if EVERY_POINT:
        assert KILLED == scene.killed("publish.after@2=driver", "relay", "--drain")
        assert KILLED == scene.killed("kafka.sending@2=group", "relay", "--drain")


def test_everything_arrives(scene: Scene, tmp_path: Path, record_testsuite_property) -> None:
    """The next relay, which loses a worker after its last delivery report, delivers the rest:
    nothing is missing, a second copy comes only from a batch in flight, each key is in order.
    """
    scene.stop_serving()
    mark = tmp_path / "mark"
    relay = scene.house.start(
        "relay",
        "--drain",
        OUTBOX_FAILPOINT="slice.answered@1=worker",
        OUTBOX_FAILPOINT_MARK=str(mark),
    )
    try:
        code, summary = scene.house.end(relay)
    finally:
        ended(relay)
    assert (0, 0, 0) == (code, summary["waiting"], summary["dead"])
    assert _named_by(mark)
    histories = scene.histories()
    rows = [row for history in histories.values() for row in history]
    assert not any(row["to_state"] == "DEAD" for row in rows)
    assert any(row["reason"] == "crashed" for row in rows)
    # Asked for twice, because the first to ask was killed, and done once.
    asked = {row["event_id"] for row in rows_of(scene.house.log("commands"))}
    replays = Counter(row["event_id"] for row in rows if row["reason"] == "replayed")
    assert dict.fromkeys(asked, 1) == replays
    check_deliveries(copies_in(scene.topic.bootstrap, TOPIC), histories, scene.given)
    assert 0 == scene.unfinished_plans()
    for point, crash in scene.crashes.items():
        since = max(crash.at, scene.local_since if crash.in_flight else 0)
        seconds = round(_recovered(histories, crash) - since, 1)
        record_testsuite_property(f"recovery_seconds {point}", seconds)


def _recovered(histories: Mapping[str, Sequence[Row]], crash: Crash) -> float:
    """Return when all that a crash had left in flight was delivered, else the next delivery."""
    delivered = {
        (key, row["occurred_at"].timestamp())
        for key, history in histories.items()
        for row in history
        if row["to_state"] == "PUBLISHED" and row["occurred_at"].timestamp() > crash.at
    }
    if crash.in_flight:
        return max(at for key, at in delivered if key in crash.in_flight)
    return min(at for _, at in delivered)
