"""Transactions on a real broker: committed, aborted, taken over, and what is known of them after.

What consumers that read committed messages see is read by a consumer of its own.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psutil
import pytest
from confluent_kafka import Producer
from tests.publishers.timing import MIDDLE

from delta_outbox.core.errors import PublisherUnavailable
from delta_outbox.core.failpoints import VARIABLE
from delta_outbox.publishers import (
    Delivered,
    EventBatch,
    Failed,
    NotSent,
    Rejected,
    Unknown,
    UnresolvedClaim,
)
from delta_outbox.publishers.kafka.publisher import KafkaPublisher
from delta_outbox.publishers.registry import probe

DESTINATION = "orders"
WEEK = "604800000"  # milliseconds
SLOT = "relay-1.0.0"


@pytest.fixture(scope="module")
def markers(new_topic):
    """Create a marker topic."""
    return new_topic(partitions=1, retention_ms=WEEK)


@pytest.fixture(scope="module")
def settings(kafka, markers):
    """Return good settings."""
    return {
        "bootstrap.servers": kafka.bootstrap,
        "topics": ["*"],
        "delivery": "exactly_once",
        "marker_topic": markers,
        "marker_replication": 1,
    }


@pytest.fixture
def open_one(settings):
    """Open publishers that are closed after the test."""
    opened = []

    def open_(**further):
        one = KafkaPublisher()
        one.open({**settings, **further})
        opened.append(one)
        return one

    yield open_
    for one in opened:
        one.close()


@pytest.fixture
def send():
    """Publish events of a claim from a slot."""

    def call(one, events, *, seconds=30.0, slot=SLOT):
        deadline = time.monotonic() + seconds
        return one.publish(
            EventBatch(events, deadline=deadline, destination=DESTINATION, producer_slot=slot)
        )

    return call


@pytest.fixture
def recovered(settings):
    """Ask what of a claim was delivered."""

    def ask(claim_id, *, timeout=20.0, since=None):
        since = since or datetime.now(UTC) - timedelta(hours=1)
        lost = UnresolvedClaim(claim_id=claim_id, destination=DESTINATION, since=since)
        recover = KafkaPublisher.recovery(settings)
        assert recover is not None
        return recover([lost], timeout)[claim_id]

    return ask


@pytest.fixture
def ids(read):
    """Return what consumers of a topic see: how often each event."""

    def see(topic):
        return Counter(
            dict(message.headers() or [])["outbox-event-id"].decode() for message in read(topic)
        )

    return see


def kinds(results):
    """Return the kinds of results, in order."""
    return [type(result) for result in results]


def test_what_is_delivered_is_committed_and_known(
    new_topic, new_event, open_one, send, recovered, ids
):
    """Delivered events are seen once, in order per key, and their claim knows them by id; so it
    does replays, and nothing of another claim.
    """
    topic = new_topic()
    one = open_one()
    events = [new_event(topic, f"k{n % 5}", claim_id="first") for n in range(300)]
    events.append(new_event(topic, claim_id="first", lifecycle=2))
    assert set(kinds(send(one, events))) == {Delivered}
    assert set(kinds(send(one, [new_event(topic, claim_id="second")]))) == {Delivered}
    found = recovered("first")
    assert {event.delivery_id for event in events} == set(found)
    assert set(kinds(found.values())) == {Delivered}
    assert {} == recovered("third")
    assert {1} == set(ids(topic).values())
    assert 302 == len(ids(topic))


def test_a_committed_call_without_answer_is_found(
    proxy, new_topic, new_event, open_one, send, recovered, ids
):
    """A commit whose answer never comes is Unknown, and the marker says that it was done."""
    topic = new_topic()
    one = open_one(**{"bootstrap.servers": proxy.address})
    assert kinds(send(one, [new_event(topic, claim_id="before")])) == [Delivered]
    producer = one._client.producer

    def commit(_, seconds):
        proxy.holds_replies = True
        return producer.commit_transaction(seconds)

    one._client.producer = _With(producer, commit_transaction=commit)
    events = [new_event(topic, claim_id="deaf") for _ in range(20)]
    assert set(kinds(send(one, events, seconds=MIDDLE))) == {Unknown}
    proxy.heal()
    found = recovered("deaf")
    assert set(found) == {event.event_id for event in events}
    assert {1} == set(ids(topic).values())
    assert 21 == len(ids(topic))


SENDS = """
import pickle, sys, time
from delta_outbox.publishers import EventBatch
from delta_outbox.publishers.kafka.publisher import KafkaPublisher
settings, events, further = pickle.load(sys.stdin.buffer)
one = KafkaPublisher()
one.open(settings)
results = one.publish(EventBatch(events, deadline=time.monotonic() + 30, **further))
print(*{type(result).__name__ for result in results}, flush=True)
"""


@contextmanager
def frozen(point, settings, events):
    """Let a process of its own send events, frozen at a failpoint for a block; yield what it says
    when it has gone on.
    """
    further = {"destination": DESTINATION, "producer_slot": SLOT}
    said: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", SENDS],
        env={**os.environ, VARIABLE: f"{point}@1=worker:stop"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as zombie:
        try:
            assert zombie.stdin is not None
            zombie.stdin.write(pickle.dumps((settings, events, further)))
            zombie.stdin.flush()
            while psutil.Process(zombie.pid).status() != psutil.STATUS_STOPPED:
                assert zombie.poll() is None
                time.sleep(0.02)
            yield said
            zombie.send_signal(signal.SIGCONT)
            said += zombie.communicate()[0].decode().split()
        finally:
            zombie.kill()


def test_a_successor_ends_what_is_open(
    settings, new_topic, new_event, open_one, send, recovered, ids
):
    """Whoever is asked for a claim ends its open transaction: the one that had begun it cannot
    commit any more, its events are not delivered, and consumers do not wait for it.
    """
    topic = new_topic()
    events = [new_event(topic, claim_id="zombie") for _ in range(20)]
    with frozen("kafka.committing", settings, events) as said:
        assert {} == recovered("zombie")
    assert ["Unknown"] == said
    assert {} == recovered("zombie")
    assert set(kinds(send(open_one(), events, slot="relay-2.0.0"))) == {Delivered}
    assert {event.event_id: 1 for event in events} == ids(topic)


@pytest.mark.parametrize(
    ("frozen_in", "kind"), [("init_transactions", NotSent), ("produce", Failed)]
)
def test_nothing_is_committed_by_who_marks_too_late(
    new_topic, new_event, open_one, send, recovered, ids, monkeypatch, frozen_in, kind
):
    """Whoever is frozen before its marker and goes on after its deadline commits nothing, although
    nobody could have seen it when its claim was settled.
    """
    topic, claim = new_topic(), f"late-{frozen_in}"
    one = open_one()
    make = one._client_for
    asked: Counter[int] = Counter()

    def client_for(*given, **named):
        client = make(*given, **named)
        if not asked:
            method = getattr(client.producer, frozen_in)

            def late(_, *given, **named):
                if not asked:
                    time.sleep(max(0.0, deadline - time.monotonic()))
                    asked[len(recovered(claim))] += 1
                return method(30) if frozen_in == "init_transactions" else method(*given, **named)

            client.producer = _With(client.producer, **{frozen_in: late})
        return client

    monkeypatch.setattr(one, "_client_for", client_for)
    seconds = 2 * MIDDLE  # to connect as well
    deadline = time.monotonic() + seconds
    results = send(one, [new_event(topic, claim_id=claim) for _ in range(20)], seconds=seconds)
    assert {0: 1} == asked
    assert {} == recovered(claim)
    assert {} == ids(topic)
    assert set(kinds(results)) == {kind}


class _With:
    """A producer of which one method is another."""

    def __init__(self, producer, **methods):
        self._producer, self._methods = producer, methods

    def __getattr__(self, name):
        if name in self._methods:
            return lambda *given, **named: self._methods[name](self, *given, **named)
        return getattr(self._producer, name)

    def __len__(self):
        return len(self._producer)


def test_an_open_transaction_of_somebody_else_is_waited_for(
    kafka, markers, new_topic, new_event, open_one, send, recovered
):
    """A committed marker behind somebody's open transaction is not taken for missing: as long as it
    cannot be read nothing is said, and then the truth.
    """
    client = {"bootstrap.servers": kafka.bootstrap, "transactional.id": "other", "log_level": 0}
    other = Producer(client)
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(markers, b"not ours")
    assert other.flush(30) == 0
    events = [new_event(new_topic(), claim_id="behind")]
    assert kinds(send(open_one(), events)) == [Delivered]
    with pytest.raises(ConnectionError, match="still open"):
        recovered("behind", timeout=MIDDLE)
    other.abort_transaction(30)
    assert {events[0].event_id} == set(recovered("behind"))


def test_a_refused_event_does_not_spoil_its_neighbours(
    kafka, markers, new_topic, new_event, forbid_writing, open_one, send, recovered, ids
):
    """What the broker or the client refuses gets its reason, nothing of its key follows, and the
    rest is delivered once, in a transaction of which the claim knows.
    """
    topic = new_topic(partitions=1, max_message_bytes="20000")
    forbidden = new_topic()
    forbid_writing(forbidden)
    events = [
        new_event(topic, "a", claim_id="mixed"),
        new_event(topic, "b", claim_id="mixed", payload=os.urandom(50_000)),
        new_event(topic, "b", claim_id="mixed"),
        new_event(topic, "c", claim_id="mixed", payload=b"x" * 1_100_000),
        new_event(topic, "c", claim_id="mixed"),
        new_event(forbidden, "d", claim_id="mixed"),
        new_event(topic, "d", claim_id="mixed"),
        new_event(markers, "e", claim_id="mixed"),
        new_event(topic, "f", claim_id="mixed"),
    ]
    results = send(open_one(), events)
    assert kinds(results) == [
        *(Delivered, Rejected, NotSent, Rejected, NotSent, Failed, NotSent, Rejected, Delivered)
    ]
    assert {events[0].event_id: 1, events[8].event_id: 1} == ids(topic)
    assert {events[0].event_id, events[8].event_id} == set(recovered("mixed"))


def test_a_batch_too_long_for_its_deadline_is_not_seen(
    proxy, new_topic, new_event, open_one, send, recovered, ids
):
    """What is not complete at the deadline fails for certain, and no consumer sees a part of it."""
    topic = new_topic()
    one = open_one(**{"bootstrap.servers": proxy.address})
    assert kinds(send(one, [new_event(topic, claim_id="slow")])) == [Delivered]
    proxy.bytes_per_second = 100_000
    events = [new_event(topic, claim_id="slow", payload=os.urandom(1000)) for _ in range(2000)]
    results = send(one, events, seconds=3)
    proxy.heal()
    assert set(kinds(results)) == {Failed}
    assert 1 == len(recovered("slow"))
    assert 1 == len(ids(topic))


@pytest.mark.rest
def test_a_broker_that_is_away_cannot_say(running, settings, recovered):
    """As long as no broker answers nothing is said about a claim, soon enough."""
    running.stop()
    started = time.monotonic()
    with pytest.raises(ConnectionError):
        recovered("any", timeout=2)
    assert time.monotonic() - started < 20


def test_a_claim_older_than_the_memory_is_not_guessed(recovered):
    """Where the marker topic may have forgotten a claim, it says so instead of "not delivered"."""
    with pytest.raises(ConnectionError, match="older than what the marker topic"):
        recovered("old", since=datetime.now(UTC) - timedelta(days=8))


@pytest.mark.parametrize(
    ("config", "further", "said"),
    [
        (None, {}, "does not exist: create it"),
        ({}, {"marker_replication": 3}, "has 1 replicas and `marker_replication` is 3"),
        ({"retention_ms": "3600000"}, {}, "retention.ms of a day"),
        ({"cleanup_policy": "compact"}, {}, "must have cleanup.policy = delete"),
        ({"retention_bytes": "1000000"}, {}, "must have retention.bytes = -1"),
    ],
)
def test_what_exactly_once_needs_is_checked_first(settings, new_topic, config, further, said):
    """A marker topic that is missing or may forget is one sentence before anything is claimed."""
    topic = "test.no-markers" if config is None else new_topic(partitions=1, **config)
    given = {**settings, "marker_topic": topic, **further}
    with pytest.raises(PublisherUnavailable) as caught:
        probe(KafkaPublisher, given, destination=DESTINATION, timeout=10)
    assert said in str(caught.value)


def test_good_settings_are_silent(settings):
    """What exactly once needs is there: the check before the claim says nothing."""
    probe(KafkaPublisher, settings, destination=DESTINATION, timeout=20)
