"""`outbox up` and `down` as users run them: what races, kills and relays at work leave."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.faults.conftest import House, event_id, runs, wait_for
from tests.faults.served.house import events

from delta_outbox.publishers.jsonl import read_lines
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.served_home import find_served
from delta_outbox.runtime.session import using_server

pytestmark = pytest.mark.rest

UP = ("up", "--short-lived")
BACKLOG = 3000  # events, six batches


@pytest.fixture(scope="module")
def house(
    made_home: Callable[[Path], Home],
    tmp_path_factory: pytest.TempPathFactory,
    plain_environment: dict[str, str],
) -> Iterator[House]:
    """Return a house; what is up in it at the end ends."""
    home = made_home(tmp_path_factory.mktemp("up") / "home")
    house = House(root=home.root, environment={**plain_environment, "OUTBOX_HOME": str(home.root)})
    house.settings('type = "jsonl"\npath = "delivered"')
    yield house
    house.run("down")


def test_two_at_once_start_one_server(house: House) -> None:
    """Two `outbox up` at the same moment both return when the home is up, and one of them has
    started its server; a command says by which process it is up, and since when.
    """
    ends = [house.end(up) for up in [house.start(*UP), house.start(*UP)]]
    assert [0, 0] == [code for code, _ in ends], ends
    one, other = (document for _, document in ends)
    assert {True, False} == {one.pop("started"), other.pop("started")}
    assert one == other
    code, status = house.run("status")
    assert (0, {name: one[name] for name in ("address", "pid", "since")}) == (
        code,
        status["server"],
    )


def test_a_killed_server_is_replaced(house: House) -> None:
    """After a kill of the server, `outbox up` starts another one, and nothing of the first is
    left.
    """
    _, first = house.run(*UP)
    server = psutil.Process(first["pid"])
    started = [server, *server.children(recursive=True)]
    assert "java" in {process.name() for process in started}
    os.kill(first["pid"], signal.SIGKILL)
    code, second = house.run(*UP)
    assert (0, True) == (code, second["started"])
    assert first["pid"] != second["pid"]
    assert not any(map(runs, started))


def test_a_relay_at_work_loses_nothing_by_down(house: House) -> None:
    """`outbox down` names the relay that works through the server; that one ends with an error, and
    the next relay delivers what is left.
    """
    house.run(*UP)
    home = Home(root=house.root)
    served = find_served(home)
    assert served is not None
    with using_server(served.url) as spark:
        spark.sql(events(0, BACKLOG))
    relay = house.start("relay", "--continuous")
    wait_for(lambda: any(read_lines(home.delivered)) or relay.poll() is not None)
    code, ended = house.run("down")
    assert (0, True, served.pid) == (code, ended["ended"], ended["pid"])
    assert 1 == len(ended["relays"])
    with home.locked():
        pass
    code, document = house.end(relay)
    assert (2, "SERVER_UNREACHABLE") == (code, document["error"]["code"])
    assert ended["relays"][0] in house.errors.read_text()

    assert 0 == house.run("relay", "--drain")[0]
    delivered = Counter(line["event_id"] for line in read_lines(home.delivered))
    assert {event_id(number) for number in range(BACKLOG)} == set(delivered)
    code, again = house.run("down")
    assert (0, False) == (code, again["ended"])
