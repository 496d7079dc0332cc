"""Takes answers from topics: judges them as the server does, and commits what is on record."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from delta_outbox.core.errors import BadSettings, OutboxError
from delta_outbox.core.redaction import describe, scrub
from delta_outbox.core.secrets import hiding
from delta_outbox.core.settings import QueueSettings, TodoSettings
from delta_outbox.publishers.kafka.client import KafkaClient, QuietLog, Unreachable
from delta_outbox.publishers.kafka.settings import KafkaSettings, parse_settings
from delta_outbox.todo.contracts import check_types
from delta_outbox.todo.desk import MayAnswer
from delta_outbox.todo.item_thread import ItemThread, OpenOutbox
from delta_outbox.todo.limits import MOST_BODY, TooLarge, read_object
from delta_outbox.todo.people import Person
from delta_outbox.todo.queue.dead_letters import DeadLetter, send
from delta_outbox.todo.queue.offsets import Held, Offsets
from delta_outbox.workflow_engine.item_answers import (
    AnsweredAlready,
    AnsweredTooLate,
    GivenAnswer,
)
from delta_outbox.workflow_engine.item_decisions import UndecidedAnswer
from delta_outbox.workflow_engine.item_deliveries import UnknownItem
from delta_outbox.workflow_engine.items import ItemType

logger = logging.getLogger(__name__)

AT_ONCE: Final = 500  # messages of one round
POLL_SECONDS: Final = 1.0  # that is waited for the first of them
REST_SECONDS: Final = 0.05  # and for the others
RETRY_SECONDS: Final = 2.0  # until what was not taken is judged again
CONNECT_SECONDS: Final = 30.0
_OF_PUBLISHERS: Final = ("topics", "delivery", "marker_topic")
_MAY_COME: Final = (UnknownItem, UndecidedAnswer)  # the item opens, the code is mended


class QueueUnreachable(OutboxError):
    """The topics of answers, or of dead letters, are not there or not reached."""

    code = "QUEUE_UNREACHABLE"
    remedy = "Correct `[todo.kafka]`, or create the topic; nothing was taken."


@dataclass(kw_only=True)
class Taken:
    """How many messages were taken.

    Args:
        answers: that are on record, or about no item.
        dead_letters: that can be none.
    """

    answers: int = 0
    dead_letters: int = 0


def client_settings(settings: QueueSettings) -> KafkaSettings:
    """Return the settings of the Kafka client, checked as those of a publisher.

    Args:
        settings: `[todo.kafka]`.

    Raises:
        BadSettings: one breaks a rule.
    """
    given = {name: settings.client[name] for name in settings.client}
    for name in _OF_PUBLISHERS:
        if name in given:
            raise BadSettings(f"`todo.kafka.{name}` is not a setting of who reads answers.")
    try:
        return parse_settings({**given, "topics": ["*"]})
    except (TypeError, ValueError) as error:
        raise BadSettings(f"`[todo.kafka]`: {error}") from None


def types_by_topic(types: Sequence[ItemType]) -> dict[str, ItemType]:
    """Return the types of items whose answers come by topics.

    Args:
        types: all that there are.

    Raises:
        BadSettings: none has a topic, or two have the same.
    """
    found: dict[str, ItemType] = {}
    for one in types:
        if one.topic is None:
            continue
        other = found.setdefault(one.topic, one)
        if other is not one:
            raise BadSettings(
                f"Answers to {other.workflow}.{other.task} and {one.workflow}.{one.task} must not "
                f"come by one topic. Got: {one.topic!r}.",
                remedy="Give each To-Do class a `topic` of its own.",
            )
    if not found:
        raise BadSettings(
            "No To-Do class has a topic, so no answers can come by one.",
            remedy='Write `topic = "orders.answers"` in the class.',
        )
    return found


def consume(
    opened: Callable[[], AbstractContextManager[OpenOutbox]],
    settings: TodoSettings,
    *,
    stop: threading.Event,
    say: Callable[[Sequence[str]], None],
) -> Taken:
    """Take answers from topics until told to end.

    Args:
        opened: opens the outbox; called anew where it was lost.
        settings: `[todo]`.
        stop: ends it, after the round that is under way.
        say: is told the topics, once they are read.

    Raises:
        BadSettings: a setting breaks a rule.
        QueueUnreachable: a topic is not there, or Kafka does not answer.
        OutboxError: the outbox cannot be opened.
    """
    kafka = client_settings(settings.kafka)
    thread = ItemThread(opened, answer_seconds=settings.answer_seconds)
    with contextlib.ExitStack() as running:
        running.enter_context(hiding(kafka.secrets))
        thread.start()
        running.callback(thread.stop)
        types = types_by_topic(thread.types)
        check_types([*types.values()])
        queue = AnswerQueue(thread, types, settings.kafka, kafka)
        queue.check_topics()
        return asyncio.run(queue.run(stop, say))


class AnswerQueue:
    """Answers of topics, each judged until it is on record or a dead letter.

    Args:
        thread: asks the outbox.
        types: of items, by the topics of their answers.
        settings: `[todo.kafka]`.
        kafka: those of the client.
        monotonic: seconds.
    """

    def __init__(
        self,
        thread: ItemThread,
        types: Mapping[str, ItemType],
        settings: QueueSettings,
        kafka: KafkaSettings,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._thread = thread
        self._types = types
        self._settings = settings
        self._kafka = kafka
        self._monotonic = monotonic
        self.offsets = Offsets()
        self._is_paused = False
        self._taken = Taken()

    def check_topics(self) -> None:
        """Demand that the topics are there, and those of dead letters.

        Raises:
            QueueUnreachable: one is not.
        """
        client = KafkaClient(self._kafka, timeout=CONNECT_SECONDS, careful=True)
        for topic in sorted({*self._types, *map(self._dead_letters_of, self._types)}):
            try:
                error = client.topic_error(topic, timeout=CONNECT_SECONDS)
            except Unreachable as unreachable:
                raise QueueUnreachable(f"Kafka does not answer: {unreachable}.") from None
            if error is not None:
                raise QueueUnreachable(f"The topic {topic!r} cannot be used: {error.str()}.")

    async def run(self, stop: threading.Event, say: Callable[[Sequence[str]], None]) -> Taken:
        """Take answers until told to end; return how many.

        Args:
            stop: ends it, after the round that is under way.
            say: is told the topics, once they are read.
        """
        consumer = Consumer(
            {
                **self._kafka.connection,
                "group.id": self._settings.group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "partition.assignment.strategy": "cooperative-sticky",
                "error_cb": self._complain,
                "logger": QuietLog(),
            }
        )
        assigned, is_known = threading.Event(), False
        try:
            consumer.subscribe(
                [*self._types],
                on_assign=lambda *_: assigned.set(),
                on_revoke=self._revoked,
                on_lost=lambda _, lost: self._forget(lost),
            )
            while not stop.is_set():
                await asyncio.to_thread(self._poll, consumer)
                if assigned.is_set() and not is_known:
                    is_known = True
                    say(sorted(self._types))
                letters = await self.judge()
                await asyncio.to_thread(self._settle, consumer, letters)
        finally:
            await asyncio.to_thread(consumer.close)
        return self._taken

    def _poll(self, consumer: Consumer) -> None:
        """Read what has come. Who does not ask for long loses its partitions, so one asks too where
        no more can be held.
        """
        if self.offsets.is_full:
            consumer.pause(consumer.assignment())
            self._is_paused = True
        elif self._is_paused:
            consumer.resume(consumer.assignment())
            self._is_paused = False
        first = consumer.poll(POLL_SECONDS)
        if first is not None:
            self._hold(first)  # before anything else: its partition may be lost in the next call
            for message in consumer.consume(AT_ONCE - 1, REST_SECONDS):
                self._hold(message)

    def _hold(self, message: Message) -> None:
        error = message.error()
        if error is None:
            self.offsets.add(Held(message=message, try_at=self._monotonic()))
        else:
            self._complain(error)

    async def judge(self) -> list[DeadLetter]:
        """Give the answers that are due, and return what can be none."""
        now = self._monotonic()
        held = [*self.offsets.held()]
        waits = {one.waits_for: one.try_at for one in reversed(held) if one.try_at > now}
        # Of two to one item the first in the topic counts: they go together, in order, so the
        # second waits for the next turn of the first; and whatever comes behind one of which nobody
        # could say what it is about waits for that.
        unread = {one.partition: one.try_at for one in held if one.is_unread and one.try_at > now}
        due = [one for one in held if one.try_at <= now]
        found = await asyncio.gather(*(self._answer_of(one.message) for one in due))
        turn = []
        for one, answer in zip(due, found, strict=True):
            one.is_unread = isinstance(answer, OutboxError) and answer.retryable
            if one.is_unread or one.partition in unread:
                one.try_at = unread.setdefault(one.partition, now + RETRY_SECONDS)
                one.early_at = None
            elif isinstance(answer, GivenAnswer) and answer.task_id in waits:
                one.try_at = waits[answer.task_id]
            else:
                turn.append((one, answer))
        came = await asyncio.gather(*(self._given(answer) for _, answer in turn))
        letters = []
        for (one, answer), error in zip(turn, came, strict=True):
            one.waits_for = None
            if error is None:
                self.offsets.done(one)
                self._taken.answers += 1
            elif self._may_come(error, one, now):
                one.try_at = now + RETRY_SECONDS
                if isinstance(answer, GivenAnswer) and not isinstance(error, UndecidedAnswer):
                    one.waits_for = answer.task_id
            else:
                topic = self._dead_letters_of(one.partition[0])
                letters.append(DeadLetter(held=one, topic=topic, why=error))
        return letters

    def _may_come(self, error: OutboxError, one: Held, now: float) -> bool:
        """Say whether a message waits longer: for the outbox to be reached, for its item to open,
        or for code to be mended. Only time in which it was found to be early counts.
        """
        if error.retryable:
            one.early_at = None
            return True
        if not isinstance(error, _MAY_COME):
            return False
        one.early_seconds += 0.0 if one.early_at is None else now - one.early_at
        one.early_at = now
        return one.early_seconds < self._settings.hold_seconds

    async def _answer_of(self, message: Message) -> GivenAnswer | OutboxError | None:
        """Return the answer that a message is; None if it is about no item."""
        topic = message.topic() or ""
        type_, value = self._types[topic], message.value() or b""
        try:
            if len(value) > MOST_BODY:
                raise TooLarge(f"An answer must have at most {MOST_BODY} bytes.")
            data = read_object(value)
            task_id = await self._thread.correlated(type_.workflow, type_.task, data)
        except OutboxError as error:
            return error
        if task_id is None:
            return None
        of = (type_.workflow, type_.task)
        sender = Person(name=f"kafka:{topic}", of=of)
        return GivenAnswer(
            task_id=task_id,
            data=data,
            actor=sender.name,
            is_named=False,
            is_message=True,
            allowed=MayAnswer(person=sender, of=of),
        )

    async def _given(self, found: GivenAnswer | OutboxError | None) -> OutboxError | None:
        """Give an answer; return None once it is on record, else why it is not."""
        if not isinstance(found, GivenAnswer):
            return found
        try:
            await self._thread.answer(found)
        except (AnsweredAlready, AnsweredTooLate):
            return None
        except OutboxError as error:
            return error
        return None

    def _settle(self, consumer: Consumer, letters: Sequence[DeadLetter]) -> None:
        """Send dead letters, and commit what is done."""
        sent = send(self._kafka, letters) if letters else []
        for letter in sent:
            self.offsets.done(letter.held)
            self._taken.dead_letters += 1
        for letter in letters:
            letter.held.try_at = self._monotonic() + RETRY_SECONDS
        self._commit(consumer)

    def _commit(self, consumer: Consumer) -> None:
        offsets = self.offsets.to_commit()
        if not offsets:
            return
        try:
            consumer.commit(
                offsets=[TopicPartition(*partition, at) for partition, at in offsets.items()],
                asynchronous=False,
            )
        except KafkaException as error:  # what comes again is told the same
            logger.warning("offsets_not_committed", extra={"error": describe(error)})
        else:
            self.offsets.committed(offsets)

    def _revoked(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._commit(consumer)
        self._forget(partitions)

    def _forget(self, partitions: Sequence[TopicPartition]) -> None:
        self.offsets.forget((one.topic, one.partition) for one in partitions)

    def _complain(self, error: KafkaError) -> None:
        told = {"error": scrub(error.str(), secrets=self._kafka.secrets)}
        logger.warning("queue_in_trouble", extra=told)

    def _dead_letters_of(self, topic: str) -> str:
        return self._settings.dead_letter_topic or f"{topic}.dead"
