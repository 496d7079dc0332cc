"""Whatever is at work through a server that closes sessions which nobody uses for some seconds."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from tests.faults.conftest import PATIENCE, wait_for
from tests.faults.served.house import ServedHouse, killed, served_house, sessions_of
from tests.publishers.proxy import Proxy

from delta_outbox.api import Outbox, open_outbox
from delta_outbox.core.errors import SessionClosed
from delta_outbox.demo.ports import free_ports
from delta_outbox.lifecycle.results import NotSent
from delta_outbox.lifecycle.states import State
from delta_outbox.operations.inspection import list_deliveries
from delta_outbox.operations.inspection_filter import Filter
from delta_outbox.runtime import session
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.lasting_session import PAUSE_SECONDS
from delta_outbox.runtime.served_home import find_served
from delta_outbox.runtime.session import own_session, using_server

pytestmark = pytest.mark.rest

# More than a request takes on a busy machine: a server also closes what is at work for longer.
TIME_OUT = 30  # seconds without a request, after which a server closes a session
FORGETFUL = {
    "spark.connect.session.manager.defaultSessionTimeout": f"{TIME_OUT}s",
    "spark.connect.session.manager.maintenanceInterval": "1s",
    "spark.log.level": "INFO",  # so that the server says which sessions it closes
}
SHARED = 40  # events
LOOK = 3.0  # seconds between two looks through the server, which cost a processor


@pytest.fixture(scope="module")
def served(
    made_home: Callable[[Path], Home],
    tmp_path_factory: pytest.TempPathFactory,
    plain_environment: dict[str, str],
) -> Iterator[ServedHouse]:
    """Return a house that such a server serves."""
    home = made_home(tmp_path_factory.mktemp("idle") / "home")
    forgetful = " ".join(f"-D{name}={value}" for name, value in FORGETFUL.items())
    with served_house(home, plain_environment, JDK_JAVA_OPTIONS=forgetful) as house:
        yield house


# `outbox serve`, but with a token that the next one has as well.
SERVE = """
import secrets, sys
from pathlib import Path
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.server import serving
secrets.token_urlsafe = lambda size: "the-same-token-for-both"
with serving(Home(root=Path(sys.argv[1])), port=int(sys.argv[2]), short_lived=True):
    sys.stdin.read()
"""


@contextmanager
def again(served: ServedHouse, port: int) -> Iterator[subprocess.Popen[str]]:
    """Serve the home of a house for a block, at a port and with a token that stay."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(served.home.root), str(port)],
        env=served.house.environment,
        stdin=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(lambda: find_served(served.home) is not None or server.poll() is not None)
        assert server.poll() is None
        yield server
    finally:
        killed(server)


def closed(served: ServedHouse) -> list[str]:
    """Return the sessions that the server has closed because nobody used them."""
    said = r"Found session SessionHolderInfo\([^,]*,([-0-9a-f]{36}),.* that expired"
    logs = served.home.logs.glob("spark*.log")
    return [found for log in logs for found in re.findall(said, log.read_text(errors="replace"))]


def wait_until_forgotten(served: ServedHouse, outbox: Outbox) -> None:
    """Wait until the server has closed all sessions of a store."""
    wanted = {session.session_id for session in sessions_of(outbox)}
    wait_for(lambda: wanted <= set(closed(served)), interval=0.5)


def test_a_stand_by_takes_over(served: ServedHouse) -> None:
    """A relay that has stood by for longer than the server keeps a session takes over from one that
    was killed, delivers what comes, and ends with its refresh; `refresh_seconds` is longer as well.
    """
    served.house.settings('type = "jsonl"\npath = "delivered"', relay="refresh_seconds = 3600")
    owner = served.house.start("relay", "--continuous")
    wait_for(lambda: [1] == served.shares(), interval=LOOK)
    other = served.house.start("relay", "--continuous")
    wait_for(lambda: [1, 1] == served.shares(), interval=LOOK)
    served.append(SHARED)
    served.wait_for_delivery()
    # Of each relay the session that it was opened with, and that of its refreshes.
    wait_for(lambda: len(closed(served)) >= 4, interval=0.5)
    killed(owner)
    served.append(SHARED)
    served.wait_for_delivery()
    other.send_signal(signal.SIGTERM)
    code, summary = served.house.end(other)
    assert 0 == code, summary
    assert Counter(range(served.count)) == served.delivered()
    assert [0] == served.numbers("select count(*) from outbox.outbox where state <> 'PUBLISHED'")


def test_python_goes_on_after_a_pause(served: ServedHouse) -> None:
    """Append, refresh, list and claim work after a pause that is longer than the server keeps a
    session.
    """
    with open_outbox(home=served.home) as outbox:
        assert 1 == outbox.append(served.rows(1)).appended
        outbox.refresh()
        wait_until_forgotten(served, outbox)
        assert 1 == outbox.append(served.rows(1)).appended
        wait_until_forgotten(served, outbox)
        outbox.refresh()
        assert 2 == len(list_deliveries(outbox, Filter(limit=10, states=(State.PENDING,)))[0])
        claim = outbox.claim(10)
        assert claim is not None
        wait_until_forgotten(served, outbox)
        endings = outbox.end(claim, [NotSent()] * len(claim))
        assert [State.PENDING] * 2 == [ending.to_state for ending in endings]
        wait_until_forgotten(served, outbox)
        assert outbox.claim(10) is not None


def test_a_session_of_the_user_is_not_guessed(served: ServedHouse) -> None:
    """A session made anew has the settings, the catalog and the database of the one before; one of
    the user that the server has closed is refused, with the remedy.
    """
    with using_server(served.url) as spark:
        spark.sql("create database if not exists `other`")
        spark.sql("use `other`")
        spark.conf.set("spark.sql.shuffle.partitions", "3")
        given: Any = spark
        own: Any = own_session(spark)
        before = own.session_id
        for one in (given, own):
            one.client.release_session()
        time.sleep(PAUSE_SECONDS)  # after which a server is asked
        assert "3" == own.conf.get("spark.sql.shuffle.partitions")
        assert before != own.session_id
        assert ("spark_catalog", "other") == (
            own.catalog.currentCatalog(),
            own.catalog.currentDatabase(),
        )
        own.stop()
        with pytest.raises(SessionClosed, match="was not used for longer"):
            own_session(spark)


def test_a_connection_that_was_dropped_without_a_word(
    served: ServedHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where something between us and a server has forgotten the connection and says so to nobody, a
    request waits as long as the settings of the channel say, and goes on over a new connection: it
    is carried out once.
    """
    monkeypatch.setattr(session, "KEEPALIVE", dict.fromkeys(session.KEEPALIVE, 4_000))
    server = urlparse(served.url)
    with Proxy() as proxy, ThreadPoolExecutor(1) as aside:
        assert server.port is not None
        proxy.target = server.port
        with using_server(served.url.replace(f":{server.port}", f":{proxy.port}")) as spark:
            own = own_session(spark)
            insert = "insert into outbox.outbox_events (event_id, event_type, payload) values"
            for number, one in enumerate((spark, own)):
                assert 1 == one.range(1).count()
                before = proxy.accepted
                proxy.forget()
                text = f"{insert} ('dropped-{number}', 'x', cast('x' as binary))"
                aside.submit(one.sql, text).result(PATIENCE)  # an INSERT is carried out at once
                assert proxy.accepted > before
            own.stop()
    found = "select count(*) from outbox.outbox_events where startswith(event_id, 'dropped-')"
    assert [2] == served.numbers(found)


def test_a_server_that_began_anew_is_met_again(served: ServedHouse) -> None:
    """What was idle while its server ended and began anew, at the same address, goes on."""
    killed(served.server)
    (port,) = free_ports(1)
    with ExitStack() as servers:
        first = servers.enter_context(again(served, port))
        with open_outbox(home=served.home) as outbox:
            assert 1 == outbox.append(served.rows(1)).appended
            before = [session.session_id for session in sessions_of(outbox)]
            killed(first)
            servers.enter_context(again(served, port))
            assert 1 == outbox.append(served.rows(1)).appended
            outbox.refresh()
            after = [session.session_id for session in sessions_of(outbox)]
            assert not set(before) & set(after)
