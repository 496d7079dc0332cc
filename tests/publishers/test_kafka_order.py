"""Order per key, and what happens to a key after a failure."""

from __future__ import annotations

import os
import random
from collections import defaultdict

from delta_outbox.publishers import Delivered, NotSent, Rejected

TOO_LARGE = os.urandom(30_000)  # random, or compression would make it small enough


def _numbers_by_key(messages):
    found = defaultdict(list)
    for message in messages:
        found[message.key()].append(int(message.value()))
    return found


def test_order_of_every_key_is_kept(new_topic, publisher, new_event, publish, read):
    """20,000 events of 300 keys arrive once each and in order within their key."""
    topic = new_topic(partitions=4)
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    keys = [f"key-{chance.randrange(300)}" for _ in range(20_000)]
    events = [
        new_event(topic, key, payload=str(number).encode()) for number, key in enumerate(keys)
    ]
    results = publish(publisher(), events)
    assert {type(result) for result in results} == {Delivered}, f"seed {seed}"
    expected = defaultdict(list)
    for number, key in enumerate(keys):
        expected[key.encode()].append(number)
    assert _numbers_by_key(read(topic)) == expected, f"seed {seed}"


def test_a_key_over_two_topics_waits(new_topic, publisher, new_event, publish, read):
    """An event is sent to another topic only after its predecessor there is confirmed."""
    topics = [new_topic(partitions=1), new_topic(partitions=1)]
    events = [new_event(topics[number % 2], "k") for number in range(20)]
    publish(publisher(), events)
    times = [
        sorted((message.offset(), message.timestamp()[1]) for message in read(topic))
        for topic in topics
    ]
    in_order = [times[number % 2][number // 2][1] for number in range(20)]
    assert in_order == sorted(in_order)


def test_a_missing_topic_holds_its_key_everywhere(new_topic, publisher, new_event, publish, read):
    """After an event failed, later ones of its key are not sent, to any topic; others are."""
    topic = new_topic()
    events = [new_event(topic, "k"), new_event("test.missing", "k"), new_event(topic, "k")]
    events += [new_event(topic, "other"), new_event(topic)]
    results = publish(publisher(), events)
    kinds = [type(result).__name__ for result in results]
    assert kinds == ["Delivered", "Failed", "NotSent", "Delivered", "Delivered"]
    assert len(read(topic)) == 3


def test_a_message_too_large_for_the_client(new_topic, publisher, new_event, publish, read):
    """A message above message.max.bytes is rejected; neighbours are delivered, its key waits."""
    topic = new_topic(partitions=1)
    events = [new_event(topic, "k"), new_event(topic, "k", payload=b"x" * 1_100_000)]
    events += [new_event(topic, "k"), new_event(topic, "other")]
    results = publish(publisher(), events)
    assert [type(result) for result in results] == [Delivered, Rejected, NotSent, Delivered]
    assert "message.max.bytes is 1000000" in results[1].error
    assert len(read(topic)) == 2


def test_a_message_too_large_for_the_topic(new_topic, publisher, new_event, publish, read):
    """What the broker refuses as a batch is sorted out: guilty rejected, innocent delivered once.

    The guilty ones come first, when the broker has accepted nothing of this producer yet: a gap
    that the gapless producer alone does not prevent.
    """
    topic = new_topic(partitions=2, max_message_bytes="20000")
    events = [
        new_event(
            topic,
            f"k{number % 50}",
            payload=TOO_LARGE if number in (0, 7, 120) else str(number).encode(),
        )
        for number in range(300)
    ]
    results = publish(publisher(), events)
    expected: list[type] = []
    stopped = set()
    for number in range(300):
        if number in (0, 7, 120):
            expected.append(NotSent if number % 50 in stopped else Rejected)
            stopped.add(number % 50)
        else:
            expected.append(NotSent if number % 50 in stopped else Delivered)
    assert [type(result) for result in results] == expected
    delivered = [number for number in range(300) if expected[number] is Delivered]
    assert sorted(int(message.value()) for message in read(topic)) == delivered


def test_no_gap_behind_a_refused_batch(new_topic, publisher, new_event, publish, read):
    """When a batch in the middle of a key's pipeline is refused, nothing behind it is delivered."""
    topic = new_topic(partitions=1, max_message_bytes="20000")
    events = [
        new_event(topic, "k", payload=TOO_LARGE if number == 50 else str(number).encode())
        for number in range(200)
    ]
    one = publisher(batch_num_messages=1)
    results = publish(one, events)
    expected = [Delivered] * 50 + [Rejected] + [NotSent] * 149
    assert [type(result) for result in results] == expected
    assert [int(message.value()) for message in read(topic)] == list(range(50))


def test_no_gap_behind_the_first_event(new_topic, publisher, new_event, publish, read):
    """When the first event of a key is refused, nothing behind it is delivered.

    The broker takes any sequence number of a producer that it does not know yet: with a gapless
    producer alone one to four later events of the key arrive here.
    """
    topic = new_topic(partitions=1, max_message_bytes="20000")
    events = [new_event(topic, "k", payload=TOO_LARGE)] + [new_event(topic, "k")] * 49
    results = publish(publisher(batch_num_messages=1), events)
    assert [type(result) for result in results] == [Rejected] + [NotSent] * 49
    assert read(topic) == []


def test_a_compacted_topic_refuses_only_what_has_no_key(
    new_topic, publisher, new_event, publish, read
):
    """A record that the broker finds invalid is rejected, its neighbours in the batch are not."""
    topic = new_topic(partitions=1, cleanup_policy="compact")
    results = publish(publisher(), [new_event(topic, "a"), new_event(topic), new_event(topic, "b")])
    assert [type(result) for result in results] == [Delivered, Rejected, Delivered]
    assert [message.key() for message in read(topic)] == [b"a", b"b"]


def test_a_publisher_goes_on_after_a_refused_batch(new_topic, publisher, new_event, publish, read):
    """A refused batch ends the client's producer, not the publisher."""
    topic = new_topic(partitions=1, max_message_bytes="20000")
    one = publisher()
    publish(one, [new_event(topic, "k", payload=TOO_LARGE)])
    assert [type(result) for result in publish(one, [new_event(topic, "k")])] == [Delivered]
