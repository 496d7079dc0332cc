"""What Kafka's errors say about an event."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from delta_outbox.publishers.kafka.errors import Meaning, meaning_of


@pytest.mark.parametrize(
    ("code", "alone", "meaning"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, True, Meaning.REJECTED),
        (KafkaError.MSG_SIZE_TOO_LARGE, False, Meaning.BATCH_REJECTED),
        (KafkaError.INVALID_RECORD, True, Meaning.REJECTED),
        (KafkaError._INVALID_DIFFERENT_RECORD, False, Meaning.BATCH_REJECTED),
        (KafkaError._INVALID_DIFFERENT_RECORD, True, Meaning.FAILED),
        (KafkaError.TOPIC_EXCEPTION, False, Meaning.REJECTED),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, False, Meaning.FAILED),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, False, Meaning.FAILED),
        (KafkaError.NOT_ENOUGH_REPLICAS, False, Meaning.FAILED),
        (KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, False, Meaning.UNKNOWN),
        (KafkaError.REQUEST_TIMED_OUT, False, Meaning.UNKNOWN),
        (KafkaError._MSG_TIMED_OUT, False, Meaning.UNKNOWN),
        (KafkaError._PURGE_INFLIGHT, False, Meaning.UNKNOWN),
        (KafkaError._PURGE_QUEUE, False, Meaning.UNSENT),
        (KafkaError._TRANSPORT, False, Meaning.UNKNOWN),
        (KafkaError.UNKNOWN, False, Meaning.UNKNOWN),
    ],
)
def test_meaning(code, alone, meaning):
    """Only what is certainly not delivered fails or is rejected; all doubt is unknown."""
    assert meaning_of(KafkaError(code), alone=alone) is meaning
