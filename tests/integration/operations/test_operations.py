"""Replay, kill and release: one request, whether it comes by Python, by command or by dbt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.operating import (
    EVENTS,
    HOSTILE,
    KILLED,
    LATER,
    SCHEMA,
    START,
    STEERING,
    WHO,
    Lives,
    Ways,
    clock,
    table,
)
from tests.integration.outboxes import Store, open_store
from tests.unit.macro_namespace import Macros
from tests.unit.operations.test_hostile_arguments import NASTY

from delta_outbox.api import Outbox
from delta_outbox.cli.main import main
from delta_outbox.core.errors import DbtFailed, UnknownEvent, WrongUsage
from delta_outbox.lifecycle.results import Delivered, Rejected
from delta_outbox.operations.request_expansion import open_targets, pinned_state
from delta_outbox.operations.requests import replay_request
from delta_outbox.runtime.dbt import check_result, run_dbt
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return a schema of our own."""
    with open_store(spark, home, SCHEMA) as opened:
        yield opened


@pytest.fixture(scope="module")
def lives(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Lives:
    """Return an outbox with events in every state: delivered, dead, scheduled, claimed."""
    folder = tmp_path_factory.mktemp("delivered")
    opened = store.outbox(folder)
    scheduled = [(id_, "order.later", None) for ids in KILLED.values() for id_ in ids]
    opened.append(table([*EVENTS, *scheduled])).raise_if_rejected()
    claim = opened.claim(4)
    assert claim is not None
    first = Rejected(error="no 'quote' \\ here")
    opened.end(claim, [first, Delivered(), Delivered(), Rejected(error="no")])
    assert store.outbox(folder, clock=clock(-2)).claim(1) is not None
    holder = store.outbox(folder, clock=clock(2))
    held = holder.claim(1)
    assert held is not None
    # A plain SQL producer writes what `append` refuses.
    store.spark.sql(
        f"insert into {store.tables.events} (event_id, event_type, payload, available_at) values "
        "('ctl-\\u001b[2J\\n\\u202e', 'order.later', cast('x' as binary), timestamp'2099-01-01')"
    )
    opened.refresh()
    return Lives(outbox=opened, holder=holder, claim=held)


@pytest.fixture
def outbox(lives: Lives) -> Outbox:
    """Return its worker."""
    return lives.outbox


@pytest.fixture
def ways(store: Store, outbox: Outbox, capfd: pytest.CaptureFixture[str]) -> Iterator[Ways]:
    """Return the three ways to ask."""

    def run(*words: str) -> tuple[int, Any]:
        capfd.readouterr()
        code = main([*words, "--json"])
        return code, json.loads(capfd.readouterr().out)

    rows = store.rows(f"select distinct command_id from {store.tables.commands}")
    seen = {row["command_id"] for row in rows}
    with store.commands(lambda _: outbox):
        yield Ways(store=store, outbox=outbox, main=run, seen=seen)


def test_a_preview_shows_what_would_be_and_writes_nothing(ways: Ways) -> None:
    """Nothing is written unless it is asked for; what would be is shown, with a warning."""
    assert [] == ways.ask("dbt", "replay", state="DEAD", **WHO)
    assert [] == ways.ask("cli", "release", dry_run=True, **WHO)
    assert [] == ways.ask("python", "kill", event_ids=["kill-dbt"], **WHO)
    code, shown = ways.main("replay", "--state", "DEAD", "--reason", "r", "--actor", "a")
    assert (0, True, None, 2) == (
        code,
        shown["dry_run"],
        shown["command_id"],
        shown["deliveries"],
    )
    assert ["dead", HOSTILE] == [row["event_id"] for row in shown["examples"]]
    assert {("DEAD", "order.created", "default", 1), ("DEAD", "invoice.sent", "default", 1)} == {
        tuple(row.values()) for row in shown["counts"]
    }
    # `done` came after `dead` under the same key, and is delivered.
    warning = "1 key has later events delivered already: order on that key is not restored."
    assert [warning] == shown["warnings"]
    report = ways.outbox.replay(state="PUBLISHED", everything=True, **WHO)
    assert (2, [], None) == (report.deliveries, report.warnings, report.command_id)
    assert [] == ways.store.rows(f"select * from {ways.store.tables.commands}")


def test_filters(outbox: Outbox) -> None:
    """Each filter of a replay selects what it says, as `outbox list` does."""
    state = pinned_state(outbox)

    def found(**given: Any) -> list[str]:
        request = replay_request(**given, **WHO)
        targets = open_targets(outbox, request, state=state, command_id="c").toArrow()
        assert not any(targets["refusal"].to_pylist())
        return sorted(targets["event_id"].to_pylist())

    microsecond = timedelta(microseconds=1)
    assert ["dead"] == found(state="DEAD", event_type="order.*")
    assert [] == found(state="DEAD", event_type="order")
    assert ["dead"] == found(state="DEAD", error="'quote' \\")
    assert [] == found(state="DEAD", error="_quote_")
    assert [HOSTILE] == found(state="DEAD", since=START + microsecond)
    assert ["dead"] == found(state="DEAD", until=START + 3 * microsecond)
    assert ["done", "done-alone"] == found(state="PUBLISHED", everything=True)
    assert ["done-alone"] == found(state="PUBLISHED", since=START + 2 * microsecond)
    assert [HOSTILE] == found(state="DEAD", event_ids=[HOSTILE])


@pytest.mark.rest
def test_what_is_named_and_not_to_be_had_is_explained(outbox: Outbox) -> None:
    """An event that is named and stands elsewhere is left out, and that is said."""
    report = outbox.replay(state="DEAD", event_ids=["done", "dead"], event_type="order.*", **WHO)
    assert [("done", "is PUBLISHED, not DEAD")] == [
        (row["event_id"], row["refusal"]) for row in report.left_out
    ]
    report = outbox.replay(state="DEAD", event_ids=["dead"], event_type="invoice.*", **WHO)
    assert (0, "does not match the filter") == (report.deliveries, report.left_out[0]["refusal"])
    report = outbox.kill(["done", "dead"], **WHO)
    assert (1, "is PUBLISHED") == (report.deliveries, report.left_out[0]["refusal"])
    report = outbox.release_expired_claims(event_ids=["held-now", "held-over", "dead"], **WHO)
    assert ["held-over"] == [row["event_id"] for row in report.examples]
    reasons = {str(row["event_id"]): str(row["refusal"]) for row in report.left_out}
    assert "is DEAD, not CLAIMED" == reasons["dead"]
    assert reasons["held-now"].startswith("is leased until 20")


def test_an_unknown_id_stops_everything(ways: Ways) -> None:
    """One id that nothing has is an error, and nothing of the request is written."""
    ids = ["kill-dbt", "nobody' or true --"]
    given: dict[str, Any] = {"event_ids": ids, "dry_run": False, **WHO}
    with pytest.raises(UnknownEvent, match="nobody' or true --"):
        ways.outbox.kill(**given)
    code, document = ways.main("kill", *ids, "--reason", "r", "--actor", "a")
    assert (2, "UNKNOWN_EVENT") == (code, document["error"]["code"])
    with pytest.raises(DbtFailed, match="must name events of this outbox"):
        ways.by_dbt("kill", **given)
    with pytest.raises(WrongUsage, match="event_ids"):
        ways.outbox.kill([], **WHO)
    with pytest.raises(DbtFailed, match=r"replay: `state` must be DEAD or PUBLISHED\. Got: 'FOO'"):
        ways.by_dbt("replay", state="FOO", **WHO)
    found = ways.store.rows(f"select * from {ways.store.tables.commands}")
    assert {row["command_id"] for row in found} <= ways.seen


def test_hostile_arguments_change_nothing(ways: Ways) -> None:
    """Text made to break out of SQL, templates and terminals is a value that nothing has, or is
    refused with a sentence, whichever way one asks; no table gains or loses a row.
    """

    def counts() -> dict[str, int]:
        names = ways.store.rows(f"show tables in {SCHEMA}")
        tables = [row["tableName"] for row in names if not row["isTemporary"]]
        return {
            name: ways.store.rows(f"select count(*) as n from {SCHEMA}.{name}")[0]["n"]
            for name in tables
            if name.startswith("outbox_") and name not in ("outbox_progress", "outbox_freshness")
        }

    before = counts()
    assert {"outbox_events", "outbox_commands", "outbox_state"} <= set(before)
    who: dict[str, Any] = {"reason": "r", "actor": "a"}
    values = [text for text in NASTY if len(text) <= 500 and "\ud800" not in text]
    assert 6 < len(values)
    with pytest.raises(UnknownEvent):
        ways.outbox.kill(values, dry_run=False, **who)
    report = ways.outbox.replay(state="DEAD", error=values[0], dry_run=False, **who)
    assert (0, None) == (report.deliveries, report.command_id)
    code, document = ways.main("kill", *values, "--reason", "r", "--actor", "a")
    assert (2, "UNKNOWN_EVENT") == (code, document["error"]["code"])
    # YAML, as which dbt reads its arguments, has no control characters.
    written = [text for text in values if "\x9b" not in text]
    for given, said in (
        ({"event_ids": written}, f"must name events of this outbox.*and {len(written) - 1} more"),
        ({"event_ids": [NASTY[6]]}, "."),
        ({"event_ids": ["x" * 2_000_000]}, "`event_ids` must be a list of 1 to 10000 ids"),
        ({"event_ids": ["x"], "reason": NASTY[5]}, "`reason` must be one printable line"),
    ):
        with pytest.raises(DbtFailed, match=said):
            ways.by_dbt("kill", **{**who, **given}, dry_run=False)
    ways.by_dbt("replay", state="DEAD", error=values[3], dry_run=False, **who)
    assert before == counts()


def test_schema_and_clock_of_dbt_are_checked(store: Store) -> None:
    """The variables that reach SQL are an identifier and an instant, or dbt does not begin."""
    for schema, variables, said in (
        (f"{SCHEMA}; drop schema {SCHEMA} cascade", {}, "outbox_schema must be letters"),
        (SCHEMA, {"as_of": "2026-01-31' or true --"}, "as_of must be an instant"),
    ):
        result = run_dbt(["run"], home=store.home, schema=schema, variables=variables)
        with pytest.raises(DbtFailed, match=said):
            check_result(result)


def test_control_characters_stay_out_of_the_terminal(
    ways: Ways, capfd: pytest.CaptureFixture[str]
) -> None:
    """What dbt prints of an event is ASCII; what the command prints of it is printable."""
    args = json.dumps({"event_ids": [STEERING], "reason": "r", "actor": "a"})
    capfd.readouterr()
    result = run_dbt(
        ["run-operation", "kill", "--args", args, "--no-populate-cache"],
        home=ways.store.home,
        schema=SCHEMA,
        quiet=False,
    )
    check_result(result)
    printed = capfd.readouterr().out
    assert "ctl-\\u001b[2J\\n\\u202e" in printed
    assert "this is a preview, nothing was written" in printed
    assert "\x1b[2J" not in printed
    assert "\u202e" not in printed


@pytest.mark.rest
def test_one_request_three_ways(ways: Ways) -> None:
    """The same request appends the same rows, whichever way one asks, and takes any text."""
    arrival = ways.store.rows(f"select event_id, arrival, sequence from {ways.store.tables.state}")
    known = {row["event_id"]: row for row in arrival}
    replayed: Mapping[str, Any] = {
        "state": "DEAD",
        "event_type": "order.*",
        "since": START,
        "until": LATER,
        "error": "'quote' \\",
        "event_ids": ["dead"],
        "dry_run": False,
        **WHO,
    }
    expected = {
        "kind": "replay",
        "event_id": "dead",
        "arrival": known["dead"]["arrival"],
        "destination": "default",
        "lifecycle": 0,
        "arguments": json.dumps(
            {"from_state": "DEAD", "epoch": 0, "sequence": known["dead"]["sequence"]},
            separators=(",", ":"),
        ),
        **WHO,
    }
    for way in ("python", "dbt", "cli"):  # the command also applies what waits
        assert [expected] == ways.ask(way, "replay", **replayed)
    # One of them was applied; the others are void, for the delivery has moved on.
    assert ["done", "refused", "refused"] == ways.statuses("replay")
    assert ("PENDING", "replayed", 1, WHO["actor"]) == ways.last_step("dead")[:4]

    for way, ids in KILLED.items():
        rows = ways.ask(way, "kill", event_ids=ids, dry_run=False, **WHO)
        assert [
            {
                "kind": "kill",
                "event_id": event_id,
                "arrival": known[event_id]["arrival"],
                "destination": "",
                "lifecycle": 0,
                "arguments": '{"state":"PENDING"}',
                **WHO,
            }
            for event_id in sorted(ids)
        ] == rows
    assert ["waiting", "waiting"] == ways.statuses("kill")  # until they are due, in a year

    claims = ways.store.rows(
        f"select claim_id from {ways.store.tables.state} where event_id = 'held-over'"
    )
    claim_id = claims[0]["claim_id"]
    for way in ("dbt", "cli"):
        rows = ways.ask(way, "release", claim_ids=[claim_id], dry_run=False, **WHO)
        assert ["release"] == [row["kind"] for row in rows]
        assert {"claim_id": claim_id} == json.loads(rows[0]["arguments"])
        assert WHO == {name: rows[0][name] for name in WHO}
    assert ["done", "refused"] == sorted(ways.statuses("release"))
    assert ("PENDING", "lease_expired") == ways.last_step("held-over")[:2]


def test_what_became_of_each_delivery(spark: SparkSession) -> None:
    """A command that names no destination means each delivery of its event by itself. A replay that
    was passed by is refused, whatever somebody has written into it by hand.
    """
    given: Mapping[str, tuple[str, list[tuple[Any, ...]]]] = {
        "command": (
            "event_id, arrival, destination, lifecycle, kind, arguments, command_id, version",
            [
                *(
                    (name, 1, "", 0, "kill", "{}", "c", 5)
                    for name in ("half", "beaten", "new", "gone")
                ),
                ("by-hand", 1, "a", 0, "replay", '{"epoch": "x"}', "c", 5),
                ("passed-by", 1, "a", 0, "replay", '{"epoch": 99}', "c", 4),
            ],
        ),
        "transitions": (
            "event_id, arrival, destination, command_id, occurred_date",
            [(name, 1, "a", "c", "2026-01-31") for name in ("half", "beaten")],
        ),
        "state": (
            "event_id, arrival, destination, state, lifecycle",
            [
                *((name, 1, "a", "DEAD", 0) for name in ("half", "beaten", "by-hand", "passed-by")),
                ("half", 1, "b", "CLAIMED", 0),
                ("beaten", 1, "b", "PUBLISHED", 0),
                ("new", 1, "", "PENDING", 0),
            ],
        ),
        "purged": (
            "event_id, arrival, destination, command_ids",
            [("gone", 1, "a", ["c"]), ("gone", 1, "b", ["d"])],
        ),
    }
    further = {
        "state": "'' as event_type, '' as kill_command_id, '' as claim_id, "
        "now() as lease_expires_at, now() as changed_at",
        "command": "now() as requested_at",
    }
    for name, (columns, rows) in given.items():
        values = ", ".join(str(row).replace("['", "array('").replace("']", "')") for row in rows)
        spark.sql(
            f"create or replace temporary view status_{name} as select *, "
            f"{further.get(name, '0 as more')} from values {values} as v ({columns})"
        )
    text = Macros("requests", "workflows").command_status(
        *(f"status_{name}" for name in given), "date'2026-01-01'", "4"
    )
    assert {
        *(("half", "a", "done"), ("half", "b", "waiting")),
        *(("beaten", "a", "done"), ("beaten", "b", "refused")),
        ("new", "", "waiting"),
        *(("gone", "a", "done"), ("gone", "b", "refused")),
        *(("by-hand", "a", "waiting"), ("passed-by", "a", "refused")),
    } == {(row["event_id"], row["destination"], row["status"]) for row in spark.sql(text).collect()}


def test_a_replay_of_what_was_delivered(ways: Ways) -> None:
    """A delivered event is delivered again in a new lifecycle, in the name of who asked."""
    report = ways.outbox.replay(state="PUBLISHED", event_ids=["done-alone"], dry_run=False, **WHO)
    assert ways.outbox.apply_commands_if_alone() == 1
    expected = ("PENDING", "replayed", 1, WHO["actor"], report.command_id)
    assert expected == ways.last_step("done-alone")
    assert "done" == ways.command(report.command_id)["status"]


def test_a_kill_of_what_is_due(ways: Ways) -> None:
    """`outbox kill` of a waiting event ends it at once, and its reason and actor are kept."""
    ways.outbox.append(table([("doomed", "order.due", None)])).raise_if_rejected()
    code, document = ways.main("kill", "doomed", "--reason", "r", "--actor", "ann")
    assert (0, "done") == (code, document["status"])
    expected = ("DEAD", "operator", 0, "ann", document["command_id"])
    assert expected == ways.last_step("doomed")


@pytest.mark.rest
def test_a_kill_of_what_is_dead(ways: Ways) -> None:
    """A kill of a dead event, which lets its key go, is done as soon as the state shows it."""
    report = ways.outbox.kill([HOSTILE], dry_run=False, **WHO)
    assert "done" == ways.command(report.command_id)["status"]
    again = ways.outbox.kill([HOSTILE], dry_run=False, **WHO)
    refusal = f"is killed already by command {report.command_id}"
    assert (None, refusal) == (again.command_id, again.left_out[0]["refusal"])


@pytest.mark.rest
def test_a_kill_that_comes_too_late(ways: Ways, lives: Lives) -> None:
    """A kill of a claimed event waits for its claim, and is refused if that delivered it."""
    report = ways.outbox.kill(["held-now"], dry_run=False, **WHO)
    shown = ways.command(report.command_id)
    assert "waiting" == shown["status"]
    assert {"done": 0, "waiting": 1, "refused": 0} == shown["counts"]
    assert ("kill", WHO) == (shown["kind"], {name: shown[name] for name in WHO})
    lives.holder.end(lives.claim, [Delivered()])
    shown = ways.command(report.command_id)
    assert ("refused", ["refused"]) == (
        shown["status"],
        [row["status"] for row in shown["deliveries"]],
    )
