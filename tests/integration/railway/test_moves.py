"""Open instances that operators let go on elsewhere, on Delta: by Python, dbt and by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.integration.conftest import REPOSITORY
from tests.integration.outboxes import Store, open_store
from tests.integration.railway.writing import write
from tests.unit.macro_namespace import Macros

from delta_outbox.cli.main import main
from delta_outbox.core.clock import SystemClock
from delta_outbox.core.errors import WrongUsage
from delta_outbox.core.literals import text_literal
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.core.settings import PublisherSettings, Settings, WorkflowSettings
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.operations.pauses import append_pausing, pausing_request
from delta_outbox.railway.modules import load
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.runtime.dbt import check_result, run_dbt
from delta_outbox.store.completions import completion_arguments
from delta_outbox.store.transition_log import TransitionLog
from delta_outbox.workflow_engine.derived_events import DerivedEvents
from delta_outbox.workflow_engine.instances import Instances

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.home import Home

AUTHOR = REPOSITORY / "tests" / "integration" / "railway" / "author"
SCHEMA = "t_moves"
WHO: dict[str, Any] = {"actor": "ann", "reason": "we do it otherwise now"}
SETTINGS = Settings(
    publishers={"default": PublisherSettings(type="null")},
    workflows=WorkflowSettings(modules=("desks",)),
)


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox with three versions of a workflow; the last one tells visits apart."""
    with open_store(spark, home, SCHEMA) as opened:
        writes = NumberedWrites(spark, opened.tables, writer="workflows", clock=SystemClock())
        last = None
        for version in (1, 2, 3):
            rows = joined(rows_of(one) for one in load(["desks"], AUTHOR) if one.name == "late")
            rows["railway_workflows"][0]["version"] = str(version)
            for row in rows["railway_tasks"] if version == 3 else ():
                row["identifier"] = f"{row['task']}-{{case}}-{{visit}}"
            plan = {"version": str(version), "rows": rows}
            last = writes.append_after(last, plan, planned_by="tests")
            assert last is not None
            if version == 1:
                start(opened, "m1", "m2", "m3", "m4", "a1", "a2", "a3", "a4", "h1")
        yield opened


def start(store: Store, *cases: str) -> None:
    """Start instances by the version in force; all but m4 come to the second task."""
    store.insert(*((f"start-{one}", "case.late", json.dumps({"case": one})) for one in cases))
    follow(store)
    gone = [f"confirm-{one}" for one in cases if one != "m4"]
    append(store, gone, claimed(TO_DO), ended("PUBLISHED", "expired", outcome="gone"))
    follow(store)


def follow(store: Store) -> None:
    """Write what follows from what is on record."""
    outbox = store.open(SETTINGS)
    write(DerivedEvents(outbox))
    outbox.refresh()
    outbox.close()


def claimed(destination: str = "bank", attempt: int = 1) -> dict[str, Any]:
    """Return the claim of a task."""
    lease = SystemClock().now() + timedelta(hours=1)
    return {
        **dict.fromkeys(("lifecycle", "publish_attempts", "crashes", "suspect"), 0),
        "attempt": attempt,
        "claim_size": 1,
        "destination": destination,
        "from_state": "PENDING",
        "to_state": "CLAIMED",
        "reason": "claimed",
        "relay_id": destination,
        "lease_expires_at": lease,
    }


def ended(to: str, reason: str, attempt: int = 1, **given: Any) -> dict[str, Any]:
    """Return how the claim of a task has ended."""
    row = claimed(TO_DO if reason == "expired" else "bank", attempt)
    ends = {"from_state": "CLAIMED", "to_state": to, "reason": reason, "relay_id": "tests"}
    return {**row, **ends, "lease_expires_at": None, **given}


def append(store: Store, ids: list[str], *transitions: dict[str, Any]) -> None:
    """Append transitions of tasks, each in an append of its own."""
    listed = ", ".join(f"'{one}'" for one in ids)
    found = store.rows(
        "select event_id, _metadata.row_commit_version as arrival "
        f"from {store.tables.events} where event_id in ({listed})"
    )
    assert set(ids) == {row["event_id"] for row in found}
    log = TransitionLog(store.spark, store.tables, relay_id="tests")
    log.catch_up()
    for one in transitions:
        at = {"occurred_at": SystemClock().now()}
        its = [
            {**row, **one, **at, "claim_id": f"claim-{row['event_id']}-{one['attempt']}"}
            for row in found
        ]
        log.append(pa.Table.from_pylist(its))


def killed(store: Store, task_id: str, command_id: str, attempt: int = 1) -> None:
    """Append what a relay does with a task that is to be ended, and what follows."""
    who = {"actor": "ann", "command_id": command_id}
    append(store, [task_id], claimed(attempt=attempt), ended("DEAD", "operator", attempt, **who))
    follow(store)


def where(store: Store, *instances: str) -> list[tuple[Any, ...]]:
    """Return where instances stand: state, task, identifier, version, and what came before."""
    names = ("state", "task", "task_id", "version", "last_cause", "last_outcome")
    listed = ", ".join(f"'{one}'" for one in instances)
    rows = store.rows(
        f"select {', '.join(names)} from {store.tables['workflow_instances']} "
        f"where instance in ({listed}) order by instance"
    )
    return [tuple(row[name] for name in names) for row in rows]


def answer(store: Store, task_id: str) -> None:
    """Append an answer to an item that has expired."""
    arguments = completion_arguments("yes", {"said": "at last"}, task_id)
    command(store, task_id, "complete", arguments)


def command(store: Store, task_id: str, kind: str, arguments: str) -> str:
    """Append a command about a task by hand, and return its id."""
    store.spark.sql(
        f"insert into {store.tables.commands} (command_id, kind, event_id, arrival, destination, "
        f"lifecycle, arguments, actor, reason, requested_at) select '{kind}-{task_id}', '{kind}', "
        f"event_id, arrival, destination, 0, {text_literal(arguments)}, 'bob', 'by hand', now() "
        f"from {store.tables.state} where event_id = '{task_id}'"
    )
    return f"{kind}-{task_id}"


@pytest.mark.rest
def test_open_instances_are_moved_to_another_version(store: Store) -> None:
    """A preview tells who goes where under which identifier, and who stays and why: whose task is
    not mapped, is attempted, or may have acted. No identifier is used twice. Who was moved goes by
    the version from then on, and `show` says by whom, why, from where and where to. Of answers
    that come too late after all, the one to the last visit counts.
    """
    append(store, ["search-m2-1"], claimed(), ended("PENDING", "unknown"))
    append(store, ["search-m3-1"], claimed())
    outbox = store.open(SETTINGS)
    instances = Instances(outbox)
    names = ["m1", "m2", "m3", "m4"]
    mapped = {"search": "confirm"}
    given: dict[str, Any] = {"workflow": "late", "tasks": mapped, **WHO}
    with pytest.raises(WrongUsage):
        instances.migrate(to_version=3, **{**given, "tasks": {"search": "fly"}})
    used = instances.migrate(["m1"], to_version=2, **given)
    (known,) = used.left_out
    assert known["refusal"].startswith("may come again to confirm, whose identifier has no {visit}")
    preview = instances.migrate(names, to_version=3, from_version=1, **given)
    shown = ("instance", "task", "version", "to_version", "to_task", "to_task_id")
    assert [("m1", "search", 1, 3, "confirm", "confirm-m1-2")] == [
        tuple(one[name] for name in shown) for one in preview.tasks
    ]
    assert {
        "m2": "may have acted, and nobody knows yet: ask again when its task has ended",
        "m3": "is attempted right now: ask again when that has ended",
        "m4": "stands at 'confirm', for which no task is mapped",
    } == {one["instance"]: one["refusal"] for one in preview.left_out}
    assert 0 == store.rows(f"select count(*) as n from {store.tables.commands}")[0]["n"]
    done = instances.migrate(names, to_version=3, dry_run=False, **given)
    assert done.command_id is not None
    follow(store)
    assert [("running", "confirm", "confirm-m1-2", 3, "killed", "moved")] == [
        ("running" if one[0] == "waiting_for_person" else one[0], *one[1:])
        for one in where(store, "m1")
    ]
    again = instances.migrate(["m1"], to_version=3, dry_run=False, **given)
    assert (["goes by version 3"], None) == (
        [one["refusal"] for one in again.left_out],
        again.command_id,
    )
    found = instances.show("m1")
    assert ["confirm-m1", "search-m1-1", "confirm-m1-2"] == [
        one["task_id"] for one in found["tasks"]
    ]
    (move,) = found["moves"]
    assert ("search", 1, "confirm", 3, "ann", WHO["reason"]) == tuple(
        move[name]
        for name in ("from_task", "from_version", "to_task", "to_version", "actor", "reason")
    )
    append(store, ["confirm-m1-2"], claimed(TO_DO), ended("PUBLISHED", "expired", outcome="gone"))
    follow(store)
    for task_id in ("confirm-m1-2", "confirm-m1"):
        answer(store, task_id)
    (late,) = instances.accept_late(["m1"], **WHO).tasks
    assert ("search", "confirm-m1-2", "thank") == tuple(
        late[name] for name in ("task", "late_task_id", "goes_to")
    )
    outbox.close()


@pytest.mark.rest
def test_what_was_attempted_meanwhile_is_uncertain(store: Store) -> None:
    """Where a call is made after the operator has looked, and nobody knows what it has done, the
    instance goes on by that and not where the operator wanted; the task is among those of which
    nobody knows what they have done.
    """
    to = json.dumps({"to": {"plan": 3, "task": "thank"}})
    command_id = command(store, "search-h1-1", "kill", to)
    append(store, ["search-h1-1"], claimed(), ended("PENDING", "unknown"))
    killed(store, "search-h1-1", command_id, attempt=2)
    rows = store.rows(
        "select exit, last_cause, last_outcome from "
        f"{store.tables['workflow_instances']} where instance = 'h1'"
    )
    assert [{"exit": "case.gone", "last_cause": "uncertain", "last_outcome": "gone"}] == rows
    outbox = store.open(SETTINGS)
    (move,) = Instances(outbox).show("h1")["moves"]
    assert move["is_uncertain"]
    outbox.close()
    assert [{"task_id": "search-h1-1", "cause": "killed"}] == store.rows(
        f"select task_id, cause from {store.tables['uncertain_outcomes']}"
    )


@pytest.mark.rest
def test_one_selection_of_late_answers_for_python_command_and_dbt(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever asks, the same instances go on by their late answers, and the same is written."""
    for name in ("a1", "a2", "a3"):
        answer(store, f"confirm-{name}")
    outbox = store.open(SETTINGS)
    asked = Instances(outbox).accept_late(["a1", "a4"], dry_run=False, **WHO)
    assert ["a1"] == [one["instance"] for one in asked.tasks]
    assert {"a4": "has no late answer that may count"} == {
        one["instance"]: one["refusal"] for one in asked.left_out
    }
    words = ["workflow", "accept-late", "a2", "a4", "--late-task", "confirm", "--apply", "--json"]
    words += ["--actor", WHO["actor"], "--reason", WHO["reason"]]
    capsys.readouterr()
    with store.commands():
        assert 1 == main(words)
    assert ["a2"] == [one["instance"] for one in json.loads(capsys.readouterr().out)["accepted"]]
    given = {"instances": ["a3", "a4"], "late_task": "confirm", **WHO, "dry_run": False}
    check_result(
        run_dbt(
            [
                *("run-operation", "accept_late", "--no-populate-cache", "--args"),
                json.dumps(given),
            ],
            home=store.home,
            schema=SCHEMA,
        )
    )
    written = store.rows(
        "select substr(event_id, 8, 2) as name, destination, lifecycle, arguments, actor, reason "
        f"from {store.tables.commands} where kind = 'kill' and event_id like 'search-a%' "
        "order by event_id"
    )
    assert ["a1", "a2", "a3"] == [row["name"] for row in written]
    same = [json.dumps(row).replace(str(row["name"]), "a") for row in written]
    assert same[0] == same[1] == same[2]
    outbox.close()


@pytest.mark.rest
def test_who_would_come_to_a_task_again_is_not_moved(store: Store) -> None:
    """Who goes on by a late answer may come to a task again that lies on no loop. If its identifier
    has no visit, nothing could follow, so Python and dbt leave that instance out and say what to
    do: move it to a version whose identifier has one.
    """
    of_version(store, 4, search="search-{case}")
    start(store, "r1")
    of_version(store, 5, search="search-{case}-{{x}}-{visit}")
    answer(store, "confirm-r1")
    outbox = store.open(SETTINGS)
    instances = Instances(outbox)
    (left_out,) = instances.accept_late(["r1"], **WHO).left_out
    assert (
        "may come again to search, whose identifier has no {visit}, and would be stranded there: "
        "migrate it to a version whose identifier has one, or answer or cancel its task"
    ) == left_out["refusal"]
    given = json.dumps({"instances": ["r1"], **WHO, "dry_run": False})
    asked = ["run-operation", "accept_late", "--no-populate-cache", "--args", given]
    check_result(run_dbt(asked, home=store.home, schema=SCHEMA))
    kills = f"select * from {store.tables.commands} where event_id = 'search-r1' and kind = 'kill'"
    assert [] == store.rows(kills)
    same: dict[str, Any] = {"workflow": "late", "tasks": {"search": "search"}, **WHO}
    moved = instances.migrate(["r1"], to_version=5, dry_run=False, **same)
    assert ["search-r1-{x}-2"] == [one["to_task_id"] for one in moved.tasks]
    follow(store)
    (accepted,) = instances.accept_late(["r1"], **WHO).tasks
    assert "thank" == accepted["goes_to"]
    back = instances.migrate(["r1"], to_version=4, **{**same, "tasks": {"search": "thank"}})
    assert [left_out["refusal"]] == [one["refusal"] for one in back.left_out]
    outbox.close()


@pytest.mark.rest
def test_a_decided_visit_stands(store: Store) -> None:
    """Once a later visit of a task was decided, a late answer to an earlier one moves nobody."""
    of_version(store, 8, search="search-{case}-{visit}")
    start(store, "v1")
    outbox = store.open(SETTINGS)
    instances = Instances(outbox)
    moved = instances.migrate(
        ["v1"], workflow="late", to_version=3, tasks={"search": "confirm"}, dry_run=False, **WHO
    )
    assert ["confirm-v1-2"] == [one["to_task_id"] for one in moved.tasks]
    follow(store)
    answer(store, "confirm-v1")
    decided = ended("PUBLISHED", "completed", outcome="yes", destination=TO_DO)
    append(store, ["confirm-v1-2"], claimed(TO_DO), decided)
    follow(store)
    (left_out,) = instances.accept_late(["v1"], **WHO).left_out
    assert ("thank", "has no late answer that may count") == (left_out["task"], left_out["refusal"])
    assert [False] == [one["may_be_accepted"] for one in instances.show("v1")["late_answers"]]
    outbox.close()


@pytest.mark.rest
def test_what_the_rows_in_force_say_counts_for_operators(store: Store) -> None:
    """Nobody goes on to a task whose code is gone, or is for another category. A third party is
    known by the name under which it is asked now, and may be paused before it has settings.
    """
    of_version(store, 9, search="search-{case}-{visit}")
    start(store, "g1")
    answer(store, "confirm-g1")
    of_version(store, 10, search="search-{case}-{visit}", third_party="bank-2", thank="black_box")
    outbox = store.open(SETTINGS)
    instances = Instances(outbox)
    (left_out,) = instances.accept_late(["g1"], **WHO).left_out
    assert left_out["refusal"].startswith("leads on to thank, which the workflows in force do not")
    for name, extended in (("bank-2", ["g1"]), ("bank", ["g1"]), ("bank-3", [])):
        found = instances.extend(["g1"], third_party=name, by_seconds=60, **WHO)
        assert extended == [one["instance"] for one in found.tasks]
    given = json.dumps({"destination": "bank-2", **WHO})
    asked = ["run-operation", "pause", "--no-populate-cache", "--args", given]
    check_result(run_dbt(asked, home=store.home, schema=SCHEMA))
    assert append_pausing(outbox, pausing_request("pause", destination="bank-2", **WHO))
    outbox.apply_commands_if_alone()
    shown = instances.show("g1")["next"]
    assert ("bank-2", "paused") == (shown["third_party"], shown["held_back"])
    outbox.close()


@pytest.mark.rest
def test_the_answer_that_is_offered_is_the_first_in_the_log(store: Store) -> None:
    """Whoever looks at an instance is offered the late answer by which `accept-late` would let it
    go on, whatever the clocks of those who answered have said.
    """
    of_version(store, 11, search="search-{case}-{visit}")
    start(store, "f1")
    answer(store, "confirm-f1")
    store.spark.sql(
        f"insert into {store.tables.commands} (command_id, kind, event_id, arrival, destination, "
        "lifecycle, arguments, actor, reason, requested_at) select 'earlier', kind, event_id, "
        "arrival, destination, lifecycle, replace(arguments, 'yes', 'gone'), actor, reason, "
        f"requested_at - interval 1 hour from {store.tables.commands} "
        "where command_id = 'complete-confirm-f1'"
    )
    outbox = store.open(SETTINGS)
    instances = Instances(outbox)
    assert [("yes", True), ("gone", False)] == [
        (one["answer"], one["may_be_accepted"]) for one in instances.show("f1")["late_answers"]
    ]
    (accepted,) = instances.accept_late(["f1"], **WHO).tasks
    assert "thank" == accepted["goes_to"]
    outbox.close()


@pytest.mark.rest
def test_what_a_preview_of_dbt_does_not_show_is_counted(store: Store) -> None:
    """Of many lines the first are shown, and all of them count."""
    targets = (
        "(select 'w' as workflow, 't' as task, 'bank' as third_party, 'running' as state, "
        "if(id < 140, null, concat('expires at ', id)) as refusal, id % 70 as x from range(150))"
    )
    rows = store.rows(Macros("requests").task_target_counts(targets, 5))
    assert (5, {(140, 150, 11)}) == (
        len(rows),
        {(row["all_tasks"], row["all_targets"], row["all_rows"]) for row in rows},
    )


def of_version(
    store: Store,
    version: int,
    *,
    search: str,
    third_party: str = "bank",
    thank: str = "idempotent",
) -> None:
    """Put a version into force that leads from the last task back to the second one.

    Args:
        store: where.
        version: of the workflow.
        search: template of the identifier of the second task.
        third_party: of the second task.
        thank: category of the last task.
    """
    rows = joined(rows_of(one) for one in load(["desks"], AUTHOR) if one.name == "late")
    rows["railway_workflows"][0]["version"] = str(version)
    (second,) = [row for row in rows["railway_tasks"] if row["task"] == "search"]
    second["identifier"], second["third_party"] = search, third_party
    (last_task,) = [row for row in rows["railway_tasks"] if row["task"] == "thank"]
    last_task["category"] = thank
    for row in rows["railway_routes"]:
        if (row["task"], row["outcome"], row["cause"]) == ("thank", "gone", "decided"):
            row["to_task"], row["to_event"] = "search", ""
    writes = NumberedWrites(store.spark, store.tables, writer="workflows", clock=SystemClock())
    (last,) = writes.last()
    plan = {"version": str(version), "rows": rows}
    assert writes.append_after(last, plan, planned_by="tests") is not None
