"""Events that tell of items, on Delta: each once, whoever writes, and none of what is over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlparse

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.integration.gates import Gate, play, stop_before
from tests.integration.operating import clock
from tests.integration.outboxes import Store, as_if_ended, delivered, open_store
from tests.integration.railway.writing import write
from tests.unit.railway.workflow import Check, change, graph

from delta_outbox.api import Outbox
from delta_outbox.core.clock import Clock, SystemClock
from delta_outbox.core.literals import instant_literal
from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.core.settings import PublisherSettings, Settings, TodoSettings
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.lifecycle.claims import claim_rows
from delta_outbox.lifecycle.policy import task_policy
from delta_outbox.railway.graph import Graph
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.relay import Mode, Relay
from delta_outbox.store.completions import completion_arguments
from delta_outbox.workflow_engine import derived_events
from delta_outbox.workflow_engine.derived_events import DerivedEvents
from delta_outbox.workflow_engine.item_links import Links

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.home import Home

SECRET = "x" * 40
SETTINGS = Settings(
    publishers={"default": PublisherSettings(type="null")}, todo=TodoSettings(link_secret=SECRET)
)
POLICIES = (task_policy("workflow:shipping/check", TO_DO, lease_seconds=60),)
NOW, DUE = clock(0), clock(2)  # before and after the items here are due
_opened: list[tuple[Outbox, DerivedEvents]] = []


@dataclass(frozen=True)
class Reminder:
    """What an escalation reads of `todo.due`."""

    task_id: str


CHECKED = graph(change(Check, tells_opened=True, sends_link=True), first=Check)
RAISED = graph(
    change(Check, due=None),
    first=Check,
    name="raised",
    starts_on="todo.due",
    start=Reminder,
    instance="{task_id}",
)


@contextmanager
def open_with(
    spark: SparkSession, home: Home, schema: str, *workflows: Graph[Any]
) -> Iterator[Store]:
    """Make an outbox in which some workflows are in force."""
    with open_store(spark, home, schema) as opened:
        writes = NumberedWrites(spark, opened.tables, writer="workflows", clock=SystemClock())
        plan = {"version": "1", "rows": joined([rows_of(one) for one in workflows])}
        assert writes.append_after(None, plan, planned_by="tests")
        yield opened
        while _opened:
            outbox, own = _opened.pop()
            own.close()
            outbox.close()


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox in which parcels are checked by people, who get a link."""
    with open_with(spark, home, "t_item_events", CHECKED) as opened:
        yield opened


def writer(store: Store, time: Clock = NOW) -> DerivedEvents:
    """Return a writer that has read nothing yet, as of a process that has just begun."""
    outbox = store.open(SETTINGS, clock=time)
    _opened.append((outbox, DerivedEvents(outbox)))
    return _opened[-1][1]


def ready(store: Store, *names: str, ago: str = "0 hours") -> None:
    """Append that parcels are ready."""
    then = f"current_timestamp() - interval {ago}"
    rows = [(f"ready-{one}", "parcel.ready", f'{{"parcel_id":"{one}","grams":5}}') for one in names]
    store.insert(*rows, created_at=then, appended_at=then)


def hand_over(store: Store) -> None:
    """Claim all items for `todo`, for a day."""
    outbox = store.outbox(Path())
    outbox.run_tasks_by(lambda: POLICIES)
    found = outbox.retrieve(1000).deliveries
    items = found.filter(pc.starts_with(found["event_type"].cast(pa.string()), "workflow:"))
    until = SystemClock().now() + timedelta(days=1)
    claims = [
        replace(one, held_by=TO_DO, held_until=until) for one in outbox.new_claim(items).singles()
    ]
    for log, rows in outbox.logs.parts(pa.concat_tables(map(claim_rows, claims))):
        log.append(rows)
    outbox.close()
    as_if_ended(outbox)


def command(store: Store, name: str, kind: str, arguments: str) -> None:
    """Append a command about an item."""
    store.spark.sql(
        f"insert into {store.tables.commands} (command_id, kind, event_id, arrival, destination, "
        "lifecycle, arguments, actor, reason, requested_at) select "
        f"'{kind}-{name}', '{kind}', event_id, _metadata.row_commit_version, '{TO_DO}', 0, "
        f"'{arguments}', 'ann', 'to try it', {instant_literal(SystemClock().now())} "
        f"from {store.tables.events} where event_id = 'shipping-check-{name}-1'"
    )


def answer(store: Store, name: str) -> None:
    """Append an answer to an item, which nobody has applied yet."""
    command(store, name, "complete", completion_arguments("send", {}, name))


def told(store: Store, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return what was told of an item: types and payloads, as often as they are there."""
    rows = store.rows(
        f"select event_type, cast(payload as string) as body from {store.tables.events} "
        f"where event_type like 'todo.%' and ordering_key = 'shipping-check-{name}-1' "
        "order by _metadata.row_commit_version, ordinal"
    )
    return [(row["event_type"], json.loads(row["body"])) for row in rows]


def types(store: Store, name: str) -> list[str]:
    """Return the types of what was told of an item."""
    return [event_type for event_type, _ in told(store, name)]


def test_what_is_open_is_told_to_be_due(store: Store) -> None:
    """Of two writers one tells that items are due, each once, as they stand then; of what was
    answered before, whether that was applied or not, nothing is told; a relay delivers the events.
    """
    ready(store, "kept", "answered", "applied", "held")
    own = writer(store)
    assert 8 == write(own)
    assert 0 == write(own)
    hand_over(store)
    answer(store, "applied")
    outbox = store.outbox(Path())
    assert outbox.apply_commands()
    outbox.close()
    answer(store, "answered")
    command(store, "held", "assign", '{"to":"ben"}')
    assert 1 == write(own)  # what follows the answer that was applied
    both = [writer(store, DUE), writer(store, DUE)]
    came: list[int] = []

    def part(one: DerivedEvents, gate: Gate) -> None:
        stop_before(one._plans, "append_after", gate)
        stop_before(one._writer, "append", gate)
        came.append(write(one))

    play("abab", a=lambda gate: part(both[0], gate), b=lambda gate: part(both[1], gate))
    assert 2 == sum(came)
    assert [0, 0] == [write(one) for one in (both[1], writer(store, clock(3)))]
    for name, expected in (("answered", 1), ("applied", 1), ("kept", 2), ("held", 2)):
        assert ["todo.opened", "todo.due"][:expected] == types(store, name), name
    bodies = {name: told(store, name)[1][1] for name in ("kept", "held")}
    assert [None, "ben"] == [one["assigned_to"] for one in bodies.values()]
    link = parse_qs(urlparse(bodies["kept"]["link"]).query, keep_blank_values=True)
    (given,) = zip(link["id"], link["until"], link["signature"], strict=True)
    assert Links(SECRET).opens(*given, now=SystemClock().now())
    assert "shipping-check-kept-1" == given[0]


def test_a_relay_delivers_what_is_told(store: Store, tmp_path: Path) -> None:
    """The events go where the policies say, though the relay runs no workflows, and are not left
    waiting.
    """
    ready(store, "sent", ago="2 hours")
    assert 3 == write(writer(store))
    outbox = store.outbox(tmp_path)
    Relay(outbox).run(Mode.DRAIN)
    outbox.close()
    lines = [one for one in delivered(tmp_path) if "-sent-1" in one["event_id"]]
    assert [
        ("workflow:todo.opened/shipping-check-sent-1", "todo.opened"),
        ("workflow:todo.due/shipping-check-sent-1", "todo.due"),
    ] == [(one["event_id"], one["event_type"]) for one in lines]


class Killed(BaseException):
    """Stands for the end of a process."""


def test_a_reminder_survives_its_writer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds the plan of a writer that was killed tells what it had found to be due, once,
    also if an answer has come since.
    """
    own = writer(store, clock(4))  # later than other tests have told
    write(own)  # what follows answers of other tests
    ready(store, "late", "now", ago="-4 hours")
    assert 4 == write(own)
    assert 0 == write(own)
    hand_over(store)
    answer(store, "now")

    def kill(point: str) -> None:
        if point == "derived.before":
            raise Killed

    monkeypatch.setattr(derived_events, "reach", kill)
    dying = writer(store, clock(6))
    with pytest.raises(Killed):
        dying.step()
    monkeypatch.undo()
    assert ["todo.opened"] == types(store, "late")
    answer(store, "late")
    assert 1 == write(writer(store, clock(6)))
    assert ["todo.opened", "todo.due"] == types(store, "late")
    assert ["todo.opened"] == types(store, "now")
    assert 0 == write(writer(store, clock(7)))


def test_what_opens_after_it_was_due_is_told_at_once(store: Store) -> None:
    """An item whose trigger is long ago is told to be open and due by the write that opens it; one
    that is over by then is told nothing of.
    """
    own = writer(store)
    write(own)  # what follows answers of other tests
    ready(store, "overdue", ago="3 hours")
    ready(store, "over", ago="30 hours")
    assert 4 == write(own)
    assert ["todo.opened", "todo.due"] == types(store, "overdue")
    assert [] == types(store, "over")
    assert [0, 0] == [write(own), write(writer(store, clock(8)))]


@pytest.mark.rest
def test_a_reminder_begins_an_escalation(spark: SparkSession, home: Home) -> None:
    """A workflow that starts with `todo.due` has one instance for each reminder, whoever writes;
    what it does opens items of its own, of which nobody is reminded here.
    """
    with open_with(spark, home, "t_escalations", CHECKED, RAISED) as store:
        ready(store, "one", "two")
        assert 4 == write(writer(store))
        hand_over(store)
        answer(store, "two")
        late = writer(store, DUE)
        assert 2 == write(late)
        assert [0, 0] == [write(late), write(writer(store, clock(3)))]
        rows = store.rows(
            f"select event_id, event_type, ordering_key from {store.tables.events} "
            "where event_type = 'workflow:raised/check'"
        )
        found = [(row["event_id"], row["ordering_key"]) for row in rows]
        assert [
            ("raised-check-shipping-check-one-1-1", "workflow:raised/shipping-check-one-1")
        ] == found


def test_what_only_looks_like_an_item_may_be_due_at_any_time(
    spark: SparkSession, home: Home
) -> None:
    """A row that somebody has inserted, due in a year that nobody knows, keeps no item from being
    told to be due.
    """
    with open_with(spark, home, "t_far_items", CHECKED) as store:
        store.insert(("far", "workflow:shipping/check", '{"due_at":"+20000-01-01T00:00:00Z"}'))
        ready(store, "near")
        assert 2 == write(writer(store))
        assert 1 == write(writer(store, DUE))
        assert ["todo.opened", "todo.due"] == types(store, "near")
