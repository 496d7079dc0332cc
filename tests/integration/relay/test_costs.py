"""What work costs, in things that no machine changes: appends, Spark jobs, bytes that are read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.integration.outboxes import Store, events, open_store

from delta_outbox.api import Outbox
from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.dbt import compile_sql
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.local, pytest.mark.rest]  # counted in the JVM of this process

BATCHES = 4
SIZE = 10
JOBS_PER_APPEND = 5  # of a producer that knows the ids: Delta's state, and the file
OLD = 1_500  # events of the past, and ten times as many later
JOBS_AROUND = 30  # of a relay, beside its batches: policies, polls, the refresh at the end
JOBS_PER_BATCH = 5
OF_THE_PAST = 0.2  # what may be read for it: names of files; one of its tables would be a third


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share."""
    with open_store(spark, home, "t_costs") as store:
        yield store


def _jobs(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def _bytes_read(spark: SparkSession) -> int:
    jvm: Any = spark._jvm
    statistics = jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
    return sum(one.getBytesRead() for one in statistics)


def _bytes_kept(store: Store) -> int:
    """Return how much the files hold that rows of the past are in."""
    folder = store.home.warehouse / f"{store.tables.schema}.db"
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


def _commits(store: Store, log: str) -> int:
    row = store.spark.sql(f"describe history {store.tables[log]} limit 1").first()
    assert row is not None
    return int(row["version"])


def _deliver(outbox: Outbox, rows: pa.Table) -> None:
    outbox.append(rows).raise_if_rejected()
    Relay(outbox).run(Mode.DRAIN)


def test_a_batch_costs_one_append_and_few_jobs(store: Store, tmp_path: Path) -> None:
    """The endings of a batch and the claims of the next one are one append, at most; a relay that
    grew a job per event or per key would show.
    """
    outbox = store.outbox(tmp_path / "to", batch_size=SIZE)
    _deliver(outbox, events("warm", SIZE, keys=5))
    outbox.append(events("batch", BATCHES * SIZE, keys=5)).raise_if_rejected()
    commits, jobs = _commits(store, "outbox_transitions"), _jobs(store.spark)
    summary = Relay(outbox).run(Mode.DRAIN)
    assert BATCHES * SIZE == summary.published
    appends = _commits(store, "outbox_transitions") - commits
    assert BATCHES // 2 < appends <= BATCHES + 2
    made = _jobs(store.spark) - jobs
    assert made <= JOBS_AROUND + JOBS_PER_BATCH * BATCHES


def test_a_producer_that_goes_on_asks_little(store: Store, tmp_path: Path) -> None:
    """From its third append on a producer alone neither looks ids up nor reads them."""
    producer = store.outbox(tmp_path / "to")
    for number in range(2):
        producer.append(events(f"known-{number}", SIZE)).raise_if_rejected()
    jobs = _jobs(store.spark)
    for number in range(2, 6):
        producer.append(events(f"known-{number}", SIZE)).raise_if_rejected()
    assert _jobs(store.spark) - jobs <= 4 * JOBS_PER_APPEND
    Relay(producer).run(Mode.DRAIN)


def _past(name: str, count: int) -> pa.Table:
    """Return events of five days, before those within which an id is held against earlier ones."""
    now = datetime.now(UTC)
    rows = events(name, count, keys=50)
    at = [now - timedelta(days=20 + n % 5) for n in range(count)]
    return rows.append_column("created_at", pa.array(at, pa.timestamp("us", tz="UTC")))


def test_the_past_is_not_read(store: Store, tmp_path: Path) -> None:
    """With eleven times the past behind it, a drain reads hardly more: the names of the files that
    came with the past, until Delta's next checkpoint, and nothing of what they hold.
    """
    outbox = store.outbox(tmp_path / "to", batch_size=20_000)
    spark = store.spark

    def measure(name: str) -> int:
        before = _bytes_read(spark)
        _deliver(outbox, events(name, 20, keys=5))
        return _bytes_read(spark) - before

    _deliver(outbox, _past("old", OLD))
    measure("warm")
    before = measure("before")
    size = _bytes_kept(store)
    _deliver(outbox, _past("older", 10 * OLD))
    past = _bytes_kept(store) - size
    after = measure("after")
    assert 0 < before < past
    assert after - before <= OF_THE_PAST * past


def test_a_build_reads_what_has_changed(store: Store, tmp_path: Path) -> None:
    """Of the projection, the checks of a build leave out the files whose rows changed earlier."""
    outbox = store.outbox(tmp_path / "to")
    _deliver(outbox, events("earlier", SIZE))
    since = datetime.now(UTC)
    _deliver(outbox, events("since", SIZE))
    version = _commits(store, "outbox_state")
    range_ = {"state_version": version, "whole": False, "any_hold": False, "since": str(since)}
    checked = store.spark.sql(
        compile_sql(
            f"{{{{ delta_outbox.touched_deliveries_select(ref('outbox_state'), {range_}) }}}}",
            home=store.home,
            schema=store.tables.schema,
        )
    )
    found = {row["event_id"] for row in checked.collect()}
    assert set(events("since", SIZE)["event_id"].to_pylist()) == found
    everything = store.spark.table(store.tables.state).inputFiles()
    assert 0 < len(checked.inputFiles()) < len(everything)
