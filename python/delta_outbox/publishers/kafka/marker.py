"""The record that every transaction writes of its own events, and the topic of such records.

It is the first of its transaction and is acknowledged before any event is sent. So whoever reads
the topic with uncommitted records after the deadline of a claim finds every transaction that may
still be under way, by its name; and once those have ended, the committed records are what was
delivered.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from delta_outbox.core.redaction import scrub
from delta_outbox.publishers.kafka.settings import KafkaSettings

DAY: Final = 86_400_000  # milliseconds
MAX_MARKER_BYTES: Final = 500_000  # brokers take a million unless told otherwise
_ENVELOPE: Final = 2_000  # bytes of a marker besides the ids


@dataclass(frozen=True, kw_only=True)
class Marker:
    """What was sent in one transaction.

    Args:
        claim_id: the claim; the key of the record.
        destination: by name.
        transactional_id: of the transaction.
        deliveries: the ids of its events.
    """

    claim_id: str
    destination: str
    transactional_id: str
    deliveries: Sequence[str]

    def value(self) -> bytes:
        """Return the value of its record."""
        return json.dumps(
            {
                "destination": self.destination,
                "transactional_id": self.transactional_id,
                "deliveries": list(self.deliveries),
            },
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode()

    @classmethod
    def parse(cls, key: bytes | None, value: bytes | None) -> Marker | None:
        """Read a record; None if it is not one of ours.

        Args:
            key: of the record.
            value: of the record.
        """
        try:
            found = json.loads(value or b"")
            marker = cls(
                claim_id=(key or b"").decode(),
                destination=found["destination"],
                transactional_id=found["transactional_id"],
                deliveries=found["deliveries"],
            )
        except (ValueError, TypeError, KeyError):
            return None
        texts = [marker.destination, marker.transactional_id]
        if isinstance(marker.deliveries, list) and all(
            isinstance(text, str) for text in [*texts, *marker.deliveries]
        ):
            return marker
        return None


def fitting(delivery_ids: Iterable[str], *, message_max_bytes: int) -> int:
    """Return how many ids, from the first on, one marker can hold; at least one.

    Args:
        delivery_ids: of events.
        message_max_bytes: what the client sends at most.
    """
    room = min(MAX_MARKER_BYTES, message_max_bytes) - _ENVELOPE
    count = 0
    for delivery_id in delivery_ids:
        room -= len(encode_basestring(delivery_id).encode()) + 1
        if room < 0 and count:
            return count
        count += 1
    return count


def check_marker_topic(settings: KafkaSettings, timeout: float) -> None:
    """Raise one sentence if the marker topic is not there, or may lose what it is to remember.

    Args:
        settings: of a destination that delivers exactly once.
        timeout: seconds to wait for each answer.

    Raises:
        ConnectionError: the topic is missing, has too few replicas, or forgets too soon.
    """
    exactly_once = settings.exactly_once
    assert exactly_once is not None
    topic, least = exactly_once.marker_topic, exactly_once.marker_replication
    admin = AdminClient({**settings.connection, "log_level": 0})
    try:
        found = admin.list_topics(topic, timeout=timeout).topics.get(topic)
        if found is None or found.error is not None or not found.partitions:
            raise ConnectionError(f"the marker topic {topic!r} does not exist: create it.")
        replicas = min(len(one.replicas) for one in found.partitions.values())
        if replicas < least:
            raise ConnectionError(
                f"the marker topic {topic!r} has {replicas} replicas and `marker_replication` is "
                f"{least}: add replicas, or lower the setting."
            )
        complaint = _complaint(topic_configuration(admin, topic, timeout), least)
    except TimeoutError:
        raise ConnectionError(f"no broker of {settings.bootstrap} answered in time.") from None
    except KafkaException as error:
        message = scrub(error.args[0].str(), secrets=settings.secrets)
        raise ConnectionError(f"the marker topic {topic!r} cannot be examined: {message}") from None
    if complaint is not None:
        raise ConnectionError(f"the marker topic {topic!r} {complaint}")


def topic_configuration(admin: AdminClient, topic: str, timeout: float) -> Mapping[str, str]:
    """Return the settings of a topic.

    Args:
        admin: asks.
        topic: its name.
        timeout: seconds to wait.

    Raises:
        KafkaException: no answer, or none for us.
    """
    resource = ConfigResource(ResourceType.TOPIC, topic)
    answer = admin.describe_configs([resource], request_timeout=timeout)[resource]
    found: Mapping[str, ConfigEntry] = answer.result(timeout)
    return {name: entry.value or "" for name, entry in found.items()}


def _complaint(found: Mapping[str, str], replication: int) -> str | None:
    """Return what is wrong with the settings of the topic."""
    if found["cleanup.policy"] != "delete":
        return f"must have cleanup.policy = delete. Got: {found['cleanup.policy']}."
    if int(found["retention.bytes"]) != -1:
        return f"must have retention.bytes = -1. Got: {found['retention.bytes']}."
    if not (int(found["retention.ms"]) == -1 or int(found["retention.ms"]) >= DAY):
        return f"must have a retention.ms of a day ({DAY}) or more. Got: {found['retention.ms']}."
    needed = min(2, replication)
    if int(found["min.insync.replicas"]) < needed:
        return (
            f"must have min.insync.replicas = {needed} or more, as `marker_replication` is "
            f"{replication}. Got: {found['min.insync.replicas']}."
        )
    return None
