"""Relays of a destination that delivers exactly once, killed around the commit of a transaction.

What consumers see that read committed messages only is read by a plain consumer; what the outbox
says of it from the files of its log.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from tests.faults.conftest import (
    BATCH_SIZE,
    PATIENCE,
    REPOSITORY,
    TOPIC,
    House,
    Topic,
    event_id,
)
from tests.faults.exactly_once import producer

from delta_outbox.demo.kafka_reader import consume_all

pytestmark = pytest.mark.rest

ROUNDS = int(os.environ.get("OUTBOX_EXACTLY_ONCE_KILLS", "1"))  # `make soak` wants 60
MARKERS = "outbox.markers"
KILLED = -signal.SIGKILL

# Where a relay ends, alone or with all that it has started. The worst ones first.
POINTS = (
    "kafka.committed@1=group",  # the broker has committed, nobody was told
    "kafka.committing@2=group",  # all is there, and no commit was asked for, of one slice
    "publish.after@1=driver",  # the relay knows what was committed, and nothing is on record
    "transitions.before@2=driver",  # the same, an instant before it is
    "kafka.marked@1=group",  # the marker is there, and no event
    "kafka.committing@1=group",
    "kafka.committed@2=group",
    "transitions.committed@2=driver",  # it is on record
)


@pytest.fixture
def topic(_topic: Topic) -> Topic:
    """Return the topic that everything goes to, with the one for markers beside it."""
    _topic.server.create_topic(MARKERS, 1)
    return _topic


@pytest.fixture
def house(topic: Topic, tmp_path: Path, plain_environment: dict[str, str]) -> House:
    """Return a home whose destination delivers exactly once, with events for every kill."""
    root = tmp_path / "home"
    root.mkdir(mode=0o700)
    house = House(root=root, environment={**plain_environment, "OUTBOX_HOME": str(root)})
    house.settings(
        f'type = "kafka"\n"bootstrap.servers" = "{topic.bootstrap}"\ntopics = ["{TOPIC}"]\n'
        f'delivery = "exactly_once"\nmarker_topic = "{MARKERS}"\nmarker_replication = 1',
        relay=f"batch_size = {BATCH_SIZE}\nparallelism = 2",
    )
    return house


def test_killed_relays_deliver_exactly_once(
    topic: Topic, house: House, tmp_path: Path, record_testsuite_property
) -> None:
    """Relays killed around a commit, and one that loses a worker right after it: consumers of
    committed messages see every event once, each key in order, and the log says PUBLISHED.
    """
    count = (ROUNDS + 2) * BATCH_SIZE
    produced = subprocess.run(
        [sys.executable, "-m", producer.__name__, str(count)],
        cwd=REPOSITORY,
        env=house.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert 0 == produced.returncode, produced.stderr[-3000:]

    for round_ in range(ROUNDS):
        point = POINTS[round_ % len(POINTS)]
        relay = house.start("relay", "--drain", OUTBOX_FAILPOINT=point)
        relay.communicate()
        assert KILLED == relay.returncode, (point, house.errors.read_text()[-3000:])
    mark = tmp_path / "mark"
    code, summary = house.run(
        *("relay", "--drain"),
        OUTBOX_FAILPOINT="kafka.committed@1=worker",
        OUTBOX_FAILPOINT_MARK=str(mark),
    )

    assert mark.exists()
    assert (0, 0, 0) == (code, summary["waiting"], summary["dead"])
    histories = house.histories()
    assert {"PUBLISHED": count} == Counter(rows[-1]["to_state"] for rows in histories.values())
    seen: Counter[str] = Counter()
    in_order: defaultdict[bytes | str | None, list[int]] = defaultdict(list)
    for message in consume_all(topic.bootstrap, TOPIC):
        header = dict(message.headers() or [])["outbox-event-id"]
        assert isinstance(header, bytes)
        seen[header.decode()] += 1
        in_order[message.key()].append(int(message.value() or b"-1"))
    assert {} == {name: copies for name, copies in seen.items() if copies > 1}
    assert {event_id(number) for number in range(count)} == set(seen)
    assert all(numbers == sorted(numbers) for numbers in in_order.values())
    recovered = sum('"marker"' in (rows[-1]["receipt"] or "") for rows in histories.values())
    record_testsuite_property("delivered_by_the_word_of_the_marker", recovered)
    # The kills hit something: commits that nobody had told the log of were found.
    assert recovered > 0
