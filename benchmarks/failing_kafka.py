"""A Kafka at which one event in twenty fails the first time."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import ClassVar, Final

from delta_outbox.publishers import Event, EventBatch, Failed, NotSent, Result
from delta_outbox.publishers.kafka.publisher import KafkaPublisher

ONE_IN: Final = 20


def fails(event_id: str, attempt: int) -> bool:
    """Say whether an attempt fails.

    Args:
        event_id: of the event.
        attempt: its number, from 1.
    """
    return attempt == 1 and zlib.crc32(event_id.encode()) % ONE_IN == 0


class FailingKafka:
    """Kafka's publisher, which is not asked for the events that fail, nor for those behind them."""

    ordered: ClassVar[bool] = True

    def __init__(self) -> None:
        self._kafka = KafkaPublisher()

    @classmethod
    def validate(cls, settings: Mapping[str, object]) -> None:
        """Check settings as Kafka's publisher does."""
        KafkaPublisher.validate(settings)

    def open(self, settings: Mapping[str, object]) -> None:
        """Prepare as Kafka's publisher does."""
        self._kafka.open(settings)

    def publish(self, events: EventBatch) -> list[Result]:
        """Send what does not fail and is not behind what does."""
        results: dict[int, Result] = {}
        stopped: set[str] = set()
        sent: list[tuple[int, Event]] = []
        for place, event in enumerate(events):
            if event.key is not None and event.key in stopped:
                results[place] = NotSent()
            elif fails(event.event_id, event.attempt):
                results[place] = Failed(error="the benchmark lets it fail")
                if event.key is not None:
                    stopped.add(event.key)
            else:
                sent.append((place, event))
        batch = EventBatch((event for _, event in sent), deadline=events.deadline)
        for (place, _), result in zip(sent, self._kafka.publish(batch), strict=True):
            results[place] = result
        return [results[place] for place in range(len(events))]

    def close(self) -> None:
        """Close as Kafka's publisher does."""
        self._kafka.close()
