"""Operators, beside a relay that works without a pause."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.outboxes import Store, check_lives, events, open_store
from tests.integration.relay.test_retries import PUBLISHER, QUICK

from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 600.0  # seconds on a busy machine


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox in which something fails again and again."""
    with open_store(spark, home, "t_operators") as store:
        stubborn = QUICK | {"backoff_initial_seconds": "2"}
        store.add_policy("stubborn.*", **stubborn, max_attempts="99")
        yield store


def test_operators_are_heard_beside_a_busy_relay_and_a_producer(
    store: Store, tmp_path: Path
) -> None:
    """A replay and a kill are applied while a relay works without a pause and a producer
    appends; what the producer appends is delivered once.
    """
    relay, producer, operator = (store.outbox(tmp_path, publisher=PUBLISHER) for _ in range(3))
    operator.append(events("heard", 1)).raise_if_rejected()
    assert 1 == Relay(operator).run(Mode.DRAIN).published
    table = events("stub", 1, event_type="stubborn.one", payloads=[b"fail"])
    operator.append(table).raise_if_rejected()
    stop = threading.Event()

    def produce() -> int:
        batches = 0
        while not stop.wait(4.0):
            producer.append(events(f"busy-{batches:03}", 3, keys=1)).raise_if_rejected()
            batches += 1
        return batches

    with ThreadPoolExecutor(2) as pool:
        working = pool.submit(Relay(relay).run, Mode.CONTINUOUS, stop=stop)
        producing = pool.submit(produce)
        try:
            operator.replay(
                state="PUBLISHED",
                event_ids=["heard-000"],
                actor="me",
                reason="ask",
                dry_run=False,
            )
            operator.kill(["stub-000"], actor="me", reason="ask", dry_run=False)
            given_up = time.monotonic() + PATIENCE
            while True:
                heard = store.transitions("heard")[-1]
                stub = store.transitions("stub")
                if (heard["lifecycle"], heard["to_state"]) == (1, "PUBLISHED") and (
                    stub and stub[-1]["to_state"] == "DEAD"
                ):
                    break
                assert time.monotonic() < given_up, (heard, stub)
                time.sleep(3.0)  # to ask is work for the same two cores
        finally:
            stop.set()
        batches = producing.result()
        working.result()
    Relay(operator).run(Mode.DRAIN)
    last = store.transitions("stub")[-1]
    assert ("operator", "me") == (last["reason"], last["actor"])
    rows = store.transitions("busy")
    check_lives(rows)
    ended = [row["event_id"] for row in rows if row["to_state"] == "PUBLISHED"]
    assert 3 * batches == len(ended) == len(set(ended))
