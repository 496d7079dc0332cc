"""Checks of what an event is made of, and of what leaves with it."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime

from delta_outbox.testing.conformance.adapter import Record
from delta_outbox.testing.conformance.checks.life import (
    DUE,
    HEADERS,
    LIFE,
    METADATA,
    MISLEADING,
    PRIVATE,
    RETRIED,
    TRACE,
    Life,
    new_events,
)
from delta_outbox.testing.demands import holds, same

GIVEN = {event.event_id: event for event in new_events(datetime.now(UTC))}
_IMMUTABLE = ("event_type", "ordering_key", "partition_key", "payload", "headers", "created_at")
assert {field.name for field in fields(Record)} >= set(_IMMUTABLE)


def _stays(seen: Life, *names: str) -> None:
    for look in seen.looks:
        for name, record in look.items():
            for field in names:
                first = getattr(seen.appended[name], field)
                same(first, getattr(record, field), f"{field} of {name!r}")


@LIFE.check()
def the_required_fields_are_there(seen: Life) -> None:
    """Every look shows event_id, event_type, payload, state and created_at of every event."""
    for look in seen.looks:
        for name, record in look.items():
            for field in ("event_id", "event_type", "payload", "state", "created_at"):
                holds(getattr(record, field) is not None, f"{field} of {name!r} is not there")


@LIFE.check()
def event_id_never_changes(seen: Life) -> None:
    """The same ids are found in every look, and sent in every message."""
    for look in seen.looks:
        same(sorted(GIVEN), sorted(look), "the ids that are found")
    for name, message in {**seen.messages, **seen.retries}.items():
        same(seen.appended[name].event_id, message.event_id, f"event_id in the message {name!r}")


@LIFE.check()
def event_type_never_changes(seen: Life) -> None:
    """The event type is the producer's in every look."""
    for name, event in GIVEN.items():
        same(event.event_type, seen.appended[name].event_type, f"event_type of {name!r}")
    _stays(seen, "event_type")


@LIFE.check()
def event_type_is_the_same_whatever_the_destination(seen: Life) -> None:
    """A message carries the producer's event type, whatever key, headers and metadata say."""
    for name in DUE:
        sent = seen.messages[name].event_type
        same(GIVEN[name].event_type, sent, f"event_type of the message {name!r}")


@LIFE.check()
def payload_never_changes(seen: Life) -> None:
    """The payload is the producer's, byte by byte, in every look."""
    for name, event in GIVEN.items():
        same(event.payload, seen.appended[name].payload, f"payload of {name!r}")
    _stays(seen, "payload")


@LIFE.check()
def any_bytes_are_delivered_as_they_are(seen: Life) -> None:
    """Empty, every byte, JSON with its own spaces: a publisher gets the producer's bytes."""
    for name in DUE:
        same(GIVEN[name].payload, seen.messages[name].payload, f"payload sent of {name!r}")


@LIFE.check()
def created_at_is_set_once(seen: Life) -> None:
    """The field created_at is set by the append and never changes."""
    for name, record in seen.appended.items():
        holds(record.created_at is not None, f"created_at of {name!r} is not set")
    _stays(seen, "created_at")


@LIFE.check()
def immutable_fields_never_change(seen: Life) -> None:
    """Type, keys, payload, headers and created_at are the same in every look."""
    _stays(seen, *_IMMUTABLE)


@LIFE.check()
def a_new_event_is_pending_until_it_is_claimed(seen: Life) -> None:
    """Whatever its metadata say, an event begins PENDING, and only a relay moves it on."""
    for name, record in seen.appended.items():
        same("PENDING", record.state, f"state of {name!r} after its append")
    for look in seen.looks[:-1]:
        same("PENDING", look["scheduled"].state, "state of an event that no relay has touched")


@LIFE.check()
def the_key_reaches_the_publisher(seen: Life) -> None:
    """A publisher is given the partition key to route by, or the ordering key."""
    same("partition-1", seen.messages["delivered"].key, "the key of the message")
    same(
        seen.appended["json"].ordering_key,
        seen.messages["json"].key,
        "the key of the message of an ordered event",
    )


@LIFE.check()
def headers_are_sent_as_they_are(seen: Life) -> None:
    """A message carries each header of the producer unchanged, at every attempt."""
    for messages, name in ((seen.messages, "delivered"), (seen.retries, "failed")):
        sent = messages[name].headers
        for header, value in HEADERS.items():
            holds(header in sent, f"header {header!r} of {name!r} was not sent")
            same(value, sent[header], f"header {header!r} of {name!r}")


@LIFE.check()
def headers_may_be_empty(seen: Life) -> None:
    """An event with empty headers is sent like one without."""
    holds(not seen.appended["empty"].headers, "headers came out of nothing")
    same("PUBLISHED", seen.ended["empty"].state, "state of an event with empty headers")


@LIFE.check()
def trace_context_is_passed_through(seen: Life) -> None:
    """The producer's traceparent leaves in the headers as it came."""
    same(TRACE, seen.messages["delivered"].headers.get("traceparent"), "traceparent")


@LIFE.check()
def metadata_is_kept(seen: Life) -> None:
    """Metadata can be read as it was appended, in the end too; a trace context is in it."""
    for look in (seen.appended, seen.final):
        same(METADATA, dict(look["delivered"].metadata or {}), "metadata")


@LIFE.check()
def metadata_does_not_leave(seen: Life) -> None:
    """Nothing of the metadata is in a message."""
    message = seen.messages["delivered"]
    shown = f"{message.headers} {message.key} {message.event_type}"
    holds(PRIVATE not in shown and "note" not in message.headers, "metadata left in a message")
    left = set(seen.messages["twin"].headers) & set(MISLEADING)
    holds(not left, f"metadata left as headers: {sorted(left)}")


@LIFE.check()
def metadata_does_not_change_delivery(seen: Life) -> None:
    """Of two events that differ in metadata alone, everything happens to both alike."""
    for look in seen.looks:
        plain, twin = look["failed"], look["twin"]
        same(plain.state, twin.state, "state of the event with misleading metadata")
        same(plain.attempts, twin.attempts, "attempts of the event with misleading metadata")
    for found in (seen.eligible, seen.taken, seen.left, seen.again):
        same("failed" in found, "twin" in found, "whether misleading metadata let it be taken")
    same(seen.messages["failed"].key, seen.messages["twin"].key, "the key by which it is routed")
    same(seen.messages["failed"].event_type, seen.messages["twin"].event_type, "its event type")


@LIFE.check()
def every_attempt_carries_the_same_identity(seen: Life) -> None:
    """A consumer recognises a duplicate: the second message has the event_id of the first."""
    for name in RETRIED:
        holds(name in seen.retries, f"{name!r} was not sent again")
        same(
            seen.messages[name].event_id,
            seen.retries[name].event_id,
            f"event_id of the second message {name!r}",
        )
