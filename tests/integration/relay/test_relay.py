"""The relay on real tables: everything once, in order, by whichever worker."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from tests.integration.outboxes import Store, check_lives, delivered, events

from delta_outbox.lifecycle.claims import Claim, make_claim, new_claim_id
from delta_outbox.lifecycle.endings import EndOfClaim
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.results import Delivered
from delta_outbox.lifecycle.results_by_column import Results
from delta_outbox.operations.command_log import append_commands
from delta_outbox.relay import Mode, Relay, Summary
from delta_outbox.relay.publish.publishing import Publishing


@pytest.fixture
def store(shared_store: Store) -> Store:
    """Return an outbox in which nothing is open; each test leaves it so."""
    return shared_store


def _in_order(lines: list[dict[str, Any]]) -> None:
    """Demand that the events of each key were delivered in the order of their numbers."""
    by_key: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        if line["key"] is not None:
            by_key[line["key"]].append(line["event_id"])
    assert by_key
    assert {key: sorted(ids) for key, ids in by_key.items()} == by_key


def test_drain_delivers_everything_once(store: Store, tmp_path: Path) -> None:
    """A drain delivers every event once, in order per key, and the log says so; a second one
    finds nothing.
    """
    folder = tmp_path / "to"
    outbox = store.outbox(folder, batch_size=16)
    outbox.append(events("drain", 40, keys=4)).raise_if_rejected()
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (40, 40, 0) == (summary.claimed, summary.published, summary.waiting)
    lines = delivered(folder)
    assert {f"drain-{n:03}": 1 for n in range(40)} == Counter(line["event_id"] for line in lines)
    _in_order(lines)
    assert {"PUBLISHED"} == set(store.states("drain").values())
    rows = store.transitions("drain")
    check_lives(rows)
    history = store.rows(
        f"select event_id, to_state from {store.tables['transition_history']} "
        "where startswith(event_id, 'drain') order by sequence"
    )
    assert Counter({"CLAIMED": 40, "PUBLISHED": 40}) == Counter(r["to_state"] for r in history)

    again = Relay(outbox).run(Mode.DRAIN)
    assert (0, 0, 0) == (again.claimed, again.published, again.waiting)
    assert 40 == len(delivered(folder))


def test_a_replay_that_is_asked_for_before_a_relay_begins_is_delivered(
    store: Store, tmp_path: Path
) -> None:
    """Nothing else is open, and somebody has refreshed the views since it was asked for."""
    folder = tmp_path / "to"
    outbox = store.outbox(folder)
    outbox.append(events("again", 1)).raise_if_rejected()
    Relay(outbox).run(Mode.DRAIN)
    (there,) = store.rows(
        "select event_id, arrival, destination, lifecycle "
        f"from {store.tables.state} where event_id = 'again-000'"
    )
    asked = {"command_id": "again", "kind": "replay", "actor": "me", "reason": "a test", **there}
    append_commands(outbox, [asked])
    outbox.refresh()
    summary = Relay(store.outbox(folder)).run(Mode.DRAIN)
    assert (1, 0) == (summary.published, summary.waiting)
    assert ["again-000"] * 2 == [line["event_id"] for line in delivered(folder)]


@pytest.mark.local
def test_two_relays_share_a_backlog(store: Store, tmp_path: Path) -> None:
    """Two relays beside each other deliver everything once and never hold an event both."""
    folder = tmp_path / "to"
    store.outbox(folder).append(events("two", 48, keys=3)).raise_if_rejected()
    workers = [store.outbox(folder, batch_size=8) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(Relay(worker).run, Mode.DRAIN) for worker in workers]
        summaries: list[Summary] = [run.result() for run in runs]
    lines = delivered(folder)
    assert {f"two-{n:03}": 1 for n in range(48)} == Counter(line["event_id"] for line in lines)
    _in_order(lines)
    assert 48 == sum(summary.published for summary in summaries)
    assert [0, 0] == [summary.waiting for summary in summaries]
    check_lives(store.transitions("two"))


@pytest.mark.rest
@pytest.mark.local
def test_what_is_published_does_not_queue_behind_other_work(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim is published before a job that came first, as those of a refresh, is through."""
    outbox = store.outbox(tmp_path / "to")
    outbox.append(events("queue", 4)).raise_if_rejected()
    context, tasks, ended = store.spark.sparkContext, 400, list[int]()
    publish = Publishing.publish

    def other_work() -> None:
        context.setJobGroup("other work", "", interruptOnCancel=True)
        context.parallelize(range(tasks), tasks).foreach(lambda _: time.sleep(0.1))

    def tasks_done() -> int:
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("other work")]
        stages = [tracker.getStageInfo(one) for job in jobs if job for one in job.stageIds]
        return sum(stage.numCompletedTasks for stage in stages if stage)

    def publish_beside(*args: Any, **given: Any) -> Results[EndOfClaim]:
        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(other_work)
            while not tasks_done():
                assert not job.done()
            try:
                return publish(*args, **given)
            finally:
                ended.append(tasks_done())
                context.cancelJobGroup("other work")
                with pytest.raises(Py4JJavaError, match="cancelled"):
                    job.result()

    monkeypatch.setattr(Publishing, "publish", publish_beside)
    assert 4 == Relay(outbox).run(Mode.ONCE).published
    assert 1 == len(ended)
    assert ended[0] < tasks / 2


def test_a_lost_claim_is_not_published(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another worker was faster to claim, a relay publishes nothing of what it has chosen,
    and leaves the claim of the other alone.
    """
    folder = tmp_path / "to"
    slower, faster = store.outbox(folder), store.outbox(tmp_path / "other")
    slower.append(events("lost", 6)).raise_if_rejected()
    append = slower.log.append
    claims: list[Claim] = []

    def append_too_late(rows: pa.Table) -> None:
        if not claims:
            claim = faster.claim(6)
            assert claim is not None
            claims.append(claim)
        append(rows)

    monkeypatch.setattr(slower.log, "append", append_too_late)
    summary = Relay(slower).run(Mode.ONCE)
    assert [6] == [len(claim) for claim in claims]
    assert [] == delivered(folder)
    assert (0, 0, 6) == (summary.claimed, summary.published, summary.waiting)
    faster.end(claims[0], [Delivered()] * 6)
    rows = store.transitions("lost")
    check_lives(rows)
    assert {faster.worker_id} == {row["relay_id"] for row in rows}


@pytest.mark.rest
@pytest.mark.parametrize("batch_size", [1, 10])
def test_what_others_have_claimed_is_left_alone(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_size: int
) -> None:
    """What another worker has claimed, and what comes after it in its keys, is claimed by nobody
    else until that claim has ended, whether a window holds all that is open or the first of it.
    The lease of that claim is longer than the test may take on any machine.
    """
    folder, name = tmp_path / "to", f"taken-{batch_size}"
    given = events(name, 60, keys=20)
    other = store.outbox(tmp_path / "other")
    relay = store.outbox(folder, batch_size=batch_size)
    other.append(given).raise_if_rejected()
    hour = PolicySet.from_csv("event_type,destination,lease_seconds\n*,default,3600\n")
    monkeypatch.setattr(
        other,
        "new_claim",
        lambda of: make_claim(of, policies=hour, now=other.clock.now(), claim_id=new_claim_id()),
    )
    claim = other.claim(12)
    assert claim is not None
    taken = claim.deliveries
    keys = {*taken["ordering_key"].to_pylist()} - {None}
    summary = Relay(relay).run(Mode.DRAIN, max_wait=0)
    behind = {event["event_id"] for event in given.to_pylist() if event["ordering_key"] in keys}
    left = behind | {*taken["event_id"].to_pylist()}
    assert (60 - len(left), len(left)) == (summary.published, summary.waiting)
    assert not left & {line["event_id"] for line in delivered(folder)}
    other.end(claim, [Delivered()] * len(claim))
    assert Relay(relay).run(Mode.DRAIN).published == len(left) - len(claim)
    check_lives(store.transitions(name))
