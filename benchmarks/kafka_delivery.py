"""What exactly-once delivery to Kafka costs, and what slices beside each other bring.

Usage: python -m benchmarks.kafka_delivery [--events 20000] [--calls 5]

Starts a broker on loopback and publishes from 1, 2 and 4 processes at once, each as a slice does:
calls of so many events (of 512 bytes, with a key), each answered before the next begins. Prints
events per second over all processes, and the seconds of a call of one event. Machines are noisy:
compare the two deliveries of one run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from datetime import UTC, datetime
from multiprocessing.synchronize import Barrier

from delta_outbox.demo.kafka_server import KafkaServer
from delta_outbox.publishers import Delivered, Event, EventBatch
from delta_outbox.publishers.kafka.publisher import KafkaPublisher

TOPIC, MARKERS = "events", "markers"
PARTITIONS = 4
EXACTLY = {"delivery": "exactly_once", "marker_topic": MARKERS, "marker_replication": 1}
LIMIT = 600.0  # seconds for a call


def batch(part: int, count: int) -> EventBatch:
    """Return the events of a call."""
    payload, now = os.urandom(512), datetime.now(UTC)
    events = (
        Event(
            event_id=f"{part:04d}-{number:031d}",
            event_type=TOPIC,
            key=f"key-{part}-{number % 100}",
            ordering_key=f"key-{part}-{number % 100}",
            payload=payload,
            created_at=now,
            claim_id="claim",
            route=TOPIC,
        )
        for number in range(count)
    )
    deadline = time.monotonic() + LIMIT
    return EventBatch(
        events, deadline=deadline, destination="orders", producer_slot=f"relay.0.{part}"
    )


def publish(settings: dict[str, object], part: int, *, count: int, calls: int) -> float:
    """Publish calls of so many events and return the seconds of one."""
    publisher = KafkaPublisher()
    publisher.open(settings)
    events = batch(part, count)
    assert all(isinstance(one, Delivered) for one in publisher.publish(batch(part, 1)))
    started = time.monotonic()
    for _ in range(calls):
        assert all(isinstance(one, Delivered) for one in publisher.publish(events))
    seconds = (time.monotonic() - started) / calls
    publisher.close()
    return seconds


def slice_(
    settings: dict[str, object], part: int, count: int, calls: int, together: Barrier
) -> None:
    """Publish as one of several slices, all of which begin at once."""
    KafkaPublisher.validate(settings)
    together.wait()
    publish(settings, part, count=count, calls=calls)
    together.wait()


def rate(settings: dict[str, object], slices: int, *, count: int, calls: int) -> float:
    """Return the events per second of so many slices."""
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(slices + 1)
    parts = [
        context.Process(target=slice_, args=(settings, part, count // slices, calls, together))
        for part in range(slices)
    ]
    for one in parts:
        one.start()
    together.wait()
    started = time.monotonic()
    together.wait()
    seconds = time.monotonic() - started
    for one in parts:
        one.join()
    return count // slices * slices * calls / seconds


def main() -> None:
    """Measure both deliveries."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=20_000, help="per round of calls")
    parser.add_argument("--calls", type=int, default=5)
    given = parser.parse_args()
    with KafkaServer() as server:
        server.create_topic(TOPIC, PARTITIONS)
        server.create_topic(MARKERS, 1)
        least: dict[str, object] = {"bootstrap.servers": server.bootstrap, "topics": ["*"]}
        publish({**least, **EXACTLY}, 9, count=100, calls=2)  # the broker warms up
        print(f"{'slices':>6} {'at least once':>14} {'exactly once':>13}  events/s")
        for slices in (1, 2, 4):
            rates = [
                rate(settings, slices, count=given.events, calls=given.calls)
                for settings in (least, {**least, **EXACTLY})
            ]
            print(f"{slices:>6} {rates[0]:>14,.0f} {rates[1]:>13,.0f}")
        single = [publish(one, 0, count=1, calls=20) for one in (least, {**least, **EXACTLY})]
        print(f"a call of one event: {single[0]:.3f} s and {single[1]:.3f} s")


if __name__ == "__main__":
    main()
