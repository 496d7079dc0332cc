"""The protocol between relay and publishers."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from delta_outbox.lifecycle.results import to_json
from delta_outbox.publishers import (
    Delivered,
    Event,
    EventBatch,
    Failed,
    JsonText,
    NotSent,
    Rejected,
    Unknown,
)

EVENT = Event(
    event_id="e1",
    event_type="order.created",
    payload=b"\x00\xff",
    headers={"a": None},
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)
RESULTS = [
    Delivered(receipt=JsonText('{"offset":1}'), outcome="paid", outcome_data={"n": 1}),
    Failed(error="busy", retry_after=1.5),
    Rejected(error="too large"),
    Unknown(),
    NotSent(),
]


@pytest.mark.parametrize(
    ("key", "ordering_key", "ordered"),
    [
        ("k", "k", "k"),
        ("", "", ""),
        ("place", "k", None),
        ("place", None, None),
        (None, "k", None),
        (None, None, None),
    ],
)
def test_only_the_ordering_key_is_one_of_order(key, ordering_key, ordered):
    """A key that is not the ordering key merely places an event."""
    assert ordered == replace(EVENT, key=key, ordering_key=ordering_key).ordered_key


@pytest.mark.parametrize("thing", [EVENT, *RESULTS], ids=lambda thing: type(thing).__name__)
def test_everything_can_be_pickled(thing):
    """Events and results survive the way between processes."""
    assert pickle.loads(pickle.dumps(thing)) == thing


def test_a_batch_can_be_pickled():
    """A batch keeps its events and its deadline."""
    batch = pickle.loads(pickle.dumps(EventBatch([EVENT, EVENT], deadline=7.5)))
    assert list(batch) == [EVENT, EVENT]
    assert batch.deadline == 7.5


def test_a_batch_is_a_sequence():
    """A batch has a length, positions and slices that keep the deadline."""
    batch = EventBatch([EVENT] * 3, deadline=7.5)
    assert len(batch) == 3
    assert batch[-1] is EVENT
    assert isinstance(batch[1:], EventBatch)
    assert (len(batch[1:]), batch[1:].deadline) == (2, 7.5)


def test_remaining_seconds_never_go_below_zero():
    """A passed deadline leaves 0 seconds."""
    assert EventBatch([], deadline=time.monotonic() - 5).remaining_seconds() == 0.0
    assert 4 < EventBatch([], deadline=time.monotonic() + 5).remaining_seconds() <= 5


def test_delivery_id_tells_a_replay_from_a_retry():
    """The identity on the wire is the event's, with the lifecycle after a replay."""
    replayed = Event(
        event_id="e1", event_type="t", payload=b"", created_at=EVENT.created_at, lifecycle=2
    )
    assert (EVENT.delivery_id, replayed.delivery_id) == ("e1", "e1:2")


def test_transport_headers_leave_the_producers_alone():
    """Ours are added; a producer's header of one of our names wins."""
    event = Event(
        event_id="e1",
        event_type="t",
        payload=b"",
        created_at=EVENT.created_at,
        headers={"outbox-event-id": "theirs", "a": None},
    )
    expected = {
        "outbox-event-id": "theirs",
        "outbox-event-type": "t",
        "outbox-lifecycle": "0",
        "a": None,
    }
    assert event.transport_headers() == expected


@pytest.mark.parametrize("kind", [Failed, Rejected, Unknown])
def test_errors_are_printable_and_short(kind):
    """An error of a publisher never carries control characters or more than 500 characters."""
    error = kind(error="\x1b[31mred\n\u202etxt " + "x" * 900).error
    assert error.isprintable()
    assert len(error) == 500


@pytest.mark.parametrize(
    ("given", "kept"), [(-1, 0.0), (3, 3.0), (float("nan"), None), (float("inf"), None)]
)
def test_retry_after_is_a_number_of_seconds(given, kept):
    """A nonsensical wait asked for by a destination is put right, not raised."""
    assert Failed(error="busy", retry_after=given).retry_after == kept


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, None), (JsonText('{"b":1}'), '{"b":1}'), ({"b": 1, "a": "ü"}, '{"a":"ü","b":1}')],
)
def test_receipts_become_json_once(value, text):
    """A receipt is stored as JSON text; text that is JSON already is not quoted again."""
    assert to_json(value) == text
