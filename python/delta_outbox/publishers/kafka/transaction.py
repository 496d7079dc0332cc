"""One publish call in transactions: the events and a record of them are there together or not.

Promises, and what they rest on:

- Delivered means committed. What is not committed is never seen by consumers that read committed
  messages only, so whatever ends before the commit is asked for is Failed or NotSent, and certain.
- Only the answer to the commit can be missing: then the events are Unknown, and `kafka_recovery`
  finds out.
- The clock is looked at after the marker is acknowledged and before the commit. Who was frozen in
  between and goes on is fenced by then: the broker refuses the commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from delta_outbox.core.failpoints import reach
from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected, Result, Unknown
from delta_outbox.publishers.kafka.call import reporter, sentence_of
from delta_outbox.publishers.kafka.client import KafkaClient
from delta_outbox.publishers.kafka.errors import Meaning, meaning_of
from delta_outbox.publishers.kafka.marker import Marker, fitting
from delta_outbox.publishers.kafka.message import Headers, kafka_headers
from delta_outbox.publishers.protocol import Event, EventBatch

_LOOK: Final = 256  # messages between two looks at the clock and the reports
_FULL_QUEUE_WAIT: Final = 0.05  # seconds
_POLL: Final = 0.1  # seconds
_ANY_PARTITION: Final = -1
_NOW: Final = 0  # the client's own time stamp
_ABORT_WAIT: Final = 2.0  # seconds; left open, a transaction ends by its own limit
_LEAST_WAIT: Final = 0.1  # seconds
_NOT_SENT: Final = NotSent()
_LATE: Final = "the deadline came before the transaction was complete: it was not committed"

_TAKEN_OVER: Final = "the broker has ended the transaction: it was open too long, or taken over"
_PURGED: Final = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)

NewClient = Callable[[bool], KafkaClient]


class NotCommitted(Exception):
    """The transaction ends without a commit; the text says why."""


class TooLate(NotCommitted):
    """The deadline came first."""


class TransactionCall:
    """Sends a batch in transactions and collects one result per event.

    Args:
        events: the batch.
        refused: results for routes that cannot be sent to.
        marker_topic: where the record of a transaction goes.
        transactional_id: under which name the clients send.
        size_limit: bytes above which the client refuses a message.
    """

    def __init__(
        self,
        events: EventBatch,
        *,
        refused: Mapping[str, Result],
        marker_topic: str,
        transactional_id: str,
        size_limit: int,
    ) -> None:
        self._events = tuple(events)
        self._deadline = events.deadline
        self._destination = events.destination
        self._marker_topic = marker_topic
        self._transactional_id = transactional_id
        self._size_limit = size_limit
        self._results: list[Result | None] = [None] * len(self._events)
        self._errors: dict[int, KafkaError] = {}
        self._acknowledged: list[Result | None] = [None] * len(self._events)
        self._report = reporter(self._events, self._acknowledged, self._errors)
        self._headers: list[Headers] = [[]] * len(self._events)
        self._blocked: set[str] = set()
        self._route_by_route = False
        self._prepare(refused)

    def run(self, client_for: NewClient) -> list[Result]:
        """Send until everything has a result, the deadline comes or Kafka gives up.

        Args:
            client_for: returns a client whose transactions can begin; True for a careful one.
        """
        careful = False
        while (waiting := self._waiting()) and time.monotonic() < self._deadline:
            taken = self._taken(waiting)
            try:
                careful = self._transact(client_for(careful), taken)
            except NotCommitted as error:
                # Trouble with one topic must not be that of all events, whenever it is there.
                several = len({self._events[position].route for position in taken}) > 1
                if several and not isinstance(error, TooLate):
                    self._route_by_route = True
                else:
                    self._settle(taken, Failed(error=str(error)))
        return [_NOT_SENT if result is None else result for result in self._results]

    # --- what goes into a transaction ---------------------------------------------------------

    def _prepare(self, refused: Mapping[str, Result]) -> None:
        """Give a result to what Kafka need not be asked about."""
        for position, event in enumerate(self._events):
            if self._is_blocked(position):
                self._results[position] = _NOT_SENT
                continue
            result = refused.get(event.route)
            try:
                self._headers[position] = kafka_headers(event)
                event.route.encode()
                if event.key is not None:
                    event.key.encode()
            except ValueError as error:
                result = result or Rejected(error=f"it has no form in Kafka: {error}")
            if result is not None:
                self._settle([position], result)

    def _waiting(self) -> list[int]:
        """Return what has no result yet; what comes behind a refused event of its key gets one."""
        waiting = []
        for position, result in enumerate(self._results):
            if result is None and self._is_blocked(position):
                self._results[position] = _NOT_SENT
            elif result is None:
                waiting.append(position)
        return waiting

    def _taken(self, waiting: Sequence[int]) -> Sequence[int]:
        """Return what goes into the next transaction; nothing of a key overtakes another of it."""
        if self._route_by_route:
            waiting = self._of_one_route(waiting)
        ids = (self._events[position].delivery_id for position in waiting)
        return waiting[: fitting(ids, message_max_bytes=self._size_limit)]

    def _of_one_route(self, waiting: Sequence[int]) -> Sequence[int]:
        route = self._events[waiting[0]].route
        taken, passed = [], set()
        for position in waiting:
            scope = self._scope(position)
            if scope is not None and scope in passed:
                continue
            if self._events[position].route == route:
                taken.append(position)
            elif scope is not None:
                passed.add(scope)
        return taken

    def _scope(self, position: int) -> str | None:
        return self._events[position].ordered_key

    def _is_blocked(self, position: int) -> bool:
        return bool(self._blocked) and self._scope(position) in self._blocked

    def _settle(self, positions: Sequence[int], result: Result) -> None:
        """Give events a result that is not Delivered: nothing of their keys may follow."""
        for position in positions:
            self._results[position] = result
            if (scope := self._scope(position)) is not None:
                self._blocked.add(scope)

    # --- one transaction ----------------------------------------------------------------------

    def _transact(self, client: KafkaClient, taken: Sequence[int]) -> bool:
        """Send events in one transaction; return whether the next one needs a careful client.

        Raises:
            NotCommitted: certainly, and not because of some of the events.
        """
        self._errors.clear()
        try:
            client.producer.begin_transaction()
            self._mark(client, taken)
            reach("kafka.marked")
            self._send(client, taken)
            self._await_reports(client)
        except KafkaException as error:
            self._abandon(client)
            raise NotCommitted(f"Kafka: {client.cause_of(error)}") from error
        except NotCommitted:
            self._abandon(client)
            raise
        spoilt = any(self._results[position] is not None for position in taken)
        if spoilt or self._errors or client.dead:
            self._abandon(client)
            return self._interpret(client, taken)
        if time.monotonic() >= self._deadline:
            self._abandon(client)
            raise TooLate(_LATE)
        reach("kafka.committing")
        self._commit(client, taken)
        reach("kafka.committed")
        return client.careful

    def _mark(self, client: KafkaClient, taken: Sequence[int]) -> None:
        """Write the marker and wait until it is acknowledged, in good time."""
        marker = Marker(
            claim_id=self._events[taken[0]].claim_id,
            destination=self._destination,
            transactional_id=self._transactional_id,
            deliveries=[self._events[position].delivery_id for position in taken],
        )
        errors: list[KafkaError] = []
        client.producer.produce(
            self._marker_topic,
            marker.value(),
            marker.claim_id.encode(),
            on_delivery=lambda error, _: errors.append(error) if error is not None else None,
        )
        client.settle(deadline=self._deadline)
        if errors:
            if errors[0].code() in _PURGED:
                raise NotCommitted(_TAKEN_OVER)
            topic = self._marker_topic
            raise NotCommitted(f"the marker topic {topic!r} takes nothing: {errors[0].str()}")
        if client.dead or time.monotonic() >= self._deadline:
            raise TooLate(_LATE)

    def _send(self, client: KafkaClient, taken: Sequence[int]) -> None:
        for number, position in enumerate(taken):
            if not number % _LOOK:
                client.poll(0)
                if self._errors or client.dead:
                    return
                if time.monotonic() >= self._deadline:
                    raise TooLate(_LATE)
            self._produce(client, position)

    def _await_reports(self, client: KafkaClient) -> None:
        """Wait for all reports; after an error the rest is kept back until the abort."""
        while len(client.producer) and not (self._errors or client.dead):
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TooLate(_LATE)
            client.poll(min(_POLL, left))

    def _produce(self, client: KafkaClient, position: int) -> None:
        event = self._events[position]
        key = None if event.key is None else event.key.encode()
        report = partial(self._report, position)
        while True:
            try:
                client.producer.produce(
                    event.route,
                    event.payload,
                    key,
                    _ANY_PARTITION,
                    report,
                    None,
                    _NOW,
                    self._headers[position],
                )
            except BufferError:  # the queue is full
                client.poll(_FULL_QUEUE_WAIT)
                if time.monotonic() >= self._deadline:
                    raise TooLate(_LATE) from None
            except KafkaException as error:
                if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                    raise
                self._settle([position], Rejected(error=self._too_large(event)))
                return
            else:
                return

    def _interpret(self, client: KafkaClient, taken: Sequence[int]) -> bool:
        """Give results to the events that spoilt the transaction; the others are sent again.

        Returns:
            Whether a batch was refused as a whole, so that only a careful client finds the guilty.
        """
        batch_refused = False
        for position, error in self._errors.items():
            meaning = meaning_of(error, alone=client.careful)
            if meaning is Meaning.REJECTED:
                self._settle([position], Rejected(error=sentence_of(error)))
            elif meaning is Meaning.FAILED:
                self._settle([position], Failed(error=sentence_of(error)))
            elif meaning is Meaning.BATCH_REJECTED:
                batch_refused = True
        if not batch_refused and all(self._results[position] is None for position in taken):
            if time.monotonic() >= self._deadline or not self._errors:
                raise TooLate(_LATE)
            raise NotCommitted(sentence_of(next(iter(self._errors.values()))))
        return batch_refused

    def _too_large(self, event: Event) -> str:
        return (
            f"the message is too large: {len(event.payload)} bytes of payload, key and headers "
            f"besides, and message.max.bytes is {self._size_limit}"
        )

    def _commit(self, client: KafkaClient, taken: Sequence[int]) -> None:
        while True:
            try:
                client.producer.commit_transaction(
                    max(_LEAST_WAIT, self._deadline - time.monotonic())
                )
            except KafkaException as error:
                if error.args[0].retriable() and time.monotonic() < self._deadline:
                    continue
                client.dead = True
                message = f"it is not known whether Kafka committed: {client.cause_of(error)}"
                self._settle(taken, Unknown(error=message))
                return
            for position in taken:
                self._results[position] = self._acknowledged[position]
                assert isinstance(self._results[position], Delivered)
            return

    def _abandon(self, client: KafkaClient) -> None:
        """Abort the transaction if that can be done soon; the client is not used again."""
        client.abandon()
        try:
            client.producer.abort_transaction(_ABORT_WAIT)
        except KafkaException:
            return  # it cannot be committed any more: nobody but this client could
