"""One publish call of the Kafka publisher: rounds of produce, wait, interpret."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Final, cast

from confluent_kafka import KafkaError, KafkaException, Message

from delta_outbox.core.failpoints import reach
from delta_outbox.lifecycle.results import (
    Delivered,
    Failed,
    JsonText,
    NotSent,
    Rejected,
    Result,
    Unknown,
)
from delta_outbox.publishers.kafka.client import KafkaClient
from delta_outbox.publishers.kafka.errors import Meaning, meaning_of
from delta_outbox.publishers.kafka.message import kafka_headers
from delta_outbox.publishers.key_rounds import KeyRounds
from delta_outbox.publishers.protocol import Event, EventBatch

_LOOK: Final = 256  # messages between two looks at the clock and the reports
_FULL_QUEUE_WAIT: Final = 0.05  # seconds
_ANY_PARTITION: Final = -1
_NOW: Final = 0  # the client's own time stamp
_NOT_SENT: Final = NotSent()
_UNANSWERED: Final = Unknown(error="Kafka did not answer before the deadline")


class KafkaCall:
    """Sends a batch and collects one result per event.

    Args:
        events: the batch.
        refused: results for routes that cannot be sent to.
        size_limit: bytes above which the client refuses a message, for the sentence.
    """

    def __init__(
        self, events: EventBatch, *, refused: Mapping[str, Result], size_limit: int
    ) -> None:
        self._events = tuple(events)
        self._deadline = events.deadline
        self._refused = refused
        self._size_limit = size_limit
        self._results: list[Result | None] = [None] * len(self._events)
        self._errors: dict[int, KafkaError] = {}
        self._rounds = KeyRounds(self._events)
        self._report = reporter(self._events, self._results, self._errors)

    def run(self, client: KafkaClient, renew: Callable[[], KafkaClient]) -> list[Result]:
        """Send until everything has a result, the deadline comes or Kafka gives up.

        Args:
            client: a fresh or healthy client.
            renew: makes a careful client, needed once the broker has refused a whole batch or
                the client has died of a gap.
        """
        waiting: Sequence[int] = range(len(self._events))
        while waiting and time.monotonic() < self._deadline:
            if client.dead:
                if client.careful:
                    break
                client = renew()
                self._rounds.forget_confirmed()
            taken, left, behind_blocked = self._rounds.cut(waiting, one_per_key=client.careful)
            for position in behind_blocked:
                self._results[position] = _NOT_SENT
            sent = self._send(client, taken)
            reach("kafka.handed")
            client.settle(deadline=self._deadline)
            again = self._interpret(client)
            if again and not client.dead:
                client.abandon()
            waiting = self._next(taken, left, sent)
        return [_NOT_SENT if result is None else result for result in self._results]

    def _next(self, taken: Sequence[int], left: Sequence[int], sent: int) -> Sequence[int]:
        results, rounds = self._results, self._rounds
        without_result = [position for position in taken if results[position] is None]
        if not left and not without_result:
            return ()
        for position in taken[:sent]:
            result = results[position]
            if type(result) is Delivered:
                rounds.confirm(position)
            elif result is not None:
                rounds.block(position)
        return sorted([*without_result, *left])

    def _send(self, client: KafkaClient, taken: Sequence[int]) -> int:
        """Produce the events of a round and return how many were looked at."""
        events, results = self._events, self._results
        refused: set[str | None] = set()  # keys of which an event was refused here
        for number, position in enumerate(taken):
            if not number % _LOOK and self._is_over(client):
                return number
            event = events[position]
            if refused and event.key in refused:
                continue
            try:
                refusal = self._produce(client, event, position)
            except _Interrupted:
                results[position] = None
                return number
            if refusal is not None:
                results[position] = refusal
                if event.ordered_key is not None:
                    refused.add(event.ordered_key)
        return len(taken)

    def _is_over(self, client: KafkaClient) -> bool:
        reach("kafka.sending")
        client.poll(0)
        return client.dead or time.monotonic() >= self._deadline

    def _produce(self, client: KafkaClient, event: Event, position: int) -> Result | None:
        """Hand one event to the client, or return why it cannot be."""
        route, key, payload = event.route, event.key, event.payload
        if self._refused and route in self._refused:
            return self._refused[route]
        try:
            headers = kafka_headers(event)
            encoded = None if key is None else key.encode()
        except ValueError as error:
            return Rejected(error=f"it has no form in Kafka: {error}")
        report = partial(self._report, position)
        self._results[position] = _UNANSWERED  # until the report says more
        while True:
            try:
                # Positional, because keywords cost a fifth of the whole call.
                client.producer.produce(
                    route, payload, encoded, _ANY_PARTITION, report, None, _NOW, headers
                )
            except BufferError:  # the queue is full
                client.poll(_FULL_QUEUE_WAIT)
                if self._is_over(client):
                    raise _Interrupted from None
            except KafkaException as error:
                return self._refusal(client, error, len(payload))
            except (ValueError, TypeError, ArithmeticError) as error:  # of the route, for example
                return Rejected(error=f"it has no form in Kafka: {type(error).__name__}")
            else:
                return None

    def _refusal(self, client: KafkaClient, error: KafkaException, size: int) -> Result:
        reason: KafkaError = error.args[0]
        if reason.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return Rejected(
                error=f"the message is too large: {size} bytes of payload, key and headers "
                f"besides, and message.max.bytes is {self._size_limit}"
            )
        if reason.fatal() or reason.code() == KafkaError._FATAL:
            client.poll(0)
            client.dead = True
            raise _Interrupted from error
        return Failed(error=f"Kafka's client refused the message: {reason.str()}")

    def _interpret(self, client: KafkaClient) -> bool:
        """Turn error reports into results; return whether a whole batch was refused."""
        in_time = time.monotonic() < self._deadline
        batch_refused = False
        for position, error in self._errors.items():
            meaning = meaning_of(error, alone=client.careful)
            result: Result | None
            if meaning is Meaning.REJECTED:
                result = Rejected(error=sentence_of(error))
            elif meaning is Meaning.FAILED:
                result = Failed(error=sentence_of(error))
            elif meaning is Meaning.BATCH_REJECTED:
                # The broker refuses a batch as a whole, the innocent with the guilty.
                result, batch_refused = None, True
            elif meaning is Meaning.UNSENT and in_time and not client.may_have_repeated:
                result = None  # the producer died while it was queued: the next one sends it
            else:
                result = Unknown(error=sentence_of(error) if in_time else _UNANSWERED.error)
            self._results[position] = result
        self._errors.clear()
        return batch_refused


class _Interrupted(Exception):
    """No more can be sent by this client or before this deadline."""


def reporter(
    events: Sequence[Event], results: list[Result | None], errors: dict[int, KafkaError]
) -> Callable[[int, KafkaError | None, Message], None]:
    """Return a report callback that sorts what Kafka said into results and errors.

    Args:
        events: of the call.
        results: takes a Delivered for each event that was acknowledged.
        errors: takes what was said of the others.
    """

    def report(position: int, error: KafkaError | None, message: Message) -> None:
        if error is None:
            results[position] = _delivered(
                JsonText(
                    f'{{"topic":"{events[position].route}","partition":{message.partition()},'
                    f'"offset":{message.offset()}}}'
                )
            )
        else:
            errors[position] = error

    return report


class _Draft:
    __slots__ = tuple(field.name for field in fields(Delivered))

    def __init__(self, receipt: JsonText) -> None:
        self.receipt = receipt
        self.outcome = None
        self.outcome_data = None


def _delivered(receipt: JsonText) -> Delivered:
    """Return `Delivered(receipt=receipt)`, in a third of the time: see `relay.rows.events_of`."""
    made: Any = _Draft(receipt)
    made.__class__ = Delivered
    return cast("Delivered", made)


def sentence_of(error: KafkaError) -> str:
    """Return what an error says of one event.

    Args:
        error: of a delivery report.
    """
    return f"Kafka: {error.str()} ({error.name()})"
