"""Open items, and tasks in general, beside what is done to all other events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pytest
from tests.integration.outboxes import Store, as_if_ended, open_store

from delta_outbox.api import Outbox
from delta_outbox.core.literals import instant_literal
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.lifecycle.claims import claim_rows
from delta_outbox.lifecycle.policy import task_policy
from delta_outbox.lifecycle.results import Delivered
from delta_outbox.operations.command_life import show_command
from delta_outbox.operations.lanes import LaneRequest, change_lanes
from delta_outbox.relay import Mode, Relay
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.plan.listing import Listing
from delta_outbox.relay.plan.planning import Planning
from delta_outbox.store.apply_commands import Commands
from delta_outbox.store.completions import completion_arguments
from delta_outbox.store.heartbeat import Heartbeat
from delta_outbox.store.presence import Presence
from delta_outbox.testing.conformance.clock import ManualClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.home import Home

WHO: dict[str, Any] = {"actor": "ann", "reason": "to try it"}
ITEM, CALL = "workflow:parcels/review", "workflow:parcels/pay"
POLICIES = (
    task_policy(ITEM, TO_DO, lease_seconds=60),
    task_policy(CALL, "bank", lease_seconds=60),
)
END = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share."""
    with open_store(spark, home, "t_items") as opened:
        yield opened


def claimed(store: Store, *names: str, kind: str = ITEM) -> None:
    """Append tasks, and claim them as a relay does that runs their workflow; items until `END`."""
    store.insert(*((name, kind, "{}") for name in names))
    outbox = store.outbox(Path())
    outbox.run_tasks_by(lambda: POLICIES)
    claims = outbox.new_claim(outbox.retrieve(len(names)).deliveries).singles()
    if kind == ITEM:
        claims = [replace(one, held_by=TO_DO, held_until=END) for one in claims]
    for log, rows in outbox.logs.parts(pa.concat_tables(map(claim_rows, claims))):
        log.append(rows)
    outbox.close()
    as_if_ended(outbox)


def answer(store: Store, name: str, *, at: datetime = END) -> str:
    """Append an answer to an item, and return the id of the command."""
    return command(store, name, "complete", completion_arguments("send", {}, name), at=at)


def extension(store: Store, name: str, *, at: datetime = END, until: datetime) -> str:
    """Append an extension of an item that ends at `END`; return the id of the command."""
    ends = {"from": END.isoformat(), "until": until.isoformat()}
    return command(store, name, "extend", json.dumps(ends), at=at)


def command(store: Store, name: str, kind: str, arguments: str, *, at: datetime) -> str:
    """Append a command about an item, and return its id."""
    command_id = f"{kind}-{name}"
    store.spark.sql(
        f"insert into {store.tables.commands} (command_id, kind, event_id, arrival, destination, "
        "lifecycle, arguments, actor, reason, requested_at) select "
        f"'{command_id}', '{kind}', event_id, _metadata.row_commit_version, '{TO_DO}', 0, "
        f"'{arguments}', 'ann', 'to try it', {instant_literal(at)} "
        f"from {store.tables.events} where event_id = '{name}'"
    )
    return command_id


def endings(store: Store, name: str) -> list[tuple[str, str]]:
    """Return what became of the claims of a task."""
    return [
        (row["reason"], row["to_state"])
        for row in store.transitions(name)
        if row["from_state"] == "CLAIMED"
    ]


def status(outbox: Outbox, command_id: str | None) -> object:
    """Return what became of a command."""
    assert command_id is not None
    shown = show_command(outbox, command_id)
    assert shown is not None
    return shown["status"]


class Passing(ManualClock):
    """A clock on which something happens between two looks at it."""

    def __init__(self, start: datetime) -> None:
        super().__init__(start)
        self.between: list[Callable[[], None]] = []  # before each of the next looks

    def now(self) -> datetime:
        """Return the current instant, after what happens before that."""
        if self.between:
            self.between.pop(0)()
        return super().now()


def planning_of(outbox: Outbox) -> Planning:
    """Return what plans the work of a relay."""
    heart = Heartbeat(outbox.spark, outbox.tables, relay_id=outbox.worker_id, clock=outbox.clock)
    return Planning(outbox, heart, batch_size=10, isolation=Isolation(outbox))


def poll(planning: Planning) -> None:
    """Poll as a relay does."""
    planning.poll(alive=set(), takes_over=True)


def test_an_answer_in_time_wins_over_the_end_of_its_item(store: Store) -> None:
    """Of an item that ends while a relay polls, the answer counts that was committed after the
    relay had read the commands; without one the next poll ends it.
    """
    claimed(store, "late-1", "late-2")
    clock = Passing(END - timedelta(seconds=2))
    outbox = store.outbox(Path(), clock=clock)
    planning = planning_of(outbox)

    def poll_anew() -> None:
        planning.forget()
        poll(planning)

    def pass_the_end() -> None:
        answer(store, "late-1", at=END - timedelta(seconds=1))
        clock.sleep(3)

    poll_anew()
    overview = outbox.deliveries.overview(outbox.read_view())
    assert (0, [], END) == (overview.open, overview.claims, overview.items_over)
    clock.between = [lambda: None, pass_the_end]  # it has asked for the commands after the first
    poll_anew()
    assert ([], []) == (endings(store, "late-1"), endings(store, "late-2"))
    poll_anew()
    assert [("completed", "PUBLISHED")] == endings(store, "late-1")
    assert [("lease_expired", "PENDING")] == endings(store, "late-2")
    outbox.kill(["late-2"], dry_run=False, **WHO)
    outbox.apply_commands_if_alone()
    assert "DEAD" == endings(store, "late-2")[-1][1]
    outbox.close()


def test_a_killed_item_ends_at_once(store: Store) -> None:
    """Of a kill and an answer the first on record counts; what comes later is refused."""
    claimed(store, "kill-1", "kill-2")
    outbox = store.outbox(Path())
    answered = answer(store, "kill-2")
    killed = outbox.kill(["kill-1", "kill-2"], dry_run=False, **WHO).command_id
    late = answer(store, "kill-1")
    outbox.apply_commands_if_alone()
    assert [("operator", "DEAD")] == endings(store, "kill-1")
    assert [("completed", "PUBLISHED")] == endings(store, "kill-2")
    assert ("done", "done") == (status(outbox, killed), status(outbox, answered))
    assert "refused" == status(outbox, late)
    (ended,) = [row for row in store.transitions("kill-1") if row["to_state"] == "DEAD"]
    assert (killed, "ann", 1) == (ended["command_id"], ended["actor"], ended["attempt"])
    outbox.close()


def test_an_answer_counts_by_the_deadline_at_its_place(store: Store) -> None:
    """An answer after the first end counts if an extension stands before it in the command log, and
    does not if it stands behind it, or was asked for too late itself.
    """
    names = ("more-1", "more-2", "more-3")
    claimed(store, *names)
    outbox = store.outbox(Path())
    late, until = END + timedelta(seconds=9), END + timedelta(hours=1)
    commands = [
        (extension(store, "more-1", until=until), "refused"),  # the item ends before it is needed
        (answer(store, "more-1", at=late), "done"),
        (answer(store, "more-2", at=late), "refused"),
        (extension(store, "more-2", until=until), "done"),
        (extension(store, "more-3", at=late, until=until), "refused"),
        (answer(store, "more-3", at=late), "refused"),
    ]
    outbox.apply_commands_if_alone()
    assert [
        [("completed", "PUBLISHED")],
        [("released", "PENDING")],
        [],
    ] == [endings(store, name) for name in names]
    (again,) = [row for row in store.transitions("more-2") if row["attempt"] == 2]
    assert (TO_DO, until) == (again["relay_id"], again["lease_expires_at"])
    assert [one for _, one in commands] == [status(outbox, name) for name, _ in commands]
    outbox.close()


@pytest.mark.rest
def test_a_process_that_dies_within_an_extension_loses_no_answer(store: Store) -> None:
    """An item that was released and not claimed anew is claimed by whoever comes next, before
    answers that came in between are applied.
    """
    claimed(store, "died-1", "died-2")
    outbox = store.outbox(Path())
    until = END + timedelta(hours=1)
    for name in ("died-1", "died-2"):
        extension(store, name, until=until)
    first = iter([Commands._claims_anew])

    def dies(commands: Commands, relation: str, ids: Sequence[str]) -> pa.Table:
        for claims_anew in first:
            return claims_anew(commands, relation, ids)
        raise InterruptedError

    with mock.patch.object(Commands, "_claims_anew", dies), pytest.raises(InterruptedError):
        outbox.apply_commands_if_alone()
    outbox.close()
    answer(store, "died-2", at=until)
    other = store.outbox(Path())
    other.apply_commands_if_alone()
    assert [("released", "PENDING")] == endings(store, "died-1")
    assert [("released", "PENDING"), ("completed", "PUBLISHED")] == endings(store, "died-2")
    assert {"died-1": "CLAIMED", "died-2": "PUBLISHED"} == store.states("died-")
    other.close()


@pytest.mark.rest
def test_a_busy_relay_keeps_its_work(store: Store) -> None:
    """Whoever asks leaves commands to a relay that is too busy to say that it lives, while its
    process does.
    """
    claimed(store, "busy-1")
    answer(store, "busy-1")
    store.spark.sql(
        f"insert into {store.tables.relays} (relay_id, kind, lanes, at, version) values "
        "('busy', 'alive', array(0), current_timestamp() - interval 60 seconds, '0')"
    )
    relay, outbox = Presence(store.home.relays), store.outbox(Path(), exclusive=False)
    relay.enter("busy")
    assert 0 == outbox.apply_commands_if_alone()
    assert [] == endings(store, "busy-1")
    relay.leave()
    assert outbox.apply_commands_if_alone() > 0
    assert [("completed", "PUBLISHED")] == endings(store, "busy-1")
    outbox.close()


def test_a_task_is_never_replayed(store: Store) -> None:
    """A replay selects no task, says so of one that it names, and does nothing to it if somebody
    asks by hand.
    """
    claimed(store, "replay-1", "replay-2")
    outbox = store.outbox(Path())
    answer(store, "replay-1")
    outbox.kill(["replay-2"], dry_run=False, **WHO)
    outbox.apply_commands_if_alone()
    asked: Sequence[dict[str, Any]] = (
        {"state": "PUBLISHED", "everything": True},
        {"state": "DEAD", "event_type": "*"},
    )
    assert [0, 0] == [outbox.replay(**one, **WHO).deliveries for one in asked]
    named = outbox.replay(state="DEAD", event_ids=["replay-2"], dry_run=False, **WHO)
    assert (0, None) == (named.deliveries, named.command_id)
    assert ["is a task: a task is never replayed, a new visit does it again"] == [
        row["refusal"] for row in named.left_out
    ]
    store.spark.sql(
        f"insert into {store.tables.commands} (command_id, kind, event_id, arrival, destination, "
        "lifecycle, arguments, actor, reason, requested_at) select 'by-hand', 'replay', event_id, "
        "arrival, destination, lifecycle, to_json(named_struct('epoch', epoch, 'sequence', "
        f"sequence)), 'ann', 'x', current_timestamp() from {store.tables.state} "
        "where startswith(event_id, 'replay-')"
    )
    outbox.apply_commands_if_alone()
    assert {"replay-1": "PUBLISHED", "replay-2": "DEAD"} == store.states("replay-")
    assert "refused" == status(outbox, "by-hand")
    outbox.close()


def test_a_relay_without_workflows_leaves_tasks_alone(store: Store, tmp_path: Path) -> None:
    """Tasks are published to no destination, neither before nor after their third party was asked,
    and are not eligible in the views; what an operator kills it ends.
    """
    claimed(store, "alone-1", kind=CALL)
    outbox = store.outbox(tmp_path / "out")
    assert 1 == outbox.release_expired_claims()
    store.insert(("alone-2", CALL, "{}"), ("alone-3", "order.created", "{}"))
    assert ["alone-3"] == outbox.retrieve(10).deliveries["event_id"].to_pylist()
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (1, 2) == (summary.published, summary.waiting)
    assert {"alone-1": "PENDING", "alone-2": "PENDING", "alone-3": "PUBLISHED"} == store.states(
        "alone-"
    )
    eligible = f"select event_id from {store.tables['eligible_events']}"
    blocked = f"select event_id from {store.tables['blocked_events']}"
    assert ([], []) == (store.rows(eligible), store.rows(blocked))
    outbox.kill(["alone-1", "alone-2"], dry_run=False, **WHO)
    assert 0 == Relay(outbox).run(Mode.DRAIN).waiting
    assert {"DEAD"} == {store.states("alone-")[name] for name in ("alone-1", "alone-2")}
    outbox.close()


@pytest.fixture
def planned(store: Store, request: pytest.FixtureRequest) -> Iterator[tuple[Outbox, Planning]]:
    """Return a relay's plan of an event of nobody's, made while an item is open."""
    name = request.node.name.rpartition("_")[2]
    claimed(store, f"item-{name}")
    store.insert((f"plain-{name}", "order.created", "{}"))
    outbox = store.outbox(Path())
    planning = planning_of(outbox)
    planning.start()
    poll(planning)
    assert [f"plain-{name}"] == in_window(planning)
    yield outbox, planning
    plain = outbox.claim(10)
    if plain is not None:
        outbox.end(plain, [Delivered()] * len(plain))
    outbox.close()
    as_if_ended(outbox)


def in_window(planning: Planning) -> list[str]:
    """Return what may be claimed."""
    found = planning.select()
    return [] if found is None else found.left()["event_id"].to_pylist()


def test_answers_leave_the_plan_as_it_is(store: Store, planned: tuple[Outbox, Planning]) -> None:
    """What people say of items is applied, and nothing is listed anew for it; claims of the plan
    that was made before win.
    """
    outbox, planning = planned
    command(store, "item-is", "assign", '{"to": "ann"}', at=datetime.now(UTC))
    store.spark.sql(  # by hand, about nothing
        f"insert into {store.tables.commands} (command_id, kind, actor, reason, requested_at) "
        "values ('nothing', 'complete', 'ann', 'to try it', current_timestamp())"
    )
    answer(store, "item-is")
    with mock.patch.object(Listing, "open", side_effect=AssertionError("it lists anew")):
        poll(planning)
    assert [("completed", "PUBLISHED")] == endings(store, "item-is")
    assert ["plain-is"] == in_window(planning)
    window = planning.select()
    assert window is not None
    claim = outbox.new_claim(window.left())
    outbox.logs.first.append(claim_rows(claim))
    outbox.end(claim, [Delivered()])
    assert [("delivered", "PUBLISHED")] == endings(store, "plain-is")


@pytest.mark.rest
def test_an_answer_hides_no_claim_of_others(store: Store, planned: tuple[Outbox, Planning]) -> None:
    """Where others have appended before an answer is applied, what is open is listed anew: a claim
    of the former plan would not lose any more.
    """
    _, planning = planned
    other = store.outbox(Path())
    claim = other.claim(10)
    assert claim is not None
    assert ["plain-others"] == claim.deliveries["event_id"].to_pylist()
    answer(store, "item-others")
    poll(planning)
    assert [("completed", "PUBLISHED")] == endings(store, "item-others")
    assert [] == in_window(planning)
    other.end(claim, [Delivered()])
    other.close()


@pytest.mark.rest
def test_an_answer_shortens_no_lease(store: Store) -> None:
    """A claim that another relay makes while an answer is applied lasts as long as its lease,
    however long the log was quiet before.
    """
    claimed(store, "item-quiet")
    store.insert(("plain-quiet", "order.created", "{}"))
    clock = ManualClock(datetime.now(UTC) + timedelta(minutes=1))
    outbox, other = (store.outbox(Path(), clock=clock) for _ in range(2))
    planning = planning_of(outbox)
    poll(planning)
    clock.sleep(60)  # a lease is 30 seconds
    claims = []
    are_of_items = Commands.are_of_items

    def claims_meanwhile(commands: Commands, *, after: int, to: int) -> bool:
        claims.append(other.claim(10))
        return are_of_items(commands, after=after, to=to)

    answer(store, "item-quiet")
    with mock.patch.object(Commands, "are_of_items", claims_meanwhile):
        poll(planning)
    assert [("completed", "PUBLISHED")] == endings(store, "item-quiet")
    assert [] == endings(store, "plain-quiet")
    (claim,) = claims
    assert claim is not None
    other.end(claim, [Delivered()])
    assert [("delivered", "PUBLISHED")] == endings(store, "plain-quiet")
    for one in (outbox, other):
        one.close()
    as_if_ended(outbox)
    as_if_ended(other)


@pytest.mark.rest
def test_what_is_asked_for_behind_an_answer_is_listed(
    store: Store, planned: tuple[Outbox, Planning]
) -> None:
    """A replay that comes while an answer is applied waits for the next poll, which lists."""
    outbox, planning = planned
    claim = outbox.claim(10)
    assert claim is not None
    outbox.end(claim, [Delivered()])
    planning.forget()
    poll(planning)
    assert [] == in_window(planning)
    are_of_items = Commands.are_of_items

    def replays(commands: Commands, *, after: int, to: int) -> bool:
        found = are_of_items(commands, after=after, to=to)
        report = outbox.replay(state="PUBLISHED", event_ids=["plain-listed"], dry_run=False, **WHO)
        assert 1 == report.deliveries
        return found

    answer(store, "item-listed")
    with mock.patch.object(Commands, "are_of_items", replays):
        poll(planning)
    assert [("completed", "PUBLISHED")] == endings(store, "item-listed")
    assert [] == in_window(planning)
    assert "replayed" not in {one["reason"] for one in store.transitions("plain-listed")}
    poll(planning)
    assert ["plain-listed"] == in_window(planning)


@pytest.mark.rest
def test_items_stay_open_while_the_lanes_change(store: Store, tmp_path: Path) -> None:
    """A change of the lanes does not wait for items: who has them, and until when, stays, they are
    answered and killed in the new epoch, and no drain waits for them on the lanes of others.
    """
    names = [f"lanes-{number}" for number in range(6)]
    claimed(store, *names)
    outbox = store.outbox(tmp_path / "out")
    held = "select event_id, claimed_by, claim_id, lease_expires_at, attempts from "
    held += f"{store.tables.state} where startswith(event_id, 'lanes-') and state = 'CLAIMED'"
    outbox.refresh()
    before = store.rows(f"{held} order by event_id")
    assert 6 == len(before)
    assert change_lanes(outbox, LaneRequest(lanes=3, **WHO), max_wait=0)
    outbox.refresh()
    assert before == store.rows(f"{held} order by event_id")
    settings = replace(outbox.settings, relay=replace(outbox.settings.relay, max_lanes=1))
    store.insert(("lanes-9", "order.created", "{}"))
    few = store.open(settings)
    assert (1, 0) == ((drained := Relay(few).run(Mode.DRAIN)).published, drained.waiting)
    for name in names[:2]:
        answer(store, name)
    outbox.kill(names[2:4], dry_run=False, **WHO)
    outbox.apply_commands_if_alone()
    assert change_lanes(outbox, LaneRequest(lanes=1, **WHO), max_wait=0)
    late = store.open(settings, clock=ManualClock(END))
    Relay(late).run(Mode.ONCE)
    found = [endings(store, name) for name in names]
    expected = ("completed", "PUBLISHED"), ("operator", "DEAD"), ("lease_expired", "PENDING")
    assert [[one] for one in expected for _ in range(2)] == found
    for one in (outbox, few, late):
        one.close()
