"""What arrives at Kafka is what was appended."""

from __future__ import annotations

import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka_event
from tests.publishers.cloudevent import FIELDS, as_cloudevent, check_cloudevent

from delta_outbox.publishers import Delivered, Rejected
from delta_outbox.publishers.kafka.publisher import KafkaPublisher


def test_headers_arrive_unchanged(new_topic, publisher, new_event, publish, read):
    """Unicode, empty, missing and many header values arrive as given, ours beside them."""
    topic = new_topic()
    given = {"grün": "ß→🚀", "empty": "", "none": None, "nul": "a\0b", "lines": "a\r\nb: c\n"}
    given |= {f"h{number}": str(number) for number in range(200)}
    event = new_event(topic, headers=given, lifecycle=2)
    publish(publisher(), [event])
    [message] = read(topic)
    expected = {name: None if value is None else value.encode() for name, value in given.items()}
    expected |= {
        "outbox-event-id": event.event_id.encode(),
        "outbox-event-type": b"flight.departed",
        "outbox-lifecycle": b"2",
    }
    assert dict(message.headers()) == expected
    assert len(message.headers()) == len(expected)


def test_a_header_of_the_producer_wins(new_topic, publisher, new_event, publish, read):
    """A producer's header with one of our names is kept and ours is left out."""
    topic = new_topic()
    publish(publisher(), [new_event(topic, headers={"outbox-event-id": "theirs"})])
    [message] = read(topic)
    values = [value for name, value in message.headers() if name == "outbox-event-id"]
    assert values == [b"theirs"]


def test_a_header_name_without_form_is_rejected(new_topic, publisher, new_event, publish, read):
    """A header name that Kafka's client would cut is rejected, its neighbours are delivered."""
    topic = new_topic()
    events = [new_event(topic), new_event(topic, headers={"a\0b": "x"}), new_event(topic)]
    results = publish(publisher(), events)
    assert [type(result) for result in results] == [Delivered, Rejected, Delivered]
    assert len(read(topic)) == 2


def test_payload_arrives_byte_for_byte(new_topic, publisher, new_event, publish, read):
    """Every byte value, the empty payload and 900 KiB arrive as they are."""
    topic = new_topic(partitions=1)
    payloads = [bytes(range(256)), b"", b"\xff\x00\xfe" * 307_200]
    publish(publisher(), [new_event(topic, "k", payload=payload) for payload in payloads])
    assert [message.value() for message in read(topic)] == payloads


def test_keys_arrive_and_choose_the_partition(new_topic, publisher, new_event, publish, read):
    """The key is the event's, in UTF-8, none stays none, and a key has one partition."""
    topic = new_topic(partitions=3)
    keys = ["a", "b", "ü", "", None] * 20
    publish(publisher(), [new_event(topic, key) for key in keys])
    messages = read(topic)
    expected = [None if key is None else key.encode() for key in keys]
    assert sorted(map(repr, (message.key() for message in messages))) == sorted(map(repr, expected))
    places = {(message.key(), message.partition()) for message in messages if message.key()}
    assert len(places) == 3


def test_partition_is_that_of_java_producers(new_topic, publisher, new_event, publish, read):
    """Keys land where Java's producers put them, so that topics can be joined."""
    topic = new_topic(partitions=100)
    publish(publisher(), [new_event(topic, "21"), new_event(topic, "foobar")])
    # murmur2 of Kafka's own UtilsTest: "21" is -973932308, "foobar" is -790332482.
    expected = {b"21": (-973932308 & 0x7FFFFFFF) % 100, b"foobar": (-790332482 & 0x7FFFFFFF) % 100}
    assert {message.key(): message.partition() for message in read(topic)} == expected


def test_receipt_names_the_place(new_topic, publisher, new_event, publish, read):
    """A receipt is JSON text with topic, partition and offset of the message."""
    topic = new_topic(partitions=1)
    results = publish(publisher(), [new_event(topic, "k"), new_event(topic, "k")])
    assert [result.receipt for result in results] == [
        f'{{"topic":"{topic}","partition":0,"offset":{offset}}}' for offset in (0, 1)
    ]


@pytest.mark.parametrize("mode", KafkaPublisher.cloudevents.modes)
def test_a_cloudevent_arrives_as_one(new_topic, publisher, new_event, publish, read, mode):
    """What the relay makes of an event is read by the official SDK from the message."""
    topic = new_topic()
    event = new_event(topic, **FIELDS)
    publish(publisher(), [as_cloudevent(event, KafkaPublisher, mode)])
    [message] = read(topic)
    headers = dict(message.headers())
    assert headers["tenant"] == b"x"
    arrived = KafkaMessage(headers=headers, key=message.key(), value=message.value())
    check_cloudevent(from_kafka_event(arrived), event)
    assert message.key() == "k ü".encode()
