"""Maintenance and purges: what they remove, what they leave, and what interrupts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.invariants import build
from tests.integration.operations.purging import Past, live_long_ago, purge
from tests.integration.outboxes import (
    Store,
    appended_by_spark,
    check_derived,
    delivered,
    events,
    open_store,
)
from tests.integration.projection.test_projection import rewrite

from delta_outbox.core.clock import SystemClock
from delta_outbox.core.errors import UnknownEvent, WrongUsage
from delta_outbox.operations import event_life
from delta_outbox.operations.maintenance.maintain import Maintenance, MaintenanceReport
from delta_outbox.operations.maintenance.purge import Purge
from delta_outbox.operations.maintenance.purge_records import PurgeRecords
from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.dbt import check_result
from delta_outbox.runtime.home import Home
from delta_outbox.store.heartbeat import Heartbeat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "t_maintenance"
LEFT = ("held-000", "held-001", "dead-001", "dead-002", "copied-000", "copied-001", "copied-002")


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share."""
    with open_store(spark, home, SCHEMA) as store:
        yield store


@pytest.fixture(scope="module")
def past(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Past:
    """Return days of long ago, which a purge may remove or must leave."""
    return live_long_ago(store, tmp_path_factory.mktemp("long-ago"))


def maintain(store: Store, *, dry_run: bool = False) -> MaintenanceReport:
    """Do what cron does."""
    outbox = store.outbox(Path())
    maintenance = Maintenance(outbox)
    try:
        return maintenance.run(dry_run=dry_run)
    finally:
        maintenance.close()
        outbox.close()


@pytest.mark.rest
def test_a_purge_is_shown_before_it_is_done(store: Store, past: Past, tmp_path: Path) -> None:
    """A dry run names the days that would go, and why others stay; nothing is written. It does not
    matter what somebody has written into a command by hand.
    """
    store.spark.sql(
        f"insert into {store.tables.commands} (command_id, kind, event_id, arrival, destination, "
        "lifecycle, arguments, actor, reason) select 'by-hand', 'replay', event_id, arrival, "
        "destination, 7, '{\"epoch\": \"x\"}', 'ann', 'x' "
        f"from {store.tables.state} where event_id = 'gone-001'"
    )
    report = purge(store, tmp_path, past)
    assert (None, {"PUBLISHED": 3}, {}) == (report.number, report.choice.states, report.removed)
    assert [past.days["gone"]] == report.choice.dates
    assert {
        past.days["held"]: "1 open",
        past.days["dead"]: "1 DEAD; --include-dead purges them, too",
        past.days["copied"]: "an event of it is repeated on a day that stays",
    } == {one.created_date: one.why for one in report.choice.kept}
    plans = f"select 1 from {store.tables.progress} where writer = 'purge'"
    assert [] == store.rows(plans)
    with pytest.raises(WrongUsage, match=r"`before` must be .* or earlier"):
        purge(store, tmp_path, past, before=datetime.now(UTC).date())


@pytest.mark.rest
def test_whole_days_are_purged(store: Store, past: Past, tmp_path: Path) -> None:
    """What has ended on the days that were shown goes, and no more, also when maintenance and a
    relay have worked since, and the projection is that of the logs (beside each other: long/).
    """
    purged = purge(store, tmp_path, past, dry_run=False)
    # A row more of the events: the second one of `gone-000`.
    gone = {"outbox_events": 4, "outbox_transitions": 6, "outbox_state": 3}
    assert ([past.days["gone"]], gone) == (purged.choice.dates, purged.removed)
    maintain(store)
    Relay(store.outbox(tmp_path / "to")).run(Mode.DRAIN)
    left = {**dict.fromkeys(LEFT, "PUBLISHED"), "dead-000": "DEAD", "held-002": "PENDING"}
    assert left == store.states()
    check_derived(store)


@pytest.mark.rest
def test_what_was_purged_is_told_apart(store: Store, tmp_path: Path) -> None:
    """Of a purged event is known that it was purged, how it had ended, by whom and why; the log
    no longer holds it.
    """
    outbox = store.outbox(tmp_path)
    shown: Any = event_life.show(outbox, "gone-001")
    purged = shown["purged"]
    assert ("ann", "no longer needed") == (purged["purged_by"], purged["purged_because"])
    assert ["PUBLISHED"] == [row["state"] for row in purged["deliveries"]]
    with pytest.raises(UnknownEvent):
        event_life.show(outbox, "never-was")
    for table in ("events", "transitions", "state"):
        name = store.tables[f"outbox_{table}"]
        assert [] == store.rows(f"select 1 from {name} where startswith(event_id, 'gone')")


@pytest.mark.rest
def test_a_purge_that_is_not_on_record_is_given_up(
    store: Store, past: Past, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A purge that dies before it is certain is not finished by maintenance, nothing is gone, and
    what it had written down already is forgotten.
    """
    write = PurgeRecords.write

    def die(records: PurgeRecords, number: int, given: Mapping[str, Any]) -> bool:
        write(records, number, given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(PurgeRecords, "write", die)
        with pytest.raises(KeyboardInterrupt):
            purge(store, tmp_path, past, include_dead=True, dry_run=False)
    recorded = f"select 1 from {store.tables.purged} where startswith(event_id, 'dead')"
    assert 3 == len(store.rows(recorded))
    assert maintain(store).purge is None
    assert [] == store.rows(recorded)
    left = {"dead-000": "DEAD", "dead-001": "PUBLISHED", "dead-002": "PUBLISHED"}
    assert left == store.states("dead")
    in_log = f"select event_id from {store.tables.events} where startswith(event_id, 'dead')"
    assert set(left) == {row["event_id"] for row in store.rows(in_log)}


@pytest.mark.rest
def test_an_interrupted_purge_is_finished(
    store: Store, past: Past, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A purge that dies half-way is finished by the next maintenance, DEAD events included, and
    an event that came to one of its days meanwhile is not lost, be its id new or a purged one.
    """
    late = {name: f"late-{name}" for name in ("dead", "gone")}
    created = {name: f"timestamp'{past.days[name]} 12:00:00'" for name in late}

    def come(name: str) -> None:
        row = (late[name], "x", "p")
        store.insert(row, created_at=created[name], appended_at=created[name])

    come("gone")

    def die(purging: Purge, given: Mapping[str, Any]) -> int:
        come("dead")
        Purge._remove_events(purging, given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Purge, "_remove_transitions", die)
        with pytest.raises(KeyboardInterrupt):
            purge(store, tmp_path, past, include_dead=True, dry_run=False)
    check_result(build(store))
    assert "DEAD" == store.states("dead")["dead-000"]
    store.insert(("dead-001", "x", "again"), created_at=created["dead"])
    beat(store, at="current_timestamp() - interval 9 days")
    preview = maintain(store, dry_run=True)
    assert preview.purge is not None
    done = maintain(store)
    assert (preview.purge, 1, 1) == (done.purge, done.heartbeats, preview.heartbeats)
    again = maintain(store)
    assert (None, 0, 0) == (
        again.purge,
        again.heartbeats,
        sum(one.compacted for one in again.tables),
    )
    assert {"dead-001": "PENDING"} == store.states("dead")
    Relay(store.outbox(tmp_path / "late")).run(Mode.DRAIN)
    assert {"dead-001", *late.values()} == {
        line["event_id"] for line in delivered(tmp_path / "late")
    }
    assert dict.fromkeys(late.values(), "PUBLISHED") == store.states("late")

    # Its transitions stay, with those of today: no invariant may miss what was purged.
    report = purge(store, tmp_path, past, dry_run=False)
    gone = {"outbox_events": 1, "outbox_transitions": 0, "outbox_state": 1}
    assert ([past.days["gone"]], gone) == (report.choice.dates, report.removed)
    kept = {one.created_date: one.why for one in report.choice.kept}
    assert "1 appended lately: they may be appended once more" == kept[past.days["dead"]]
    assert 4 == len(store.transitions("late"))
    check_result(build(store, audit="full"))
    check_derived(store)


def beat(store: Store, *, at: str) -> None:
    """Append a heartbeat of a relay that has stopped."""
    store.spark.sql(
        f"insert into {store.tables.relays} (relay_id, kind, lanes, at, version) "
        f"values ('gone', 'stopped', array(0), {at}, '0')"
    )


@pytest.mark.rest
def test_heartbeats_are_compacted_as_they_come(store: Store) -> None:
    """The log of heartbeats compacts its small files by itself, day and night, although only the
    beats that leave a checkpoint are Spark's to append.
    """
    relays = store.tables.relays
    store.spark.sql(f"alter table {relays} set tblproperties ('delta.checkpointInterval' = '5')")
    while store.spark.sql(f"describe history {relays} limit 1").collect()[0]["version"] % 5 != 4:
        beat(store, at="timestamp'2026-01-01 00:00:00'")
    before = appended_by_spark(store.spark, relays)
    own = store.spark.newSession()
    heart = Heartbeat(own, store.tables, relay_id="gone", clock=SystemClock({}))
    for _ in range(20):  # the first one of this day is Spark's, and there is nothing to compact
        heart.beat("stopped")
    assert 3 <= appended_by_spark(store.spark, relays) - before <= 5
    history = store.spark.sql(f"describe history {relays} limit 25").collect()
    compacted = [one["operationParameters"] for one in history if one["operation"] == "OPTIMIZE"]
    assert {"true"} == {one["auto"] for one in compacted}
    today = store.spark.sql(
        f"select * from {relays} where relay_id = 'gone' and at > timestamp'2026-06-01 00:00:00'"
    )
    assert 20 == today.count()
    assert len(today.inputFiles()) <= 12


@pytest.mark.rest
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
