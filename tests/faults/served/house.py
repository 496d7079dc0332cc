"""A house whose home is served, and what the tests of this folder do with it."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from tests.faults.conftest import KEYS, TOPIC, House, event_id, wait_for

from delta_outbox.api import Outbox
from delta_outbox.publishers.jsonl import read_lines
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.served_home import find_served
from delta_outbox.runtime.session import using_server


@dataclass(kw_only=True)
class ServedHouse:
    """A house whose home is served.

    Args:
        house: the house.
        home: its home.
        server: `outbox serve`.
        count: events that were appended so far; their numbers are below that.
    """

    house: House
    home: Home
    server: subprocess.Popen[str]
    count: int = 0

    @property
    def url(self) -> str:
        """Return the address of the server, token included."""
        served = find_served(self.home)
        assert served is not None
        return served.url

    def sql(self, *statements: str) -> None:
        """Run statements through the server, as any Spark Connect client does."""
        with using_server(self.url) as spark:
            for statement in statements:
                spark.sql(statement)

    def append(self, count: int) -> None:
        """Append events whose numbers follow on those of before."""
        self.sql(events(self.count, count))
        self.count += count

    def rows(self, count: int) -> pa.Table:
        """Return events whose numbers follow on those of before, for somebody to append."""
        numbers = range(self.count, self.count + count)
        self.count += count
        return pa.table(
            {
                "event_id": [event_id(number) for number in numbers],
                "event_type": [TOPIC] * count,
                "payload": [b"%d" % number for number in numbers],
            }
        )

    def delivered(self) -> Counter[int]:
        """Return how often each event was delivered, by number."""
        lines = read_lines(self.home.delivered)
        return Counter(int(line["event_id"].removeprefix("event-")) for line in lines)

    def numbers(self, query: str) -> list[int]:
        """Return the first column of a query, asked through the server."""
        with using_server(self.url) as spark:
            return [row[0] for row in spark.sql(query).collect()]

    def shares(self) -> list[int]:
        """Return on how many lanes each relay works that has not stopped, by its last word."""
        return self.numbers(
            "select size(max_by(lanes, at)) from outbox.outbox_relays "
            "group by relay_id having max_by(kind, at) <> 'stopped'"
        )

    def wait_for_delivery(self) -> None:
        """Wait until all events are delivered."""
        wait_for(lambda: set(range(self.count)) <= set(self.delivered()))

    def check_stop(self, mode: str, expected: int) -> None:
        """Stop a relay with SIGTERM in the middle of its work, and check what it leaves.

        Nothing is claimed, and the destination and the log name the same events, each once.

        Args:
            mode: how it runs.
            expected: its exit code.
        """
        before = self.delivered()
        relay = self.house.start("relay", mode)
        wait_for(lambda: self.delivered() != before or relay.poll() is not None)
        assert relay.poll() is None, self.house.errors.read_text()[-3000:]
        relay.send_signal(signal.SIGTERM)
        code, summary = self.house.end(relay)

        states = {number: rows[-1]["to_state"] for number, rows in self.house.histories().items()}
        published = {number for number, state in states.items() if state == "PUBLISHED"}
        assert {"PUBLISHED", "PENDING"} >= set(states.values())
        assert dict.fromkeys(published, 1) == self.delivered()
        assert expected == code
        assert len(published) - len(before) == summary["published"] > 0
        assert summary["waiting"] > 0


def events(first: int, count: int) -> str:
    """Return the insert of events whose numbers follow on each other."""
    assert event_id(7) == "event-00007"
    return (
        "insert into outbox.outbox_events (event_id, event_type, payload, ordering_key, ordinal) "
        f"select concat('event-', lpad(id, 5, '0')), '{TOPIC}', cast(cast(id as string) as binary),"
        f" concat('key-', id % {KEYS}), id from range({first}, {first + count})"
    )


def started(house: House, home: Home, *words: str, **environment: str) -> subprocess.Popen[str]:
    """Start `outbox serve` and return when it says that it is ready."""
    server = house.start("serve", "--short-lived", *words, **environment)
    wait_for(lambda: find_served(home) is not None or server.poll() is not None)
    assert server.poll() is None, house.errors.read_text()[-3000:]
    return server


def sessions_of(outbox: Outbox) -> list[Any]:
    """Return the sessions of a store at a server: its own, and that of its refreshes."""
    return [outbox.spark, outbox.projection._refreshing._spark]


def killed(process: subprocess.Popen[str]) -> None:
    """End a process at once, if it still runs, and take its output."""
    if process.returncode is None:
        process.kill()
        process.communicate()


@contextmanager
def served_house(
    home: Home, environment: dict[str, str], **of_the_server: str
) -> Iterator[ServedHouse]:
    """Serve a home for a block.

    Args:
        home: with an outbox in which nothing has happened.
        environment: of every command in it.
        of_the_server: the same, for the server alone.
    """
    house = House(root=home.root, environment={**environment, "OUTBOX_HOME": str(home.root)})
    house.settings('type = "jsonl"\npath = "delivered"')
    server = started(house, home, **of_the_server)
    try:
        yield ServedHouse(house=house, home=home, server=server)
    finally:
        killed(server)
