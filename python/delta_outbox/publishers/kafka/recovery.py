"""What became of the transactions of unresolved claims: end what is open, read what was committed.

Called after the deadline of the claims, so every transaction that may still be committed has its
marker in the topic. In this order:

1. read all markers, committed or not: they name the transactions of the claims;
2. begin anew under each of these names: the broker aborts what is open, completes a commit that is
   under way, and refuses whoever had the name before;
3. read the committed markers up to the last of the claims: what they list was delivered.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from delta_outbox.core.redaction import scrub
from delta_outbox.lifecycle.results import Delivered
from delta_outbox.publishers.kafka.client import KafkaClient
from delta_outbox.publishers.kafka.marker import Marker, topic_configuration
from delta_outbox.publishers.kafka.settings import KafkaSettings
from delta_outbox.publishers.protocol import Recovered, UnresolvedClaim

_AT_ONCE: Final = 1000
_WAIT: Final = 0.1  # seconds
_FENCES: Final = 8  # at the same time
_NOTHING_YOUNGER: Final = -1  # says `offsets_for_times` instead of an offset
_PASSING: Final = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)

Offsets = dict[int, int]  # partition -> offset
Place = tuple[int, int]  # partition, offset


class StillOpen(ConnectionError):
    """Committed markers cannot be read yet, because somebody's transaction is open before them."""


def recover(
    settings: KafkaSettings, unresolved: Sequence[UnresolvedClaim], timeout: float
) -> Recovered:
    """Say what of each claim was delivered; nothing more of them will be.

    Args:
        settings: of a destination that delivers exactly once.
        unresolved: its claims; the deadlines of their calls have passed.
        timeout: seconds to wait.

    Raises:
        ConnectionError: it cannot be said now; one sentence why.
    """
    deadline = time.monotonic() + timeout
    try:
        return _Recovery(settings, unresolved, deadline).run()
    except TimeoutError:
        raise ConnectionError(f"no broker of {settings.bootstrap} answered in time.") from None
    except KafkaException as error:
        cause = scrub(error.args[0].str(), secrets=settings.secrets)
        raise ConnectionError(f"what was committed cannot be read: {cause}") from None


class _Recovery:
    def __init__(
        self, settings: KafkaSettings, unresolved: Sequence[UnresolvedClaim], deadline: float
    ) -> None:
        assert settings.exactly_once is not None
        self._settings = settings
        self._topic = settings.exactly_once.marker_topic
        self._group = settings.exactly_once.group
        self._claims = {(one.claim_id, one.destination) for one in unresolved}
        self._since = min(one.since for one in unresolved)
        self._deadline = deadline

    def run(self) -> Recovered:
        self._check_memory()
        with self._consumer(committed=False) as consumer:
            starts = self._starts(consumer)
            found = self._read(consumer, starts, self._ends(consumer))
        fence(
            self._settings,
            {marker.transactional_id for marker in found.values()},
            timeout=self._left(),
        )
        recovered: dict[str, dict[str, Delivered]] = {one: {} for one, _ in self._claims}
        if found:
            with self._consumer(committed=True) as consumer:
                committed = self._read(consumer, starts, self._await_commits(consumer, found))
            for place in found.keys() & committed.keys():
                receipt = {"marker": {"topic": self._topic, "partition": place[0]}}
                receipt["marker"]["offset"] = place[1]
                marker = committed[place]
                of_claim = recovered[marker.claim_id]
                of_claim |= dict.fromkeys(marker.deliveries, Delivered(receipt=receipt))
        return recovered

    def _left(self) -> float:
        return max(_WAIT, self._deadline - time.monotonic())

    def _check_memory(self) -> None:
        """Raise if the topic may have forgotten markers of the claims."""
        admin = AdminClient({**self._settings.connection, "log_level": 0})
        kept = int(topic_configuration(admin, self._topic, self._left())["retention.ms"])
        if kept >= 0 and datetime.now(UTC) - self._since >= timedelta(milliseconds=kept):
            raise ConnectionError(
                f"the claims are older than what the marker topic {self._topic!r} keeps "
                f"(retention.ms = {kept}): look at the destination, then let the relay end them "
                'with `delivery = "at_least_once"`.'
            )

    @contextmanager
    def _consumer(self, *, committed: bool) -> Iterator[Consumer]:
        consumer = Consumer(
            {
                **self._settings.connection,
                "group.id": self._group,  # required, but nothing is committed under it
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "log_level": 0,
            }
        )
        try:
            yield consumer
        finally:
            consumer.close()

    def _partitions(self, consumer: Consumer) -> list[int]:
        found = consumer.list_topics(self._topic, timeout=self._left()).topics[self._topic]
        if found.error is not None:
            raise KafkaException(found.error)
        return list(found.partitions)

    def _starts(self, consumer: Consumer) -> Offsets:
        """Return where to begin: the first record that is young enough."""
        millis = int(self._since.timestamp() * 1000)
        asked = [TopicPartition(self._topic, p, millis) for p in self._partitions(consumer)]
        found = consumer.offsets_for_times(asked, timeout=self._left())
        return {one.partition: one.offset for one in found if one.offset > _NOTHING_YOUNGER}

    def _ends(self, consumer: Consumer) -> Offsets:
        """Return where the topic ends; for committed records, where the first that is open lies."""
        return {number: self._high(consumer, number) for number in self._partitions(consumer)}

    def _high(self, consumer: Consumer, partition: int) -> int:
        while True:
            place = TopicPartition(self._topic, partition)
            try:
                _, high = consumer.get_watermark_offsets(place, timeout=self._left())
            except KafkaException as error:
                # Just after a start a broker may be named the leader before it knows.
                if error.args[0].code() not in _PASSING or time.monotonic() >= self._deadline:
                    raise
                time.sleep(_WAIT)
            else:
                return int(high)

    def _await_commits(self, consumer: Consumer, found: Collection[Place]) -> Offsets:
        """Wait until the fate of all that was found is decided; return the ends to read up to.

        Ours have ended, but what somebody else has begun before them hides them until it ends too.
        """
        last: Offsets = {}
        for partition, offset in found:
            last[partition] = max(offset, last.get(partition, 0))
        while True:
            stable = self._ends(consumer)
            if all(stable[partition] > offset for partition, offset in last.items()):
                return {partition: offset + 1 for partition, offset in last.items()}
            if time.monotonic() >= self._deadline:
                raise StillOpen(
                    f"another transaction of the marker topic {self._topic!r} is still open."
                )
            time.sleep(_WAIT)

    def _read(self, consumer: Consumer, starts: Offsets, ends: Offsets) -> dict[Place, Marker]:
        """Return the markers of the claims by their places."""
        open_ = {
            partition: end
            for partition, end in ends.items()
            if partition in starts and starts[partition] < end
        }
        found: dict[Place, Marker] = {}
        consumer.assign([TopicPartition(self._topic, p, starts[p]) for p in open_])
        while open_:
            if time.monotonic() >= self._deadline:
                raise ConnectionError(f"the marker topic {self._topic!r} does not answer.")
            for message in consumer.consume(_AT_ONCE, timeout=_WAIT):
                partition, offset = message.partition() or 0, message.offset() or 0
                error = message.error()
                if error is None:
                    marker = Marker.parse(_bytes(message.key()), _bytes(message.value()))
                    if marker and (marker.claim_id, marker.destination) in self._claims:
                        found[partition, offset] = marker
                    offset += 1
                elif error.code() != KafkaError._PARTITION_EOF:
                    if error.retriable():
                        continue
                    raise KafkaException(error)
                # The end of a partition lies behind whatever is not shown there.
                if partition in open_ and offset >= open_[partition]:
                    del open_[partition]
        return found


def fence(settings: KafkaSettings, transactional_ids: Collection[str], *, timeout: float) -> None:
    """End what is open under each name, and refuse whoever had it before.

    Args:
        settings: of the destination.
        transactional_ids: the names.
        timeout: seconds to wait.

    Raises:
        KafkaException: one of them could not be taken.
    """
    if not transactional_ids:
        return
    with ThreadPoolExecutor(_FENCES, thread_name_prefix="fence") as pool:
        list(pool.map(partial(_fence, settings, timeout), sorted(transactional_ids)))


def _fence(settings: KafkaSettings, timeout: float, transactional_id: str) -> None:
    client = KafkaClient(settings, timeout=timeout, careful=True, transactional_id=transactional_id)
    client.init_transactions(timeout=timeout)
    client.abandon()


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
