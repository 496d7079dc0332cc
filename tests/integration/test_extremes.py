"""Rows with the extremes of each column, by plain INSERT, between rows that are well."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from tests.integration.store import Store, check_derived, check_lives, delivered, open_store

from delta_outbox import event_life
from delta_outbox.home import Home
from delta_outbox.inspection import list_deliveries, oldest_pending_seconds, relays_alive
from delta_outbox.inspection_filter import Filter
from delta_outbox.instants import FIRST_INSTANT, LAST_INSTANT
from delta_outbox.maintenance.purge import Purge
from delta_outbox.maintenance.purge_request import PurgeRequest
from delta_outbox.relay import Mode, Relay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = {"backoff_initial_seconds": "0.01", "backoff_jitter": "0", "lease_seconds": "60"}
FIRST, LAST = f"timestamp_micros({FIRST_INSTANT})", f"timestamp_micros({LAST_INSTANT})"
BEFORE, AFTER = f"timestamp_micros({FIRST_INSTANT - 1})", f"timestamp_micros({LAST_INSTANT + 1})"
# Nearer to the ends of 64 bits, Delta cannot read its own change feed.
LEAST, MOST = (f"timestamp_micros({sign}9220000000000000000)" for sign in ("-", ""))
MILLIS: Final = "timestamp_millis(1795723899000000)"  # microseconds taken for milliseconds
BEYOND: Final = {
    f"{column}-{name}": (column, value)
    for column in ("created_at", "available_at", "appended_at")
    for name, value in {
        "least": LEAST,
        "before": BEFORE,
        "after": AFTER,
        "millis": MILLIS,
        "most": MOST,
    }.items()
}
LEGAL: Final = {
    "created-first": ("created_at", FIRST),
    "created-last": ("created_at", LAST),
    "created-1969": ("created_at", "timestamp'1969-07-20 20:17:40'"),
    "created-1500": ("created_at", "timestamp'1500-02-28 00:00:00'"),
    "available-first": ("available_at", FIRST),
    "appended-first": ("appended_at", FIRST),
    "appended-last": ("appended_at", LAST),
    "appended-null": ("appended_at", "cast(null as timestamp)"),
    "ordinal-least": ("ordinal", "-9223372036854775807 - 1"),
    "ordinal-most": ("ordinal", "9223372036854775807"),
    "payload-empty": ("payload", "cast('' as binary)"),
    "payload-bytes": ("payload", "x'00ff80'"),
    "type-long": ("event_type", "concat('order.', repeat('x', 506))"),
    "key-empty": ("ordering_key", "''"),
    "key-long": ("ordering_key", "repeat('k', 1024)"),
    "key-odd": ("ordering_key", r"'\u0001\u200b\U0001f600'"),
    "partition-empty": ("partition_key", "''"),
    "headers-empty": ("headers", "map()"),
    "headers-null": ("headers", "map('a', cast(null as string), '', '')"),
    "headers-large": ("headers", "map('a', repeat('h', 100000))"),
    "metadata-large": ("metadata", "map('a', repeat('m', 100000))"),
}
TOO_LONG: Final = {
    "event_id": "repeat('i', 513)",
    "event_type": "repeat('t', 513)",
    "ordering_key": "repeat('k', 1025)",
    "partition_key": "repeat('p', 1025)",
}


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox of the present format."""
    with open_store(spark, home, "t_extremes") as store:
        store.add_policy("order.*", **QUICK)
        yield store


@pytest.fixture(scope="module")
def old(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox whose event log refuses no instant and no length, as before format 2."""
    with open_store(spark, home, "t_extremes_old") as store:
        store.add_policy("order.*", **QUICK)
        for name in ("instants_in_range", "text_not_too_long"):
            spark.sql(f"alter table {store.tables.events} drop constraint {name}")
        yield store


def insert(store: Store, name: str, column: str, value: str) -> None:
    """Insert an event with a value between two that are well, in one commit."""
    rows = []
    for event_id in (f"{name}-0", name, f"{name}-1"):
        well = {
            "event_id": f"'{event_id}'",
            "event_type": "'order.x'",
            "payload": "cast('fine' as binary)",
            "created_at": "current_timestamp()",
            "appended_at": "current_timestamp()",
        }
        row = {column: "null"} | well | ({column: value} if event_id == name else {})
        rows.append(f"({', '.join(row.values())})")
    store.spark.sql(
        f"insert into {store.tables.events} ({', '.join(row)}) values {', '.join(rows)}"
    )


def ends(store: Store) -> dict[str, tuple[str, int]]:
    """Return how each event ended, and at which attempt."""
    rows = store.transitions()
    check_lives(rows)
    return {row["event_id"]: (row["reason"], row["attempt"]) for row in rows}


def look_at_everything(store: Store, folder: Path) -> None:
    """Ask all that people ask of an outbox."""
    outbox = store.outbox(folder)
    outbox.refresh()
    rows, _ = list_deliveries(outbox, Filter(limit=1000))
    for end in (rows[0], rows[-1]):
        event_life.show(outbox, str(end["event_id"]), with_payload=True)
    oldest_pending_seconds(outbox)
    relays_alive(outbox)
    for view in ("outbox", "eligible_events", "backlog", "duplicate_events"):
        store.spark.table(store.tables[view]).toArrow().to_pylist()
    purge = Purge(outbox)
    day = datetime.now(UTC).date().replace(year=datetime.now(UTC).year - 1)
    purge.run(PurgeRequest(before=day, actor="me", reason="why", include_dead=True, dry_run=True))
    purge.close()


@pytest.mark.rest
def test_the_table_refuses_what_nobody_can_read(store: Store) -> None:
    """An INSERT with an instant beyond the years 1 to 9999, or with a text that is too long, fails
    and says which rule it breaks.
    """
    for column, value in BEYOND.values():
        with pytest.raises(Exception, match="instants_in_range"):
            insert(store, "x", column, value)
    for column, value in TOO_LONG.items():
        with pytest.raises(Exception, match="text_not_too_long"):
            insert(store, "x", column, value)


@pytest.mark.rest
def test_every_legal_extreme_is_delivered(store: Store, tmp_path: Path) -> None:
    """The first and the last instant and all other extremes that the log takes are delivered like
    their neighbours, in one attempt each.
    """
    for name, (column, value) in LEGAL.items():
        insert(store, name, column, value)
    names = [f"{name}{end}" for name in LEGAL for end in ("-0", "", "-1")]
    look_at_everything(store, tmp_path)
    summary = Relay(store.outbox(tmp_path / "d", batch_size=1000)).run(Mode.DRAIN)
    assert (len(names), 0, 0) == (summary.published, summary.dead, summary.waiting)
    assert dict.fromkeys(names, ("delivered", 1)) == ends(store)
    assert sorted(names) == sorted(line["event_id"] for line in delivered(tmp_path / "d"))
    look_at_everything(store, tmp_path)
    sizes = store.rows(
        f"select count_if(payload_bytes <> octet_length(payload)) as wrong, "
        f"count_if(payload_bytes is null) as unknown from {store.tables['outbox_events']}"
    )
    assert [{"wrong": 0, "unknown": 0}] == sizes
    check_derived(store)


def test_what_an_old_log_holds_is_rejected_by_itself(old: Store, tmp_path: Path) -> None:
    """In a log that refused nothing, an instant that nobody can read ends its own event, with the
    reason; its neighbours are delivered in one attempt, and nothing else minds.
    """
    for name, (column, value) in BEYOND.items():
        insert(old, name, column, value)
    old.spark.sql(
        f"insert into {old.tables.events} (event_id, event_type, payload, ordering_key) values "
        "(repeat('long', 5000), 'order.x', cast('fine' as binary), repeat('k', 3000))"
    )
    look_at_everything(old, tmp_path)
    healthy = [*(f"{name}{end}" for name in BEYOND for end in ("-0", "-1")), "long" * 5000]
    summary = Relay(old.outbox(tmp_path / "d", batch_size=1000)).run(Mode.DRAIN)
    assert (len(healthy), len(BEYOND), 0) == (summary.published, summary.dead, summary.waiting)
    expected = dict.fromkeys(healthy, ("delivered", 1)) | dict.fromkeys(BEYOND, ("rejected", 1))
    assert expected == ends(old)
    errors = {row["event_id"]: row["error"] for row in old.transitions() if row["error"]}
    assert BEYOND.keys() == errors.keys()
    for name, (column, _) in BEYOND.items():
        assert f"its {column} is not between the years 1 and 9999 (UTC)" in errors[name]
    look_at_everything(old, tmp_path)
    check_derived(old)
    outbox = old.outbox(tmp_path / "again")
    outbox.replay(state="DEAD", actor="me", reason="again", everything=True, dry_run=False)
    assert len(BEYOND) == Relay(outbox).run(Mode.DRAIN).dead
