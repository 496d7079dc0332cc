"""What arrives in Redis, byte for byte and in order."""

from __future__ import annotations

import base64
import json
from collections import defaultdict

import pytest
from tests.publishers.cloudevent import (
    FIELDS,
    as_cloudevent,
    check_cloudevent,
    read_structured,
)

from delta_outbox.publishers import Delivered, NotSent, Rejected
from delta_outbox.publishers.redis.publisher import RedisPublisher
from delta_outbox.publishers.registry import find_publisher

OURS = {b"outbox-event-type": b"flight.departed", b"outbox-lifecycle": b"0"}


@pytest.fixture
def client(running_redis):
    """Ask the server through a client that is not the publisher's."""
    with running_redis.client() as one:
        yield one


def test_the_type_of_the_settings_finds_it():
    """`type = "redis"` is this publisher."""
    assert find_publisher("redis", destination="default") is RedisPublisher


def test_payload_and_key_arrive_as_they_are(client, open_redis, new_event, publish):
    """Every byte arrives, also NUL, line breaks and what is no text, and so do key and id."""
    payloads = [b"", bytes(range(256)), b"\r\n*1\r\n$8\r\nFLUSHALL\r\n", b"x" * 3_000_000]
    events = [new_event("s", "Zürich\n", payload=payload) for payload in payloads]
    results = publish(open_redis(), events)
    entries = client.xrange("s")
    assert payloads == [fields[b"payload"] for _, fields in entries]
    assert {"Zürich\n".encode()} == {fields[b"key"] for _, fields in entries}
    assert [event.event_id.encode() for event in events] == [f[b"id"] for _, f in entries]
    assert [
        json.dumps({"stream": "s", "id": entry.decode()}, separators=(",", ":"))
        for entry, _ in entries
    ] == [result.receipt for result in results]


def test_headers_survive_a_round_trip(client, open_redis, new_event, publish):
    """Any name and value arrives in a field of its own; without a value is not the empty value."""
    headers = {"ünï 😀": "wärt 😀", "": "no name", "empty": "", "null": None, "a:b\r\n": "\0\n"}
    headers |= {"null-header:x": "1", "header:x": None, **{f"n{n}": str(n) for n in range(300)}}
    event = new_event("s", headers=headers)
    publish(open_redis(), [event])
    [(_, fields)] = client.xrange("s")
    read = {}
    for name, value in fields.items():
        if name.startswith(b"header:"):
            read[name.removeprefix(b"header:").decode()] = value.decode()
        elif name.startswith(b"null-header:"):
            read[name.removeprefix(b"null-header:").decode()] = None
    assert event.transport_headers() == read
    assert b"key" not in fields


def test_a_header_of_our_name_wins(client, open_redis, new_event, publish):
    """A producer's header of a name of ours leaves as it is, and ours is left out."""
    publish(open_redis(), [new_event("s", headers={"outbox-lifecycle": "mine"})])
    [(_, fields)] = client.xrange("s")
    assert fields[b"header:outbox-lifecycle"] == b"mine"


def test_a_text_without_utf8_is_rejected(client, open_redis, new_event, publish):
    """Half a surrogate pair has no bytes: the event is rejected, its neighbours are sent."""
    events = [new_event("s", headers={"h": "\ud800"}), new_event("s", "\ud800"), new_event("s")]
    results = publish(open_redis(), events)
    assert [Rejected, Rejected, Delivered] == [type(result) for result in results]
    assert client.xlen("s") == 1


def test_a_value_above_the_limit_is_rejected(client, open_redis, new_event, publish):
    """What the server would end the connection for is rejected before it, and holds its key."""
    one = open_redis(max_value_bytes=1000)
    events = [new_event("s", "k", payload=b"x" * size) for size in (1000, 1001, 1)]
    results = publish(one, [*events, new_event("s", payload=b"x")])
    assert [Delivered, Rejected, NotSent, Delivered] == [type(result) for result in results]
    assert results[1].error.startswith("a value of 1001 bytes is too large")
    assert client.xlen("s") == 2


def test_routes_outside_the_allow_list_are_rejected(client, open_redis, new_event, publish):
    """A stream that is not on the list is not made by a misspelt route."""
    results = publish(open_redis(streams=["a.*"]), [new_event(r) for r in ("a.b", "b", "")])
    assert [Delivered, Rejected, Rejected] == [type(result) for result in results]
    assert client.keys() == [b"a.b"]


def test_a_stream_keeps_about_its_maximum(client, open_redis, new_event, publish):
    """With `max_length` the oldest entries go, the newest never."""
    events = [new_event("s", payload=b"%d" % number) for number in range(3000)]
    publish(open_redis(max_length=500), events)
    kept = [int(fields[b"payload"]) for _, fields in client.xrange("s")]
    assert list(range(3000 - len(kept), 3000)) == kept
    assert 500 <= len(kept) < 800


def test_a_large_batch_keeps_the_order_of_keys(client, open_redis, new_event, publish):
    """10,000 events, some of a hot key and some without, arrive once and in order."""
    events = [
        new_event("s", None if n % 7 == 0 else f"k{n % 50 if n % 2 else 0}", payload=b"%d" % n)
        for n in range(10_000)
    ]
    results = publish(open_redis(), events)
    assert {Delivered} == {type(result) for result in results}
    by_key = defaultdict(list)
    for _, fields in client.xrange("s"):
        by_key[fields.get(b"key")].append(int(fields[b"payload"]))
    assert list(range(10_000)) == sorted(
        number for numbers in by_key.values() for number in numbers
    )
    assert all(by_key[key] == sorted(by_key[key]) for key in by_key if key is not None)


def test_a_key_that_goes_to_two_streams_keeps_its_order(client, open_redis, new_event, publish):
    """What a key's predecessor in another stream did not reach is not sent either."""
    client.set("b", "no stream")
    routes = ["a", "a", "b", "a", "a"]
    results = publish(open_redis(), [new_event(route, "k") for route in routes])
    assert ["Delivered", "Delivered", "Failed", "NotSent", "NotSent"] == [
        type(result).__name__ for result in results
    ]
    assert client.xlen("a") == 2


def test_a_key_that_only_places_does_not_order(client, open_redis, new_event, publish):
    """An event whose key is no ordering key waits for nobody."""
    events = [new_event("s", "k", ordering_key=None, payload=b"x" * size) for size in (9, 1)]
    results = publish(open_redis(max_value_bytes=30), [events[0], *events[1:]])
    results += publish(open_redis(max_value_bytes=5), events)
    assert [Delivered, Delivered] == [type(result) for result in results[:2]]
    assert Rejected is type(results[2])


def test_a_channel_gets_one_json_text(running_redis, client, open_redis, new_event, publish):
    """Mode pubsub sends all that an event has as JSON, and says how many received it."""
    with client.pubsub() as listener:
        listener.subscribe("c")
        assert listener.get_message(timeout=5)["type"] == "subscribe"
        events = [
            new_event("c", "k", payload="ä\n".encode(), headers={"null": None, "ü": ""}),
            new_event("c", "k", payload=b"\xff\0", lifecycle=2),
        ]
        results = publish(open_redis(mode="pubsub"), [*events, new_event("nobody")])
        messages = [json.loads(listener.get_message(timeout=5)["data"]) for _ in events]
    assert ["ä\n", None] == [message.get("payload") for message in messages]
    assert base64.b64decode(messages[1]["payload_base64"]) == b"\xff\0"
    for event, message in zip(events, messages, strict=True):
        assert event.transport_headers() == message["headers"]
        assert (event.delivery_id, event.event_id) == (message["id"], message["event_id"])
        assert (event.key, event.lifecycle) == (message["key"], message["lifecycle"])
        assert event.event_type == message["event_type"]
    assert [
        '{"channel":"c","receivers":1}',
        '{"channel":"c","receivers":1}',
        '{"channel":"nobody","receivers":0}',
    ] == [result.receipt for result in results]


@pytest.mark.parametrize("mode", RedisPublisher.cloudevents.modes)
def test_a_cloudevent_arrives_as_one(client, open_redis, new_event, publish, mode):
    """What the relay makes of an event is read by the official SDK from a stream and a channel."""
    event = new_event("s", **FIELDS)
    made = as_cloudevent(event, RedisPublisher, mode)
    publish(open_redis(), [made])
    [(_, fields)] = client.xrange("s")
    assert b"x" == fields[b"header:tenant"]
    content_type = fields[b"header:content-type"].decode()
    check_cloudevent(read_structured(content_type, fields[b"payload"]), event)
    with client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe("s")
        assert listener.get_message(timeout=10) is None
        publish(open_redis(mode="pubsub"), [made])
        heard = json.loads(listener.get_message(timeout=10)["data"])
    content_type = heard["headers"]["content-type"]
    check_cloudevent(read_structured(content_type, heard["payload"].encode()), event)
