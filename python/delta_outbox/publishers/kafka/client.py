"""One producer of the Kafka client library: made, asked for metadata, waited for, given up."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin._metadata import ClusterMetadata

from delta_outbox.core.redaction import scrub
from delta_outbox.publishers.kafka.settings import KafkaSettings

_LOGGER: Final = logging.getLogger("delta_outbox.publishers.librdkafka")
_ERRORS_ONLY: Final = 3  # syslog level; below it librdkafka warns of every experimental setting
_POLL: Final = 0.1  # seconds
_FATAL_GRACE: Final = 1.0  # seconds for answers that are under way when the producer dies
_PURGE_GRACE: Final = 0.5  # seconds for the reports of purged messages
TRANSACTION_GRACE: Final = 5000  # ms for which a broker keeps a transaction beyond its deadline
_PATIENCE: Final = 2.0  # seconds; refused connections within it may be a broker that restarts


class QuietLog:
    """Keeps the library's log for debugging: it calls fatal what is handled here."""

    def log(self, level: int, message: str, *arguments: object) -> None:
        """Keep a line of it."""
        _LOGGER.debug(message, *arguments, extra={"level": level})


class Unreachable(ConnectionError):
    """No broker answered."""


class KafkaClient:
    """A producer and what has become of it.

    Args:
        settings: checked settings.
        timeout: seconds after which the library itself gives up on a message; a second line of
            defence behind `abandon` for a process that was frozen past its deadline.
        careful: every message in a batch of its own and no end of the producer at a gap, for
            callers that have at most one message of a key under way.
        transactional_id: of a producer whose messages are sent in transactions.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        timeout: float,
        careful: bool,
        transactional_id: str | None = None,
    ) -> None:
        self.timeout = timeout
        self.careful = careful
        self.transactional_id = transactional_id
        self.dead = False
        self.may_have_repeated = False  # a connection broke in between
        self._settings = settings
        self._complaint: KafkaError | None = None
        self._is_known = False  # to the brokers
        particular: dict[str, object] = {"batch.num.messages": 1} if careful else {}
        if transactional_id is not None:  # a gap ends the transaction, not the producer
            last = int(timeout * 1000) + TRANSACTION_GRACE
            particular |= {"transactional.id": transactional_id, "transaction.timeout.ms": last}
        elif not careful:
            particular["enable.gapless.guarantee"] = True
        self.producer = Producer(
            {
                **settings.client,
                "acks": "all",
                "enable.idempotence": True,
                "allow.auto.create.topics": False,
                "message.timeout.ms": max(1000, int(timeout * 1000)),
                "error_cb": self._on_error,
                "logger": QuietLog(),
                "log_level": _ERRORS_ONLY,
                **particular,
            }
        )

    def topic_error(self, topic: str, *, timeout: float) -> KafkaError | None:
        """Ask the brokers for a topic and return what is wrong with it.

        Args:
            topic: its name.
            timeout: seconds to wait for an answer.

        Raises:
            Unreachable: no broker answered in time.
        """
        found = self._introduced(topic, timeout=timeout).topics.get(topic)
        if found is None:
            return KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        error: KafkaError | None = found.error
        return error

    def init_transactions(self, *, timeout: float) -> None:
        """End what is open under the same transactional id, and refuse whoever had it before.

        Args:
            timeout: seconds to wait.

        Raises:
            KafkaException: it could not be taken.
        """
        assert self._settings.exactly_once is not None
        end = time.monotonic() + timeout
        with contextlib.suppress(Unreachable):  # the library says more of it
            self._introduced(self._settings.exactly_once.marker_topic, timeout=timeout)
        self.producer.init_transactions(max(0.01, end - time.monotonic()))

    def reach(self, *, timeout: float) -> None:
        """Wait until a broker answers.

        Args:
            timeout: seconds to wait; refused connections end the wait after 2.

        Raises:
            Unreachable: no broker answered.
        """
        self._metadata(None, timeout=timeout)

    def poll(self, seconds: float) -> None:
        """Serve delivery reports; the death of the producer is noted, not raised.

        `flush` is not used: it calls further report callbacks with the exception of a fatal error
        pending, and they break.

        Args:
            seconds: how long to wait for the first.
        """
        try:
            self.producer.poll(seconds)
        except KafkaException:
            self.dead = True

    def settle(self, *, deadline: float) -> None:
        """Wait for all reports until the deadline; whatever is left then is taken back.

        Args:
            deadline: `time.monotonic()` seconds.
        """
        fatal_end = None
        while len(self.producer):
            now = time.monotonic()
            if self.dead and fatal_end is None:
                fatal_end = now + _FATAL_GRACE
            end = deadline if fatal_end is None else min(deadline, fatal_end)
            if now >= end:
                self.abandon()
                return
            self.poll(min(_POLL, end - now))

    def abandon(self) -> None:
        """Take back what is queued and give up on what is under way; no other use is possible."""
        self.dead = True
        self.producer.purge()
        end = time.monotonic() + _PURGE_GRACE
        while len(self.producer) and time.monotonic() < end:
            self.poll(_POLL / 10)

    def _introduced(self, topic: str, *, timeout: float) -> ClusterMetadata:
        """Ask for a topic, the first time twice, and return the answer.

        librdkafka gets its producer id from a broker when metadata arrive, or half a second later
        (rd_kafka_idemp_pid_fsm). The first answer often finds none: it replaces the connection it
        has come by. Without a second one, every third client sent nothing for half a second.
        """
        found = self._metadata(topic, timeout=timeout)
        if not self._is_known:
            self._is_known = True
            found = self._metadata(topic, timeout=timeout)
        return found

    def _metadata(self, topic: str | None, *, timeout: float) -> ClusterMetadata:
        start = time.monotonic()
        while True:
            waited = time.monotonic() - start
            try:
                # In growing slices: the callback that knows the reason runs between them.
                slice_ = max(0.01, min(timeout - waited, max(1.0, waited)))
                found: ClusterMetadata = self.producer.list_topics(topic, timeout=slice_)
                return found
            except KafkaException as error:
                self.poll(0)
                waited = time.monotonic() - start
                refused = self._complaint is not None and waited >= _PATIENCE
                if waited >= timeout or refused:
                    raise Unreachable(self._sentence(waited, error)) from error

    def cause_of(self, error: KafkaException) -> str:
        """Return why something failed: the last trouble with a connection, else the error itself.

        Args:
            error: of the library.
        """
        complaint = self._complaint if error.args[0].retriable() else None
        return scrub((complaint or error.args[0]).str(), secrets=self._settings.secrets)

    def _sentence(self, waited: float, error: KafkaException) -> str:
        cause = self._complaint.str() if self._complaint is not None else error.args[0].str()
        sentence = f"no broker of {self._settings.bootstrap} answered within {waited:.0f} s"
        return scrub(f"{sentence}: {cause}", secrets=self._settings.secrets)

    def _on_error(self, error: KafkaError) -> None:
        self.may_have_repeated = True
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # its text has no cause
            self._complaint = error
