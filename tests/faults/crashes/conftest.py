"""A house that is served, an order of events for each crash, and processes that die where told."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.faults.conftest import TOPIC, House, Topic, event_id, runs, wait_for
from tests.faults.oracle import Row, claimed_now, histories_of, rows_of

from delta_outbox.runtime.home import Home, find_home
from delta_outbox.runtime.served_home import find_served
from delta_outbox.runtime.session import using_server

BLOCK = 200  # events of a relay that is killed; no other block has their keys
KEYS_OF_A_BLOCK = 10
LARGE = 1000  # events of a claim that is to be met in the middle: a slice looks every 256 events
LEASE = 600  # seconds; nothing runs out while relays are killed one after the other
URGENT = "order.urgent"  # a type whose lease is short
URGENT_LEASE = 20  # seconds

MARK = "outbox/projection/"  # of the commits that hold the rows of a plan, before its number
END_LIMIT = 15.0  # seconds; from the death of a driver to the end of all that it started

SETTINGS = f"batch_size = {LARGE}\nparallelism = 2\nclock_skew_seconds = 0"  # there is one clock

# Frozen in a worker of the server, once the mark is removed.
SERVED_POINT = "kafka.sending@2=worker:stop"


@dataclass(frozen=True, kw_only=True)
class Crash:
    """A crash.

    Args:
        at: seconds since 1970.
        in_flight: the ids of the events that were claimed then.
    """

    at: float
    in_flight: frozenset[str]


@dataclass(kw_only=True)
class Scene:
    """The house in which all crashes happen, one after the other.

    Args:
        house: the house.
        home: its home.
        topic: the topic that everything goes to.
        server: `outbox serve`.
        mark: of the server's failpoint; as long as the file is there, nothing happens.
        given: all events by id, in the order of the log: key and payload.
        crashes: by the name of their point.
        local_since: seconds since 1970 at which the first local relay was started.
    """

    house: House
    home: Home
    topic: Topic
    server: subprocess.Popen[str]
    mark: Path
    given: dict[str, Row] = field(default_factory=dict)
    crashes: dict[str, Crash] = field(default_factory=dict)
    local_since: float = 0.0

    def sql(self, *statements: str) -> None:
        """Run statements through the server, as any Spark Connect client does."""
        served = find_served(self.home)
        assert served is not None
        with using_server(served.url) as spark:
            for statement in statements:
                spark.sql(statement)

    def some(self, count: int, *, event_type: str = TOPIC) -> str:
        """Return the insert of events that follow those that were given so far."""
        first = len(self.given)
        for number in range(first, first + count):
            self.given[event_id(number)] = {
                "ordering_key": f"key-{number // BLOCK}-{number % KEYS_OF_A_BLOCK}",
                "payload": str(number).encode(),
            }
        return (
            "insert into outbox.outbox_events "
            "(event_id, event_type, payload, ordering_key, ordinal) "
            f"select concat('event-', lpad(id, 5, '0')), '{event_type}', "
            f"cast(cast(id as string) as binary), "
            f"concat('key-', id div {BLOCK}, '-', id % {KEYS_OF_A_BLOCK}), id "
            f"from range({first}, {first + count})"
        )

    def killed(self, point: str, *words: str) -> int:
        """Run a command until it ends by a crash at a point, and return its exit code.

        What it has started is gone by then, and in `crashes` is what it leaves in flight.
        """
        before = self.in_flight()
        process = self.house.start(*words, OUTBOX_FAILPOINT=point)
        started: list[psutil.Process] = []

        def is_over() -> bool:
            if process.poll() is not None:
                return True
            found = psutil.Process(process.pid).children(recursive=True)
            started[:] = found or started
            return False

        try:
            wait_for(is_over, interval=0.2)
        finally:
            ended(process)
        wait_for(lambda: not any(map(runs, started)), limit=END_LIMIT)
        left = self.in_flight() - before
        self.crashes[point] = Crash(at=time.time(), in_flight=left)
        return process.returncode

    def in_flight(self) -> frozenset[str]:
        """Return the ids of the events that are claimed now."""
        return frozenset().union(*claimed_now(self.histories()).values())

    def histories(self) -> dict[str, list[Row]]:
        """Return the transitions of every event, each history legal."""
        return histories_of(rows_of(self.house.log("transitions")))

    def unfinished_plans(self) -> int:
        """Return how many plans of the projection have no rows in it, though they are to have some:
        one that only says that there is nothing new has none.
        """
        applied = 0
        for commit in sorted((self.house.log("state") / "_delta_log").glob("*.json")):
            for action in map(json.loads, commit.read_text().splitlines()):
                mark = str(action.get("commitInfo", {}).get("userMetadata"))
                if mark.startswith(MARK):
                    applied = int(mark.removeprefix(MARK))
        return sum(is_news for number, is_news in self._plans() if number > applied)

    def refresh_after_no_news(self) -> None:
        """Refresh if the last plan has no rows: whoever is next finds its number taken."""
        _, is_news = max(self._plans())
        if not is_news:
            self.sql(self.some(1))
            self.house.run("refresh")

    def _plans(self) -> list[tuple[int, bool]]:
        return [
            (row["number"], _has_news(json.loads(row["plan"])))
            for row in rows_of(self.house.log("progress"))
            if row["writer"] == "projection"
        ]

    def published(self) -> str:
        """Return the id of an event that is PUBLISHED; deliver some if there is none."""
        if not self._published():
            self.sql(self.some(BLOCK))
            self.house.run("relay", "--once")
        return self._published()[0]

    def _published(self) -> list[str]:
        histories = self.histories().items()
        return [key for key, history in histories if history[-1]["to_state"] == "PUBLISHED"]

    def stop_serving(self) -> None:
        """End the server, if that was not done before: what comes now has the home for itself."""
        if self.server.poll() is None:
            self.server.terminate()
            self.house.end(self.server)
            self.local_since = time.time()


def _has_news(plan: dict[str, Any]) -> bool:
    logs = (plan[log] for log in ("events", "transitions", "commands"))
    return plan["rebuild"] or any(log["after"] != log["to"] for log in logs)


def ended(process: subprocess.Popen[str]) -> str:
    """End a process at once, if it still runs, and return what it said."""
    process.kill()
    output, _ = process.communicate()
    return output


@pytest.fixture(scope="module")
def scene(
    _topic: Topic,
    tmp_path_factory: pytest.TempPathFactory,
    plain_environment: dict[str, str],
) -> Iterator[Scene]:
    """Return a house with Kafka as its destination, served."""
    place = tmp_path_factory.mktemp("crashes")
    root, mark = place / "home", place / "mark"
    home = find_home(environ={"OUTBOX_HOME": str(root)}, create=True)
    house = House(root=root, environment={**plain_environment, "OUTBOX_HOME": str(root)})
    house.settings(
        f'type = "kafka"\n"bootstrap.servers" = "{_topic.bootstrap}"\ntopics = ["{TOPIC}"]',
        relay=SETTINGS,
    )
    mark.touch()
    server = house.start(
        "serve", "--short-lived", OUTBOX_FAILPOINT=SERVED_POINT, OUTBOX_FAILPOINT_MARK=str(mark)
    )
    try:
        wait_for(lambda: find_served(home) is not None or server.poll() is not None)
        assert server.poll() is None, house.errors.read_text()[-3000:]
        assert (0, {"home": str(root), "schema": "outbox"}) == house.run("init")
        scene = Scene(house=house, home=home, topic=_topic, server=server, mark=mark)
        scene.sql(
            "insert into outbox.policy_rows (position, event_type, event_type_regex, destination, "
            "route, format, ordering, order_scope, on_dead, lease_seconds) values "
            + ", ".join(
                f"({position}, '{name}', '^{name}$', 'default', '{TOPIC}', 'raw', 'strict', "
                f"'key', 'continue', '{lease}')"
                for position, name, lease in ((-2, URGENT, URGENT_LEASE), (-1, TOPIC, LEASE))
            )
        )
        yield scene
    finally:
        ended(server)
