"""What an error of the Kafka client says about one event."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from confluent_kafka import KafkaError


class Meaning(Enum):
    """What is known about an event after its delivery report."""

    REJECTED = auto()  # certainly not delivered, and it never will be as it is
    FAILED = auto()  # certainly not delivered; time or an operator can mend it
    BATCH_REJECTED = auto()  # certainly not delivered; it or a neighbour in its batch is bad
    UNSENT = auto()  # it was taken out of the queue
    UNKNOWN = auto()  # it may have been delivered


_BATCH_REJECTED: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError._INVALID_DIFFERENT_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.POLICY_VIOLATION,
    }
)
_REJECTED: Final = frozenset({KafkaError.TOPIC_EXCEPTION})
# An operator can create the topic, grant the right, bring replicas back. Errors that a broker
# raises after it has written (REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND) are not here.
_FAILED: Final = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
    }
)


def meaning_of(error: KafkaError, *, alone: bool) -> Meaning:
    """Return what an error says; what is not known for certain is UNKNOWN.

    Args:
        error: of a delivery report.
        alone: the event had a batch of its own, so that the batch's error is the event's.
    """
    code = error.code()
    if code in _BATCH_REJECTED:
        if not alone:
            return Meaning.BATCH_REJECTED
        return Meaning.FAILED if code == KafkaError._INVALID_DIFFERENT_RECORD else Meaning.REJECTED
    if code in _REJECTED:
        return Meaning.REJECTED
    if code in _FAILED:
        return Meaning.FAILED
    return Meaning.UNSENT if code == KafkaError._PURGE_QUEUE else Meaning.UNKNOWN
