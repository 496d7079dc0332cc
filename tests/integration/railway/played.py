"""Relays that die without a word where a call is never answered, on a clock that a test moves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration.outboxes import Store, as_if_ended, open_store
from tests.integration.railway.served_parties import Parties
from tests.unit.workflow_engine import categories

from delta_outbox.api import Outbox
from delta_outbox.core.clock import SystemClock
from delta_outbox.core.literals import instant_literal
from delta_outbox.core.settings import (
    PublisherSettings,
    RelaySettings,
    SecretMapping,
    Settings,
    ThirdPartySettings,
    WorkflowSettings,
)
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.railway.modules import load
from delta_outbox.railway.rows import joined, rows_of
from delta_outbox.relay import Mode, Relay
from delta_outbox.relay.summary import Run
from delta_outbox.workflow_engine.execution.tasks import Tasks
from delta_outbox.workflow_engine.hosts.call import Setup
from delta_outbox.workflow_engine.hosts.pool import HostPool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_outbox.runtime.home import Home

AUTHOR = Path(__file__).parent / "author"
MODULES = ("categories_served",)
LONGEST = timedelta(days=400).total_seconds()
A_WHILE = 2.0  # seconds that pass at least, so that what is due soon is due together
MOST_ROUNDS = 400  # until all that is open has ended


class Time:
    """The time of this machine, and what a test has added to it.

    Args:
        follows: is told what is added, in seconds.
    """

    def __init__(self, follows: Callable[[float], None]) -> None:
        self._follows = follows
        self._added = 0.0

    def now(self) -> datetime:
        """Return the current instant: aware, in UTC, with microseconds."""
        return datetime.now(UTC) + timedelta(seconds=self._added)

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic() + self._added

    def sleep(self, seconds: float) -> None:
        """Wait, as code does that waits for somebody else."""
        time.sleep(max(0.0, seconds))

    def add(self, seconds: float) -> None:
        """Let time pass at once.

        Args:
            seconds: how much.
        """
        self._added += seconds
        self._follows(seconds)


class _Stop(threading.Event):
    """Stops a relay when what it has in flight will never be answered."""

    def __init__(self, hangs: Callable[[], bool]) -> None:
        super().__init__()
        self._hangs = hangs

    def is_set(self) -> bool:
        return self._hangs()


class PlayedRelay(Relay):
    """A relay that is never told to end.

    Args:
        outbox: its store.
        tasks: what runs its tasks.
        parties: the third parties.
    """

    def __init__(self, outbox: Outbox, tasks: Tasks, parties: Parties) -> None:
        super().__init__(outbox, tasks=tasks)
        self.outbox, self._own_tasks, self._parties = outbox, tasks, parties
        self._destinations.prepare()
        self._planning.start()
        self._heart.beat("started")

    def go(self) -> None:
        """Go on until nothing is due, or only calls are in flight that will never be answered."""
        self._loop(Run(mode=Mode.DRAIN, max_wait=0.0, stop=_Stop(self.hangs)))

    def hangs(self) -> bool:
        """Say whether only calls are in flight that will never be answered, and all else that it
        knows is on record.
        """
        called = {
            event_id
            for held in self._flight.held()
            for event_id in held.claim.deliveries["event_id"].to_pylist()
        }
        return (
            bool(called)
            and not self._decided
            and called <= self._parties.unanswered(self.outbox.worker_id)
        )

    def seconds_to_wait(self) -> float:
        """Return the seconds until something is due, as far as it knows."""
        return self._planning.seconds_to_wait()

    def die(self) -> None:
        """Die without a word: what is in flight is cut off, and nothing more is on record. Others
        know it at once, as of a process that has ended.
        """
        self._own_tasks.close()
        self._planning._freshness.close()
        self._flight.close()
        self.outbox.close()
        as_if_ended(self.outbox)

    def end(self) -> None:
        """Finish what is in flight, record it, and end."""
        self._finish(Run(mode=Mode.DRAIN, max_wait=0.0, stop=threading.Event()))
        self._planning.finish()
        self._heart.beat("stopped")
        self._own_tasks.close()
        self.outbox.close()
        as_if_ended(self.outbox)


@dataclass
class Play:
    """An outbox with the workflows of `author/categories_served.py`, and whoever works on it.

    Args:
        store: the outbox.
        parties: the third parties.
    """

    store: Store
    parties: Parties
    time: Time = field(init=False)
    settings: Settings = field(init=False)

    def __post_init__(self) -> None:
        self.time = Time(self.parties.add_time)
        names = [one.third_party for one in categories.SINGLE]
        table = ThirdPartySettings(settings=SecretMapping({"port": self.parties.port}))
        self.settings = Settings(
            relay=RelaySettings(batch_size=1000, poll_seconds=0.05, parallelism=2),
            publishers={"default": PublisherSettings(type="null")},
            workflows=WorkflowSettings(modules=MODULES),
            third_parties=dict.fromkeys(names, table),
        )

    def relay(self) -> PlayedRelay:
        """Return a relay that has begun."""
        outbox = self.store.open(self.settings, clock=self.time)
        tables = {
            name: SecretMapping({**table, "worker": outbox.worker_id})
            for name, table in self.settings.of_third_parties.items()
        }
        setup = Setup(modules=MODULES, folder=AUTHOR, third_parties=tables)
        start_hosts = partial(HostPool, clock=self.time)
        return PlayedRelay(outbox, Tasks(outbox, setup, start_hosts=start_hosts), self.parties)

    def start(self, *given: tuple[str, str, str]) -> None:
        """Append start events.

        Args:
            given: of each the id, the workflow, and the payload.
        """
        now = instant_literal(self.time.now())
        rows = [(event_id, f"{name}.asked", payload) for event_id, name, payload in given]
        self.store.insert(*rows, created_at=now, appended_at=now)

    def run_to_the_end(self) -> None:
        """Let relays go on, one after the other, until nothing is due any more.

        One that hangs dies, and time passes when there is nothing to do.
        """
        relay = self.relay()
        for _ in range(MOST_ROUNDS):
            relay.go()
            if relay.hangs():
                relay.die()
                relay = self.relay()
            elif (seconds := relay.seconds_to_wait()) < LONGEST:
                self.time.add(max(A_WHILE, seconds))
            else:
                relay.end()
                return
        raise AssertionError("it does not come to an end")


@contextmanager
def opened_play(spark: SparkSession, home: Home, schema: str, parties: Parties) -> Iterator[Play]:
    """Make an outbox in a schema with the workflows in force, and drop it afterwards.

    Args:
        spark: the session of the process.
        home: the home of the run.
        schema: of the outbox.
        parties: the third parties.
    """
    with open_store(spark, home, schema) as store:
        rows = joined(rows_of(one) for one in load(list(MODULES), AUTHOR))
        writes = NumberedWrites(spark, store.tables, writer="workflows", clock=SystemClock())
        assert writes.append_after(None, {"version": "1", "rows": rows}, planned_by="tests")
        yield Play(store, parties)


def ended_tasks(store: Store) -> dict[str, list[tuple[str, str | None]]]:
    """Return by task the reasons and outcomes of the transitions that have ended it.

    Args:
        store: the outbox.
    """
    found: dict[str, list[tuple[str, str | None]]] = {}
    for row in store.rows(
        f"select event_id, reason, outcome from {store.tables.transitions} "
        "where to_state in ('PUBLISHED', 'DEAD') and reason != 'delivered' "
        "order by epoch, lane, sequence"
    ):
        found.setdefault(row["event_id"], []).append((row["reason"], row["outcome"]))
    return found


def last_events(store: Store) -> dict[str, str]:
    """Return by instance the type of the event that has ended it.

    Args:
        store: the outbox.
    """
    rows = store.rows(
        f"select event_id, event_type from {store.tables.events} "
        "where startswith(event_id, 'workflow:')"
    )
    assert len({row["event_id"] for row in rows}) == len(rows)
    return {row["event_id"]: row["event_type"] for row in rows}
