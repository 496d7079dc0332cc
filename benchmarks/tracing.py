"""What tracing costs an event on its way through a slice, to a destination that takes no time.

Usage: python -m benchmarks.tracing [--events 20000] [--rounds 15]

Prints microseconds of CPU per event, the median of the rounds and their least. Off comes first and
last: how far the two are apart is the noise.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from delta_outbox.relay.publish.deadline import Deadline
from delta_outbox.relay.publish.slice import Job, publish_slice

SAMPLED = ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
UNSAMPLED = ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")
MAP = pa.map_(pa.string(), pa.string())

Pairs = Sequence[tuple[str, str]]


def rows(count: int, *, headers: Pairs, metadata: Pairs | None) -> pa.RecordBatch:
    """Return deliveries of a slice as Spark hands them over; metadata: None for no such column."""
    columns: dict[str, pa.Array] = {
        "position": pa.array(range(count), pa.int32()),
        "destination": pa.array(["d"] * count),
        "scope": pa.array([f"key-{number % 100}" for number in range(count)]),
        "event_id": pa.array([f"event-{number}" for number in range(count)]),
        "event_type": pa.array(["order.created"] * count),
        "key": pa.array([f"key-{number % 100}" for number in range(count)]),
        "ordering_key": pa.array([f"key-{number % 100}" for number in range(count)]),
        "partition_key": pa.nulls(count, pa.string()),
        "headers": pa.array([list(headers)] * count, MAP),
        "payload": pa.array([b"x" * 512] * count),
        "created_at": pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * count),
        "attempt": pa.array([1] * count, pa.int32()),
        "lifecycle": pa.array([0] * count, pa.int32()),
        "route": pa.array(["order.created"] * count),
        "format": pa.nulls(count, pa.string()),
    }
    if metadata is not None:
        columns["metadata"] = pa.array([list(metadata)] * count, MAP)
    return pa.RecordBatch.from_pydict(columns)


def measure(name: str, batch: pa.RecordBatch, *, tracing: bool, rounds: int) -> None:
    """Print what an event of the batch costs."""
    costs = []
    for _ in range(rounds):
        job = Job(
            claim_id="c",
            destinations={"d": ("null", {})},
            deadline=Deadline.after(600),
            budget=600,
            tracing=tracing,
        )
        began = time.process_time()
        for _ in publish_slice(job, [batch], attempt_number=0):
            pass
        costs.append((time.process_time() - began) / batch.num_rows * 1e6)
    print(f"{name:<44}{statistics.median(costs[1:]):8.2f}{min(costs):8.2f}")


def main() -> None:
    """Measure off, on, and on with events that carry a trace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    count, rounds = given.events, given.rounds
    two = [("content-type", "application/json"), ("source", "shop")]
    plain = rows(count, headers=two, metadata=None)
    print(f"{'microseconds per event':<44}{'median':>8}{'least':>8}")
    measure("off", plain, tracing=False, rounds=rounds)
    untraced = rows(count, headers=two, metadata=[("source", "shop")])
    measure("on, no event carries a trace", untraced, tracing=True, rounds=rounds)
    traced = rows(count, headers=[*two, SAMPLED], metadata=[])
    measure("on, all do, no SDK configured", traced, tracing=True, rounds=rounds)
    trace.set_tracer_provider(TracerProvider())
    unsampled = rows(count, headers=[*two, UNSAMPLED], metadata=[])
    measure("on, all do, the SDK samples them out", unsampled, tracing=True, rounds=rounds)
    measure("on, all do, all are spans, no exporter", traced, tracing=True, rounds=rounds)
    measure("off", plain, tracing=False, rounds=rounds)


if __name__ == "__main__":
    main()
