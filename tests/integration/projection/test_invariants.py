"""The invariants: silent while all is well, and each seeded violation is shown by its view."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.integration.invariants import (
    CLAIM,
    LANES,
    NOW,
    Broken,
    break_the_rules,
    build,
    positions,
)
from tests.integration.outboxes import Store, events, open_store

from delta_outbox.api import Outbox
from delta_outbox.core.errors import DbtFailed
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.lifecycle.claims import claim_rows, ending_rows, make_claim, new_claim_id
from delta_outbox.lifecycle.endings import EndOfClaim
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected
from delta_outbox.runtime.dbt import check_result, run_dbt
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.log_folder import commit_file, commit_versions, last_checkpoint
from delta_outbox.store.transition_log import TransitionLog

TWO: Final = PolicySet.from_csv("event_type,destination\n*,a|b\n")


# --- a healthy life ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def healthy(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return a store of its own."""
    with open_store(spark, home, "t_invariants_hold") as opened:
        yield opened


def end(outbox: Outbox, *results: EndOfClaim) -> None:
    """Claim as many deliveries as there are results, and end them so."""
    claim = outbox.claim(len(results))
    assert claim is not None
    assert len(results) == len(claim)
    outbox.end(claim, list(results))


def deliver_to_two(outbox: Outbox) -> None:
    """Claim a new event for two destinations, and end one delivery well and one badly."""
    found = outbox.retrieve(10).deliveries
    new = pc.and_(pc.equal(found["destination"], ""), pc.is_null(found["ordering_key"]))
    claim = make_claim(
        found.filter(new)[:1], policies=TWO, now=outbox.clock.now(), claim_id=new_claim_id()
    )
    outbox.log.append(claim_rows(claim))
    endings = outbox.decide(claim, [Delivered(), Rejected(error="no")])
    outbox.log.append(ending_rows(claim, endings, now=outbox.clock.now()))


def replay(store: Store, outbox: Outbox, event_id: str, command_id: str) -> None:
    """Replay what is over, as a command says."""
    row = store.rows(f"select * from {store.tables.state} where event_id = '{event_id}'")[0]
    store.spark.sql(
        f"insert into {store.tables['outbox_commands']} "
        "(command_id, kind, event_id, arrival, destination, lifecycle, actor, reason) values "
        f"('{command_id}', 'replay', '{event_id}', {row['arrival']}, 'default', 0, 'me', 'why')"
    )
    outbox.log.catch_up()
    outbox.log.append(
        pa.Table.from_pylist(
            [
                {
                    **{name: row[name] for name in ("event_id", "arrival", "destination")},
                    "from_state": row["state"],
                    "to_state": "PENDING",
                    "reason": "replayed",
                    "lifecycle": 1,
                    "attempt": 0,
                    "occurred_at": outbox.clock.now(),
                    "publish_attempts": 0,
                    "crashes": 0,
                    "suspect": 0,
                    "actor": "me",
                    "command_id": command_id,
                }
            ]
        )
    )


@pytest.mark.rest
def test_the_first_deliveries_come_after_a_build(
    spark: SparkSession, home: Home, tmp_path: Path
) -> None:
    """The first build finds an outbox without a transition, the next one its first; what is wrong
    in another lane is found.
    """
    with open_store(spark, home, "t_invariants_begin") as store:
        check_result(build(store))
        outbox = store.outbox(tmp_path)
        outbox.append(events("first", 2)).raise_if_rejected()
        claim = outbox.claim(2)
        assert claim is not None
        endings = outbox.decide(claim, [Delivered(), Delivered()])
        rows = ending_rows(claim, endings, now=outbox.clock.now())
        outbox.log.append(rows)
        check_result(build(store))
        plans = positions(store)
        TransitionLog(spark, store.tables, relay_id=outbox.worker_id, lane=1).append(rows)
        with pytest.raises(DbtFailed, match="illegal_transitions"):
            check_result(build(store))
    assert [True, False] == [plan["whole"] for plan in plans]
    assert [[], [0]] == [[one["lane"] for one in plan["lanes"]] for plan in plans]


@pytest.mark.rest
def test_a_healthy_life_breaks_no_rule(healthy: Store, tmp_path: Path) -> None:
    """Retries, releases, dead letters, replays and two destinations pass, from the start and as
    what is new.
    """
    outbox = healthy.outbox(tmp_path)
    outbox.append(events("life", 12, keys=2)).raise_if_rejected()
    end(outbox, Delivered(), Failed(error="busy"), Rejected(error="no"), NotSent())
    deliver_to_two(outbox)
    assert outbox.claim(2) is not None
    check_result(build(healthy))
    assert [True] == [plan["whole"] for plan in positions(healthy)]

    replay(healthy, outbox, "life-002", "command-1")
    end(outbox, *[Delivered()] * 3)
    outbox.append(events("more", 4, keys=2)).raise_if_rejected()
    end(outbox, Delivered(), Rejected(error="no"))
    check_result(build(healthy))
    assert [True, False] == [plan["whole"] for plan in positions(healthy)]
    last = positions(healthy)[-1]
    assert [{"epoch": 0, "lane": 0, "sequence": outbox.log.sequence}] == last["lanes"]


@pytest.mark.rest
@pytest.mark.local  # removes files of a log
def test_an_audit_asks_no_version_that_is_gone(healthy: Store, tmp_path: Path) -> None:
    """Delta forgets old versions of a table; a full audit reads the newest alone."""
    outbox = healthy.outbox(tmp_path)
    outbox.append(events("kept", 1)).raise_if_rejected()
    check_result(build(healthy))
    spark, log = healthy.spark, CommitHistory(healthy.spark).folder(healthy.tables.state)
    assert log is not None
    assert spark._jvm is not None
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
        spark._jsparkSession, str(log.parent)
    ).checkpoint()
    for version in commit_versions(log):
        if version < last_checkpoint(log):
            commit_file(log, version).unlink()
    check_result(build(healthy, audit="full"))


# --- violations ----------------------------------------------------------------------------

VIOLATIONS: Final = {
    "illegal_transitions": {"jump", "twice", "late", "undead", "ghost"},
    "wrong_claimed_at": {"tamper-c"},
    "wrong_published_at": {"tamper-p"},
    "incomplete_claims": {"bare"},
    "miscounted_attempts": {"count"},
    "endings_of_other_claims": {"stolen", "late"},
    "unexplained_replays": {"revived", "undead", "late"},
    "double_claims": {"twice"},
    "overtaken_events": {"over-2", "fail-2", "hold-2", "redo-2"},
    "false_identities": {"ghost", "copy", "renamed", "fan-late"},
    "lost_events": {"lost", "twin", "stale", "ghost"},
    "broken_sequences": {LANES["gap"], LANES["dup-a"], LANES["again"]},
    "rewritten_logs": {"outbox_relays"},
    "repeated_outcomes": {"book-one", "book-twelve"},
    "wrong_follow_ups": {"book-two", "book-three", "pay-eight", "book-ten", "book-eleven"},
    "repeated_calls": {"tell-four"},
    "guessed_endings": {"tell-five"},
    "stuck_instances": {"tell-six"},
}
NAMED_BY: Final = {
    "broken_sequences": "lane",
    "rewritten_logs": "get_json_object(details, '$.log')",
}


@pytest.fixture(scope="module")
def broken(spark: SparkSession, home: Home) -> Iterator[Broken]:
    """Return a store with violations of every rule, after a position at which all was well."""
    with open_store(spark, home, "t_invariants_broken") as opened:
        yield break_the_rules(opened)


def shown(store: Store) -> dict[str, set[object]]:
    """Return what each view of violations names."""
    return {
        view: {
            row["name"]
            for row in store.rows(
                f"select distinct {NAMED_BY.get(view, 'event_id')} as name "
                f"from {store.tables[view]}"
            )
        }
        for view in VIOLATIONS
    }


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({}, id="new"),
        pytest.param({"audit": "full"}, id="all", marks=pytest.mark.rest),
    ],
)
def test_each_violation_is_shown_by_its_view(broken: Broken, variables: dict[str, str]) -> None:
    """What is new shows exactly what was seeded, and a full audit derives the same. Both read the
    transitions since the oldest call was triggered that was tried again; an item that was extended
    is none.
    """
    result = build(broken.store, **variables)
    assert not result.success
    assert VIOLATIONS == shown(broken.store)
    failed = {str(node.node.name) for node in result.result.results if str(node.status) == "fail"}
    assert {f"is_empty_{view}_" for view in VIOLATIONS} == failed
    (since,) = set(re.findall(r"t\.occurred_date >= date'([\d-]+)'", _asked_last(broken.store)))
    assert since > f"{NOW - timedelta(days=2):%Y-%m-%d}"


def _asked_last(store: Store) -> str:
    """Return what the last build has asked for violations."""
    path = "delta_outbox/models/invariants/invariant_violations.sql"
    return (store.home.dbt_target / store.tables.schema / "run" / path).read_text().strip()


def _nodes(frame: DataFrame) -> Iterator[Any]:
    """Return every node of the plan of a frame."""
    waiting = [frame._jdf.queryExecution().sparkPlan()]
    while waiting:
        node = waiting.pop()
        yield node
        children = node.children()
        waiting += [children.apply(place) for place in range(children.size())]


def _keys_sent(join: Any) -> str:
    """Return the keys of the side of a join that every executor gets whole."""
    is_left = join.buildSide().toString() == "BuildLeft"
    keys = (join.leftKeys() if is_left else join.rightKeys()).mkString(", ")
    return re.sub(r"#\d+L?", "", keys)


@pytest.mark.rest
@pytest.mark.local  # asks the planner of this process
def test_no_join_keeps_a_whole_range_in_memory(broken: Broken) -> None:
    """Spark judges a table by its compressed files: of millions of new rows it would make a hash
    table, and run out of memory. Only what has a row per event type or per lane may be one, and
    what is doubtful, of which there are not many, or everything is judged.
    """
    store = broken.store
    insert, _, asked = _asked_last(store).partition("\n")
    assert insert.startswith("insert ")
    nodes = list(_nodes(store.spark.sql(asked)))
    sent = [_keys_sent(node) for node in nodes if node.nodeName() == "BroadcastHashJoin"]
    # The rows of workflows are as many as their authors have written.
    others = {keys for keys in sent if not keys.startswith("number, workflow")}
    # And the tasks that operators have moved, or let expire later: one by one, by a word of theirs.
    assert 1 == sent.count("event_id, arrival")
    others.remove("event_id, arrival")
    assert {"event_type", "epoch, lane", "event_hash", "key_hash"} == others
    merged = [node for node in nodes if node.nodeName() == "SortMergeJoin"]
    assert 7 <= len(merged)


@pytest.mark.rest
def test_a_violation_may_be_a_warning(broken: Broken) -> None:
    """What was found stays. The severity is a variable: the build goes on, and says so."""
    result = build(broken.store, invariant_severity="warn")
    check_result(result)
    assert VIOLATIONS == shown(broken.store)
    assert len(VIOLATIONS) == [str(node.status) for node in result.result.results].count("warn")


@pytest.mark.rest
def test_violations_can_be_accepted(broken: Broken) -> None:
    """An operator's word, with a reason, ends them; what comes later is found."""
    store = broken.store

    def accept(reason: str) -> None:
        args = json.dumps({"actor": "me", "reason": reason})
        command = ["run-operation", "accept_violations", "--args", args]
        check_result(run_dbt(command, home=store.home, schema=store.tables.schema))

    with pytest.raises(DbtFailed, match="`reason` must be a text that is not empty"):
        accept(" ")
    accept("looked into, it's fine")
    with pytest.raises(DbtFailed, match="there is no open violation"):
        accept("again")
    table = store.tables["invariant_violations"]
    said = store.rows(f"select distinct accepted_by, accepted_because from {table}")
    assert [{"accepted_by": "me", "accepted_because": "looked into, it's fine"}] == said
    check_result(build(store))
    broken.append(broken.step("over-1", 2, CLAIM, attempt=2))
    assert not build(store).success
    found = store.rows(f"select event_id, problem from {store.tables['miscounted_attempts']}")
    assert [{"event_id": "over-1", "problem": "a claim that is not one attempt more"}] == found
