"""The views that people query, on real tables: who is due, who waits for whom, what is said."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.integration.outboxes import Store, open_store
from tests.unit.macro_namespace import Macros

from delta_outbox.core.globs import glob_to_regex
from delta_outbox.core.horizon import day_ranges, days_condition
from delta_outbox.lifecycle.claims import in_order
from delta_outbox.lifecycle.order_scopes import scopes_of
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.results import Delivered, Failed, Rejected
from delta_outbox.runtime.dbt import check_result, run_dbt
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "t_views"
COLUMNS_OF_EVENT_VIEWS = (
    "event_id",
    "event_type",
    "ordering_key",
    "state",
    "attempts",
    "last_error",
)
# View, and the columns that the contract names beyond those of every view with a row per event.
CONTRACT: Mapping[str, tuple[str, ...]] = {
    "outbox": (
        *("payload", "headers", "metadata", "partition_key", "created_at", "available_at"),
        *("claimed_at", "claimed_by", "published_at", "destination", "lifecycle"),
        *("publish_attempts", "crashes", "claim_id", "lease_expires_at", "lane"),
    ),
    "eligible_events": ("available_at",),
    "dead_letters": ("dead_at",),
    "stuck_claims": ("claimed_by", "claimed_at", "lease_expires_at", "overdue_seconds"),
    "blocked_events": ("blocked_by", "reason", "blocked_since"),
    "duplicate_events": ("appended_at", "same_content"),
    "transition_history": ("occurred_at",),
    "backlog": ("event_type", "destination", "count", "oldest_age_seconds", "next_due"),
    "outbox_freshness": ("refreshed_at",),
    "outbox_destinations": ("destination", "paused", "pause_reason", "breaker", "breaker_error"),
}
OF_WORKFLOWS: Mapping[str, tuple[str, ...]] = {
    "workflow_instances": ("workflow", "instance", "version", "state", "task", "next_at", "exit"),
    "todo_items": ("task_id", "state", "due_at", "expires_at", "held_by", "assigned_to", "outcome"),
    "task_attempts": ("task_id", "instance", "attempt", "result", "known", "outcome", "error"),
    "uncertain_outcomes": ("task_id", "instance", "third_party", "ended_at", "cause"),
    "faults_by_third_party": ("third_party", "day", "attempts", "failed", "refused", "unsure"),
    "late_answers": ("command_id", "task_id", "instance", "answer", "outcome", "command_version"),
    "endless_tasks": ("task_id", "instance", "why", "next_at", "expires_at"),
    "ignored_starts": ("event_id", "workflow", "instance", "why", "message"),
}
WITHOUT_EVENTS = ("backlog", "outbox_freshness", "outbox_destinations")

# Position, event_type, destination, ordering, order_scope, on_dead; the first that matches.
POLICIES = (
    (1, "free.*", "default", "none", "key", "hold"),
    (2, "hold.*", "default", "strict", "key", "hold"),
    (3, "each.*", "a|b", "strict", "destination", "continue"),
    (4, "both.*", "b|c", "strict", "destination", "hold"),
    (5, "*", "default", "strict", "key", "continue"),
)
TYPES = ("free.x", "hold.x", "each.x", "both.x", "plain.x")


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share, with policies of every kind."""
    with open_store(spark, home, SCHEMA) as store:
        rows = [(*row, "3600", glob_to_regex(row[1])) for row in POLICIES]
        spark.sql(
            f"insert overwrite {store.tables['policy_rows']} "
            "(position, event_type, destination, ordering, order_scope, on_dead, lease_seconds, "
            "event_type_regex) values " + ", ".join(str(row) for row in rows)
        )
        yield store


@pytest.fixture(scope="module")
def manifest(shared_store: Store) -> dict[str, Any]:
    """Return what dbt knows of the project."""
    schema = shared_store.tables.schema
    check_result(run_dbt(["parse"], home=shared_store.home, schema=schema))
    text = (shared_store.home.dbt_target / schema / "manifest.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


# --- what is promised and documented -----------------------------------------------------------


def test_views_have_the_columns_of_the_contract(shared_store: Store) -> None:
    """Each view has at least the columns that users rely on."""
    for view, columns in {**CONTRACT, **OF_WORKFLOWS}.items():
        has_events = view in CONTRACT and view not in WITHOUT_EVENTS
        promised = {*columns, *(COLUMNS_OF_EVENT_VIEWS if has_events else ())}
        assert promised <= set(shared_store.spark.table(shared_store.tables[view]).columns), view


def test_views_are_public_and_enforced(manifest: dict[str, Any]) -> None:
    """Everybody may use the views; dbt refuses to build one whose columns are not those that are
    written down, and knows who uses them.
    """
    models = {
        node["name"]: node
        for node in manifest["nodes"].values()
        if node["resource_type"] == "model" and node["package_name"] == "delta_outbox"
    }
    for view in (*CONTRACT, *OF_WORKFLOWS):
        assert (view, "public", True) == (
            view,
            models[view]["access"],
            models[view]["contract"]["enforced"],
        )
    assert {"outbox"} == {node["group"] for node in models.values()}
    assert "protected" == models["policy_rows"]["access"]
    exposures = {one["name"]: one["depends_on"]["nodes"] for one in manifest["exposures"].values()}
    assert {"relay", "destinations"} == set(exposures)
    assert "model.delta_outbox.outbox_state" in exposures["relay"]


def test_every_column_is_described(shared_store: Store, manifest: dict[str, Any]) -> None:
    """No column of a log, of the projection or of a view is without its meaning."""
    described = {
        node["name"]: {
            name for name, column in node["columns"].items() if column["description"].strip()
        }
        for node in [*manifest["nodes"].values(), *manifest["sources"].values()]
        if node["resource_type"] in ("model", "source", "seed")
    }
    for name in (
        *CONTRACT,
        *OF_WORKFLOWS,
        *("outbox_state", "policy_rows", "delivery_policies"),
        *("outbox_events", "outbox_transitions", "outbox_commands"),
        *("outbox_progress", "outbox_relays", "outbox_purged"),
    ):
        columns = shared_store.spark.table(shared_store.tables[name]).columns
        assert set(columns) == described[name], name


@pytest.mark.rest
def test_boundaries(store: Store, home: Home) -> None:
    """The unit tests beside the views hold, at each boundary."""
    result = run_dbt(["test", "--select", "test_type:unit"], home=home, schema=SCHEMA)
    check_result(result)
    nodes: Any = result.result
    tested = {
        one.node.tested_node_unique_id.split(".")[-1]
        for one in nodes.results
        if one.node.resource_type == "unit_test"
    }
    assert {
        *("eligible_events", "blocked_events", "stuck_claims", "backlog", "duplicate_events"),
        *("outbox_destinations", "todo_items", "endless_tasks"),
        *("faults_by_third_party", "late_answers", "task_attempts"),
    } <= tested


# --- who is due, and who waits for whom --------------------------------------------------------


def _policy(event_type: str) -> dict[str, str]:
    names = ("event_type", "destination", "ordering", "order_scope", "on_dead")
    found = next(row for row in POLICIES if fnmatchcase(event_type, row[1]))
    return dict(zip(names, found[1:], strict=True))


def _random_deliveries(dice: random.Random, count: int, now: datetime) -> list[dict[str, Any]]:
    """Return deliveries in every state and condition, several for each of few keys."""
    rows = []
    for number in range(count):
        event_type = dice.choice(TYPES)
        state = dice.choice(("PENDING",) * 5 + ("CLAIMED", "DEAD", "PUBLISHED"))
        attempts = dice.choice((0, 1)) if state == "PENDING" else 1
        destination = (
            "" if not attempts else dice.choice(_policy(event_type)["destination"].split("|"))
        )
        due = dice.choice((None, None, now - timedelta(hours=1), now + timedelta(days=1)))
        rows.append(
            {
                "event_id": f"r-{dice.randrange(10**6):06}-{number}",
                "arrival": number // 4,
                "destination": destination,
                "state": state,
                "event_type": event_type,
                "ordering_key": dice.choice((None, *(f"key-{n}" for n in range(count // 5)))),
                "created_at": now - timedelta(days=1),
                "appended_at": now - timedelta(days=1),
                "ordinal": None if number % 4 == 3 else number,
                "ambiguous": False,
                **dict.fromkeys(("lifecycle", "publish_attempts", "crashes", "suspect"), 0),
                "attempts": attempts,
                "available_at": due if state == "PENDING" else None,
                "reason": dice.choice(("exhausted", "operator")) if state == "DEAD" else None,
                "lease_expires_at": now + timedelta(hours=1) if state == "CLAIMED" else None,
                "kill_command_id": dice.choice((None, None, None, None, "kill")),
                **dict.fromkeys(("epoch", "lane", "sequence"), 0),
            }
        )
    return rows


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    instant = pa.timestamp("us", tz="UTC")
    types = {
        **dict.fromkeys(("created_at", "appended_at", "available_at", "lease_expires_at"), instant),
        **dict.fromkeys(("arrival", "ordinal", "sequence"), pa.int64()),
        **dict.fromkeys(("lifecycle", "attempts", "publish_attempts", "crashes"), pa.int32()),
        **dict.fromkeys(("suspect", "epoch", "lane"), pa.int32()),
        "ambiguous": pa.bool_(),
    }
    return pa.Table.from_pylist(
        rows, schema=pa.schema([(name, types.get(name, pa.string())) for name in rows[0]])
    )


def _write_state(store: Store, rows: list[dict[str, Any]]) -> None:
    store.spark.createDataFrame(_table(rows)).createOrReplaceTempView("random_deliveries")
    names = ", ".join(rows[0])
    store.spark.sql(
        f"insert into {store.tables.state} ({names}) select {names} from random_deliveries"
    )


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    last = 2**63 - 1
    ordinal = last if row["ordinal"] is None else row["ordinal"]
    return (row["arrival"], ordinal, row["created_at"], row["event_id"])


def _group(row: Mapping[str, Any]) -> tuple[str, frozenset[str]] | None:
    """Return the order scope of a delivery, as decisions on order state them."""
    policy = _policy(row["event_type"])
    if policy["ordering"] == "none" or row["ordering_key"] is None:
        return None
    names = set[str]()
    if policy["order_scope"] == "destination":
        names |= set((row["destination"] or policy["destination"]).split("|"))
        for _ in POLICIES:  # those that share an event, by whichever policies, are one
            for _, _, destinations, ordering, scope, _ in POLICIES:
                shared = set(destinations.split("|"))
                if (ordering, scope) == ("strict", "destination") and names & shared:
                    names |= shared
    return row["ordering_key"], frozenset(names)


def _why_not_eligible(row: Mapping[str, Any], now: datetime) -> str | None:
    """Say why a delivery blocks those behind it, None if it does not."""
    if row["state"] == "CLAIMED":
        return "claimed"
    if row["kill_command_id"] is not None or row["state"] == "PUBLISHED":
        return None
    if row["state"] == "DEAD":
        holds = _policy(row["event_type"])["on_dead"] == "hold" and row["reason"] != "operator"
        return "held" if holds else None
    if row["available_at"] is None or row["available_at"] <= now:
        return None
    return "retrying" if row["attempts"] else "scheduled"


def _expected(
    rows: list[dict[str, Any]], now: datetime
) -> tuple[set[str], set[tuple[str, str, str]]]:
    """Return who is eligible, and who is blocked as (event_id, blocked_by, reason)."""
    eligible, blocked = set(), set()
    in_the_way = [
        (_place(row), row["event_id"], _why_not_eligible(row, now), _group(row)) for row in rows
    ]
    for row in rows:
        is_due = row["state"] == "PENDING" and _why_not_eligible(row, now) is None
        if not is_due or row["kill_command_id"] is not None:
            continue
        before = [
            (place, event_id, why)
            for place, event_id, why, group in in_the_way
            if why and group and place < _place(row) and group == _group(row)
        ]
        if before:
            _, first, reason = min(before)
            blocked.add((row["event_id"], first, reason))
        else:
            eligible.add(row["event_id"])
    return eligible, blocked


@pytest.mark.rest
def test_every_due_event_is_eligible_or_blocked(store: Store) -> None:
    """Every due PENDING event that is not killed is in exactly one of `eligible_events` and
    `blocked_events`, and there behind the first event of its key that cannot be taken; no other
    event is in either. The rule is stated here a second time, row by row.
    """
    now = datetime.now(UTC)
    reasons: set[str] = set()
    while reasons != {"claimed", "held", "retrying", "scheduled"}:  # one draw in twelve lacks one
        seed = random.randrange(10**6)
        rows = _random_deliveries(random.Random(seed), 600, now)
        expected_eligible, expected_blocked = _expected(rows, now)
        reasons = {reason for _, _, reason in expected_blocked}
    _write_state(store, rows)
    try:
        eligible = store.rows(
            f"select event_id, destination from {store.tables['eligible_events']}"
        )
        blocked = store.rows(f"select * from {store.tables['blocked_events']}")
    finally:
        store.spark.sql(f"delete from {store.tables.state} where startswith(event_id, 'r-')")
    assert expected_eligible
    assert expected_eligible == {row["event_id"] for row in eligible}, seed
    assert len(expected_eligible) == len(eligible), seed
    assert expected_blocked == {
        (row["event_id"], row["blocked_by"], row["reason"]) for row in blocked
    }, seed
    assert len(expected_blocked) == len(blocked), seed


def test_twins_say_the_same(shared_store: Store) -> None:
    """The order of the outbox, which deliveries are of one order scope, and the days on which an id
    may be known already are the same in SQL and in Python.
    """
    seed = random.randrange(10**6)
    dice = random.Random(seed)
    spark, now = shared_store.spark, datetime.now(UTC)
    rows = [
        {**row, "created_at": now - timedelta(days=dice.choice((1, 2)))}
        for row in _random_deliveries(dice, 300, now)
    ]
    dice.shuffle(rows)
    table = _table(rows)
    spark.createDataFrame(table).createOrReplaceTempView("twin_deliveries")
    position = shared_store.statements.texts["position"]
    found = spark.sql(f"select event_id from twin_deliveries order by {position}").toArrow()
    assert in_order(table)["event_id"].to_pylist() == found["event_id"].to_pylist(), seed

    names = ("event_type", "destination", "ordering", "order_scope", "on_dead")
    policies = [dict(zip(names, row[1:], strict=True)) for row in POLICIES]
    spark.sql(
        "create or replace temporary view twin_policies as select *, "
        "cast(null as double) as expires_after_seconds from values "
        + ", ".join(str((*row, glob_to_regex(row[1]))) for row in POLICIES)
        + f" as (position, {', '.join(names)}, event_type_regex)"
    )
    text = Macros("eligibility", "lifecycle").deliveries_in_scopes(
        "twin_deliveries", "twin_policies", "current_timestamp()", None
    )
    of_python = scopes_of(table, PolicySet.parse(policies)).to_pylist()
    scopes = dict(zip(table["event_id"].to_pylist(), of_python, strict=True))
    found_scopes = {
        row["event_id"]: "\x00".join((row["scope"]["destinations"], row["scope"]["ordering_key"]))
        if row["scope"]
        else None
        for row in spark.sql(f"select event_id, scope from ({text})").collect()
    }
    assert {name: scopes[name] for name in found_scopes} == found_scopes, seed
    assert len(set(found_scopes.values())) > 20, seed

    for count in (0, 1, 20, 150):
        days = [dice.choice((0, 20_000)) + dice.randrange(-50, 50_000) for _ in range(count)]
        days_table = pa.table({"day": pa.array(days, pa.int32())})
        spark.createDataFrame(days_table).createOrReplaceTempView("twin_days")
        text = Macros("projection").days_of_news(
            "(select date_from_unix_date(day) as created_date from twin_days)"
        )
        (found_days,) = spark.sql(str(text)).collect()
        assert days_condition(day_ranges(days, back=7)) == found_days[0], seed


@pytest.mark.rest
def test_views_follow_the_lives_of_events(store: Store, tmp_path: Path) -> None:
    """What a relay does to events shows in every view after the next refresh."""
    outbox = store.outbox(tmp_path)
    later = datetime.now(UTC) + timedelta(days=1)
    table = pa.Table.from_pylist(
        [
            {"event_id": f"life-{name}", "event_type": kind, "ordering_key": f"life-{key}", **more}
            for name, kind, key, more in (
                ("held-1", "hold.x", "held", {}),
                ("retry-1", "plain.x", "retry", {}),
                ("taken-1", "plain.x", "taken", {}),
                ("held-2", "hold.x", "held", {}),
                ("retry-2", "plain.x", "retry", {}),
                ("taken-2", "plain.x", "taken", {}),
                ("later-1", "plain.x", "later", {"available_at": later}),
                ("later-2", "plain.x", "later", {}),
                ("free", "plain.x", "free", {}),
            )
        ],
        schema=pa.schema(
            [
                *((name, pa.string()) for name in ("event_id", "event_type", "ordering_key")),
                ("available_at", pa.timestamp("us", tz="UTC")),
            ]
        ),
    )
    table = table.append_column("payload", pa.array([b"{}"] * len(table), pa.binary()))
    outbox.append(table).raise_if_rejected()
    store.insert(("life-free", "plain.x", "something else"), created_at="current_timestamp()")

    def column(view: str, *names: str) -> list[tuple[Any, ...]]:
        found = store.rows(
            f"select * from {store.tables[view]} where startswith(event_id, 'life-') "
            "order by event_id"
        )
        return [tuple(row[name] for name in names) for row in found]

    # Before any refresh: what the projection has not seen is PENDING, a later copy is nothing.
    unseen = column("outbox", "event_id", "state", "payload", "attempts", "sequence")
    names = sorted(table["event_id"].to_pylist())
    assert [(name, "PENDING", b"{}", 0, 0) for name in names] == unseen
    ended = outbox.claim(2)
    held = outbox.claim(1)
    assert ended is not None
    assert held is not None
    assert ["life-held-1", "life-retry-1"] == ended.deliveries["event_id"].to_pylist()
    outbox.end(ended, [Rejected(error="no such thing"), Failed(error="busy", retry_after=3600)])
    outbox.refresh()

    assert [("life-free",)] == column("eligible_events", "event_id")
    assert [
        ("life-held-2", "life-held-1", "held", None),
        ("life-later-2", "life-later-1", "scheduled", later),
    ] == column("blocked_events", "event_id", "blocked_by", "reason", "next_due")[:2]
    assert [
        ("life-retry-2", "life-retry-1", "retrying"),
        ("life-taken-2", "life-taken-1", "claimed"),
    ] == column("blocked_events", "event_id", "blocked_by", "reason")[2:]
    assert [("life-held-1", "rejected", "no such thing")] == column(
        "dead_letters", "event_id", "reason", "last_error"
    )
    assert [] == column("stuck_claims", "event_id")
    assert [("life-free", False, "PENDING")] == column(
        "duplicate_events", "event_id", "same_content", "state"
    )
    assert 5 == len(column("transition_history", "event_id"))
    assert names == [event_id for (event_id,) in column("outbox", "event_id")]
    backlog = store.rows(f"select * from {store.tables['backlog']} where destination = 'default'")
    assert {"hold.x": (1, 1, 0), "plain.x": (7, 6, 1)} == {
        row["event_type"]: (row["count"], row["pending"], row["claimed"]) for row in backlog
    }
    outbox.end(held, [Delivered()])
