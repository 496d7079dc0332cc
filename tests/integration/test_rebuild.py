"""The projection when what it was derived from, or it itself, is no longer what it was."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import pytest
from tests.integration.store import Store, check_derived, differences, events, open_store
from tests.integration.test_projection import live_a_little, rewrite

from delta_outbox.dbt import check_result, run_dbt
from delta_outbox.errors import ChangeFeedGone
from delta_outbox.home import Home
from delta_outbox.outbox import Outbox
from delta_outbox.publishers.protocol import Delivered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "t_rebuild"
RETENTION_DAYS = 30  # of Delta's log, by default


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share; each leaves the projection right."""
    with open_store(spark, home, SCHEMA) as store:
        yield store


def expire(store: Store, log: str) -> None:
    """Let Delta forget the old commits of a log, as it does by itself when they are old enough."""
    location = store.rows(f"describe detail {log}")[0]["location"]
    folder = Path(urlparse(location).path) / "_delta_log"
    before = store.rows(f"describe history {log} limit 1")[0]["version"]
    long_ago = time.time() - (RETENTION_DAYS + 2) * 24 * 3600
    for file in folder.iterdir():
        os.utime(file, (long_ago, long_ago))
    # With the next checkpoint; this commit makes one.
    for interval in (1, 50):
        store.spark.sql(
            f"alter table {log} set tblproperties (delta.checkpointInterval={interval})"
        )
    left = [row["version"] for row in store.rows(f"describe history {log}")]
    assert before not in left


def refresh(outbox: Outbox, way: str, *, rebuild: bool = False) -> None:
    """Refresh by the store or by dbt."""
    if way == "store":
        outbox.refresh(rebuild=rebuild)
        return
    full = ["--full-refresh"] if rebuild else []
    assert outbox.home is not None
    check_result(run_dbt(["run", "-s", "outbox_state", *full], home=outbox.home, schema=SCHEMA))


def news(store: Store, outbox: Outbox, prefix: str) -> None:
    """Append events, and deliver one: more in both logs."""
    outbox.append(events(prefix, 3)).raise_if_rejected()
    claim = outbox.claim(1)
    assert claim is not None
    outbox.end(claim, [Delivered()])


def test_expired_logs_change_nothing(store: Store, tmp_path: Path) -> None:
    """After VACUUM, and when Delta has forgotten the old commits of the logs, a rebuild gives the
    very rows of before, and it goes on from there.
    """
    outbox = store.outbox(tmp_path)
    live_a_little(store, outbox)
    copy = f"{store.tables.state}_before"
    store.spark.sql(f"create table {copy} using delta as select * from {store.tables.state}")
    rewrite(store)
    for log in (store.tables.events, store.tables.transitions, store.tables.commands):
        expire(store, log)
    for way in ("store", "dbt"):
        refresh(outbox, way, rebuild=True)
        assert [] == differences(store, copy), way
    news(store, outbox, "after")
    store.insert(("copied", "x", "one more"))
    outbox.refresh()
    assert 3 == len(store.states("after"))
    check_derived(store)


@pytest.mark.parametrize(("lost", "way"), [("files", "dbt")])
def test_a_feed_that_is_gone_is_said(store: Store, tmp_path: Path, lost: str, way: str) -> None:
    """Where maintenance has passed the projection, looking and refreshing say what to do; that
    helps, whoever does it, and nothing is missing.
    """
    outbox = store.outbox(tmp_path)
    outbox.refresh()
    prefix = f"gone-{lost}-{way}"
    news(store, outbox, prefix)
    if lost == "files":
        rewrite(store)
    else:
        for log in (store.tables.events, store.tables.transitions):
            expire(store, log)
    late = store.outbox(tmp_path)
    with pytest.raises(ChangeFeedGone):
        late.retrieve(1)
    for _ in range(2):
        with pytest.raises(ChangeFeedGone) as gone:
            late.refresh()
    assert "outbox dbt build --full-refresh" in gone.value.remedy
    refresh(late, way, rebuild=True)
    assert 3 == len(store.states(prefix))
    late.retrieve(1)
