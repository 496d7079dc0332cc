"""Dead letters: what can be no answer, with the reason, in a topic of its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError

from delta_outbox.core.errors import OutboxError
from delta_outbox.core.redaction import scrub
from delta_outbox.publishers.kafka.client import KafkaClient
from delta_outbox.publishers.kafka.settings import KafkaSettings
from delta_outbox.todo.queue.offsets import Held

logger = logging.getLogger(__name__)

SEND_SECONDS: Final = 30.0  # until the broker has all of them
# A letter is larger than its message, by headers; the topic says what it takes.
_MOST_BYTES: Final = 100 * 1024**2
_PLACE, _CODE, _WHY = "outbox-source", "outbox-error", "outbox-error-message"


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    """A message that is given up.

    Args:
        held: the message.
        topic: where it goes.
        why: what is wrong with it.
    """

    held: Held
    topic: str
    why: OutboxError


def send(settings: KafkaSettings, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
    """Send dead letters, and return those that the broker has. Such a letter is its message, with
    headers beside its own: where it came from, and what is wrong.

    Args:
        settings: of Kafka.
        letters: to be sent.
    """
    sent: list[DeadLetter] = []
    client = KafkaClient(
        _with_room(settings), timeout=SEND_SECONDS, careful=True
    )  # a new one: there are few, and it is of no use once it has failed
    for letter in letters:
        message = letter.held.message
        topic, partition = letter.held.partition
        ours = {
            _PLACE: f"{topic}/{partition}/{message.offset()}",
            _CODE: letter.why.code,
            _WHY: str(letter.why),
        }
        client.producer.produce(
            letter.topic,
            value=message.value(),
            key=message.key(),
            headers=[
                *(message.headers() or []),
                *((name, value.encode()) for name, value in ours.items()),
            ],
            on_delivery=_report(letter, sent, settings),
        )
    client.settle(deadline=time.monotonic() + SEND_SECONDS)
    return sent


def _with_room(settings: KafkaSettings) -> KafkaSettings:
    client = {**settings.client, "message.max.bytes": _MOST_BYTES}
    return KafkaSettings(client=client, topics=settings.topics, secrets=settings.secrets)


def _report(letter: DeadLetter, sent: list[DeadLetter], settings: KafkaSettings) -> Any:
    def reported(error: KafkaError | None, message: object) -> None:
        topic, partition = letter.held.partition
        told: dict[str, object] = {
            "topic": topic,
            "partition": partition,
            "offset": letter.held.message.offset(),
            "reason": letter.why.code,
        }
        if error is None:
            sent.append(letter)
            logger.warning("answer_dead", extra=told)
        else:
            told["error"] = scrub(error.str(), secrets=settings.secrets)
            logger.error("dead_letter_not_sent", extra=told)

    return reported
