"""A relay that goes on reads what has come, and asks for a read view only where it has to."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.integration.gates import more
from tests.integration.outboxes import Store, check_lives, delivered, events, open_store

from delta_outbox.api import Outbox
from delta_outbox.delta.files.event_files import LOCATED
from delta_outbox.delta.log_reader import changes
from delta_outbox.lifecycle.claims import COLUMNS, DELIVERIES, in_order
from delta_outbox.lifecycle.results import Delivered
from delta_outbox.relay import Mode, Relay, Summary
from delta_outbox.relay.plan import freshness
from delta_outbox.relay.plan.arrivals import Arrivals
from delta_outbox.runtime.home import Home
from delta_outbox.testing.conformance.clock import ManualClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

PATIENCE = 240.0  # seconds that a delivery may take on a busy machine


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share; each leaves nothing open."""
    with open_store(spark, home, "t_arrivals") as store:
        yield store


@contextmanager
def at_work(outbox: Outbox) -> Iterator[None]:
    """Let a relay work during a block."""
    stop = Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(Relay(outbox).run, Mode.CONTINUOUS, stop=stop)
        try:
            yield
        finally:
            stop.set()
            running.result()


def ended(store: Store, prefix: str) -> list[str]:
    """Return which deliveries were PUBLISHED, in the order of the log."""
    return [row["event_id"] for row in store.transitions(prefix) if row["to_state"] == "PUBLISHED"]


def wait_for(store: Store, prefix: str, count: int) -> None:
    """Wait until so many deliveries are PUBLISHED in the log."""
    until = time.monotonic() + PATIENCE
    while len(ended(store, prefix)) < count:
        assert time.monotonic() < until, ended(store, prefix)
        time.sleep(0.2)


def test_arrivals_alone_are_read(store: Store, tmp_path: Path, read_views: list[str]) -> None:
    """Where nothing else is open, what comes is delivered by reading it alone, once and in order.
    A copy of what the log has makes the relay ask for a read view, and is not delivered.
    """
    folder = tmp_path / "to"
    producer, relay = store.outbox(folder), store.outbox(folder)
    batches = [events("alone", 30, keys=2).slice(10 * n, 10) for n in range(3)]
    with at_work(relay):
        for number, batch in enumerate(batches):
            producer.append(batch).raise_if_rejected()
            wait_for(store, "alone", 10 * (number + 1))
            if number < 2:  # what the log holds is read at the second time
                read_views.clear()
        assert [] == read_views
        kind = "order.created"
        copy, twice = ("alone-000", kind, "copy"), ("alone-twice", kind, "{}")
        store.insert(copy, twice, twice, ("alone-plain", kind, "{}"))
        wait_for(store, "alone", 32)
        assert [] != read_views
    lines = delivered(folder)
    wanted = [*(f"alone-{n:03}" for n in range(30)), "alone-twice", "alone-plain"]
    assert dict.fromkeys(wanted, 1) == Counter(line["event_id"] for line in lines)
    by_key = defaultdict(list)
    for line in lines:
        by_key[line["key"]].append(line["event_id"])
    for key in ("alone-key-0", "alone-key-1"):
        assert by_key[key] == sorted(by_key[key])
    check_lives(store.transitions("alone"))


def test_old_events_beside_new_ones_need_no_read_view(
    store: Store, tmp_path: Path, read_views: list[str]
) -> None:
    """New events whose days lie more than a year apart are delivered without a read view;
    a copy of one of them, beside a new one, makes the relay ask for a read view, and is not
    delivered.
    """
    folder = tmp_path / "to"
    producer, relay = store.outbox(folder), store.outbox(folder)
    now = datetime.now(UTC)
    days = pa.array([now - timedelta(days=400), now], pa.timestamp("us", tz="UTC"))
    with at_work(relay):
        for number in range(2):
            read_views.clear()
            given = events(f"apart-{number}", 2).append_column("created_at", days)
            producer.append(given).raise_if_rejected()
            wait_for(store, "apart", 2 * (number + 1))
        assert [] == read_views
        rows = "('apart-0-000', current_timestamp() - interval 400 days), "
        rows += "('apart-2', current_timestamp())"
        store.spark.sql(
            f"insert into {store.tables.events} (event_id, event_type, payload, created_at) "
            f"select id, 'order.created', binary('copy'), at from values {rows} as t(id, at)"
        )
        wait_for(store, "apart", 5)
        assert [] != read_views
    ids = Counter(line["event_id"] for line in delivered(folder))
    wanted = [f"apart-{number}-{n:03}" for number in range(2) for n in range(2)]
    assert dict.fromkeys([*wanted, "apart-2"], 1) == ids


@pytest.mark.local
def test_a_backlog_in_many_commits_is_begun_at_once(
    store: Store, tmp_path: Path, read_views: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relay that finds many commits of new events, and nothing else open, begins with the first
    of them: it does not derive them all before, nor ask for a read view.
    """
    monkeypatch.setattr(freshness, "TAIL_COMMITS", 1)
    outbox = store.outbox(tmp_path / "to")
    for number in range(3):
        outbox.append(events(f"many-{number}", 2)).raise_if_rejected()
    before = outbox.projection.known_watermark()
    published = []

    def note(_: Summary) -> None:
        published.append(outbox.projection.known_watermark() == before)

    assert 6 == Relay(outbox, limit=2).run(Mode.DRAIN, on_progress=note).published
    assert ([True] * 3, []) == (published, read_views)


def test_what_is_eligible_is_found_behind_what_waits(store: Store, tmp_path: Path) -> None:
    """Of what is open the first commits are asked, and more of them until there is enough."""
    clock = ManualClock()
    outbox = store.outbox(tmp_path / "to", clock=clock)
    later = pa.array([clock.now() + timedelta(days=1)] * 3, pa.timestamp("us", tz="UTC"))
    for number in range(3):
        waits = events(f"front-{number}", 3).append_column("available_at", later)
        outbox.append(waits).raise_if_rejected()
    outbox.append(events("behind", 3)).raise_if_rejected()
    claim = outbox.claim(2)
    assert claim is not None
    assert ["behind-000", "behind-001"] == claim.deliveries["event_id"].to_pylist()
    outbox.end(claim, [Delivered()] * 2)
    clock.sleep(timedelta(days=2).total_seconds())
    assert 10 == Relay(outbox).run(Mode.DRAIN).published


@pytest.mark.parametrize("first", ["fails", *more("is scheduled")])
def test_what_waits_holds_up_its_key(
    store: Store, tmp_path: Path, read_views: list[str], first: str
) -> None:
    """What comes behind an event that waits, of the same key, waits as well, and the others do not;
    a relay that works alone knows it without a read view.
    """
    publisher = "tests.integration.relay.trouble:Trouble"
    producer = store.outbox(tmp_path)
    relay = store.outbox(tmp_path, publisher=publisher, further={})
    prefix = f"wait-{first[:2]}"
    payload = b"fail once" if first == "fails" else b"p"
    due = datetime.now(UTC) + timedelta(seconds=0 if first == "fails" else 20)

    def event(name: str, key: str | None, content: bytes, at: datetime | None) -> pa.Table:
        return pa.table(
            {
                "event_id": [f"{prefix}-{name}"],
                "event_type": ["order.created"],
                "payload": pa.array([content], pa.binary()),
                "ordering_key": pa.array([key], pa.string()),
                "available_at": pa.array([at], pa.timestamp("us", tz="UTC")),
            }
        )

    with at_work(relay):
        producer.append(event("0", None, b"p", None)).raise_if_rejected()
        wait_for(store, prefix, 1)
        producer.append(event("1", "k", payload, due)).raise_if_rejected()
        producer.append(event("2", "k", b"p", None)).raise_if_rejected()
        producer.append(event("3", None, b"p", None)).raise_if_rejected()
        wait_for(store, prefix, 4)
    order = ended(store, prefix)
    assert order.index(f"{prefix}-1") < order.index(f"{prefix}-2")
    assert [] == read_views
    check_lives(store.transitions(prefix))


def test_a_backlog_is_read_in_parts(
    store: Store, tmp_path: Path, read_views: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relay that begins with much news and nothing else reads it in parts, commit by commit, and
    delivers each event once and in order, without a read view. Its session is told.
    """
    told: list[object] = []
    # The first commit: how full a window is later depends on what is in flight.
    monkeypatch.setattr("delta_outbox.relay.relay.LARGE_QUERY_ROWS", 10)
    monkeypatch.setattr("delta_outbox.relay.relay.use_large_query_mode", told.append)
    relay = store.outbox(tmp_path, batch_size=2)
    for number in range(6):  # ten batches are planned at once: two of these commits
        store.outbox(tmp_path).append(events("parts", 60, keys=4).slice(10 * number, 10))
    summary = Relay(relay).run(Mode.DRAIN)
    assert (60, 60, 0) == (summary.claimed, summary.published, summary.waiting)
    assert [] == read_views
    assert {relay.spark} == set(told)
    lines = [line["event_id"] for line in delivered(tmp_path)]
    assert Counter(f"parts-{n:03}" for n in range(60)) == Counter(lines)
    order = [int(name[-3:]) for name in ended(store, "parts")]
    for key in range(4):
        own = [number for number in order if number % 3 < 2 and number % 4 == key]
        assert sorted(own) == own
    check_lives(store.transitions("parts"))


def test_a_stopped_relay_says_what_it_has_not_read(store: Store, tmp_path: Path) -> None:
    """What a relay has left unread when it is stopped counts as waiting."""
    relay = store.outbox(tmp_path, batch_size=1)
    for number in range(3):
        store.outbox(tmp_path).append(events("stopped", 45).slice(15 * number, 15))
    stop = Event()
    summary = Relay(relay).run(Mode.CONTINUOUS, stop=stop, on_progress=lambda _: stop.set())
    assert 0 < summary.published < 45
    assert 45 == summary.published + summary.waiting
    assert Relay(store.outbox(tmp_path)).run(Mode.DRAIN).waiting == 0


def test_a_copy_is_found_at_the_first_poll(
    store: Store, tmp_path: Path, read_views: list[str]
) -> None:
    """Also a relay that has read no ids so far does not deliver a later copy of an event."""
    store.insert(("first-b", "order.created", "{}"))
    assert 1 == Relay(store.outbox(tmp_path)).run(Mode.DRAIN).published
    assert [] == read_views
    store.insert(("first-a", "order.created", "{}"), ("first-c", "order.created", "{}"))
    store.insert(("first-b", "order.created", "again"))
    assert 2 == Relay(store.outbox(tmp_path)).run(Mode.DRAIN).published
    assert [] != read_views
    ids = Counter(line["event_id"] for line in delivered(tmp_path))
    assert {"first-a": 1, "first-b": 1, "first-c": 1} == ids


def test_a_backlog_that_was_left_is_asked_for_once(
    store: Store, tmp_path: Path, read_views: list[str]
) -> None:
    """A relay that begins where another has died asks for a read view once, ends the claim
    that was left, and reads what nobody has tried commit by commit, as it reads what is new.
    """
    first = store.outbox(tmp_path, worker_id="left")
    for number in range(6):
        first.append(events("left", 36, keys=4).slice(6 * number, 6)).raise_if_rejected()
    given = first.claim(9)
    assert given is not None
    first.end(given, [Delivered()] * 9)
    assert first.claim(4) is not None  # 9 to 12, never ended
    first.refresh(planned_by="test")
    relay = store.outbox(tmp_path, worker_id="left", batch_size=2)  # plans 20 at once
    read_views.clear()
    summary = Relay(relay).run(Mode.DRAIN)
    assert (27, 0) == (summary.published, summary.waiting)
    assert 2 == len(read_views)  # the second one after the claim was ended
    lines = delivered(tmp_path)
    assert Counter(f"left-{n:03}" for n in range(9, 36)) == Counter(x["event_id"] for x in lines)
    by_key = defaultdict(list)
    for line in lines:
        by_key[line["key"]].append(line["event_id"])
    del by_key[None]
    assert all(ids == sorted(ids) for ids in by_key.values())
    check_lives(store.transitions("left"))


def test_what_was_delivered_from_the_middle_of_a_backlog_is_not_sent_again(
    store: Store, tmp_path: Path, read_views: list[str]
) -> None:
    """What lies before the last commit of which something was tried is taken from what is open."""
    clock = ManualClock()
    folder = tmp_path / "to"
    first = store.outbox(folder, clock=clock)
    later = pa.array([clock.now() + timedelta(days=1)] * 3, pa.timestamp("us", tz="UTC"))
    waits = events("middle-0", 3).append_column("available_at", later)
    first.append(waits).raise_if_rejected()
    for number in range(1, 5):
        first.append(events(f"middle-{number}", 3)).raise_if_rejected()
    claim = first.claim(2)
    assert claim is not None
    done = claim.deliveries["event_id"].to_pylist()
    first.end(claim, [Delivered()] * 2)
    clock.sleep(timedelta(days=2).total_seconds())
    read_views.clear()
    relay = store.outbox(folder, clock=clock, batch_size=1)  # plans 10 at once
    assert 13 == Relay(relay).run(Mode.DRAIN).published
    assert 1 == len(read_views)
    ids = [f"middle-{number}-{n:03}" for number in range(5) for n in range(3)]
    lines = Counter(line["event_id"] for line in delivered(folder))
    assert Counter(set(ids) - set(done)) == lines


@pytest.mark.parametrize("begins", ["after another", *more("with nothing tried")])
def test_what_is_due_is_found_behind_much_that_is_not(
    store: Store, tmp_path: Path, read_views: list[str], begins: str
) -> None:
    """More events than a plan holds that are not due keep nobody from what came after them, and a
    relay that has nothing else to do from nothing.
    """
    prefix = f"tomorrow-{begins[:5]}"
    clock = ManualClock()
    outbox = store.outbox(tmp_path / "to", clock=clock, batch_size=1)  # plans 10 at once
    at = [clock.now() + timedelta(days=1)] * 8
    later = pa.array(at, pa.timestamp("us", tz="UTC"))
    for number in range(3):
        waits = events(f"{prefix}-{number}", 8).append_column("available_at", later)
        outbox.append(waits).raise_if_rejected()
    outbox.append(events(f"{prefix}-due", 3)).raise_if_rejected()
    if begins == "after another":
        outbox.refresh(planned_by="test")
    read_views.clear()
    summary = Relay(outbox).run(Mode.DRAIN, max_wait=0)
    assert (3, 24) == (summary.published, summary.waiting)
    assert len(read_views) < 5
    clock.sleep(timedelta(days=2).total_seconds())
    assert 24 == Relay(store.outbox(tmp_path / "to", clock=clock)).run(Mode.DRAIN).published


def test_a_killed_event_of_a_backlog_is_not_forgotten(store: Store, tmp_path: Path) -> None:
    """What is to be killed once it is due counts as open, and ends then."""
    clock = ManualClock()
    outbox = store.outbox(tmp_path / "to", clock=clock, batch_size=1)  # plans 10 at once
    later = pa.array([clock.now() + timedelta(days=1)], pa.timestamp("us", tz="UTC"))
    killed = events("killed-far", 1).append_column("available_at", later)
    outbox.append(killed).raise_if_rejected()
    outbox.append(events("killed-not", 11)).raise_if_rejected()
    outbox.kill(["killed-far-000"], reason="far", actor="test", dry_run=False)
    summary = Relay(outbox).run(Mode.DRAIN, max_wait=0)
    assert (11, 1) == (summary.published, summary.waiting)
    clock.sleep(timedelta(days=2).total_seconds())
    summary = Relay(store.outbox(tmp_path / "to", clock=clock)).run(Mode.DRAIN)
    assert (1, 0) == (summary.dead, summary.waiting)


def test_files_say_what_the_feed_says(store: Store, tmp_path: Path) -> None:
    """Read from its files, a new event is what Spark reads from the change feed, whichever way it
    was appended, and also after its files were compacted.
    """
    outbox = store.outbox(tmp_path)
    before = outbox.projection.latest_versions()["events"]
    earlier = "date_trunc('day', current_timestamp()) - interval '400 00:00:01' day to second"
    store.insert(("file-plain", "order.created", "{}"), created_at=earlier)
    later = datetime.now(UTC) + timedelta(days=400)
    given = events("file", 5, keys=2)
    at = pa.array([None, later, None, later, None], pa.timestamp("us", tz="UTC"))
    outbox.append(given.append_column("available_at", at)).raise_if_rejected()
    store.spark.sql(f"optimize {store.tables.events}")
    to = outbox.projection.latest_versions()["events"]
    found = Arrivals(outbox).read(after=before, to=to, limit=100)
    assert found is not None
    assert to == found.to
    assert set(LOCATED.names) == set(found.rows.column_names)
    text = store.statements.fill(
        "arrivals", source=changes(store.tables.events, after=before, to=to)
    )
    feed = outbox.spark.sql(f"select {COLUMNS} from ({text})").toArrow().cast(DELIVERIES)
    assert 6 == feed.num_rows
    assert in_order(feed) == in_order(found.rows.select(DELIVERIES.names)).combine_chunks()
    later_ones = [f"file-{n:03}" for n in (1, 3)]
    outbox.kill(event_ids=later_ones, reason="far", actor="test", dry_run=False)
    Relay(outbox).run(Mode.DRAIN, max_wait=0)
