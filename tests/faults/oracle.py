"""What really happened: read from the broker and from the files of the logs, judged by no code of
the product.

Kafka is asked by its own client, the logs are the files that Delta's commits name, and the rules
are written down here once more.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import Consumer, TopicPartition

ANSWER_LIMIT = 30.0  # seconds in which a broker that is well answers

# The six steps of the specification.
STEPS = frozenset(
    {
        ("PENDING", "CLAIMED"),
        ("CLAIMED", "PUBLISHED"),
        ("CLAIMED", "PENDING"),
        ("CLAIMED", "DEAD"),
        ("PUBLISHED", "PENDING"),
        ("DEAD", "PENDING"),
    }
)

# Endings of a claim after which nobody knows what was sent, so that it has to be sent once more.
LOST = frozenset({"lease_expired", "crashed", "unknown"})

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A message in the topic.

    Args:
        event_id: by its header.
        lifecycle: by its header.
        key: of the message.
        value: of the message.
        at: seconds since 1970 at which it was handed to the client.
    """

    event_id: str
    lifecycle: int
    key: str
    value: bytes
    at: float


def copies_in(bootstrap: str, topic: str) -> list[Copy]:
    """Return every message that a topic holds now, in order within each key.

    Args:
        bootstrap: addresses of the brokers.
        topic: its name.
    """
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "oracle", "enable.auto.commit": False}
    )
    try:
        partitions = consumer.list_topics(topic, timeout=ANSWER_LIMIT).topics[topic].partitions
        return [
            copy for number in partitions for copy in _partition(consumer, (topic, int(number)))
        ]
    finally:
        consumer.close()


def _partition(consumer: Consumer, place: tuple[str, int]) -> Iterator[Copy]:
    low, high = consumer.get_watermark_offsets(TopicPartition(*place), timeout=ANSWER_LIMIT)
    consumer.assign([TopicPartition(*place, low)])
    started = time.monotonic()
    # Not by counting: some offsets may be no messages.
    while low < high and consumer.position([TopicPartition(*place)])[0].offset < high:
        assert time.monotonic() - started < ANSWER_LIMIT, f"the rest of {place} does not arrive"
        for message in consumer.consume(1000, timeout=0.5):
            assert message.error() is None, message.error()
            headers: dict[str, Any] = dict(message.headers() or [])
            yield Copy(
                event_id=headers["outbox-event-id"].decode(),
                lifecycle=int(headers["outbox-lifecycle"]),
                key=_bytes(message.key()).decode(),
                value=_bytes(message.value()),
                at=message.timestamp()[1] / 1000,
            )


def _bytes(found: str | bytes | None) -> bytes:
    assert found is not None
    return found.encode() if isinstance(found, str) else found


def rows_of(log: Path) -> list[Row]:
    """Return the rows of a log in the order of its commits; demand that nothing was removed.

    Args:
        log: the folder of the table.
    """
    found: list[Row] = []
    for commit in sorted((log / "_delta_log").glob("*.json")):
        for action in map(json.loads, commit.read_text().splitlines()):
            assert "remove" not in action, "a log is append-only"
            if "add" in action:
                found += pq.ParquetFile(log / action["add"]["path"]).read().to_pylist()
    return found


def histories_of(transitions: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the transitions of every event in order; each history is legal.

    Args:
        transitions: rows of the log.
    """
    found: dict[str, list[Row]] = defaultdict(list)
    for row in transitions:
        found[row["event_id"]].append(row)
    for history in found.values():
        history.sort(
            key=lambda row: (row.get("epoch", 0), row["sequence"], row["from_state"] == "PENDING")
        )
        check_history(history)
    return dict(found)


def check_history(history: Sequence[Row]) -> None:
    """Check that a history begins waiting, leaves no gap, and ends each claim that it begins.

    Args:
        history: the transitions of an event, in order.
    """
    state, claim = "PENDING", None
    for row in history:
        step = (row["from_state"], row["to_state"])
        assert step in STEPS, history
        assert state == step[0], history
        if state == "CLAIMED":
            assert claim == row["claim_id"], history
        state, claim = step[1], row["claim_id"]


def claimed_now(histories: Mapping[str, Sequence[Row]]) -> dict[str, set[str]]:
    """Return the claims that are open: the ids of the events under each.

    Args:
        histories: of all events.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for event_id, history in histories.items():
        if history[-1]["to_state"] == "CLAIMED":
            found[history[-1]["claim_id"]].add(event_id)
    return dict(found)


def check_deliveries(
    copies: Sequence[Copy], histories: Mapping[str, Sequence[Row]], given: Mapping[str, Row]
) -> None:
    """Check what arrived against what was given to the outbox and what its log says of it.

    Nothing is missing, changed or made up; a copy more comes only of a claim whose end says that
    nobody knows what it had sent; the first copies of a key stand in the order of the log.

    Args:
        copies: all messages of the topic.
        histories: of all events.
        given: every event by its id, in the order of the log: key and payload.
    """
    counts = Counter((copy.event_id, copy.lifecycle) for copy in copies)
    expected, allowed = set(), {}
    for event_id in given:
        for lifecycle, rows in _lifecycles(histories.get(event_id, ())).items():
            assert rows[-1]["to_state"] == "PUBLISHED", (event_id, rows)
            expected.add((event_id, lifecycle))
            lost = sum(row["reason"] in LOST for row in rows)
            allowed[event_id, lifecycle] = 1 + lost
    assert set(given) == {event_id for event_id, _ in expected}
    assert expected == set(counts)
    assert {} == {what: n for what, n in counts.items() if n > allowed[what]}
    for copy in copies:
        event = given[copy.event_id]
        assert (event["ordering_key"], event["payload"]) == (copy.key, copy.value)
    firsts: dict[str, list[str]] = defaultdict(list)
    for event_id in dict.fromkeys(copy.event_id for copy in copies):
        firsts[given[event_id]["ordering_key"]].append(event_id)
    in_order: dict[str, list[str]] = defaultdict(list)
    for event_id, event in given.items():
        in_order[event["ordering_key"]].append(event_id)
    assert in_order == firsts


def _lifecycles(history: Iterable[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in history:
        found[row["lifecycle"]].append(row)
    return dict(found)
