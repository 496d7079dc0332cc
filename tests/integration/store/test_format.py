"""An outbox that the release before format 2 wrote becomes one of this release.

`format_1.zip` holds the logs and the projection of an outbox that commit 0e01375 wrote: deliveries
in every state, a replay and a kill that nobody has applied, a claim whose relay is gone, and
rows with instants and texts that no constraint of today takes.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.outboxes import Store, check_derived, check_lives

from delta_outbox.core.errors import DbtFailed, FormatTooOld
from delta_outbox.core.tables import FORMAT_PROPERTY, FORMAT_VERSION, Tables
from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.dbt import check_result, compile_sql, run_dbt
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.statements import INLINE, Statements
from delta_outbox.store.opening import check_logs, create_outbox

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = Path(__file__).with_name("format_1.zip")
PUBLISHER = "tests.integration.relay.trouble:Trouble"
LONG = "long" * 5000
REJECTED = {"far-created", "bc-created", "micro-available", "bc-available", "far-appended"}
DELIVERED = {
    *("first-created", "last-created", "new-000", "new-001", "new-002", "waiting-000"),
    *("waiting-001", "claimed-000", "claimed-001", LONG),
}


@pytest.fixture
def old(spark: SparkSession, home: Home, outbox_schema: str) -> Tables:
    """Return the tables of an outbox of format 1."""
    folder = home.warehouse / f"{outbox_schema}.db"
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    spark.sql(f"create schema {outbox_schema}")
    for table in sorted(folder.iterdir()):
        location = table.as_uri()
        spark.sql(f"create table {outbox_schema}.{table.name} using delta location '{location}'")
    return Tables(schema=outbox_schema)


def store_of(spark: SparkSession, home: Home, tables: Tables) -> Store:
    """Return the outbox as tests use it."""
    compiled = compile_sql(INLINE, home=home, schema=tables.schema)
    statements = Statements.parse(compiled)
    return Store(spark=spark, home=home, tables=tables, statements=statements)


def logged(spark: SparkSession, tables: Tables) -> dict[str, list[str]]:
    """Return what the logs hold in the columns that format 1 had, as text."""
    found = {}
    for name in ("events", "transitions", "commands", "progress", "purged", "relays"):
        frame = spark.table(tables[f"outbox_{name}"]).drop("payload_bytes", "driver_id")
        # Through Spark: Python does not know every instant of these rows.
        rows = frame.selectExpr(f"to_json(struct({', '.join(frame.columns)})) as row").collect()
        found[name] = sorted(row["row"] for row in rows)
    return found


def lives(store: Store) -> list[dict[str, Any]]:
    """Return the transitions in order, without instants: Python does not know all of them."""
    return store.rows(
        "select event_id, arrival, destination, from_state, to_state, reason, attempt, claim_id, "
        f"epoch, sequence from {store.tables.transitions} order by epoch, lane, sequence, event_id"
    )


def properties(spark: SparkSession, table: str) -> dict[str, str]:
    """Return the properties of a table."""
    rows = spark.sql(f"show tblproperties {table}").collect()
    return {row["key"]: row["value"] for row in rows}


# Rows do not keep these; the claim of `early-bc` has its instant in the transition log.
LEFT_OUT = {
    ("events", "instants_in_range"),
    ("events", "text_not_too_long"),
    ("transitions", "instants_in_range"),
}


def left_out(spark: SparkSession, tables: Tables) -> set[tuple[str, str]]:
    """Return the constraints of format 2 that logs lack."""
    checks = {("events", "text_not_too_long")}
    for name in ("events", "transitions", "commands", "progress", "relays", "purged"):
        checks.add((name, "instants_in_range"))
    return {
        (name, check)
        for name, check in checks
        if f"delta.constraints.{check}" not in properties(spark, tables[f"outbox_{name}"])
    }


def check_migrated(store: Store, before: dict[str, list[str]]) -> None:
    """Demand the present format, and that no row of a log is another."""
    check_logs(store.spark, store.tables)
    after = logged(store.spark, store.tables)
    for name, rows in before.items():
        assert set(rows) <= set(after[name]), name
    for name in ("events", "transitions", "commands", "purged"):
        assert before[name] == after[name]
    state = properties(store.spark, store.tables.state)
    assert str(FORMAT_VERSION) == state[FORMAT_PROPERTY]
    commands = properties(store.spark, store.tables.commands)
    assert "'accept_late'" in commands["delta.constraints.kind_is_known"].replace(" ", "")
    assert "delta.constraints.kind_known" not in commands
    assert left_out(store.spark, store.tables) == LEFT_OUT


@pytest.mark.rest
def test_an_outbox_of_format_1_goes_on(
    spark: SparkSession, home: Home, old: Tables, tmp_path: Path
) -> None:
    """`outbox init` brings the logs to format 2 and changes no row; then a relay delivers all that
    is well in one attempt, and rejects by itself what no constraint would take; once such rows are
    gone, the next `outbox init` adds the constraints.
    """
    with pytest.raises(FormatTooOld):
        check_logs(spark, old)
    before = logged(spark, old)
    create_outbox(spark, home, old)
    store = store_of(spark, home, old)
    check_migrated(store, before)
    again = run_dbt(["run-operation", "migrate_logs"], home=home, schema=old.schema)
    assert again.success
    check_migrated(store, before)
    store.add_policy(
        "order.*",
        backoff_initial_seconds="0.01",
        backoff_jitter="0",
        lease_seconds="60",
        max_attempts="1",
    )
    known = {row["event_id"] for row in lives(store) if row["to_state"] != "CLAIMED"}
    summary = Relay(store.outbox(tmp_path, publisher=PUBLISHER)).run(Mode.DRAIN)
    rows = lives(store)
    check_lives(rows)
    ends = {r["event_id"]: (r["to_state"], r["reason"]) for r in rows}
    new = {name: end for name, end in ends.items() if name not in known or name == "again-000"}
    expected: dict[str, tuple[str, str]] = {
        **dict.fromkeys(DELIVERED, ("PUBLISHED", "delivered")),
        **dict.fromkeys(REJECTED, ("DEAD", "rejected")),
        "again-000": ("DEAD", "exhausted"),
    }
    assert expected == new
    # What was claimed by a relay that is gone is claimed anew, all else at once.
    assert {1, 2} >= {r["attempt"] for r in rows if r["event_id"] in DELIVERED}
    assert 1 == summary.waiting  # `later-0` is killed once it is due
    check_derived(store)

    for name, check in LEFT_OUT:  # as a purge does, in time
        rule = compile_sql(
            f"{{{{ delta_outbox.log_checks('{name}')['{check}'] }}}}", home=home, schema=old.schema
        )
        spark.sql(f"delete from {old[f'outbox_{name}']} where not ({rule})")
    create_outbox(spark, home, old)
    assert set() == left_out(spark, old)


@pytest.mark.rest
def test_a_migration_that_is_killed_is_finished_by_the_next(
    spark: SparkSession, home: Home, old: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after any of its statements, a migration is repeated and ends as if nothing had been.

    Each try makes one statement more than the one before: what a constraint refuses is tried anew.
    """
    before = logged(spark, old)
    kind = type(spark)
    sql = kind.sql
    left = [0]

    def once(session: Any, text: str, *args: Any, **more: Any) -> Any:
        if text.lstrip().lower().startswith(("alter ", "update ")) or "alter table" in text:
            if not left[0]:
                raise RuntimeError("killed")
            left[0] -= 1
        return sql(session, text, *args, **more)

    tries = 0
    with monkeypatch.context() as patch:
        patch.setattr(kind, "sql", once)
        while tries < 100:
            tries += 1
            left[0] = tries
            result = run_dbt(["run-operation", "migrate_logs"], home=home, schema=old.schema)
            if result.success:
                break
            with pytest.raises(FormatTooOld):
                check_logs(spark, old)
    assert 4 < tries < 100
    create_outbox(spark, home, old)
    check_migrated(store_of(spark, home, old), before)


@pytest.mark.rest
def test_what_is_refused_is_said(spark: SparkSession, home: Home, old: Tables) -> None:
    """A command on an outbox of an older format names the format and `outbox init`; dbt, which asks
    before it builds and at the beginning of each operation, refuses a later format too.
    """
    with pytest.raises(FormatTooOld, match=r"must be 2. Got: 1") as caught:
        check_logs(spark, old)
    assert "outbox init" in str(caught.value.remedy)
    result = run_dbt(["build", "--select", "outbox_state"], home=home, schema=old.schema)
    assert "outbox init" in str(result.exception)
    who = {"actor": "ann", "reason": "why"}
    named = {"event_ids": ["later-0"], "dry_run": False, **who}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("pause", {"destination": "default", **who}),
        ("kill", named),
        ("cancel_instances", {"instances": ["1"], "dry_run": False, **who}),
        ("accept_violations", who),
    ]
    before = logged(spark, old)["commands"]
    for operation, given in asked:
        assert "Run `outbox init`" in said(home, old, operation, given)
    spark.sql(f"alter table {old.events} set tblproperties ('{FORMAT_PROPERTY}' = '3')")
    assert "Upgrade delta-outbox" in said(home, old, *asked[0])
    assert before == logged(spark, old)["commands"]


def said(home: Home, tables: Tables, operation: str, given: dict[str, Any]) -> str:
    """Return why dbt refuses an operation."""
    words = ["run-operation", operation, "--no-populate-cache", "--args", json.dumps(given)]
    with pytest.raises(DbtFailed) as caught:
        check_result(run_dbt(words, home=home, schema=tables.schema))
    return str(caught.value)
