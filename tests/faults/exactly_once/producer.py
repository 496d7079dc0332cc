"""A producer that makes the outbox and appends events to it: `producer.py COUNT`."""

from __future__ import annotations

import sys

import pyarrow as pa
from tests.faults.conftest import KEYS, TOPIC, event_id

from delta_outbox.api import open_outbox


def events(count: int) -> pa.Table:
    """Return events whose payload is their number.

    Args:
        count: how many.
    """
    numbers = range(count)
    return pa.table(
        {
            "event_id": [event_id(number) for number in numbers],
            "event_type": [TOPIC] * count,
            "payload": pa.array([str(number).encode() for number in numbers], pa.binary()),
            "ordering_key": [f"key-{number % KEYS}" for number in numbers],
            "ordinal": pa.array(numbers, pa.int64()),
        }
    )


if __name__ == "__main__":
    with open_outbox(create=True, short_lived=True) as outbox:
        outbox.append(events(int(sys.argv[1]))).raise_if_rejected()
