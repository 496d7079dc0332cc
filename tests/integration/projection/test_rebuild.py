"""The projection when what it was derived from, or it itself, is no longer what it was."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import pytest
from tests.integration.gates import more
from tests.integration.outboxes import (
    Store,
    check_derived,
    check_lives,
    delivered,
    events,
    open_store,
    projected,
)
from tests.integration.projection.test_projection import live_a_little, rewrite

from delta_outbox.api import Outbox
from delta_outbox.core.errors import ChangeFeedGone, DbtFailed, LogRewound
from delta_outbox.lifecycle.results import Delivered
from delta_outbox.projection.refresh import APP_ID
from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.dbt import check_result, run_dbt
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

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
    before = projected(store)
    rewrite(store)
    for log in (store.tables.events, store.tables.transitions, store.tables.commands):
        expire(store, log)
    outbox.refresh(rebuild=True)
    assert before == projected(store)
    news(store, outbox, "after")
    store.insert(("copied", "x", "one more"))
    outbox.refresh()
    assert 3 == len(store.states("after"))


@pytest.mark.parametrize(("lost", "way"), [("files", "dbt"), *more(("commits", "store"))])
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


@pytest.mark.parametrize(
    ("damage", "way"),
    [("dropped", "dbt"), ("skipped", "store"), *more(("restored", "store"))],
)
def test_a_projection_that_lost_rows_is_derived_anew(
    store: Store, tmp_path: Path, damage: str, way: str
) -> None:
    """A projection that was restored or made anew, or whose rows Delta has skipped because the
    number was used, is noticed by the next refresh, which derives it anew.
    """
    outbox = store.outbox(tmp_path)
    prefix = f"{damage}-{way}"
    state = store.tables.state
    store.insert((f"{prefix}-1", "x", "p"))
    plan = outbox.refresh()
    version = store.rows(f"describe history {state} limit 1")[0]["version"]
    if damage == "skipped":
        frame = store.spark.table(state).limit(0).write.format("delta").mode("append")
        frame.option("txnAppId", APP_ID).option("txnVersion", plan + 1).saveAsTable(state)
    store.insert((f"{prefix}-2", "x", "p"))
    if damage != "skipped":
        outbox.refresh()
        store.insert((f"{prefix}-3", "x", "p"))
        outbox.refresh()
    if damage == "restored":
        store.spark.sql(f"restore table {state} to version as of {version}")
    if damage == "dropped":
        store.drop("outbox_state")
    refresh(store.outbox(tmp_path), way)
    assert (2 if damage == "skipped" else 3) == len(store.states(prefix))
    twice = f"select event_id from {state} group by event_id, arrival having count(*) > 1"
    assert [] == store.rows(twice)


def test_lost_plans_are_noticed(store: Store, tmp_path: Path) -> None:
    """Where the plans of the projection are gone, no refresh pretends to have worked, and the
    remedy helps.
    """
    outbox = store.outbox(tmp_path)
    store.insert(("plan-1", "x", "p"))
    last = outbox.refresh()
    progress = store.tables.progress
    version = store.rows(f"describe history {progress} limit 1")[0]["version"]
    store.spark.sql(f"delete from {progress} where writer = 'projection' and number = {last}")
    store.insert(("plan-2", "x", "p"))
    fresh = store.outbox(tmp_path)
    with pytest.raises(LogRewound, match=f"{progress}: number {last} ") as lost:
        fresh.refresh()
    assert "Restore it to its version before" in lost.value.remedy
    with pytest.raises(DbtFailed, match="LOG_REWOUND"):
        refresh(fresh, "dbt")
    store.spark.sql(f"restore table {progress} to version as of {version}")
    fresh.refresh()
    assert 1 == len(store.states("plan-2"))
    check_derived(store)


def test_lost_transitions_are_noticed(store: Store, tmp_path: Path) -> None:
    """Where the transition log was restored to what it held earlier, no relay delivers anything,
    and the remedy helps: no event is delivered twice.
    """
    folder, log = tmp_path / "to", store.tables.transitions
    first, versions = store.outbox(folder), []
    for event_id in ("rewound-1", "rewound-2"):
        store.insert((event_id, "x", "p"))
        claim = first.claim(100)  # also what other tests have left
        assert claim is not None
        first.end(claim, [Delivered()] * len(claim))
        versions.append(store.rows(f"describe history {log} limit 1")[0]["version"])
    store.spark.sql(f"restore table {log} to version as of {versions[0]}")
    store.insert(("rewound-3", "x", "p"))
    with pytest.raises(LogRewound, match=f"{log}: number ") as lost:
        Relay(store.outbox(folder)).run(Mode.DRAIN)
    assert "Restore it to its version before" in lost.value.remedy
    store.spark.sql(f"restore table {log} to version as of {versions[1]}")
    Relay(store.outbox(folder)).run(Mode.DRAIN)
    sent = [line["event_id"] for line in delivered(folder)]
    assert ["rewound-3"] == [one for one in sent if one.startswith("rewound")]
    check_lives(store.transitions("rewound"))
    check_derived(store)
