"""Rows with the extremes of each column, by plain INSERT, between rows that are well."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from tests.integration.operating import clock
from tests.integration.outboxes import Store, check_derived, check_lives, delivered, open_store

from delta_outbox.core.instants import FIRST_INSTANT, LAST_INSTANT
from delta_outbox.operations import event_life
from delta_outbox.operations.inspection import counts_and_age, list_deliveries, relays_alive
from delta_outbox.operations.inspection_filter import Filter
from delta_outbox.operations.lanes import LaneRequest, change_lanes
from delta_outbox.operations.maintenance.purge import Purge
from delta_outbox.operations.maintenance.purge_request import PurgeRequest
from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

WELL: Final = {
    "event_id": "''",
    "event_type": "'order.x'",
    "payload": "cast('fine' as binary)",
    "created_at": "current_timestamp()",
    "appended_at": "current_timestamp()",
}
LONG_AGO: Final = "current_timestamp() - interval 60 days"
QUICK = {"backoff_initial_seconds": "0.01", "backoff_jitter": "0", "lease_seconds": "60"}
FIRST, LAST = f"timestamp_micros({FIRST_INSTANT})", f"timestamp_micros({LAST_INSTANT})"
BEFORE, AFTER = f"timestamp_micros({FIRST_INSTANT - 1})", f"timestamp_micros({LAST_INSTANT + 1})"
# Nearer to the ends of 64 bits, Delta cannot read its own change feed.
LEAST, MOST = (f"timestamp_micros({sign}9220000000000000000)" for sign in ("-", ""))
MILLIS: Final = "timestamp_millis(1795723899000000)"  # microseconds taken for milliseconds
INSTANTS_BEYOND: Final = {
    "least": LEAST,
    "before": BEFORE,
    "after": AFTER,
    "millis": MILLIS,
    "most": MOST,
}
BEYOND: Final = {
    f"{column}-{name}": (column, value)
    for column in ("created_at", "available_at", "appended_at")
    for name, value in INSTANTS_BEYOND.items()
}
# The extremes of each SQL type, whatever column has it. What a log refuses, its rules say.
EXTREMES: Final = {
    "timestamp": {
        "first": FIRST,
        "last": LAST,
        "1969": "timestamp'1969-07-20 20:17:40'",
        "1500": "timestamp'1500-02-28 00:00:00'",
        **{f"beyond-{name}": value for name, value in INSTANTS_BEYOND.items()},
    },
    "bigint": {"least": "-9223372036854775807 - 1", "most": "9223372036854775807", "zero": "0L"},
    "binary": {
        "empty": "x''",
        "bytes": "x'00ff80'",
        "large": "cast(repeat('b', 100000) as binary)",
    },
    "string": {
        "empty": "''",
        "odd": r"'\u0001\u200b\U0001f600'",
        "full": "repeat('f', 512)",
        "long": "repeat('l', 1025)",
        "no-text": "cast(x'61ff' as string)",
    },
    "map<string,string>": {
        "empty": "map()",
        "of-null": "map('a', cast(null as string), '', '')",
        "large": "map('a', repeat('h', 100000))",
    },
}
# By the rules of the log (macros/storage/log_checks.sql), the only ones that refuse an extreme.
REFUSED: Final = {
    # A column that must be given, or the first CHECK that knows nothing of a null.
    "NOT_NULL|VIOLATE_CONSTRAINT": re.compile(r"(event_id|event_type|payload|created_at)-null"),
    "event_id_given": re.compile("event_id-empty"),
    "event_type_given": re.compile("event_type-empty"),
    "text_not_too_long": re.compile(r".*-long"),
    "text_is_utf8": re.compile(r".*-no-text"),
    "instants_in_range": re.compile(r".*-beyond-.*"),
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


def extremes(store: Store) -> dict[str, tuple[str, str]]:
    """Return the extremes of each column of the event log that an INSERT may give, as the log's
    own schema has them: the column and the SQL text of each.
    """
    folder = store.home.warehouse / f"{store.tables.schema}.db" / "outbox_events" / "_delta_log"
    found = [
        json.loads(action["metaData"]["schemaString"])
        for file in sorted(folder.glob("*.json"))
        for action in map(json.loads, file.read_text().splitlines())
        if "metaData" in action
    ]
    generated = {
        field["name"]
        for field in found[-1]["fields"]
        if "delta.generationExpression" in field["metadata"]
    }
    return {
        f"{field.name}-{name}": (field.name, value)
        for field in store.spark.table(store.tables.events).schema
        if field.name not in generated
        for name, value in {
            **EXTREMES[field.dataType.simpleString()],
            "null": f"cast(null as {field.dataType.simpleString()})",
        }.items()
    }


def refusal(name: str) -> str | None:
    """Return the rule of the log that refuses an extreme, None if none does."""
    return next((rule for rule, names in REFUSED.items() if names.fullmatch(name)), None)


def insert(store: Store, given: Mapping[str, tuple[str, str]], **well: str) -> None:
    """Insert events with a value each, every one between two that are well, in one commit.

    Args:
        store: the outbox.
        given: name to column and value.
        well: what the columns of all others hold, where it is not what `WELL` says.
    """
    columns = sorted({column for column, _ in given.values()} - WELL.keys())
    rows = []
    for name, (column, value) in given.items():
        for event_id in (f"{name}-0", name, f"{name}-1"):
            row = dict.fromkeys(columns, "null") | WELL | well | {"event_id": f"'{event_id}'"}
            row |= {column: value} if event_id == name else {}
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
    counts_and_age(outbox)
    relays_alive(outbox)
    for view in ("outbox", "eligible_events", "backlog", "duplicate_events"):
        store.spark.table(store.tables[view]).toArrow().to_pylist()
    purge = Purge(outbox)
    day = datetime.now(UTC).date().replace(year=datetime.now(UTC).year - 1)
    purge.run(PurgeRequest(before=day, actor="me", reason="why", include_dead=True, dry_run=True))
    purge.close()


def test_every_extreme_of_each_column(store: Store, tmp_path: Path) -> None:
    """The extremes of each column's SQL type are refused by the log, by the rule that they break,
    or delivered like their neighbours, in one attempt each.
    """
    given = extremes(store)
    legal = {name: one for name, one in given.items() if refusal(name) is None}
    assert {None, *REFUSED} == {refusal(name) for name in given}
    for name in given.keys() - legal.keys():
        with pytest.raises(Exception, match=f"(?i){refusal(name)}"):
            insert(store, {name: given[name]})
    insert(store, legal, appended_at=LONG_AGO)
    texts = {name: value for name, (column, value) in legal.items() if column == "event_id"}
    ids = store.rows(f"select {', '.join(f'{v} as `{n}`' for n, v in texts.items())}")[0]
    names = [ids.get(f"{name}{end}", f"{name}{end}") for name in legal for end in ("-0", "", "-1")]
    names.remove("available_at-last")  # not due before the year 9999
    look_at_everything(store, tmp_path)
    summary = Relay(store.outbox(tmp_path / "d", batch_size=1000)).run(Mode.DRAIN)
    assert (len(names), 0, 1) == (summary.published, summary.dead, summary.waiting)
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
    insert(old, BEYOND)
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


def test_operators_meet_extremes(store: Store, tmp_path: Path) -> None:
    """A claim of events with extreme instants is released, the lanes are changed while they are
    open, and what is old of them is purged for good.
    """
    given = {
        f"met-{name}": one
        for name, one in extremes(store).items()
        if one[1] in EXTREMES["timestamp"].values() and refusal(name) is None
    }
    insert(store, given, appended_at=LONG_AGO)
    lost = store.outbox(tmp_path / "lost").claim(1000)
    assert lost is not None
    assert 3 * len(given) - 1 == len(lost)  # one is not due before the year 9999
    outbox = store.outbox(tmp_path / "d", batch_size=1000, clock=clock(1))
    report = outbox.release_expired_claims(actor="me", reason="it is lost", dry_run=False)
    assert len(lost) == report.deliveries
    change = LaneRequest(lanes=3, actor="me", reason="more lanes")
    assert change_lanes(outbox, change, max_wait=60.0)
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (len(lost), 0) == (summary.published, summary.dead)
    look_at_everything(store, tmp_path)
    purge = Purge(outbox)
    request = PurgeRequest(before=date(1970, 1, 1), actor="me", reason="old", dry_run=False)
    days = {day.created_date for day in purge.run(request).choice.days}
    purge.close()
    assert {date(1, 1, 1), date(1500, 2, 28), date(1969, 7, 20)} == days
    left = store.rows(
        f"select count(*) as left from {store.tables.events} where created_date < date'1970-01-01'"
    )
    assert [{"left": 0}] == left
    look_at_everything(store, tmp_path)
    check_derived(store)
