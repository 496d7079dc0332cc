"""Several processes at work on one home through `outbox serve`, and what a kill leaves behind.

Of the two folders of truth, one is read as the log's own files (`House.histories` demands that
every claim is ended before the next begins), the other is what was delivered.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.client import ChannelBuilder, DefaultChannelBuilder, SparkConnectClient
from tests.faults.conftest import KEYS, PATIENCE, TOPIC, event_id, runs, wait_for
from tests.faults.oracle import rows_of
from tests.faults.served.house import ServedHouse, killed, served_house, sessions_of, started
from tests.integration.sockets import listening

from delta_outbox.api import Outbox, open_outbox
from delta_outbox.cli.answers import ANSWERED, told_by_server
from delta_outbox.cli.outcome import Invocation
from delta_outbox.cli.parser import parse
from delta_outbox.core.clock import CLOCK_OFFSET_VARIABLE
from delta_outbox.core.errors import HomeInUse, ServerUnreachable, ToldError
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.commits import read_commit
from delta_outbox.delta.files.served_commits import ServedStore
from delta_outbox.operations.inspection import list_deliveries
from delta_outbox.operations.inspection_filter import Filter
from delta_outbox.runtime.connect import is_forgotten, keep_apart
from delta_outbox.runtime.dead_clients import LOOK_SECONDS
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.lasting_session import PAUSE_SECONDS
from delta_outbox.runtime.served_home import find_served
from delta_outbox.runtime.session import remote_session, using_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A client that is killed: who it is to the server, its session, and then silence.
CLIENT = """
import sys, time
from pathlib import Path
from delta_outbox.api import open_outbox
from delta_outbox.runtime.home import Home
with open_outbox(home=Home(root=Path(sys.argv[1]))) as outbox:
    print(outbox.spark.client._user_id, outbox.spark.session_id, sep="\\t", flush=True)
    time.sleep(600)
"""

LAUNCHER = "from delta_outbox.cli.dbt_launcher import main; exit(main())"

BACKLOG = 3000  # events that two relays share
SHARED = 400  # events for relays that share the lanes, with both alive and with one
LOOK = 3.0  # seconds between two looks through the server, which cost a processor
END_LIMIT = 30.0  # seconds from the death of `outbox serve` to the end of all that it started


@pytest.fixture(scope="module")
def served(
    made_home: Callable[[Path], Home],
    tmp_path_factory: pytest.TempPathFactory,
    plain_environment: dict[str, str],
) -> Iterator[ServedHouse]:
    """Return a house that is served."""
    home = made_home(tmp_path_factory.mktemp("served") / "home")
    with served_house(home, plain_environment) as house:
        yield house


@pytest.mark.rest
def test_two_relays_drain_one_backlog(served: ServedHouse) -> None:
    """Two relay processes through one server publish everything once, and no event is ever under
    two live claims; a path in the settings means the same to both as to a local relay.
    """
    served.append(BACKLOG)
    relays = [served.house.start("relay", "--drain") for _ in range(2)]
    ends = [served.house.end(relay) for relay in relays]
    assert [0, 0] == [code for code, _ in ends], ends
    assert BACKLOG == sum(summary["published"] for _, summary in ends)
    assert Counter(range(BACKLOG)) == served.delivered()
    histories = served.house.histories()
    assert set(range(BACKLOG)) == set(histories)
    for history in histories.values():
        # A busy machine may use up a deadline: what was not sent then is released and claimed anew.
        *before, last = [row["to_state"] for row in history]
        assert "PUBLISHED" == last
        assert "PUBLISHED" not in before


@pytest.mark.rest
def test_stopped_drain_leaves_nothing_open(served: ServedHouse) -> None:
    """After SIGTERM a drain has finished what it had begun; what waits is a finding for it."""
    served.append(BACKLOG)
    served.check_stop("--drain", 1)


def test_dbt_finds_the_server(served: ServedHouse, tmp_path: Path) -> None:
    """The dbt launcher finds the server too: without flags, in any folder, at the target that it
    has by default.
    """
    served.append(1)
    query = "select count(*) as events from outbox.outbox_events"
    ended = subprocess.run(
        [sys.executable, "-c", LAUNCHER, "show", "--output", "json", "--inline", query],
        env=served.house.environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert 0 == ended.returncode, ended.stdout + ended.stderr
    found = re.search(r'"events": (\d+)', ended.stdout)
    assert found is not None, ended.stdout
    assert served.count == int(found[1])


def test_what_others_append_is_committed_by_the_server(served: ServedHouse) -> None:
    """An append of another process is a file that it writes, and its commit is put in place by the
    server: of those that race for a version one has it, also beside commits of Spark.
    """
    with open_outbox(home=served.home) as outbox:
        assert 3 == outbox.append(served.rows(3)).appended
        folder = log_of(outbox.spark, outbox.tables.events)
        newest = max(folder.glob("*.json")).read_text(encoding="utf-8")
        assert '"engineInfo":"delta-outbox/' in newest
        outbox.spark.sql("create table outbox.raced (n int) using delta")
        folder = log_of(outbox.spark, "outbox.raced")
        server = find_served(served.home)
        assert server is not None
        store = ServedStore(server, folder)

        def race(name: str) -> list[int]:
            its: list[int] = []
            version = 1
            while len(its) < 5:
                info = {"timestamp": 1, "operation": "WRITE", "userMetadata": name}
                if store.put(version, [{"commitInfo": info}], tag=name):
                    its.append(version)
                version += 1
            return its

        names = ["one", "two", "three"]
        with ThreadPoolExecutor(len(names)) as threads:
            races = threads.map(race, names)
            outbox.spark.sql("insert into outbox.raced values (1)")
            won = {version: name for name, its in zip(names, races, strict=True) for version in its}
        there = {
            version: commit.commit.tag
            for version in range(1, len([*folder.glob("*.json")]))
            if (commit := read_commit(folder, version)) is not None
        }
        assert won == {version: tag for version, tag in there.items() if tag in names}
        assert 15 == len(won)
        assert 17 == len([*folder.glob("*.json")])
        assert [1] == served.numbers("select n from outbox.raced")
        outbox.spark.sql("drop table outbox.raced")


def log_of(spark: SparkSession, table: str) -> Path:
    """Return where Delta keeps the log of a table."""
    folder = CommitHistory(spark).folder(table)
    assert folder is not None
    return folder


@contextlib.contextmanager
def already(outbox: Outbox) -> Iterator[Outbox]:
    """Return an outbox that is open, and leave it so."""
    yield outbox


def without_ages(document: Mapping[str, object]) -> dict[str, object]:
    """Return a document without what another moment changes."""
    return {name: value for name, value in document.items() if not name.endswith("_seconds")}


def test_the_server_answers_what_only_reads(
    served: ServedHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server answers `status`, `list` and `show` as a command with a session of its own would,
    by the settings of whoever asks; it does not answer who has another clock.
    """
    served.append(2)
    monkeypatch.setenv("OUTBOX_HOME", str(served.home.root))
    config = tmp_path / "other.toml"
    config.write_text('[publishers.other]\ntype = "null"\n')
    for line in ("status", f"status --config {config}", "list --limit 1", f"show {event_id(0)}"):
        words = line.split()
        args = parse(words)
        told = told_by_server(words, args)
        assert told is not None
        with open_outbox(home=served.home, config=args.config) as outbox:
            opened = partial(already, outbox)
            own = Invocation(
                told=lambda: None,
                open=opened,
                open_served=opened,
                create=opened,
                errors=sys.stderr,
            )
            expected = ANSWERED[args.command](args, own).document
        assert without_ages(expected) == without_ages(told)
    with pytest.raises(ToldError, match="'nobody'") as caught:
        told_by_server(["show", "nobody"], parse(["show", "nobody"]))
    assert "UNKNOWN_EVENT" == caught.value.code
    monkeypatch.setenv(CLOCK_OFFSET_VARIABLE, "60")
    assert told_by_server(["list"], parse(["list"])) is None


@pytest.mark.rest
def test_two_relays_share_the_lanes(served: ServedHouse) -> None:
    """Through one server each of two relays works on lanes of its own; where one has died, the
    other takes its lanes, and everything is delivered once.
    """
    who = ("--actor", "ann", "--reason", "two relays")
    first, second = (served.house.start("relay", "--continuous") for _ in range(2))
    # Of one lane, one of them is the owner.
    wait_for(lambda: [1, 1] == served.shares(), interval=LOOK)
    wait = ("--max-wait", f"{PATIENCE:g}")
    code, changed = served.house.run("lanes", "--to", "4", *who, *wait, "--apply")
    assert (0, 1, 4, True) == (code, *(changed[name] for name in ("epoch", "lanes", "begun")))
    wait_for(lambda: [2, 2] == served.shares(), interval=LOOK)
    served.append(SHARED)
    served.wait_for_delivery()
    new = [row for row in rows_of(served.house.log("transitions")) if row["epoch"] == 1]
    assert 2 == len({row["relay_id"] for row in new if row["to_state"] == "CLAIMED"})

    # Recorded as well: what the dead one had sent and not recorded would be sent again.
    ended = "select count(*) from outbox.outbox_transitions where to_state = 'PUBLISHED'"
    wait_for(lambda: [served.count] == served.numbers(ended), interval=LOOK)
    killed(first)
    wait_for(lambda: 4 in served.shares(), interval=LOOK)
    served.append(SHARED)
    served.wait_for_delivery()
    second.send_signal(signal.SIGTERM)
    assert 0 == served.house.end(second)[0]
    assert Counter(range(served.count)) == served.delivered()
    assert set(range(served.count)) == set(served.house.histories())


def test_nobody_gets_in_without_the_token(served: ServedHouse) -> None:
    """A client without a token, or with a wrong one, is refused by the server itself, and told
    neither token. With a token the client speaks TLS to 127.0.0.1: an error, not a hang.
    """
    found = find_served(served.home)
    assert found is not None
    for url, said in (
        (found.address, r"(?i)token|unauthenticated"),
        (found.url.replace(found.token, "guessed"), None),
        (found.url.replace("localhost", "127.0.0.1"), "does not answer"),
    ):
        with pytest.raises(ServerUnreachable, match=said) as caught:
            remote_session(url)
        assert found.token not in str(caught.value)
        assert "guessed" not in str(caught.value)


def test_server_listens_on_this_machine_alone(served: ServedHouse) -> None:
    """Every socket on which a served home, its JVM and its workers listen is on loopback."""
    with using_server(served.url) as spark:
        assert 4 == spark.range(4).mapInArrow(lambda batches: batches, "id bigint").count()
        found = listening(psutil.Process(served.server.pid))
    assert found
    assert set(found) <= {"127.0.0.1", "::1"}


def test_what_the_server_has_forgotten_is_made_anew(served: ServedHouse) -> None:
    """Each step from Python works with sessions that the server has closed since the last one, as
    it does with those that nobody uses for long; what was set in them still holds.
    """
    with open_outbox(home=served.home) as outbox:
        steps: dict[str, Callable[[], object]] = {
            "append": lambda: outbox.append(served.rows(2)).appended,
            "refresh": lambda: outbox.refresh() > 0,
            "list": lambda: (
                event_id(served.count - 1)
                in {row["event_id"] for row in list_deliveries(outbox, Filter(limit=10_000))[0]}
            ),
            "kill": lambda: (
                outbox.kill(
                    [event_id(served.count - 1)], actor="ann", reason="a preview"
                ).deliveries
            ),
        }
        done = {}
        for name, step in steps.items():
            closed = [session.session_id for session in sessions_of(outbox)]
            for session in sessions_of(outbox):
                session.client.release_session()
            time.sleep(PAUSE_SECONDS)  # after which a server is asked
            done[name] = step()
            if name != "append":  # ids that are new are appended by files: no Spark is asked
                assert sessions_of(outbox)[0].session_id not in closed
        expected = {"append": 2, "refresh": True, "list": True, "kill": 1}
        assert expected == done
        checked = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"
        assert ["true", "false"] == [one.conf.get(checked, "true") for one in sessions_of(outbox)]


def test_a_session_ends_with_its_process(served: ServedHouse) -> None:
    """A server forgets the sessions of a client that was killed, with all that it has sent, and
    keeps those of the others.
    """
    with open_outbox(home=served.home) as outbox:
        own = [session.session_id for session in sessions_of(outbox)]
        child = [sys.executable, "-c", CLIENT, str(served.home.root)]
        with subprocess.Popen(child, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None
            of_client = tuple(client.stdout.readline().split("\t"))
            assert _is_known(served.url, *of_client)
            client.kill()
        wait_for(lambda: not _is_known(served.url, *of_client), limit=6 * LOOK_SECONDS)
        assert 2 == outbox.append(served.rows(2)).appended
        assert own == [session.session_id for session in sessions_of(outbox)]


def _is_known(url: str, user: str, session: str) -> bool:
    """Say whether a server knows a session."""
    channel = DefaultChannelBuilder(url)
    channel.set(ChannelBuilder.PARAM_USER_ID, user)
    channel.set(ChannelBuilder.PARAM_SESSION_ID, session.strip())
    client = SparkConnectClient(channel)
    keep_apart(client)
    try:
        client.get_configs("spark.sql.session.timeZone")
    except PySparkException as error:
        if is_forgotten(error):
            return False
        raise
    finally:
        client.close()
    return True


def test_end_of_serving(served: ServedHouse) -> None:
    """SIGTERM ends the server, its JVM and its file, with exit code 0 and one document; killed,
    it leaves no JVM either, and its file misleads nobody. The token is on no output and no log.
    """
    home = served.home
    first = find_served(home)
    assert first is not None
    served.server.send_signal(signal.SIGTERM)
    code, document = served.house.end(served.server)
    assert (0, first.address, first.pid) == (code, document["address"], document["pid"])
    assert not home.served_file.exists()
    with home.locked():
        pass

    server = started(served.house, home)
    second = find_served(home)
    assert second is not None
    assert second.token != first.token
    children = psutil.Process(server.pid).children(recursive=True)
    assert {"java"} <= {child.name() for child in children}
    commands = [" ".join(child.cmdline()) for child in children if runs(child)]
    killed(server)
    assert find_served(home) is None
    wait_for(lambda: _acquired(home), limit=END_LIMIT)
    assert not home.served_file.exists()
    home.lock.release()
    wait_for(lambda: not any(map(runs, children)), limit=END_LIMIT)

    said = [path.read_text(errors="replace") for path in home.logs.iterdir() if path.is_file()]
    said += [served.house.errors.read_text(), *commands]
    for token in (first.token, second.token):
        assert not any(token in text for text in said)


@pytest.mark.rest
def test_stopped_relay_of_its_own_leaves_nothing_open(served: ServedHouse, tmp_path: Path) -> None:
    """The same for a relay with a session of its own that runs until it is stopped, for which
    what waits is no finding.
    """
    if served.server.poll() is None:
        served.server.terminate()
        served.house.end(served.server)
    file = tmp_path / "events.jsonl"
    numbers = range(served.count, served.count + BACKLOG)
    keys = ("event_id", "event_type", "ordering_key", "payload")
    rows = [(event_id(number), TOPIC, f"key-{number % KEYS}", number) for number in numbers]
    file.write_text("".join(f"{json.dumps(dict(zip(keys, row, strict=True)))}\n" for row in rows))
    assert BACKLOG == served.house.run("append", str(file))[1]["appended"]
    served.check_stop("--continuous", 0)


def _acquired(home: Home) -> bool:
    try:
        home.lock.acquire()
    except HomeInUse:
        time.sleep(0.05)
        return False
    return True
