"""What arrives in NATS, byte for byte and in order."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from tests.publishers.cloudevent import FIELDS, as_cloudevent, check_cloudevent

from delta_outbox.publishers import Delivered, NotSent, Rejected
from delta_outbox.publishers.nats.publisher import NatsPublisher
from delta_outbox.publishers.registry import find_publisher


def test_the_type_of_the_settings_finds_it():
    """`type = "nats"` is this publisher."""
    assert find_publisher("nats", destination="default") is NatsPublisher


def test_payload_and_key_arrive_as_they_are(
    running_nats, new_stream, open_nats, new_event, publish
):
    """Every byte arrives, also NUL, line breaks and what is no text, and so do key and id."""
    stream = new_stream()
    payloads = [b"", bytes(range(256)), b"\r\nPUB other 1\r\nx\r\n", b"x" * 1_000_000]
    events = [new_event(f"{stream}.a", "Zürich 😀", payload=payload) for payload in payloads]
    results = publish(open_nats(), events)
    messages = running_nats.read(stream)
    assert payloads == [message.data for message in messages]
    assert {"Zürich 😀"} == {message.headers["outbox-key"] for message in messages}
    assert [event.event_id for event in events] == [m.headers["Nats-Msg-Id"] for m in messages]
    assert [{"stream": stream, "seq": n + 1, "duplicate": False} for n in range(4)] == [
        json.loads(result.receipt) for result in results
    ]


def test_headers_survive_a_round_trip(running_nats, new_stream, open_nats, new_event, publish):
    """Unicode, empty and many values arrive; those without a value are listed in a header."""
    stream = new_stream()
    headers = {"u": "wärt 😀 a: b", "empty": "", "none": None, "Case-Kept_~": "x", "nil": None}
    headers |= {f"n{number}": str(number) for number in range(300)}
    event = new_event(f"{stream}.a", headers=headers)
    assert [Delivered] == [type(result) for result in publish(open_nats(), [event])]
    [message] = running_nats.read(stream)
    read = dict(message.headers)
    assert read.pop("Nats-Msg-Id") == event.delivery_id
    read |= dict.fromkeys(read.pop("outbox-null-headers").split(" "))
    assert event.transport_headers() == read


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"a b": "1"}, "the header name 'a b' is not made of ASCII letters"),
        ({"ü": "1"}, "the header name 'ü' is not made of ASCII letters"),
        ({"": "1"}, "the header name '' is not made of ASCII letters"),
        ({"a:b": "1"}, "the header name 'a:b' is not made of"),
        ({"h": "1\r\nx: y"}, "the header 'h' holds CR, LF or NUL, or is not UTF-8"),
        ({"h": "1\n2"}, "the header 'h' holds CR, LF or NUL, or is not UTF-8"),
        ({"h": " 1"}, "the header 'h' begins or ends with a space"),
        ({"h": "1\u2003"}, "the header 'h' begins or ends with a space"),
        ({"h": "\ud800"}, "the header 'h' holds CR, LF or NUL, or is not UTF-8"),
        ({"Nats-Rollup": "all"}, "the header 'Nats-Rollup' would be an order to the server"),
        ({"nats-msg-id": "x"}, "the header 'nats-msg-id' would be an order to the server"),
        ({"outbox-null-headers": "x"}, "the header name 'outbox-null-headers' is ours"),
    ],
)
def test_headers_that_do_not_fit_are_rejected(
    running_nats, new_stream, open_nats, new_event, publish, headers, said
):
    """What a line of the protocol cannot hold as it is, is rejected; its neighbours are sent."""
    stream = new_stream(allow_rollup_hdrs=True)
    events = [new_event(f"{stream}.a"), new_event(f"{stream}.a", headers=headers)]
    results = publish(open_nats(), [*events, new_event(f"{stream}.a")])
    assert [Delivered, Rejected, Delivered] == [type(result) for result in results]
    assert said in results[1].error
    assert len(running_nats.read(stream)) == 2


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ("", "a part of it is empty"),
        ("a..b", "a part of it is empty"),
        (".a", "a part of it is empty"),
        ("a.", "a part of it is empty"),
        ("a.*", "it has a wildcard"),
        (">", "it has a wildcard"),
        ("a b", "it has a space"),
        ("a\r\nPUB b 0", "it has a space"),
        ("x" * 2049, "it has more than 2048 bytes"),
        ("\ud800", "cannot be printed"),
        ("$JS.API.STREAM.PURGE.s0", "is not on the allow-list `subjects`"),
        ("_INBOX.x", "is not on the allow-list `subjects`"),
        ("other", "is not on the allow-list `subjects`"),
    ],
)
def test_routes_that_are_no_subject_are_rejected(open_nats, new_event, publish, route, said):
    """A route that is no subject, internal or not on the list is rejected, not sent."""
    [result] = publish(open_nats(subjects=["[!o]*"]), [new_event(route)])
    assert isinstance(result, Rejected)
    assert said in result.error


def test_a_message_above_the_limits_is_rejected(
    running_nats, new_stream, open_nats, new_event, publish
):
    """The server ends a connection for a message that is too large: it is rejected before that.

    Headers count. A limit of the stream is the stream's answer, and rejects the event too.
    """
    wide, narrow = new_stream(), new_stream(max_msg_size=1000)
    events = [
        new_event(f"{wide}.a", payload=b"x" * 1024 * 1024),
        new_event(f"{wide}.a", "k", headers={"h": "x" * 600_000}, payload=b"x" * 600_000),
        new_event(f"{wide}.a", "k"),
        new_event(f"{narrow}.a", payload=b"x" * 1000),
        new_event(f"{narrow}.a", payload=b"x"),
    ]
    results = publish(open_nats(), events)
    assert [Rejected, Rejected, NotSent, Rejected, Delivered] == [type(one) for one in results]
    assert "the server's max_payload is 1048576" in results[0].error
    assert "message size exceeds maximum allowed (10054)" in results[3].error
    assert len(running_nats.read(wide)) == 0


def test_a_message_of_exactly_the_limit_is_sent(
    running_nats, new_stream, open_nats, new_event, publish
):
    """Our count of the bytes is the server's."""
    stream = new_stream()
    one = open_nats()
    [refused] = publish(one, [new_event(f"{stream}.a", event_id="e1", payload=b"x" * 2**20)])
    beyond = int(refused.error.split(" bytes")[0].rsplit(" ", 1)[1]) - 2**20
    sizes = [2**20 - beyond, 2**20 - beyond + 1]
    events = [
        new_event(f"{stream}.a", event_id=f"e{number}", payload=b"x" * size)
        for number, size in enumerate(sizes, start=2)
    ]
    assert [Delivered, Rejected] == [type(result) for result in publish(one, events)]


def test_a_retry_is_swallowed_and_a_replay_is_not(
    running_nats, new_stream, open_nats, new_event, publish
):
    """Within the stream's window a retry is stored once; a replay is another delivery."""
    stream = new_stream(duplicate_window=60)
    one = open_nats()
    receipts = []
    for lifecycle, attempt in ((0, 1), (0, 2), (1, 1), (1, 2)):
        event = new_event(f"{stream}.a", event_id="e", lifecycle=lifecycle, attempt=attempt)
        [result] = publish(one, [event])
        receipts.append(json.loads(result.receipt))
    assert [(1, False), (1, True), (2, False), (2, True)] == [
        (receipt["seq"], receipt["duplicate"]) for receipt in receipts
    ]
    messages = running_nats.read(stream)
    assert ["e", "e:1"] == [message.headers["Nats-Msg-Id"] for message in messages]
    assert ["0", "1"] == [message.headers["outbox-lifecycle"] for message in messages]


def test_a_large_batch_keeps_the_order_of_keys(
    running_nats, new_stream, open_nats, new_event, publish
):
    """10,000 events, some of a hot key and some without, arrive once and in order."""
    stream = new_stream()
    events = [
        new_event(
            f"{stream}.{n % 3}",
            None if n % 7 == 0 else f"k{n % 50 if n % 4 else 0}",
            payload=b"%d" % n,
        )
        for n in range(10_000)
    ]
    results = publish(open_nats(), events)
    assert {Delivered} == {type(result) for result in results}
    by_key = defaultdict(list)
    for message in running_nats.read(stream):
        by_key[message.headers.get("outbox-key")].append(int(message.data))
    assert list(range(10_000)) == sorted(n for numbers in by_key.values() for n in numbers)
    assert all(by_key[key] == sorted(by_key[key]) for key in by_key if key is not None)


def test_core_reaches_who_listens(running_nats, open_nats, new_event, publish):
    """Mode core: the server has processed all, in order, and whoever listened has got them."""

    async def listen(client, _):
        subscription = await client.subscribe("core.>")
        await client.flush()
        results = await asyncio.to_thread(publish, one, [*events, new_event("nobody.listens")])
        return results, [await subscription.next_msg(timeout=5) for _ in events]

    events = [
        new_event(f"core.{n % 2}", f"k{n % 40}", payload=b"%d" % n, headers={"none": None})
        for n in range(3000)
    ]
    one = open_nats(mode="core")
    results, messages = running_nats.ask(listen)
    assert {Delivered} == {type(result) for result in results}
    assert json.loads(results[-1].receipt) == {"subject": "nobody.listens"}
    by_key = defaultdict(list)
    for message in messages:
        assert message.headers["outbox-null-headers"] == "none"
        by_key[message.headers["outbox-key"]].append(int(message.data))
    assert all(numbers == sorted(numbers) for numbers in by_key.values())
    assert sum(map(len, by_key.values())) == 3000


@pytest.mark.parametrize("mode", NatsPublisher.cloudevents.modes)
def test_a_cloudevent_arrives_as_one(running_nats, new_stream, open_nats, new_event, publish, mode):
    """What the relay makes of an event is read by the official SDK from the message: the binding
    writes attributes as that of HTTP does.
    """
    stream = new_stream()
    event = new_event(f"{stream}.a", **FIELDS)
    publish(open_nats(), [as_cloudevent(event, NatsPublisher, mode)])
    [message] = running_nats.read(stream)
    assert "x" == message.headers["tenant"]
    arrived = HTTPMessage(headers=dict(message.headers), body=message.data)
    check_cloudevent(from_http_event(arrived), event)
