"""The soak itself: events come in, relays deliver them, and again and again something is killed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import psutil
from scripts.soak.evidence import Evidence, Kill
from scripts.soak.folder import Folder, Terms
from scripts.soak.plan import Strike, strikes
from scripts.soak.processes import (
    BATCH_SIZE,
    PATIENCE,
    Processes,
    Relay,
    SoakFailed,
    wait_for,
)
from scripts.soak.producer import POLICY, TOPIC, Producer, event_id
from scripts.soak.reading import event_log, read_appended, read_copies, read_steps, transition_log

from delta_outbox.demo.kafka_server import KafkaServer
from delta_outbox.runtime.session import using_server

PARTITIONS = 4
FREEZE_LIMIT = 1.5  # seconds; a claim may publish for 4 of its lease of 10
NOTICE_LIMIT = 20.0  # seconds; a worker that was not in the middle of anything leaves no trace
TRIES = 3  # kills of a worker until one is noticed
THAW = 0.3  # seconds between two freezes; the broker catches up

SETTINGS = """\
[relay]
batch_size = {batch_size}

[publishers.default]
type = "kafka"
"bootstrap.servers" = "{bootstrap}"
topics = ["{topic}"]
"""


class Open:
    """Counts the events that are open, by the logs."""

    def __init__(self, folder: Folder) -> None:
        self._events = event_log(folder.warehouse)
        self._transitions = transition_log(folder.warehouse)
        self._count = 0

    def __call__(self) -> int:
        """Return how many were appended and are not recorded as PUBLISHED."""
        # First what was published: what is open is never counted as less than it is.
        published = sum(row["to_state"] == "PUBLISHED" for _, row in self._transitions.news())
        self._count += sum(1 for _ in self._events.news()) - published
        return self._count


class Latest:
    """The latest step of each event, by the transition log."""

    def __init__(self, folder: Folder) -> None:
        self._transitions = transition_log(folder.warehouse)
        self._rows: dict[str, dict[str, Any]] = {}
        self.relays: dict[str, str] = {}
        """Who has made each claim, as far as the log was read."""
        self.published_at = 0.0
        """When it was last decided that something is published, in seconds since 1970."""

    def __call__(self) -> dict[str, dict[str, Any]]:
        """Return its row for each event that has one."""
        for _, row in self._transitions.news():
            self._rows[row["event_id"]] = row
            if row["to_state"] == "CLAIMED":
                self.relays[row["claim_id"]] = row["relay_id"]
            elif row["to_state"] == "PUBLISHED":
                self.published_at = max(self.published_at, row["occurred_at"].timestamp())
        return self._rows


class Soak:
    """A soak at work; a block in which everything that it needs runs.

    Args:
        folder: its state.
        terms: what it was begun with.
        say: tells a person what happens.
    """

    def __init__(self, folder: Folder, terms: Terms, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._terms = terms
        self._say = say
        self._kafka = KafkaServer(folder.kafka)
        self._processes = Processes(folder)
        self._producer: Producer | None = None
        self._steps = transition_log(folder.warehouse)
        self._latest = Latest(folder)

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    # --- the run -----------------------------------------------------------------------------

    def kill_all(self, *, minutes: float) -> int:
        """Make the kills that are left, and return how many were made in all.

        A worker whose death nobody noticed was idle; another one is killed, and both count.

        Args:
            minutes: after which no more is begun, counted over all stretches.
        """
        made = len(self._folder.kills())
        for strike in strikes(self._terms.seed, self._terms.kills)[made:]:
            if self._folder.seconds() > minutes * 60:
                break
            kill = self._strike(strike)
            made = kill.number
            self._say(
                f"{made} of {self._terms.kills}: {kill.kind}"
                f"{', the broker frozen' if kill.frozen else ''} "
                f"({self._folder.seconds() / 60:.1f} min)"
            )
        return made

    def finish(self) -> Evidence:
        """Let the relays deliver what is left, and return the evidence.

        Raises:
            SoakFailed: they do not.
        """
        self._stop_producer()
        count = Open(self._folder)
        self._say("delivering what is left")
        # An event that died stays open for ever: the oracle says so, not we.
        progress, least = time.monotonic(), count()
        while least > 0 and time.monotonic() - progress < PATIENCE:
            self._processes.keep_relays()
            time.sleep(0.5)
            if (now := count()) < least:
                progress, least = time.monotonic(), now
        self._folder.note_time()  # until here it ran: what the last kills left was sent as well
        self._processes.end()
        self._say("reading what became of it")
        return Evidence(
            acknowledged=[event_id(number) for number in self._folder.acknowledged()],
            appended=read_appended(self._folder.warehouse),
            steps=read_steps(self._folder.warehouse),
            copies=read_copies(self._kafka.bootstrap, TOPIC),
            kills=self._folder.kills(),
        )

    # --- kills -------------------------------------------------------------------------------

    def _strike(self, strike: Strike) -> Kill:
        if strike.alone:
            wait_for(self._has_standby, "a relay that stands by")
        for attempt in range(1, TRIES + 1):
            kill = self._kill(strike)
            if strike.kind != "worker" or self._is_noticed(kill.at) or attempt == TRIES:
                break
        if strike.alone:
            self._wait_until_over(kill)
        if strike.kind == "jvm":
            self._processes.bury()
            self._stop_producer()
            self._serve()
        self._processes.keep_relays()
        return kill

    def _kill(self, strike: Strike) -> Kill:
        relay = self._relay_at_work()
        time.sleep(strike.wait)  # a random moment, not a condition
        until = time.monotonic() + PATIENCE
        # Relays publish for a part of the time only: a worker is watched for, a window at a time.
        while (at := self._hit(strike, relay)) is None:
            if time.monotonic() > until:
                raise SoakFailed(f"a {strike.kind} at work: none within {PATIENCE:.0f} s")
            self._processes.keep_relays()
            time.sleep(THAW)
        kill = Kill(
            number=len(self._folder.kills()) + 1,
            kind=strike.kind,
            at=at,
            frozen=strike.frozen,
            claim_id=relay.claim_id,
        )
        # Whatever ends us from here on, it was made.
        self._folder.note_kill(kill)
        self._folder.note_time()
        if strike.kind == "relay":
            relay.process.wait()
        return kill

    def _hit(self, strike: Strike, relay: Relay) -> float | None:
        """Kill, and return when; None if there was nothing to kill at this moment."""
        if strike.frozen:
            self._kafka.pause()
        try:
            victim = self._victim(strike, relay)
            if victim is None:
                return None
            if strike.frozen:
                time.sleep(strike.freeze)
            victim.kill()
            return time.time()
        except psutil.NoSuchProcess:
            return None
        finally:
            if strike.frozen:
                self._kafka.resume()

    def _wait_until_over(self, kill: Kill) -> None:
        """Wait until all that a relay had in flight is recorded as published, and another one has
        gone on with the rest; note that.
        """
        latest = self._latest()
        relay_id = self._latest.relays[kill.claim_id]
        left = {
            event
            for event, row in latest.items()
            if row["to_state"] == "CLAIMED" and row["relay_id"] == relay_id
        }

        def is_over() -> bool:
            if not any(relay.lives for relay in self._processes.relays):
                raise SoakFailed("the relay that stood by has ended")
            latest = self._latest()  # that an event died is for the oracle to say
            return self._latest.published_at > kill.at and all(
                latest[event]["to_state"] in ("PUBLISHED", "DEAD") for event in left
            )

        wait_for(is_over, "delivery of what a relay had in flight")
        self._folder.note_kill(replace(kill, alone=True))

    def _is_noticed(self, at: float) -> bool:
        """After the death of a worker: wait until its relay has recorded it, if it does at all.

        The next kill would otherwise come in between, and be taken for the cause.
        """
        until = time.monotonic() + NOTICE_LIMIT
        while time.monotonic() < until:
            for _, row in self._steps.news():
                if row["reason"] == "crashed" and row["occurred_at"].timestamp() > at:
                    return True
            time.sleep(0.1)
        return False

    def _victim(self, strike: Strike, relay: Relay) -> psutil.Process | None:
        if strike.kind == "relay":
            return psutil.Process(relay.process.pid)
        if strike.kind == "jvm":
            return self._processes.jvm()
        until = time.monotonic() + FREEZE_LIMIT - strike.freeze
        while time.monotonic() < until:
            for worker in self._processes.workers(self._kafka.bootstrap):
                return worker
        return None

    def _has_standby(self) -> bool:
        """Say whether one relay is at work, and another one stands by."""
        self._processes.keep_relays()
        batches = [relay.listen() for relay in self._processes.relays]
        stand_by = [relay.stands_by for relay in self._processes.relays]
        return any(stand_by) and any(
            count and not stands for count, stands in zip(batches, stand_by, strict=True)
        )

    def _relay_at_work(self) -> Relay:
        """Wait until a relay has delivered and recorded one batch more, and return it."""
        before = {id(relay): relay.listen() for relay in self._processes.relays}
        found: list[Relay] = []

        def look() -> bool:
            self._processes.keep_relays()
            found.extend(
                relay
                for relay in self._processes.relays
                if relay.listen() > before.get(id(relay), 0)
            )
            return bool(found)

        wait_for(look, "a batch of any relay")
        return found[0]

    # --- what runs ---------------------------------------------------------------------------

    def _begin(self) -> None:
        self._processes.end_leftover()
        self._kafka.start()
        self._kafka.create_topic(
            TOPIC, PARTITIONS, config={"message.timestamp.type": "LogAppendTime"}
        )
        self._processes.home.write_settings(
            SETTINGS.format(batch_size=BATCH_SIZE, bootstrap=self._kafka.bootstrap, topic=TOPIC)
        )
        self._folder.note_time(begins=True)
        self._serve()
        self._processes.keep_relays()

    def _serve(self) -> None:
        url = self._processes.serve()
        if not self._folder.ready.exists():
            self._processes.run("init")
            with using_server(url) as spark:
                spark.sql(POLICY)
            self._folder.ready.touch()
        self._producer = Producer(url, self._folder, Open(self._folder))
        self._producer.start()

    def _stop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.stop()

    def _end(self) -> None:
        # A second signal must not leave half of it running.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        self._stop_producer()
        self._processes.end()
        self._kafka.close()
        self._folder.note_time()
