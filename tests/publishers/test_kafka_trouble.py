"""Brokers that are away, frozen or slow; topics that may not be written."""

from __future__ import annotations

import logging
import threading
import time
import traceback

import pytest
from tests.publishers.timing import GRACE, MIDDLE, settled

from delta_outbox.core.errors import PublisherUnavailable
from delta_outbox.publishers import Delivered, Failed, NotSent, Rejected, Unknown
from delta_outbox.publishers.kafka.publisher import KafkaPublisher
from delta_outbox.publishers.registry import probe


def test_an_unknown_topic_fails_with_a_remedy(publisher, new_event, publish):
    """A topic that does not exist is not created: the event fails and says what to do."""
    [result] = publish(publisher(), [new_event("test.missing")])
    assert result == Failed(
        error="the topic 'test.missing' does not exist: create it, or correct the route"
    )


def test_a_topic_outside_the_allow_list_is_rejected(new_topic, publisher, new_event, publish, read):
    """A route that is not on the list, internal or no topic name at all is rejected, not sent."""
    topic = new_topic()
    routes = [topic, "other", "__consumer_offsets", "../x", "", "a b"]
    results = publish(publisher(topics=["test.*"]), [new_event(route) for route in routes])
    assert [type(result) for result in results] == [Delivered] + [Rejected] * 5
    assert len(read(topic)) == 1


@pytest.mark.rest
def test_a_broker_that_restarts_is_survived(
    running, new_topic, publisher, new_event, publish, read
):
    """A broker killed and started again within the deadline costs time, and nothing twice.

    It keeps its address and its data.
    """
    topic, address = new_topic(partitions=1), running.bootstrap
    one = publisher()
    publish(one, [new_event(topic, "k", payload=b"0")])
    running.kill()
    starter = threading.Timer(1.0, running.start)
    starter.start()
    events = [new_event(topic, "k", payload=str(number).encode()) for number in range(1, 500)]
    results = publish(one, events, seconds=40)
    starter.join()
    assert running.bootstrap == address
    assert {type(result) for result in results} == {Delivered}
    assert [int(message.value()) for message in read(topic)] == list(range(500))


def test_a_broker_that_is_away_fails_events(publisher, new_event, publish):
    """Without a broker nothing is sent: the events fail, within the deadline, with the address."""
    start = time.monotonic()
    events = [new_event("test", "k"), new_event("test", "k"), new_event("test")]
    results = publish(publisher(bootstrap_servers="127.0.0.1:1"), events, seconds=4)
    assert time.monotonic() - start < 4 + GRACE
    assert [type(result) for result in results] == [Failed, NotSent, Failed]
    assert "127.0.0.1:1" in results[0].error
    assert "refused" in results[0].error


def test_a_frozen_broker_leaves_events_unknown(
    running, new_topic, publisher, new_event, publish, read
):
    """What was handed over and not answered is unknown at the deadline, and is not sent later."""
    topic = new_topic(partitions=1)
    one = publisher()
    publish(one, [new_event(topic, "k")])
    running.pause()
    start = time.monotonic()
    events = [new_event(topic, f"k{n % 10}", payload=b"x" * 10_000) for n in range(2000)]
    results = publish(one, events, seconds=3)
    took = time.monotonic() - start
    running.resume()
    one.close()
    assert 3 <= took < 3 + GRACE
    assert {type(result) for result in results} == {Unknown, NotSent}
    # What the operating system had taken may arrive; the queue behind it must not.
    assert settled(lambda: len(read(topic))) < 1000


def test_a_publisher_goes_on_after_a_frozen_broker(
    running, new_topic, publisher, new_event, publish
):
    """After a missed deadline the next call has a connection of its own."""
    topic = new_topic()
    one = publisher()
    publish(one, [new_event(topic)])
    running.pause()
    publish(one, [new_event(topic)], seconds=1)
    running.resume()
    assert [type(result) for result in publish(one, [new_event(topic)])] == [Delivered]


def test_the_deadline_ends_a_long_call(new_topic, publisher, new_event, publish, read):
    """A batch too long for its deadline ends in time; what arrived was not called unsent."""
    topic = new_topic()
    events = [new_event(topic, f"k{n}", payload=b"x" * 512) for n in range(100_000)]
    start = time.monotonic()
    results = publish(publisher(), events, seconds=0.2)
    assert time.monotonic() - start < 0.2 + GRACE
    kinds = {type(result) for result in results}
    assert NotSent in kinds
    assert kinds <= {Delivered, Unknown, NotSent}
    known = {event.event_id for event, r in zip(events, results, strict=True) if r != NotSent()}
    arrived = {dict(message.headers())["outbox-event-id"].decode() for message in read(topic)}
    assert arrived <= known


def test_probe_is_silent_when_a_broker_answers(kafka):
    """A reachable broker passes the check before the claim."""
    settings = {"bootstrap.servers": kafka.bootstrap, "topics": ["*"]}
    probe(KafkaPublisher, settings, destination="default", timeout=10)


def test_probe_names_the_broker_that_is_away():
    """A broker that is down is one sentence, soon, with destination and address."""
    settings = {"bootstrap.servers": "127.0.0.1:1", "topics": ["*"]}
    start = time.monotonic()
    with pytest.raises(PublisherUnavailable) as caught:
        probe(KafkaPublisher, settings, destination="default", timeout=20)
    assert time.monotonic() - start < 20
    assert "'default' is unavailable: no broker of 127.0.0.1:1 answered" in str(caught.value)


def test_a_refused_login_shows_no_password(
    kafka, publisher, new_event, publish, caplog: pytest.LogCaptureFixture
):
    """A broker that does not take the login ends in a sentence; neither it nor the client's own
    log holds name or password.
    """
    login = {"sasl.username": "canary-user", "sasl.password": "canary-password"}
    login |= {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    settings = {"bootstrap.servers": kafka.bootstrap, "topics": ["*"], **login}
    with caplog.at_level(logging.DEBUG):
        given = {name.replace(".", "_"): value for name, value in login.items()}
        [result] = publish(publisher(**given), [new_event("test")], seconds=MIDDLE)
        with pytest.raises(PublisherUnavailable) as caught:
            probe(KafkaPublisher, settings, destination="default", timeout=MIDDLE)
    assert isinstance(result, Failed)
    assert kafka.bootstrap in result.error
    said = [result.error, "".join(traceback.format_exception(caught.value)), caplog.text]
    assert not any("canary" in text for text in said)
