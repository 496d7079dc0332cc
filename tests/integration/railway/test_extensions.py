"""Open tasks that operators let expire later, instances that they cancel or let go on by a late
answer, and items that somebody takes care of: by Python, by the command line and by dbt.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from tests.integration.conftest import REPOSITORY
from tests.integration.invariants import BUILT
from tests.integration.outboxes import Store, open_store

from delta_outbox.api import Outbox
from delta_outbox.cli.main import main
from delta_outbox.core.clock import CLOCK_OFFSET_VARIABLE, SystemClock
from delta_outbox.core.errors import OutboxError, WrongUsage
from delta_outbox.core.instants import iso_text
from delta_outbox.core.literals import instant_literal
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.core.settings import PublisherSettings, Settings, WorkflowSettings
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.operations.command_life import show_command
from delta_outbox.operations.command_log import append_commands
from delta_outbox.railway.modules import load
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.dbt import check_result, run_dbt
from delta_outbox.store.apply_commands import Commands
from delta_outbox.store.completions import completion_arguments
from delta_outbox.workflow_engine import item_deliveries
from delta_outbox.workflow_engine.execution.tasks import Tasks
from delta_outbox.workflow_engine.four_eyes import NotNamed, SamePerson
from delta_outbox.workflow_engine.hosts.call import Setup
from delta_outbox.workflow_engine.hosts.pool import HostPool
from delta_outbox.workflow_engine.instances import Instances, UnknownInstance
from delta_outbox.workflow_engine.item_answers import (
    AnsweredAlready,
    AnsweredTooLate,
    Completion,
    GivenAnswer,
    NotKnownYet,
)
from delta_outbox.workflow_engine.item_decisions import UndecidedAnswer
from delta_outbox.workflow_engine.item_deliveries import UndecidedItem, UnknownItem
from delta_outbox.workflow_engine.item_holds import HeldByAnother, HoldRequest, NotOpen
from delta_outbox.workflow_engine.items import Items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.home import Home

AUTHOR = REPOSITORY / "tests" / "integration" / "railway" / "author"
SCHEMA = "t_extensions"
WHO: dict[str, Any] = {"actor": "ann", "reason": "the bank is closed"}
SETTINGS = Settings(
    publishers={"default": PublisherSettings(type="null")},
    workflows=WorkflowSettings(modules=("desks",)),
)
HOUR = timedelta(hours=1)
COMPARED = "kind, event_id, arrival, destination, lifecycle, arguments, actor, reason"


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox with the workflows of `desks`."""
    with open_store(spark, home, SCHEMA) as opened:
        rows = joined(rows_of(one) for one in load(["desks"], AUTHOR))
        writes = NumberedWrites(spark, opened.tables, writer="workflows", clock=SystemClock())
        assert writes.append_after(None, {"version": "1", "rows": rows}, planned_by="tests")
        yield opened


def relayed(store: Store, *, ahead: timedelta = timedelta(0)) -> None:
    """Run a relay, with hosts of its own, until all is done or waits for long.

    Args:
        store: where.
        ahead: by how much its clock is.
    """
    outbox = opened(store, ahead=ahead)
    tasks = Tasks(
        outbox,
        Setup(modules=["desks"], folder=AUTHOR),
        start_hosts=lambda setup: HostPool(setup, clock=outbox.clock),
    )
    try:
        Relay(outbox, tasks=tasks).run(Mode.DRAIN)
    finally:
        tasks.close()
        outbox.close()


def opened(store: Store, *, ahead: timedelta = timedelta(0)) -> Outbox:
    """Open a worker whose clock is ahead."""
    clock = SystemClock({CLOCK_OFFSET_VARIABLE: str(int(ahead.total_seconds()))})
    return store.open(SETTINGS, clock=clock)


def started(store: Store, **cases: str) -> None:
    """Start instances, and let them come to where they stand still.

    Args:
        store: where.
        cases: the business key of each, and what begins with it: asked, waiting or called.
    """
    store.insert(
        *(
            (f"start-{kind}-{name}", f"case.{kind}", json.dumps({"case": name}))
            for name, kind in cases.items()
        )
    )
    relayed(store)


def task(store: Store, task_id: str) -> dict[str, Any]:
    """Return what the view says of a task."""
    (found,) = store.rows(
        f"select * from {store.tables['workflow_tasks']} where task_id = '{task_id}'"
    )
    return found


def steps(store: Store, task_id: str) -> list[str]:
    """Return why a task has changed its state, from the first time on."""
    return [row["reason"] for row in store.transitions(task_id)]


def status(outbox: Outbox, command_id: str | None) -> object:
    """Return what became of a command."""
    assert command_id is not None
    outbox.refresh()
    shown = show_command(outbox, command_id)
    assert shown is not None
    return shown["status"]


def test_what_is_extended_expires_later(store: Store) -> None:
    """A preview writes nothing. Operators let a task and an item expire later, and nothing else;
    the log says who has held the item, and until when.
    """
    started(store, f1="called", f2="called", f3="asked")
    outbox = opened(store)
    instances = Instances(outbox)
    preview = instances.extend(third_party="bank", by_seconds=7200, **WHO)
    assert {"f1", "f2"} <= {one["instance"] for one in preview.tasks}
    assert preview.command_id is None
    before = {name: task(store, name)["expires_at"] for name in ("call-f1", "ask-f3", "call-f2")}
    done = instances.extend(["f1"], by_seconds=7200, dry_run=False, **WHO)
    to = before["ask-f3"] + 2 * HOUR
    held = instances.extend(["f3"], to=to, dry_run=False, **WHO)
    assert ("done", "done") == (status(outbox, done.command_id), status(outbox, held.command_id))
    assert [
        before["call-f1"] + 2 * HOUR,
        before["call-f2"],
        to,
        to,
    ] == [
        *(task(store, name)["expires_at"] for name in ("call-f1", "call-f2", "ask-f3")),
        task(store, "ask-f3")["lease_expires_at"],
    ]
    assert ["claimed", "released", "claimed"] == steps(store, "ask-f3")
    (released,) = [row for row in store.transitions("ask-f3") if row["reason"] == "released"]
    assert (held.command_id, "ann") == (released["command_id"], released["actor"])
    again = instances.extend(["f3"], to=to, dry_run=False, **WHO)
    assert (0, None) == (len(again.tasks), again.command_id)
    outbox.close()


@pytest.mark.rest
def test_what_is_extended_goes_on_after_its_first_end(store: Store) -> None:
    """A task that operators have let expire later is attempted after its first end by a relay that
    knows nothing but the logs, and an item stays open for an answer; what was not extended expires.
    """
    started(store, g1="called", g2="called", g3="asked", g4="asked")
    outbox = opened(store)
    Instances(outbox).extend(["g1", "g3"], by_seconds=7200, dry_run=False, **WHO)
    outbox.refresh()
    outbox.close()
    relayed(store, ahead=1.5 * HOUR)
    assert ["claimed", "failed", "claimed", "failed"] == steps(store, "call-g1")
    assert ["claimed", "failed", "claimed", "expired"] == steps(store, "call-g2")
    assert ["claimed", "released", "claimed"] == steps(store, "ask-g3")
    assert ["claimed", "lease_expired", "claimed", "expired"] == steps(store, "ask-g4")
    relayed(store, ahead=4 * HOUR)
    assert ["claimed", "lease_expired", "claimed", "expired"] == steps(store, "ask-g3")[2:]
    assert "expired" == steps(store, "call-g1")[-1]


@pytest.mark.local  # asks the planner of this process
def test_commands_about_other_events_are_left_out_before_they_are_gathered(store: Store) -> None:
    """A question about open items gathers what operators have asked of tasks that they have let
    expire later, or moved, and who holds open items: of other commands there may be millions.
    """
    asked = store.spark.sql(f"select * from {store.tables['todo_items']} where state = 'open'")
    plan = asked._jdf.queryExecution().optimizedPlan()
    gathered = [above for above in above_commands(plan) if "Aggregate" in above]
    assert 3 == len(gathered)  # the first of them is read twice
    assert all("LeftSemi" in above[: above.index("Aggregate")] for above in gathered)


def above_commands(node: Any) -> Iterator[list[str]]:
    """Yield the operators above each read of the command log in a plan, from the log on."""
    children = node.children()
    if not children.size() and "outbox_commands" in node.toString():
        yield []
    name = node.joinType().toString() if node.nodeName() == "Join" else node.nodeName()
    for place in range(children.size()):
        for above in above_commands(children.apply(place)):
            yield [*above, name]


def answered(store: Store, name: str, *, at: datetime) -> str:
    """Append an answer to an item by hand, and return the id of the command."""
    return commanded(
        store, f"ask-{name}", "complete", completion_arguments("yes", {}, f"{name}{at}"), at=at
    )


def commanded(store: Store, task_id: str, kind: str, arguments: str, *, at: datetime) -> str:
    """Append a command about an item by hand, and return its id."""
    command_id = f"{kind}-{task_id}-{at.isoformat()}"
    store.spark.sql(
        f"insert into {store.tables.commands} (command_id, kind, event_id, arrival, destination, "
        "lifecycle, arguments, actor, reason, requested_at) select "
        f"'{command_id}', '{kind}', event_id, arrival, '{TO_DO}', 0, '{arguments}', 'ann', "
        f"'to try it', {instant_literal(at)} from {store.tables.state} where event_id = '{task_id}'"
    )
    return command_id


def later(store: Store, name: str, *, at: datetime, until: datetime) -> str:
    """Append an extension of an item by hand, and return the id of the command."""
    end = task(store, f"ask-{name}")["expires_at"]
    times = {"from": end.isoformat(), "until": until.isoformat()}
    return commanded(store, f"ask-{name}", "extend", json.dumps(times), at=at)


@pytest.mark.rest
def test_who_answers_is_told_what_counts(store: Store) -> None:
    """Who answers after an extension is told that the answer counts, whatever came too late before
    it; that another one counts; or that the item is over.
    """
    names = ("p1", "p2", "p3")
    started(store, **dict.fromkeys(names, "asked"))
    outbox = opened(store)
    outbox.refresh()
    end = task(store, "ask-p1")["expires_at"].astimezone(UTC)
    before, after, until = end - timedelta(seconds=9), end + timedelta(seconds=9), end + 2 * HOUR
    later(store, "p1", at=before, until=until)
    answered(store, "p1", at=after)
    answered(store, "p2", at=after)
    later(store, "p2", at=before, until=until)
    later(store, "p3", at=after, until=until)
    answered(store, "p3", at=after)
    outbox.apply_commands()
    outbox.close()
    items = Items(opened(store, ahead=1.5 * HOUR), folder=AUTHOR)
    told = items.complete("ask-p2", {"case": "p2"}, **WHO)
    assert ("yes", False) == (told.outcome, told.repeated)
    with pytest.raises(AnsweredAlready):
        items.complete("ask-p1", {"case": "p1"}, **WHO)
    with pytest.raises(AnsweredTooLate):
        items.complete("ask-p3", {"case": "p3"}, **WHO)
    # Also once the item is over, it was not the answer that came too late.
    history = {one["what"]: one["at"] for one in items.show("ask-p2")["history"]}
    assert history["answered"] > history["answered_late"] == iso_text(after)


@pytest.mark.rest
def test_an_answer_near_the_end_is_told_once_the_item_has_ended(store: Store) -> None:
    """A relay whose clock is ahead ends an item a little early, so whoever answers shortly before
    the end is told once that has ended the item; where nothing can be ended, that nobody knows yet.
    """
    started(store, n1="asked", n2="asked")
    with closing(opened(store, ahead=HOUR - timedelta(seconds=45))) as outbox:
        items = Items(outbox, folder=AUTHOR, ends_items=False)
        with mock.patch.object(Outbox, "apply_commands", return_value=0):
            for _ in range(2):
                with pytest.raises(NotKnownYet):
                    items.complete("ask-n1", {"case": "n1"}, **WHO)
        assert ["claimed"] == steps(store, "ask-n1")
        assert ("done", True) == _told(items.complete("ask-n1", {"case": "n1"}, **WHO))
        assert ("done", False) == _told(items.complete("ask-n2", {"case": "n2"}, **WHO))
        assert ["claimed", "completed"] == steps(store, "ask-n1") == steps(store, "ask-n2")


def _told(done: Completion) -> tuple[str, bool]:
    return done.status, done.repeated


@pytest.mark.rest
def test_what_changes_nothing_is_on_record_once(store: Store) -> None:
    """A message that loses, or comes too late, is evidence once, however often it is sent. An item
    whose time is over, or that an operator has ended, waits for nobody, also before a relay has
    ended it.
    """
    started(store, o1="asked", o2="asked", o3="asked")
    message: dict[str, Any] = {"actor": "kafka:t", "is_named": False, "is_message": True}

    def sent(name: str, key: str | None, *more: str) -> GivenAnswer:
        data = {"case": name, **dict.fromkeys(more, 1)}
        return GivenAnswer(task_id=f"ask-{name}", data=data, key=key, **message)

    def written(name: str) -> int:
        its = f"kind = 'complete' and event_id = 'ask-{name}'"
        return len(store.rows(f"select 1 from {store.tables.commands} where {its}"))

    with closing(opened(store)) as outbox:
        items = Items(outbox, folder=AUTHOR)
        items.complete_many([sent("o1", "first")], **WHO)
        losing = sent("o1", "second", "more"), sent("o1", "second", "most"), sent("o1", None, "x")
        for given in ([*losing, losing[0]], *([one] for one in losing)):
            told = items.complete_many(given, **WHO)
            assert {AnsweredAlready} == {type(one) for one in told}
        assert 3 == written("o1")
    with closing(opened(store, ahead=1.5 * HOUR)) as outbox:
        items = Items(outbox, folder=AUTHOR)
        assert "ending" == items.show("ask-o2")["state"]
        assert "ask-o2" not in {one.task_id for one in items.waiting()}
        for count in (2, 1):
            told = items.complete_many([sent("o2", "late")] * count, **WHO)
            assert {AnsweredTooLate} == {type(one) for one in told}
        assert 1 == written("o2")
    commanded(store, "ask-o3", "kill", "{}", at=datetime.now(UTC))
    with closing(opened(store)) as outbox:
        items = Items(outbox, folder=AUTHOR, ends_items=False)
        for _ in range(3):
            (told_so,) = items.complete_many([sent("o3", "killed")], **WHO)
            assert isinstance(told_so, AnsweredTooLate)
        assert ["claimed"] == steps(store, "ask-o3")  # nobody has applied it
        assert 1 == written("o3")


@pytest.mark.rest
def test_an_item_is_of_its_own_version(store: Store) -> None:
    """Who may answer an item, what that may come to, and whether something follows if it is killed,
    say the rows of its version, whatever the code is: an outcome that leads nowhere is not written.
    """
    rows = joined(rows_of(one) for one in load(["desks"], AUTHOR))
    others = {
        **rows,
        "railway_tasks": [
            {**row, "roles": "teller"} if row["workflow"] == "asked" else row
            for row in rows["railway_tasks"]
        ],
        "railway_routes": [
            {**row, "outcome": "agreed"}
            if (row["workflow"], row["outcome"], row["cause"]) == ("asked", "yes", "decided")
            else row
            for row in rows["railway_routes"]
        ],
    }
    others["railway_workflows"] = [
        {**row, "default_exit": row["default_exit"] or "case.gone"}
        for row in rows["railway_workflows"]
    ]
    writes = NumberedWrites(store.spark, store.tables, writer="workflows", clock=SystemClock())

    def in_force(version: str, its: Any) -> None:
        newest = next(writes.last())
        plan = {"version": version, "rows": its}
        assert writes.append_after(newest, plan, planned_by="tests")

    in_force("2", others)
    started(store, q1="asked", q3="waiting")
    in_force("3", rows)
    started(store, q2="asked")
    with closing(opened(store)) as outbox:
        assert 1 == outbox.kill(["wait-q3"], **WHO).deliveries
        items = Items(outbox, folder=AUTHOR)
        assert ["teller"] == items.show("ask-q1")["roles"]
        assert ["clerk"] == items.show("ask-q2")["roles"]
        by_role = {
            role: {one.task_id for one in items.waiting(role=role)} for role in ("teller", "clerk")
        }
        assert {"ask-q1"} == by_role["teller"]
        assert "ask-q2" in by_role["clerk"]
        (type_,) = [one for one in items.types() if one.workflow == "asked"]
        assert ("clerk", "teller") == type_.roles
        with pytest.raises(UndecidedAnswer, match="has no outcome 'yes'"):
            items.complete("ask-q1", {"case": "q1"}, **WHO)
        with mock.patch.object(sys.modules["desks"].Ask, "read_model", side_effect=KeyError("q1")):
            (unshown,) = items.show_many(["ask-q1"])
        assert isinstance(unshown, UndecidedItem)  # whoever asks must know who may
        assert (("teller",), "ask-q1") == (unshown.item.roles, unshown.item.task_id)
        assert ["claimed"] == steps(store, "ask-q1")
        assert "yes" == items.complete("ask-q2", {"case": "q2"}, **WHO).outcome


@pytest.mark.rest
def test_a_process_that_dies_within_an_extension_loses_no_answer(store: Store) -> None:
    """Whoever comes after a process that has released an item and not claimed it anew claims it; an
    answer in between counts.
    """
    started(store, k1="asked", k2="asked")
    outbox = opened(store)
    first = iter([Commands._claims_anew])

    def dies(commands: Commands, relation: str, ids: Sequence[str]) -> Any:
        for claims_anew in first:
            return claims_anew(commands, relation, ids)
        raise InterruptedError

    with mock.patch.object(Commands, "_claims_anew", dies), pytest.raises(InterruptedError):
        Instances(outbox).extend(["k1", "k2"], by_seconds=7200, dry_run=False, **WHO)
    outbox.close()
    assert ["claimed", "released"] == steps(store, "ask-k1") == steps(store, "ask-k2")
    with closing(opened(store)) as outbox:
        items = Items(outbox, folder=AUTHOR, ends_items=False)
        with mock.patch.object(Outbox, "apply_commands", return_value=0):
            for _ in range(3):  # who is told that nobody knows yet gives it again
                with pytest.raises(NotKnownYet):
                    items.complete("ask-k2", {"case": "k2"}, **WHO)
    its = "kind = 'complete' and event_id = 'ask-k2'"
    assert 1 == len(store.rows(f"select 1 from {store.tables.commands} where {its}"))
    items = Items(opened(store, ahead=1.5 * HOUR), folder=AUTHOR)
    told = items.complete("ask-k2", {"case": "k2"}, **WHO)
    assert ("yes", "done") == (told.outcome, told.status)
    assert ["claimed", "released", "claimed", "completed"] == steps(store, "ask-k2")
    assert ["claimed", "released", "claimed"] == steps(store, "ask-k1")


@pytest.mark.rest
def test_an_answer_that_came_too_late_is_accepted_once(store: Store) -> None:
    """Where an operator accepts a late answer, the instance goes on as if it had come in time: by
    the route of its own version, with what was decided. Who asks again is told, and moves nothing.
    """
    started(store, l1="late", l2="late")
    relayed(store, ahead=1.5 * HOUR)
    outbox = opened(store, ahead=1.5 * HOUR)
    with pytest.raises(AnsweredTooLate):
        Items(outbox, folder=AUTHOR).complete("confirm-l1", {"case": "l1"}, **WHO)
    instances = Instances(outbox)
    preview = instances.accept_late(workflow="late", **WHO)
    expected = [("l1", "search", "confirm-l1", "yes", "thank")]
    shown = ("instance", "task", "late_task_id", "late_outcome", "goes_to")
    assert expected == [tuple(one[name] for name in shown) for one in preview.tasks]
    assert [("l2", "has no late answer that may count")] == [
        (one["instance"], one["refusal"]) for one in preview.left_out
    ]
    assert preview.command_id is None
    accepted = instances.accept_late(workflow="late", dry_run=False, **WHO)
    twice = instances.accept_late(["l1"], dry_run=False, **WHO)
    (left_out,) = twice.left_out
    assert f"is moved already by command {accepted.command_id}" == left_out["refusal"]
    outbox.close()
    relayed(store, ahead=3 * HOUR)
    outbox = opened(store, ahead=3 * HOUR)
    assert "done" == status(outbox, accepted.command_id)
    instances = Instances(outbox)
    found = instances.show("l1")
    assert ["confirm", "search", "thank"] == [one["task"] for one in found["tasks"]]
    assert ["gone", "moved", None] == [one["outcome"] for one in found["tasks"]]
    (move,) = found["moves"]
    assert ("search", "thank", "confirm-l1", "ann", WHO["reason"]) == tuple(
        move[name] for name in ("from_task", "to_task", "late_task_id", "actor", "reason")
    )
    (body,) = store.rows(
        "select from_json(cast(payload as string), 'facts map<string, map<string, string>>') as b "
        f"from {store.tables.events} where event_id = 'thank-l1'"
    )
    assert [("confirm", [("said", "at last")])] == body["b"]["facts"]
    again = instances.accept_late(["l1"], dry_run=False, **WHO)
    assert ["goes on by its late answer already"] == [one["refusal"] for one in again.left_out]
    assert again.command_id is None
    outbox.close()


def by_cli(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Run a command line with --json, and return code and document."""
    capsys.readouterr()
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.rest
def test_one_selection_for_python_command_and_dbt(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever asks, the same tasks are meant, the same is left out, and the same is written."""
    since = datetime.now(UTC)
    started(store, s1="called", s2="asked", s3="waiting", s4="called")
    outbox = opened(store)
    instances = Instances(outbox)
    named = instances.extend(["s1", "s2", "s3"], third_party="bank", by_seconds=5, **WHO)
    assert ["s1"] == [one["instance"] for one in named.tasks]
    assert {"s2": "does not match the filter", "s3": "does not match the filter"} == {
        one["instance"]: one["refusal"] for one in named.left_out
    }
    assert None is task(store, "ask-s2")["third_party"]
    never = instances.extend(["s3"], by_seconds=5, **WHO)
    assert ["never expires"] == [one["refusal"] for one in never.left_out]
    none = instances.cancel(["s3"], **WHO)
    assert ["has no default exit, so nothing would follow"] == [
        one["refusal"] for one in none.left_out
    ]
    spared = outbox.kill([none.left_out[0]["task_id"]], dry_run=False, **WHO)
    assert spared.command_id is None
    assert ["is a task of waiting, which has no default exit, so nothing would follow"] == [
        one["refusal"] for one in spared.left_out
    ]
    store.insert(("stranger-s", "workflow:waiting/wait", "x"))
    outbox.refresh()
    assert ["stranger-s"] == [
        row["event_id"] for row in outbox.kill(["stranger-s"], **WHO).examples
    ]
    with pytest.raises(UnknownInstance):
        instances.cancel(["nobody"], **WHO)
    with pytest.raises(WrongUsage):
        instances.cancel(task="call", **WHO)
    to = since.replace(microsecond=0) + 9 * HOUR
    selected = {"workflow": "called", "task": "call", "since": since.isoformat()}
    args = json.dumps({**selected, "to": to.isoformat(), **WHO, "dry_run": False})
    words = ["workflow", "extend", "--workflow", "called", "--task", "call", "--apply"]
    words += ["--since", since.isoformat(), "--to", to.isoformat()]
    words += ["--actor", WHO["actor"], "--reason", WHO["reason"]]
    seen: list[list[dict[str, Any]]] = []

    def written() -> None:
        """Note what was written, and remove it, so that the next one finds the same."""
        rows = store.rows(
            f"select {COMPARED} from {store.tables.commands} where arguments like '%{to.date()}%' "
            f"and event_id like 'call-s%' order by event_id"
        )
        seen.append(rows)
        store.spark.sql(
            f"delete from {store.tables.commands} where event_id like 'call-s%' and kind = 'extend'"
        )

    instances.extend(workflow="called", task="call", since=since, to=to, dry_run=False, **WHO)
    written()
    with store.commands():
        code, document = by_cli(capsys, *words)
    assert (0, {"s1", "s4"}) == (code, {one["instance"] for one in document["extended"]})
    written()
    check_result(
        run_dbt(
            ["run-operation", "extend_tasks", "--args", args, "--no-populate-cache"],
            home=store.home,
            schema=SCHEMA,
        )
    )
    written()
    assert 2 == len(seen[0])
    assert seen[0] == seen[1] == seen[2]
    cancelled = json.dumps({"third_party": "bank", "since": since.isoformat(), **WHO})
    for dry_run in ("true", "false"):
        check_result(
            run_dbt(
                [
                    *("run-operation", "cancel_instances", "--no-populate-cache", "--args"),
                    cancelled[:-1] + f', "dry_run": {dry_run}}}',
                ],
                home=store.home,
                schema=SCHEMA,
            )
        )
        outbox.refresh()
        killed = store.rows(
            f"select event_id from {store.tables.state} where kill_command_id is not null "
            "and event_id in ('call-s1', 'call-s4', 'ask-s2')"
        )
        expected = {"call-s1", "call-s4"} if dry_run == "false" else set()
        assert expected == {row["event_id"] for row in killed}
    again = instances.extend(["s1"], by_seconds=5, **WHO)
    assert again.left_out[0]["refusal"].startswith("is cancelled already by command ")
    outbox.close()


def holder(store: Store, task_id: str) -> object:
    """Return who takes care of an item, as the view says it after a refresh."""
    with closing(opened(store)) as outbox:
        outbox.refresh()
    (row,) = store.rows(
        f"select assigned_to from {store.tables['todo_items']} where task_id = '{task_id}'"
    )
    return row["assigned_to"]


@pytest.mark.rest
def test_the_last_assignment_in_the_log_says_who_takes_care(store: Store) -> None:
    """A preview writes nothing. An assignment holds at once, until another one comes after it in
    the command log, whatever their clocks said; it is no transition. Who takes an item leaves alone
    what somebody else holds. Anybody else may answer the item, and then nobody holds it any more.
    """
    started(store, h1="asked", h2="called")
    outbox = opened(store)
    items = Items(outbox, folder=AUTHOR)
    named: dict[str, Any] = {"task_ids": ["ask-h1", "call-h2", "ask-none"], **WHO}
    preview = items.assign(to="ann", **named)
    assert (["ask-h1"], None) == ([one["task_id"] for one in preview.tasks], preview.command_id)
    assert {"ask-none", "call-h2"} == {one["task_id"] for one in preview.left_out}
    assert {} == items.holders(["ask-h1"])
    before = steps(store, "ask-h1")
    ours: dict[str, Any] = {"task_ids": ["ask-h1"], "dry_run": False, **WHO}
    done = items.assign(to="ann", **ours)
    assert {"ask-h1": "ann"} == items.holders(["ask-h1", "call-h2"])
    assert ["ann"] == [one.assigned_to for one in items.waiting() if one.task_id == "ask-h1"]
    assert ("done", "ann") == (status(outbox, done.command_id), items.show("ask-h1")["assigned_to"])
    taken = items.assign(to="bob", only_unassigned=True, **ours)
    assert ["is held by ann"] == [one["refusal"] for one in taken.left_out]
    items.assign(to="bob", **ours)
    long_ago = datetime.now(UTC) - HOUR
    assert "bob" == holder(store, "ask-h1")
    commanded(store, "ask-h1", "assign", '{"to": "cleo"}', at=long_ago)
    refused = commanded(store, "ask-h1", "assign", '{"for": "dan"}', at=long_ago - HOUR)
    assert ("cleo", "refused") == (holder(store, "ask-h1"), status(outbox, refused))
    again = items.assign(to="cleo", **ours)
    assert ["is held already by cleo"] == [one["refusal"] for one in again.left_out]
    items.assign(to=None, **ours)
    assert ({}, None) == (items.holders(["ask-h1"]), holder(store, "ask-h1"))
    items.assign(to="ann", only_unassigned=True, **ours)
    assert ("ann", before) == (holder(store, "ask-h1"), steps(store, "ask-h1"))
    answer = items.complete("ask-h1", {"case": "h1"}, actor="bob", reason="ann is ill")
    assert ("done", None) == (answer.status, holder(store, "ask-h1"))
    late = items.assign(to="bob", **ours)
    assert ["is no open task that is meant"] == [one["refusal"] for one in late.left_out]


@pytest.mark.rest
def test_people_take_the_items_that_they_look_at(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who takes an item holds it, and gives it back; what somebody else holds stays theirs, also if
    both ask at once. Whoever was overtaken in the same moment is told who holds it. What changes
    nothing writes nothing. The history of the item tells all of it, and no answer.
    """
    started(store, w1="asked", w2="asked", w3="called")

    def ask(name: str, person: str, **more: Any) -> HoldRequest:
        return HoldRequest(task_id=name, person=person, **more)

    def written() -> int:
        its = "kind = 'assign' and event_id like 'ask-w%'"
        return len(store.rows(f"select 1 from {store.tables.commands} where {its}"))

    with closing(opened(store)) as outbox:
        items = Items(outbox, folder=AUTHOR)

        def told(*asked: HoldRequest) -> list[object]:
            found = items.hold_many(asked, reason="I know the customer")
            return [type(one) if isinstance(one, OutboxError) else one for one in found]

        assert ["ann", HeldByAnother, "bob", UnknownItem, None, UnknownItem, UnknownItem] == told(
            ask("ask-w1", "ann"),
            ask("ask-w1", "bob"),
            ask("ask-w2", "bob"),
            ask("ask-none", "bob"),
            ask("ask-w2", "bob", gives_back=True),
            ask("call-w3", "bob"),
            ask("ask-w2", "bob", allowed=lambda item: "clerk" not in item.roles),
        )
        assert ({"ask-w1": "ann"}, 3) == (items.holders(["ask-w1", "ask-w2"]), written())
        same = [ask("ask-w1", "Ann"), ask("ask-w2", "ann", gives_back=True)]
        assert ["ann", None, HeldByAnother] == told(*same, ask("ask-w1", "bob", gives_back=True))
        assert 3 == written()

        def overtaken(given: Any, rows: Any) -> None:
            append_commands(given, rows)
            commanded(store, "ask-w2", "assign", '{"to": "cleo"}', at=datetime.now(UTC))

        with monkeypatch.context() as patched:
            patched.setattr(item_deliveries, "append_commands", overtaken)
            assert [HeldByAnother] == told(ask("ask-w2", "bob"))
        assert "cleo" == items.show("ask-w2")["assigned_to"]
        answer = GivenAnswer(task_id="ask-w1", data={"case": "w1"}, actor="bob")
        (done,) = items.complete_many([answer], **WHO)
        assert isinstance(done, Completion)
        assert [NotOpen, NotOpen] == told(
            ask("ask-w1", "ann"), ask("ask-w1", "ann", gives_back=True)
        )
        shown = items.show("ask-w1")
        assert ("ended", "yes") == (shown["state"], shown["outcome"])
        assert [("opened", None, None), ("taken", "ann", None), ("answered", "bob", "yes")] == [
            (one["what"], one["by"], one["outcome"]) for one in shown["history"]
        ]


@pytest.mark.rest
def test_four_eyes_are_those_of_two_persons(store: Store) -> None:
    """Who has answered a task that `not_by` of another one names cannot answer that one for the
    same instance, and nothing is written then; somebody else can, and so can they for another. Who
    is no person, as one with a link, answers neither of them.
    """
    started(store, j1="proposed", j2="proposed")
    items = Items(opened(store), folder=AUTHOR)
    why = {"reason": "it was looked at"}
    linked = GivenAnswer(task_id="propose-j1", data={"case": "j1"}, is_named=False)
    (unnamed,) = items.complete_many([linked], actor="by link", **why)
    assert isinstance(unnamed, NotNamed)
    items.complete("propose-j1", {"case": "j1"}, actor="ann", **why)
    items.complete("propose-j2", {"case": "j2"}, actor="bob", **why)
    relayed(store)
    answers = [GivenAnswer(task_id=f"approve-{name}", data={"case": name}) for name in ("j1", "j2")]
    refused, done = items.complete_many(answers, actor="Ann", **why)
    assert isinstance(refused, SamePerson)
    assert isinstance(done, Completion)
    written = store.rows(
        f"select event_id from {store.tables.commands} where event_id like 'approve-j%'"
    )
    assert ["approve-j2"] == [row["event_id"] for row in written]
    assert "yes" == items.complete("approve-j1", {"case": "j1"}, actor="cleo", **why).outcome


@pytest.mark.rest
def test_four_eyes_see_an_accepted_late_answer(store: Store) -> None:
    """Whoever has given a late answer by which an operator let the instance go on has decided, too,
    whatever else is answered at once.
    """
    started(store, late="proposed")
    relayed(store, ahead=1.5 * HOUR)
    outbox = opened(store, ahead=1.5 * HOUR)
    with pytest.raises(AnsweredTooLate):
        Items(outbox, folder=AUTHOR).complete(
            "propose-late", {"case": "late"}, actor="bea", reason="it was looked at"
        )
    accepted = Instances(outbox).accept_late(["late"], dry_run=False, **WHO)
    assert ["late"] == [one["instance"] for one in accepted.tasks]
    outbox.close()
    relayed(store, ahead=3 * HOUR)
    outbox = opened(store, ahead=3 * HOUR)
    items = Items(outbox, folder=AUTHOR)
    answers = [
        GivenAnswer(task_id=task_id, data={"case": "late"}, actor=who)
        for task_id, who in (("approve-late", "bea"), ("propose-late", "bob"))
    ]
    for tried in (answers[:1], answers):
        refused, *_ = items.complete_many(tried, actor="ann", reason="it was looked at")
        assert isinstance(refused, SamePerson), refused
    answered = items.complete("approve-late", {"case": "late"}, actor="cleo", reason="it is fine")
    assert "yes" == answered.outcome
    outbox.close()


@pytest.mark.rest
def test_one_selection_for_items_too(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """Items are assigned, listed and let expire later by the command line as by dbt: the same are
    meant, and tasks of third parties never are.
    """
    since = datetime.now(UTC)
    started(store, i1="asked", i2="asked", i3="waiting", i4="called")
    by = ["--actor", WHO["actor"], "--reason", WHO["reason"]]
    bulk = ["--role", "clerk", "--since", since.isoformat(), *by]
    with store.commands():
        code, document = by_cli(capsys, "todo", "assign", "--to", "ann", *bulk)
        assert (0, None) == (code, document["command_id"])
        assert {"ask-i1", "ask-i2", "wait-i3"} == {one["task_id"] for one in document["assigned"]}
        code, document = by_cli(capsys, "todo", "assign", "ask-i1", "--take", *by, "--apply")
        assert (0, 1) == (code, document["instances"])
        code, document = by_cli(capsys, "todo", "list", "--assigned-to", "ann")
        assert ["ask-i1"] == [one["task_id"] for one in document["items"]]
        code, document = by_cli(capsys, "todo", "assign", "--to", "bob", "--unassigned", *bulk)
        assert ["is held by ann"] == [one["refusal"] for one in document["left_out"]]
        later = ["--since", since.isoformat(), "--by", "60", *by]
        code, document = by_cli(capsys, "todo", "extend", "--workflow", "called", *later)
        assert (0, []) == (code, document["extended"])
        code, document = by_cli(capsys, "todo", "extend", "ask-i1", "--by", "60", *by, "--apply")
        assert ["ask-i1"] == [one["task_id"] for one in document["extended"]]
    args = {"to": "bob", "role": "clerk", "since": since.isoformat(), **WHO, "dry_run": False}
    check_result(
        run_dbt(
            [
                *("run-operation", "assign_items", "--no-populate-cache"),
                *("--args", json.dumps({**args, "only_unassigned": True})),
            ],
            home=store.home,
            schema=SCHEMA,
        )
    )
    held = {name: holder(store, name) for name in ("ask-i1", "ask-i2", "wait-i3")}
    assert {"ask-i1": "ann", "ask-i2": "bob", "wait-i3": "bob"} == held
    with store.commands():
        code, document = by_cli(capsys, "todo", "assign", "ask-i1", "--release", *by, "--apply")
        assert 0 == code
        code, document = by_cli(capsys, "todo", "list", "--unassigned", "--workflow", "asked")
        assert "ask-i1" in {one["task_id"] for one in document["items"]}
        code, document = by_cli(capsys, "todo", "list", "--orphans")
        assert (0, []) == (code, document["known_roles"])
        assert held.keys() <= {one["task_id"] for one in document["items"]}
        key = ["--person", "eve", "--role", "boss", "--role", "clerk"]
        assert 0 == by_cli(capsys, "todo", "keys", "add", *key, *by)[0]
        for others in ([], ["--known-role", "nurse"]):
            code, document = by_cli(capsys, "todo", "list", "--orphans", *others)
            assert ["boss", "clerk", *others[1:]] == document["known_roles"]
            assert not held.keys() & {one["task_id"] for one in document["items"]}


@pytest.mark.rest
def test_the_invariants_find_nothing_in_it(store: Store) -> None:
    """Whatever went wrong in the tests of this file, what the engine has written breaks no rule;
    one of them removes commands.
    """
    words = ["build", *BUILT, "--exclude", "rewritten_logs"]
    check_result(run_dbt(words, home=store.home, schema=SCHEMA))
