"""Kafka: one message per event, acknowledged by all in-sync replicas, in order per key.

Promises, and what they rest on:

- Delivered means the broker's positive report for that very event. What was handed to the client
  and has no report when the deadline comes is Unknown; what was not handed over is NotSent.
- Nothing is sent after the deadline: the clock is looked at while sending, and at the deadline the
  client's queue is purged and the client dropped. Bytes that the operating system holds already
  cannot be called back.
- `ordered`: within a call no later event of a key is delivered when an earlier one was not. It
  rests on the idempotent, gapless producer, on `KeyRounds`, and on the brokers keeping the number
  of partitions of the topic: a topic that gets more partitions moves keys.
- A message that the broker refuses as part of a batch is told apart from its neighbours: they are
  sent again, each alone, within the same call.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from delta_outbox.core.redaction import scrub
from delta_outbox.lifecycle.results import Failed, NotSent, Rejected, Result
from delta_outbox.publishers.cloudevents.transport import Transport
from delta_outbox.publishers.kafka.call import KafkaCall
from delta_outbox.publishers.kafka.client import KafkaClient, Unreachable
from delta_outbox.publishers.kafka.delivery import ExactlyOnce
from delta_outbox.publishers.kafka.marker import check_marker_topic
from delta_outbox.publishers.kafka.recovery import fence, recover
from delta_outbox.publishers.kafka.settings import KafkaSettings, parse_settings
from delta_outbox.publishers.kafka.transaction import NotCommitted, TransactionCall
from delta_outbox.publishers.protocol import EventBatch, Recover

logger = logging.getLogger(__name__)

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_REACH_TIMEOUT: Final = 10.0  # seconds; a broker restarts within it, and a claim lasts longer
_LONGEST_TRANSACTION: Final = 890.0  # seconds; brokers allow 15 minutes unless told otherwise
_BEYOND_DEADLINE: Final = 0.5  # seconds; the purge at the deadline comes first


class KafkaPublisher:
    """Publish to Kafka through librdkafka."""

    ordered: ClassVar[bool] = True
    cloudevents: ClassVar[Transport] = Transport.KAFKA

    def __init__(self) -> None:
        self._settings: KafkaSettings | None = None
        self._client: KafkaClient | None = None
        self._topics: set[str] = set()  # known to be allowed and to exist
        self._slot = uuid.uuid4().hex  # where a batch names none

    @classmethod
    def validate(cls, settings: Mapping[str, object]) -> None:
        """Raise one sentence about bad settings, without connecting.

        Args:
            settings: the client's own names, and `topics`.

        Raises:
            ValueError: a setting is not allowed or has no meaning.
        """
        parsed = parse_settings(settings)
        offline = {k: v for k, v in parsed.client.items() if k != "bootstrap.servers"}
        try:
            Producer({**offline, "enable.idempotence": True, "log_level": 0})
        except KafkaException as error:
            message = scrub(error.args[0].str(), secrets=parsed.secrets)
            raise ValueError(f"kafka: the client refuses the settings: {message}.") from None

    @classmethod
    def probe(cls, settings: Mapping[str, object], timeout: float) -> None:
        """Raise if no broker answers.

        Args:
            settings: as for `open`.
            timeout: seconds to wait.

        Raises:
            ConnectionError: one sentence with the brokers and the cause, or what exactly once
                needs and is not there.
        """
        parsed = parse_settings(settings)
        KafkaClient(parsed, timeout=timeout, careful=True).reach(timeout=timeout)
        if parsed.exactly_once is not None:
            check_marker_topic(parsed, timeout)
            try:
                fence(parsed, [parsed.exactly_once.probe_id], timeout=timeout)
            except KafkaException as error:
                message = scrub(error.args[0].str(), secrets=parsed.secrets)
                raise ConnectionError(f"transactions are not possible: {message}") from None

    @classmethod
    def recovery(cls, settings: Mapping[str, object]) -> Recover | None:
        """Return what says of lost claims what was committed; None for at least once.

        Args:
            settings: as for `open`.
        """
        parsed = parse_settings(settings)
        return partial(recover, parsed) if parsed.exactly_once is not None else None

    def open(self, settings: Mapping[str, object]) -> None:
        """Check the settings; the connection is made by the first `publish`."""
        self._settings = parse_settings(settings)

    def publish(self, events: EventBatch) -> list[Result]:
        """Send every event once and wait for the reports, at most until the deadline."""
        settings = self._settings
        if settings is None:
            raise RuntimeError("KafkaPublisher: `open` comes before `publish`.")
        if not events or events.remaining_seconds() <= 0:
            return [NotSent()] * len(events)
        if settings.exactly_once is not None:
            return self._publish_in_transactions(events, settings, settings.exactly_once)
        client = self._client_for(events, careful=False)
        refused = self._refused_routes(client, events)
        call = KafkaCall(events, refused=refused, size_limit=settings.message_max_bytes)
        return call.run(client, lambda: self._client_for(events, careful=True))

    def close(self) -> None:
        """Drop the connection; whatever is queued is not sent."""
        client, self._client = self._client, None
        if client is not None:
            client.abandon()

    def _publish_in_transactions(
        self, events: EventBatch, settings: KafkaSettings, exactly_once: ExactlyOnce
    ) -> list[Result]:
        slot = events.producer_slot or self._slot
        transactional_id = exactly_once.transactional_id(slot, events.destination)
        try:
            client = self._transactional(events, transactional_id, careful=False)
        except NotCommitted as error:
            return [Failed(error=str(error))] * len(events)
        call = TransactionCall(
            events,
            refused=self._refused_routes(client, events),
            marker_topic=exactly_once.marker_topic,
            transactional_id=transactional_id,
            size_limit=settings.message_max_bytes,
        )
        return call.run(lambda careful: self._transactional(events, transactional_id, careful))

    def _transactional(
        self, events: EventBatch, transactional_id: str, careful: bool
    ) -> KafkaClient:
        """Return a client whose transactions can begin.

        Raises:
            NotCommitted: there is none before the deadline.
        """
        before = self._client
        client = self._client_for(events, careful=careful, transactional_id=transactional_id)
        if client is not before:
            try:
                wait = max(0.01, min(_REACH_TIMEOUT, events.remaining_seconds()))
                client.init_transactions(timeout=wait)
            except KafkaException as error:
                client.abandon()
                raise NotCommitted(f"no transaction can begin: {client.cause_of(error)}") from error
        return client

    def _client_for(
        self, events: EventBatch, *, careful: bool, transactional_id: str | None = None
    ) -> KafkaClient:
        assert self._settings is not None
        client = self._client
        # A message must not time out before the deadline: one that does is overtaken by the next
        # of its key. So a client made for a nearer deadline does not serve a later one.
        timeout = events.remaining_seconds()
        if transactional_id is not None:  # there, one that does only ends the transaction
            timeout = min(timeout, _LONGEST_TRANSACTION)
        if (
            client is None
            or client.dead
            or client.careful != careful
            or client.transactional_id != transactional_id
            or client.timeout < timeout
        ):
            self._client = client = KafkaClient(
                self._settings,
                timeout=timeout + _BEYOND_DEADLINE,
                careful=careful,
                transactional_id=transactional_id,
            )
        return client

    def _refused_routes(self, client: KafkaClient, events: EventBatch) -> dict[str, Result]:
        """Return why events of some routes cannot be sent: a broker is asked once per topic."""
        refused: dict[str, Result] = {}
        unreachable: Failed | None = None
        for topic in {event.route for event in events} - self._topics:
            verdict = self._forbidden(topic) or unreachable
            if verdict is None:
                left = events.deadline - time.monotonic()
                if left <= 0:  # nothing is sent any more, and that is not the broker's fault
                    break
                wait = max(0.01, min(_REACH_TIMEOUT, left))
                try:
                    verdict = _missing(topic, client.topic_error(topic, timeout=wait))
                except Unreachable as error:
                    logger.warning("kafka_unreachable", extra={"error": str(error)})
                    verdict = unreachable = Failed(error=str(error))
            if verdict is None:
                self._topics.add(topic)
            else:
                refused[topic] = verdict
        return refused

    def _forbidden(self, topic: str) -> Result | None:
        assert self._settings is not None
        if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            return Rejected(error=f"the route {topic!r} is no name for a Kafka topic")
        if not self._settings.allows(topic):
            return Rejected(error=f"the topic {topic!r} is not on the allow-list `topics`")
        return None


def _missing(topic: str, error: KafkaError | None) -> Result | None:
    if error is None:
        return None
    if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
        return Failed(error=f"the topic {topic!r} does not exist: create it, or correct the route")
    return Failed(error=f"the topic {topic!r} cannot be written to: {error.str()}")
