"""What arrives at SQS can be had back as it was appended."""

from __future__ import annotations

import base64
import json
import string

import pytest
from tests.publishers.cloudevent import (
    FIELDS,
    as_cloudevent,
    check_cloudevent,
    read_structured,
)

from delta_outbox.publishers import Delivered, Rejected
from delta_outbox.publishers.sqs.message import fifo_id
from delta_outbox.publishers.sqs.publisher import SqsPublisher


def texts(message):
    """Return the attributes of a message as texts."""
    found = message.get("MessageAttributes", {})
    assert {value["DataType"] for value in found.values()} <= {"String"}
    return {name: value["StringValue"] for name, value in found.items()}


def is_allowed(text):
    """Tell whether SQS leaves a text alone, by the ranges of its reference."""
    ranges = [(0x20, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x10FFFF)]
    return all(
        character in "\t\n\r" or any(low <= ord(character) <= high for low, high in ranges)
        for character in text
    )


def headers_of(message):
    """Return the headers as docs/publishers/sqs.md tells a consumer to."""
    found = texts(message)
    packed = found.pop("outbox-headers", None)
    found.pop("outbox-payload-encoding", None)
    return found if packed is None else json.loads(packed)


def payload_of(message):
    """Return the payload as docs/publishers/sqs.md tells a consumer to."""
    encoding = texts(message).get("outbox-payload-encoding")
    if encoding == "empty":
        return b""
    body = message["Body"]
    return base64.b64decode(body) if encoding == "base64" else body.encode()


def ours(event):
    """Return the headers that we add."""
    return {
        "outbox-event-id": event.event_id,
        "outbox-event-type": event.event_type,
        "outbox-lifecycle": str(event.lifecycle),
    }


def test_plain_headers_are_attributes(new_sqs_queue, open_sqs, new_event, publish, taken):
    """Up to seven headers that SQS can carry are attributes of their own."""
    queue = new_sqs_queue()
    given = {f"h.{number}": f"ß→🚀 {number}" for number in range(6)} | {"x" * 256: "long"}
    event = new_event(queue, headers=given)
    publish(open_sqs(), [event])
    [message] = taken(queue)
    assert given | ours(event) == texts(message)


def test_other_headers_are_one_attribute(new_sqs_queue, open_sqs, new_event, publish, taken):
    """What SQS has no form for, or no room, comes as JSON in one attribute, nothing lost: unicode
    names, empty, missing and many values, forbidden characters and names.
    """
    queue, one = new_sqs_queue(), open_sqs()
    cases = [
        {"grün": "ß"},
        {"empty": ""},
        {"none": None},
        {"nul": "a\0b\ufffe"},
        {"aws.name": "x"},
        {"Amazon.name": "x"},
        {".dot": "x"},
        {"a..b": "x"},
        {"y" * 257: "x"},
        {"": "no name"},
        {"outbox-headers": "mine"},
        {"outbox-payload-encoding": "mine"},
        {f"h{number}": str(number) for number in range(8)},
        {f"h{number}": str(number) for number in range(500)},
    ]
    for headers in cases:
        event = new_event(queue, headers=headers)
        assert [Delivered] == [type(result) for result in publish(one, [event])]
        [message] = taken(queue)
        assert headers | ours(event) == headers_of(message)
        assert {"outbox-headers"} == set(texts(message))
        assert is_allowed(texts(message)["outbox-headers"])


def test_payload_arrives_byte_for_byte(new_sqs_queue, open_sqs, new_event, publish, taken):
    """Text that SQS allows is the body; every other payload can be had back byte for byte, also
    with as many headers as there are attributes.
    """
    queue, one = new_sqs_queue(), open_sqs()
    allowed = ['{"a":"ß🚀"}', " \t\r\n", "\ufffd\ud7ff\ue000\U0010ffff", "aGk=", "-"]
    binary = [bytes(range(256)), b"", b"\0", "\ufffe".encode(), b"\x7f\x01", b"\xff" * 500_000]
    seven = {f"h{number}": "x" for number in range(7)}
    for headers in (None, seven):
        for payload in [*(text.encode() for text in allowed), *binary]:
            event = new_event(queue, payload=payload, headers=headers)
            assert [Delivered] == [type(result) for result in publish(one, [event])]
            [message] = taken(queue)
            assert payload == payload_of(message)
            assert message["Body"]
            assert is_allowed(message["Body"])
            assert (headers or {}) | ours(event) == headers_of(message)
            if payload.decode(errors="replace") in allowed:
                assert payload.decode() == message["Body"]


def test_a_text_without_utf_8(new_sqs_queue, open_sqs, new_event, publish, taken):
    """A header that is no Unicode still arrives, as JSON writes it."""
    queue = new_sqs_queue()
    event = new_event(queue, headers={"\ud800": "x"})
    publish(open_sqs(), [event])
    [message] = taken(queue)
    assert {"\ud800": "x"} | ours(event) == headers_of(message)


def test_fifo_group_and_deduplication(new_sqs_queue, open_sqs, new_event, publish, taken):
    """In a FIFO queue the group is the key, or the delivery where there is none; ids that SQS
    does not take are hashed.
    """
    queue = new_sqs_queue(fifo=True)
    keys = ["k", None, "", "ü", "a b", "x" * 128, "x" * 129, string.punctuation]
    events = [new_event(queue, key, lifecycle=number) for number, key in enumerate(keys)]
    events.append(new_event(queue, "long", event_id="ß" * 200))
    results = publish(open_sqs(), events)
    assert {Delivered} == {type(result) for result in results}
    assert all(result.receipt["sequence_number"] for result in results)
    found = {
        message["Attributes"]["MessageDeduplicationId"]: message["Attributes"]["MessageGroupId"]
        for message in taken(queue)
    }
    expected = {
        fifo_id(event.delivery_id): fifo_id(event.delivery_id if event.key is None else event.key)
        for event in events
    }
    assert expected == found
    assert found[events[1].delivery_id] == events[1].delivery_id
    assert found[events[5].delivery_id] == "x" * 128
    assert found[events[7].delivery_id] == string.punctuation
    assert found[events[3].delivery_id].startswith("sha256:")
    assert len(set(found.values())) == len(events)


def test_a_replay_is_received_and_a_retry_swallowed(
    new_sqs_queue, open_sqs, new_event, publish, taken
):
    """Within the window of a FIFO queue a retry is not received again, a replay is."""
    queue, one = new_sqs_queue(fifo=True), open_sqs()
    for lifecycle in (0, 0, 1, 1):
        event = new_event(queue, "k", event_id="e1", lifecycle=lifecycle)
        assert {Delivered} == {type(result) for result in publish(one, [event])}
    found = [headers_of(message)["outbox-lifecycle"] for message in taken(queue)]
    assert found == ["0", "1"]


def test_order_of_a_key_over_calls(new_sqs_queue, open_sqs, new_event, publish, taken):
    """Events of a key that come in one call each are received in that order."""
    queue, one = new_sqs_queue(fifo=True), open_sqs()
    for number in range(30):
        publish(one, [new_event(queue, key, payload=str(number).encode()) for key in "abc"])
    by_key: dict[str, list[int]] = {}
    for message in taken(queue):
        by_key.setdefault(message["Attributes"]["MessageGroupId"], []).append(int(message["Body"]))
    assert {key: list(range(30)) for key in "abc"} == by_key


def test_requests_of_ten_and_a_mebibyte(front, new_sqs_queue, open_sqs, new_event, publish, taken):
    """A request has at most ten messages, and with them at most 1 MiB; a larger message is
    rejected with the sizes and its neighbours are delivered.
    """
    queue = new_sqs_queue()
    sizes = [10] * 25 + [400_000] * 5 + [1_048_576] + [10] * 3
    events = [new_event(queue, payload=b"x" * size) for size in sizes]
    results = publish(open_sqs(endpoint_url=front.url), events)
    kinds = [type(result) for result in results]
    assert kinds == [Rejected if size > 1_000_000 else Delivered for size in sizes]
    assert "max_message_bytes is 1048576" in results[30].error
    for request in front.requests:
        bodies = [len(entry["MessageBody"]) for entry in request["Entries"]]
        assert len(bodies) <= 10
        assert sum(bodies) < 1_048_576
    assert len(taken(queue)) == 33


@pytest.mark.rest
def test_many_events_of_many_queues(new_sqs_queue, open_sqs, new_event, publish, sqs_client):
    """2,500 events of 50 queues, far more than one request takes, are delivered once."""
    queues = [new_sqs_queue() for _ in range(50)]
    events = [new_event(queues[number % 50]) for number in range(2_500)]
    results = publish(open_sqs(), events, seconds=60)
    assert {type(result) for result in results} == {Delivered}
    assert len({result.receipt["message_id"] for result in results}) == 2_500
    for queue in queues:
        url = sqs_client.get_queue_url(QueueName=queue)["QueueUrl"]
        found = sqs_client.get_queue_attributes(
            QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"]
        )
        assert found["Attributes"]["ApproximateNumberOfMessages"] == "50"
        sqs_client.delete_queue(QueueUrl=url)


@pytest.mark.parametrize("mode", SqsPublisher.cloudevents.modes)
@pytest.mark.parametrize("fifo", [False, True])
def test_a_cloudevent_arrives_as_one(
    new_sqs_queue, open_sqs, new_event, publish, taken, mode, fifo
):
    """What the relay makes of an event is read by the official SDK from the body."""
    queue = new_sqs_queue(fifo=fifo)
    event = new_event(queue, **FIELDS)
    publish(open_sqs(), [as_cloudevent(event, SqsPublisher, mode)])
    [message] = taken(queue)
    headers = headers_of(message)
    assert headers["tenant"] == "x"
    check_cloudevent(read_structured(headers["content-type"], payload_of(message)), event)
