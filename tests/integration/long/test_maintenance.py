"""Maintenance, a purge, builds and producers beside a relay that drains."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.integration.invariants import build
from tests.integration.operations.purging import Past, live_long_ago, purge
from tests.integration.operations.test_maintenance import LEFT, maintain
from tests.integration.outboxes import Store, check_derived, check_lives, delivered, open_store

from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.dbt import check_result
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = 3


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox."""
    with open_store(spark, home, "t_maintenance_long") as store:
        yield store


@pytest.fixture(scope="module")
def past(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Past:
    """Return days of long ago, which a purge may remove or must leave."""
    return live_long_ago(store, tmp_path_factory.mktemp("long-ago"))


def test_a_drain_beside_everything(store: Store, past: Past, tmp_path: Path) -> None:
    """While maintenance, a purge, `dbt build` and producers work on the same tables, everything is
    delivered once and in order, no more is purged than has ended, every invariant holds over all
    of the past, and the projection is that of the logs.
    """
    folder = tmp_path / "to"
    over = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        producer = pool.submit(_produce, store, tmp_path, over)
        relay = pool.submit(_drain, store, folder, over)
        try:
            purged = purge(store, tmp_path, past, dry_run=False)
            check_result(build(store))
            maintained = maintain(store)
        finally:
            over.set()
        produced = producer.result()
        relay.result()
    Relay(store.outbox(folder)).run(Mode.DRAIN)

    # A row more of the events: the second one of `gone-000`.
    gone = {"outbox_events": 4, "outbox_transitions": 6, "outbox_state": 3}
    assert ([past.days["gone"]], gone) == (purged.choice.dates, purged.removed)
    assert sum(one.compacted for one in (*maintained.tables, *maintain(store).tables))
    left = {**dict.fromkeys(LEFT, "PUBLISHED"), "dead-000": "DEAD", "held-002": "PENDING"}
    assert {**dict.fromkeys(produced, "PUBLISHED"), **left} == store.states()
    ids = [line["event_id"] for line in delivered(folder)]
    assert Counter(dict.fromkeys(produced, 1)) == Counter(ids)
    by_key: dict[int, list[str]] = defaultdict(list)
    for event_id in ids:
        if event_id.startswith("busy"):
            by_key[int(event_id[-1])].append(event_id)
    assert {key: sorted(of_key) for key, of_key in by_key.items()} == by_key
    rows = [row for row in store.transitions() if row["event_id"] not in left]
    check_lives(rows)
    steps = Counter(row["to_state"] for row in rows)
    # On a busy machine a claim may run out of time before it is sent, and is released.
    assert len(ids) == steps["PUBLISHED"] == steps["CLAIMED"] - steps["PENDING"]
    assert {row["reason"] for row in rows if row["to_state"] == "PENDING"} <= {"released"}
    check_result(build(store, audit="full"))
    check_derived(store)


def _produce(store: Store, folder: Path, over: threading.Event) -> list[str]:
    """Append until told that it is over, by `append` and by plain INSERT; return the ids."""
    outbox = store.outbox(folder)
    produced: list[str] = []
    number = 0
    while not over.is_set() or not number:
        ids = [f"busy-{number:04}-{key}" for key in range(KEYS)]
        keys = [f"key-{key}" for key in range(KEYS)]
        columns = {"event_id": ids, "ordering_key": keys, "event_type": ["x"] * KEYS}
        outbox.append(pa.table({**columns, "payload": [b"{}"] * KEYS})).raise_if_rejected()
        store.insert((f"plain-{number:04}", "x", "p"))
        produced += [*ids, f"plain-{number:04}"]
        number += 1
        over.wait(1.0)  # what is proven is that they are beside each other, not how much they do
    return produced


def _drain(store: Store, folder: Path, over: threading.Event) -> None:
    """Drain, again and again."""
    outbox = store.outbox(folder, batch_size=8)
    while not over.is_set():
        Relay(outbox).run(Mode.DRAIN)
