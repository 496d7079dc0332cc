"""Maintenance beside workers that read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.store import Store, events, open_store
from tests.integration.test_projection import rewrite

from delta_outbox.home import Home
from delta_outbox.relay import Mode, Relay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "t_maintenance"


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share."""
    with open_store(spark, home, SCHEMA) as store:
        yield store


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
