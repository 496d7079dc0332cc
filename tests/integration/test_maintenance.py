"""Maintenance, builds and producers beside a relay that drains."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.integration.store import (
    Store,
    check_derived,
    check_lives,
    delivered,
    events,
    open_store,
)
from tests.integration.test_projection import rewrite

from delta_outbox.conflicts import is_conflict
from delta_outbox.dbt import check_result, run_dbt
from delta_outbox.home import Home
from delta_outbox.relay import Mode, Relay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "t_maintenance"
KEYS = 3
ATTEMPTS = 20  # of an OPTIMIZE that a refresh was faster than


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share."""
    with open_store(spark, home, SCHEMA) as store:
        yield store


def optimize(store: Store) -> None:
    """Compact every table, as an operator does; one that lost against a refresh is repeated."""
    names = ("events", "transitions", "commands", "progress", "relays", "state")
    for table in (store.tables[f"outbox_{name}"] for name in names):
        for _ in range(ATTEMPTS):
            try:
                store.spark.sql(f"optimize {table}")
            except Exception as error:
                if not is_conflict(error):
                    raise
            else:
                break


def vacuum(store: Store) -> None:
    """Remove old files, at the retention that protects whoever reads."""
    for name in ("events", "transitions", "progress", "state"):
        store.spark.sql(f"vacuum {store.tables[f'outbox_{name}']}")


def build(store: Store) -> None:
    """Do what a schedule does: everything, with the invariants."""
    check_result(run_dbt(["build"], home=store.home, schema=SCHEMA))


def test_a_drain_beside_everything(store: Store, tmp_path: Path) -> None:
    """While OPTIMIZE, VACUUM, `dbt build` and producers work on the same tables, everything is
    delivered once and in order, every invariant holds, and the projection is that of the logs.
    """
    folder = tmp_path / "to"
    over = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        producer = pool.submit(_produce, store, tmp_path, over)
        relay = pool.submit(_drain, store, folder, over)
        try:
            steps: list[Callable[[Store], None]] = [optimize, vacuum, build]
            for step in steps:
                step(store)
        finally:
            over.set()
        produced = producer.result()
        relay.result()
    Relay(store.outbox(folder)).run(Mode.DRAIN)

    assert dict.fromkeys(produced, "PUBLISHED") == store.states()
    ids = [line["event_id"] for line in delivered(folder)]
    assert Counter(dict.fromkeys(produced, 1)) == Counter(ids)
    by_key: dict[int, list[str]] = defaultdict(list)
    for event_id in ids:
        if event_id.startswith("busy"):
            by_key[int(event_id[-1])].append(event_id)
    assert {key: sorted(of_key) for key, of_key in by_key.items()} == by_key
    rows = store.transitions()
    check_lives(rows)
    steps_taken = Counter(row["to_state"] for row in rows)
    assert {"CLAIMED": len(ids), "PUBLISHED": len(ids)} == steps_taken
    check_result(run_dbt(["build"], home=store.home, schema=SCHEMA, variables={"audit": "full"}))
    check_derived(store)


def _produce(store: Store, folder: Path, over: threading.Event) -> list[str]:
    """Append until told that it is over, by `append` and by plain INSERT; return the ids."""
    outbox = store.outbox(folder)
    # A session of its own, as a producer has: dbt's numbered writes are settings of dbt's session.
    own = replace(store, spark=store.spark.newSession())
    produced: list[str] = []
    number = 0
    while not over.is_set() or not number:
        ids = [f"busy-{number:04}-{key}" for key in range(KEYS)]
        keys = [f"key-{key}" for key in range(KEYS)]
        columns = {"event_id": ids, "ordering_key": keys, "event_type": ["x"] * KEYS}
        outbox.append(pa.table({**columns, "payload": [b"{}"] * KEYS})).raise_if_rejected()
        own.insert((f"plain-{number:04}", "x", "p"))
        produced += [*ids, f"plain-{number:04}"]
        number += 1
    return produced


def _drain(store: Store, folder: Path, over: threading.Event) -> None:
    """Drain, again and again."""
    outbox = store.outbox(folder, batch_size=8)
    while not over.is_set():
        Relay(outbox).run(Mode.DRAIN)


def test_a_relay_survives_the_end_of_what_it_has_pinned(store: Store, tmp_path: Path) -> None:
    """A worker that knows an older projection, whose files are gone since, looks at the new one."""
    idle, other = store.outbox(tmp_path), store.outbox(tmp_path)
    other.append(events("pinned", 4)).raise_if_rejected()
    assert 4 == idle.retrieve(10).deliveries.num_rows
    other.refresh()
    other.append(events("later", 2)).raise_if_rejected()
    other.refresh()
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    store.spark.conf.set(check, "false")
    try:
        store.spark.sql(f"optimize {store.tables.state}")
        store.spark.sql(f"vacuum {store.tables.state} retain 0 hours")
    finally:
        store.spark.conf.unset(check)
    rewrite(store)
    assert 6 == idle.retrieve(10).deliveries.num_rows
    Relay(other).run(Mode.DRAIN)
