"""What is left when a relay, or one of its workers, is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter, defaultdict
from pathlib import Path

import psutil

BATCH_SIZE = 500  # of the settings that the fixtures write
KEYS = 40  # event n has the key n modulo this
END_LIMIT = 15.0  # seconds; from the relay's death to the end of all that it started

# Writes each event to a file that names the process, and is slow for as long as a file says so.
SLOW_PUBLISHER = """
import json, os, time
from pathlib import Path
from delta_outbox.publishers import Delivered

class SlowPublisher:
    ordered = True

    def open(self, settings):
        self.folder = Path(settings["folder"])
        self.file = open(self.folder / f"sent-{os.getpid()}", "a", buffering=1)

    def publish(self, events):
        results = []
        for event in events:
            line = {"event": event.event_id, "claim": event.claim_id, "key": event.key}
            self.file.write(json.dumps(line) + "\\n")
            if (self.folder / "slow").exists():
                time.sleep(0.03)
            results.append(Delivered())
        return results

    def close(self):
        self.file.close()
"""


def test_killed_relay_loses_nothing(
    started, to_kafka, topic, wait_for, is_running, all_numbers
) -> None:
    """After SIGKILL of a relay its JVM is gone within seconds, and the next relay delivers
    everything: at least once, at most the batch in flight twice, in order, with a full history.
    """
    relay = started("--drain")
    children = psutil.Process(relay.pid).children(recursive=True)
    relay.send_signal(signal.SIGKILL)
    relay.wait()
    assert any(child.name() == "java" for child in children)
    wait_for(lambda: not any(map(is_running, children)), limit=END_LIMIT)
    before = to_kafka.histories()
    interrupted = {n for n, rows in before.items() if rows[-1]["to_state"] == "CLAIMED"}
    claims = {before[number][-1]["claim_id"] for number in interrupted}
    assert 1 == len(claims)
    assert 0 < len(interrupted) <= BATCH_SIZE

    code, summary = to_kafka.run("relay", "--drain")

    assert (0, 0, 0) == (code, summary["waiting"], summary["dead"])
    copies = Counter(topic.numbers())
    assert all_numbers == set(copies)
    repeated = {number for number, count in copies.items() if count > 1}
    assert repeated <= interrupted
    assert max(copies.values()) <= 2
    assert_in_order(topic.numbers())
    after = to_kafka.histories()
    assert all_numbers == set(after)
    assert {"PUBLISHED"} == {rows[-1]["to_state"] for rows in after.values()}
    (claim,) = claims
    endings = {
        number: row["reason"]
        for number, rows in after.items()
        for row in rows
        if row["claim_id"] == claim and row["from_state"] == "CLAIMED"
    }
    assert dict.fromkeys(interrupted, "lease_expired") == endings
    code, status = to_kafka.run("status")
    assert (0, len(all_numbers)) == (code, status["counts"]["PUBLISHED"])


def assert_in_order(numbers: list[int]) -> None:
    """Check that the first copies of each key's events stand in the order of the log."""
    firsts = defaultdict(list)
    for number in dict.fromkeys(numbers):
        firsts[number % KEYS].append(number)
    assert {key: sorted(found) for key, found in firsts.items()} == firsts


def test_killed_worker_publishes_nothing_twice_in_its_claim(
    house, tmp_path: Path, wait_for, all_numbers
) -> None:
    """When a Python worker dies, the repeated task publishes nothing of its slice: each event of
    the claim has crashed or was delivered, and in the end all are published.
    """
    (house.root.parent / "slow_publisher.py").write_text(SLOW_PUBLISHER)
    house.settings(f'type = "slow_publisher:SlowPublisher"\nfolder = {json.dumps(str(tmp_path))}')
    (tmp_path / "slow").touch()
    relay = house.start("relay", "--drain")
    try:
        wait_for(lambda: relay.poll() is not None or any(map(lines_of, tmp_path.glob("sent-*"))))
        assert relay.poll() is None, house.errors.read_text()[-3000:]
        file = next(path for path in tmp_path.glob("sent-*") if lines_of(path))
        worker = psutil.Process(int(file.name.removeprefix("sent-")))
        assert relay.pid in {parent.pid for parent in worker.parents()}
        os.kill(worker.pid, signal.SIGKILL)
        (tmp_path / "slow").unlink()
        code, summary = house.end(relay)
    finally:
        if relay.poll() is None:
            relay.kill()
            relay.communicate()

    assert (0, 0) == (code, summary["waiting"])
    by_worker = lines_of(file)
    assert by_worker
    (claim,) = {line["claim"] for line in by_worker}
    sent = Counter(
        (line["event"], line["claim"])
        for path in tmp_path.glob("sent-*")
        for line in lines_of(path)
    )
    assert {1} == set(sent.values())  # nothing was published twice under one claim
    histories = house.histories()
    endings = {
        row["event_id"]: row["reason"]
        for rows in histories.values()
        for row in rows
        if row["claim_id"] == claim and row["from_state"] == "CLAIMED"
    }
    assert {"crashed", "delivered"} >= set(endings.values())
    assert {"crashed"} == {endings[line["event"]] for line in by_worker}
    assert all_numbers == set(histories)
    assert {"PUBLISHED"} == {rows[-1]["to_state"] for rows in histories.values()}
    # A slice that did not lose its worker has lost nothing.
    delivered = {event for event, reason in endings.items() if reason == "delivered"}
    assert {1} >= {sum(one == event for one, _ in sent) for event in delivered}


def lines_of(path: Path) -> list[dict[str, str]]:
    """Return what a worker wrote; a line that a kill has cut off was not sent."""
    return [json.loads(line) for line in path.read_text().splitlines(True) if line.endswith("\n")]
