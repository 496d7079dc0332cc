"""What arrives at RabbitMQ is what was appended."""

from __future__ import annotations

import random

import pytest
from cloudevents.core.bindings.amqp import AMQPMessage, from_amqp_event
from tests.publishers.cloudevent import FIELDS, as_cloudevent, check_cloudevent

from delta_outbox.publishers import Delivered, Failed, NotSent, Rejected
from delta_outbox.publishers.rabbitmq.publisher import RabbitPublisher


def test_headers_arrive_unchanged(new_queue, open_rabbit, new_event, publish, received):
    """Unicode, empty, missing and many header values arrive as given, ours beside them."""
    queue = new_queue()
    given = {"grün": "ß→🚀", "empty": "", "none": None, "nul": "a\0b", "lines": "a\r\nb: c\n"}
    given |= {f"h{number}": str(number) for number in range(200)} | {"": "no name", "x" * 255: "y"}
    event = new_event(queue, headers=given, lifecycle=2)
    assert publish(open_rabbit(), [event]) == [Delivered()]
    [(properties, _)] = received(queue)
    ours = {"outbox-event-id": event.event_id, "outbox-event-type": "flight.departed"}
    assert given | ours | {"outbox-lifecycle": "2"} == properties.headers


def test_properties_of_a_message(new_queue, open_rabbit, new_event, publish, received):
    """A message is persistent and has id of the delivery, type, time of creation and content type
    of the settings.
    """
    queue = new_queue()
    event = new_event(queue, lifecycle=1, headers={"outbox-event-id": "theirs"})
    publish(open_rabbit(content_type="application/json"), [event])
    [(properties, _)] = received(queue)
    assert properties.delivery_mode == 2
    assert properties.message_id == f"{event.event_id}:1"
    assert properties.type == "flight.departed"
    assert properties.timestamp == int(event.created_at.timestamp())
    assert properties.content_type == "application/json"
    assert properties.headers["outbox-event-id"] == "theirs"


def test_a_key_is_a_header(new_queue, open_rabbit, new_event, publish, received):
    """The key, in any text, is a header of ours, unless the producer has one of that name; no key
    is no header.
    """
    queue = new_queue()
    events = [new_event(queue, key) for key in ("Zürich\r\n😀", "", None)]
    events.append(new_event(queue, "k", headers={"outbox-key": "theirs"}))
    publish(open_rabbit(), events)
    found = {p.message_id: p.headers.get("outbox-key") for p, _ in received(queue)}
    expected = ["Zürich\r\n😀", "", None, "theirs"]
    assert dict(zip((event.event_id for event in events), expected, strict=True)) == found


def test_payload_arrives_byte_for_byte(new_queue, open_rabbit, new_event, publish, received):
    """Every byte value, the empty payload and 900 KiB in many frames arrive as they are."""
    queue = new_queue()
    payloads = [bytes(range(256)), b"", b"\xff\x00\xfe" * 307_200]
    publish(open_rabbit(), [new_event(queue, "k", payload=payload) for payload in payloads])
    assert payloads == [body for _, body in received(queue)]


def test_what_has_no_form_is_rejected(new_queue, open_rabbit, new_event, publish, received):
    """What AMQP cannot carry is rejected with the reason, neighbours are delivered."""
    queue = new_queue()
    bad = [
        (new_event(queue, headers={"ü" * 128: "x"}), "256 bytes"),
        (new_event(queue, headers={"CC": "elsewhere"}), "as routing"),
        (new_event(queue, headers={"BCC": None}), "as routing"),
        (new_event(queue, headers={"big": "x" * 131_072}), "a frame"),
        (new_event(queue, headers={"\ud800": "x"}), "UTF-8"),
        (new_event(queue, event_id="i" * 256), "event id"),
        (new_event(queue, event_type="t" * 256), "event type"),
        (new_event("r" * 256), "route"),
    ]
    good = [new_event(queue) for _ in bad]
    events = [one for pair in zip(good, (event for event, _ in bad), strict=True) for one in pair]
    results = publish(open_rabbit(), events)
    assert [type(result) for result in results] == [Delivered, Rejected] * len(bad)
    for result, (_, reason) in zip(results[1::2], bad, strict=True):
        assert reason in result.error
    assert len(received(queue)) == len(good)


def test_headers_up_to_a_frame(new_queue, open_rabbit, new_event, publish, received):
    """Headers of almost a whole frame arrive; the sentence about more than that is true."""
    queue = new_queue()
    one = open_rabbit()
    fits = new_event(queue, headers={"big": "x" * 130_500})
    results = publish(one, [fits, new_event(queue, headers={"big": "x" * 131_000})])
    assert [type(result) for result in results] == [Delivered, Rejected]
    assert publish(one, [new_event(queue)]) == [Delivered()]
    assert len(received(queue)) == 2


def test_order_of_every_key_is_kept(new_queue, open_rabbit, new_event, publish, received):
    """10,000 events of 300 keys arrive once each and in order within their key."""
    queue = new_queue()
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    keys = [f"key-{chance.randrange(300)}" for _ in range(10_000)]
    events = [new_event(queue, key, payload=str(n).encode()) for n, key in enumerate(keys)]
    results = publish(open_rabbit(), events)
    assert {type(result) for result in results} == {Delivered}, f"seed {seed}"
    numbers = [int(body) for _, body in received(queue)]
    assert sorted(numbers) == list(range(10_000))
    for key in set(keys):
        mine = [number for number in numbers if keys[number] == key]
        assert mine == sorted(mine), f"seed {seed}"


@pytest.mark.rest
def test_ten_thousand_events(new_queue, open_rabbit, new_event, publish, received):
    """10,000 events without a key are confirmed, many at once."""
    queue = new_queue()
    results = publish(open_rabbit(), [new_event(queue) for _ in range(10_000)], seconds=60)
    assert {type(result) for result in results} == {Delivered}
    assert len(received(queue)) == 10_000


def test_a_failure_holds_its_key(new_queue, open_rabbit, new_event, publish, received):
    """After an event failed, later ones of its key are not sent, whatever their route; others
    are.
    """
    queue = new_queue()
    events = [new_event(queue, "k"), new_event("nowhere", "k"), new_event(queue, "k")]
    events += [new_event(queue, "other"), new_event(queue)]
    results = publish(open_rabbit(), events)
    expected = [Delivered, Failed, NotSent, Delivered, Delivered]
    assert [type(result) for result in results] == expected
    assert len(received(queue)) == 3


@pytest.mark.parametrize(
    ("headers", "content_type", "left"),
    [
        ({"Content-Type": "text/csv"}, "text/csv", {}),
        ({"content-type": None}, "application/avro", {"content-type": None}),
        ({"content-type": ""}, "application/avro", {"content-type": ""}),
        ({"content-type": "a/b", "Content-Type": "c/d"}, "application/avro", None),
        ({"content-types": "a/b"}, "application/avro", None),
    ],
)
def test_a_producer_names_its_content_type(
    new_queue, open_rabbit, new_event, publish, received, headers, content_type, left
):
    """The producer's content type becomes the property and wins over the setting; what is none, or
    is not one, stays among the headers.
    """
    queue = new_queue()
    publish(open_rabbit(content_type="application/avro"), [new_event(queue, headers=headers)])
    [(properties, _)] = received(queue)
    assert content_type == properties.content_type
    given = {name: v for name, v in properties.headers.items() if not name.startswith("outbox-")}
    assert (headers if left is None else left) == given


@pytest.mark.parametrize("mode", RabbitPublisher.cloudevents.modes)
def test_a_cloudevent_arrives_as_one(new_queue, open_rabbit, new_event, publish, received, mode):
    """What the relay makes of an event is read by the official SDK from the message."""
    queue = new_queue()
    event = new_event(queue, **FIELDS)
    publish(open_rabbit(), [as_cloudevent(event, RabbitPublisher, mode)])
    [(properties, body)] = received(queue)
    assert "x" == properties.headers["tenant"]
    arrived = AMQPMessage(
        properties={"content-type": properties.content_type},
        application_properties=properties.headers,
        application_data=body,
    )
    check_cloudevent(from_amqp_event(arrived), event)
