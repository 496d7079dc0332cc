"""dbt with several threads, which share a session: our nodes beside those of somebody else."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import pytest
from tests.integration.conftest import REPOSITORY
from tests.integration.other_project import run_in
from tests.integration.outboxes import Store, open_store

from delta_outbox.runtime.dbt import check_result
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

SCHEMA = "t_threads"
SHOP = "t_threads_shop"
MODELS = [f"small_{number:02}" for number in range(14)]
EVENTS_EACH = 5
BACKLOG = 20_000  # events; a refresh of them takes seconds, in which the small models are made
DELTA = "spark.databricks.delta."
NUMBERS = ("write.txnAppId", "write.txnVersion", "commitInfo.userMetadata")
LOOK = 0.02  # seconds between two looks
LAST_COMMIT = f"{DELTA}lastCommitVersionInSession"  # set by Delta itself with each commit

PROJECT = {
    "dbt_project.yml": """
name: shop
version: "1.0"
profile: shop
dispatch: [{macro_namespace: dbt, search_order: [shop, delta_outbox, dbt]}]
models:
  shop: {+materialized: table, +file_format: delta}
""",
    "profiles.yml": f"""
shop:
  target: local
  outputs:
    local: {{type: spark, method: session, host: NA, schema: {SHOP}, threads: 4}}
    alone: {{type: spark, method: session, host: NA, schema: {SHOP}, threads: 1}}
""",
    "packages.yml": f"packages: [{{local: {REPOSITORY}}}]",
    "macros/announce.sql": """
{% macro announce() %}
insert into {{ source("outbox", "outbox_events") }} (event_id, event_type, payload, created_at)
select
    '{{ var("kind") }}-{{ this.identifier }}-' || id,
    '{{ var("kind") }}',
    cast('{}' as binary),
    current_timestamp()
from range({{ events_each }})
{% endmacro %}
""".replace("{{ events_each }}", str(EVENTS_EACH)),
    **{
        f"models/{name}.sql": "{{ config(post_hook='{{ announce() }}') }} select 1 as id"
        for name in MODELS
    },
}

RunDbt = Callable[..., "dbtRunnerResult"]


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox beside the tables of somebody else's project."""
    with open_store(spark, home, SCHEMA) as store:
        yield store
        spark.sql(f"drop schema if exists {SHOP} cascade")


@pytest.fixture(scope="module")
def shop(store: Store, tmp_path_factory: pytest.TempPathFactory) -> RunDbt:
    """Return a function that runs dbt in somebody else's project, in this process's session."""
    folder = tmp_path_factory.mktemp("shop")
    for name, text in PROJECT.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    def run(*args: str, kind: str = "none") -> dbtRunnerResult:
        return run_in(folder, args, variables={"outbox_schema": SCHEMA, "kind": kind})

    check_result(run("deps"))
    return run


def backlog(store: Store, kind: str) -> None:
    """Append many events with plain SQL, in one commit."""
    store.spark.sql(
        f"insert into {store.tables.events} (event_id, event_type, payload, created_at) "
        f"select '{kind}-backlog-' || id, 'backlog', cast('{{}}' as binary), current_timestamp() "
        f"from range({BACKLOG})"
    )


def session_of(spark: SparkSession) -> tuple[dict[str, str], set[str]]:
    """Return Delta's settings and the temporary views of the session that dbt's threads share."""
    rows = spark.sql("set").collect()
    settings = {row["key"]: row["value"] for row in rows if row["key"].startswith(DELTA)}
    settings.pop(LAST_COMMIT, None)
    views = {row["viewName"] for row in spark.sql("show views").collect() if row["isTemporary"]}
    return settings, views


@contextmanager
def numbers_seen(spark: SparkSession) -> Iterator[set[str]]:
    """Yield what numbers the writes of a session at any moment of a block; a MERGE takes seconds,
    so none that a refresh sets is overlooked.
    """
    seen: set[str] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK):
            seen.update(
                name for name in NUMBERS if spark.conf.get(f"{DELTA}{name}", None) is not None
            )

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        over.set()
        watching.join()


def numbered_by(spark: SparkSession, table: str) -> set[str]:
    """Return which writers have numbered a commit of a table."""
    (detail,) = spark.sql(f"describe detail {table}").collect()
    commits = list((Path(urlparse(detail["location"]).path) / "_delta_log").glob("*.json"))
    assert commits
    lines = [line for commit in commits for line in commit.read_text().splitlines()]
    return {action["txn"]["appId"] for line in lines if "txn" in (action := json.loads(line))}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("profile", ()),
        pytest.param("option", ("--target", "alone", "--threads", "4")),
    ],
)
def test_strangers_lose_nothing(
    store: Store, shop: RunDbt, spark: SparkSession, kind: str, options: tuple[str, ...]
) -> None:
    """While the outbox is refreshed and checked, other threads of the same dbt append events, and
    every one of them is there; nothing of theirs carries a number of ours, and the session that
    all share stays as it was.
    """
    backlog(store, kind)
    before = session_of(spark)
    selected = ("--select", "shop", "outbox_state", "invariant_violations")
    with numbers_seen(spark) as seen_meanwhile:
        built = shop("run", *selected, *options, kind=kind)
    check_result(built)
    models = {one.node.name for one in getattr(built.result, "results", ())}
    assert {*MODELS, "outbox_state", "invariant_violations"} <= models
    assert set() == seen_meanwhile
    assert before == session_of(spark)
    made = {f"{kind}-{name}-{number}" for name in MODELS for number in range(EVENTS_EACH)}
    found = store.rows(f"select event_id from {store.tables.events} where event_type = '{kind}'")
    assert sorted(made) == sorted(row["event_id"] for row in found)
    tables = [f"{SHOP}.{name}" for name in MODELS]
    assert [set()] * len(MODELS) == [numbered_by(spark, table) for table in tables]
    check_result(shop("run", "--select", "outbox_state", *options))
    seen = store.rows(f"select event_id from {store.tables.state} where event_type = '{kind}'")
    assert sorted(made) == sorted(row["event_id"] for row in seen)
