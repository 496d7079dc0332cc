"""What a session refuses before any JVM is started."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from delta_outbox.api import open_outbox
from delta_outbox.cli.dbt_launcher import dbt_command, needs_spark
from delta_outbox.core.errors import BadSettings, OutboxError, ServerNeeded, ServerUnreachable
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.session import local_session, lost_server, remote_session
from delta_outbox.runtime.spark_settings import REQUIRED, check_settings


def test_our_own_settings_pass():
    """The settings that every session of ours is started with are the ones that are checked."""
    check_settings(REQUIRED.get)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.speculation", "true"),
        ("spark.stage.maxConsecutiveAttempts", "4"),
        ("spark.stage.maxConsecutiveAttempts", None),
        ("spark.sql.session.timeZone", "Europe/Berlin"),
    ],
)
def test_setting_that_breaks_a_promise_is_refused(name: str, value: str | None):
    """Repeated stages, speculation and other time zones are refused, with the setting to use."""
    with pytest.raises(BadSettings, match=name) as caught:
        check_settings({**REQUIRED, name: value}.get)
    assert f"--conf {name}={REQUIRED[name]}" in caught.value.remedy


def test_refused_setting_leaves_the_home_alone(tmp_path: Path):
    """A session that is refused takes no lock."""
    home = Home(root=tmp_path / "home").create()
    with pytest.raises(BadSettings):
        local_session(home, extra_conf={"spark.speculation": "true"})
    assert not home.lock_file.exists()


def test_local_session_beside_a_remote_address_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """SPARK_REMOTE and a local session contradict each other; that is said."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    with pytest.raises(BadSettings, match="SPARK_REMOTE"):
        local_session(Home(root=tmp_path / "home").create())


def test_server_that_does_not_answer_is_named_at_once():
    """A closed port is reported soon, without the token of the address."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        started = time.monotonic()
        with pytest.raises(ServerUnreachable) as caught:
            remote_session(f"sc://127.0.0.1:{port}/;token=hidden")
    assert time.monotonic() - started < 60  # of the minutes in which its client tries again
    assert f"127.0.0.1:{port}" in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_server_that_goes_away_is_told_from_other_errors(monkeypatch: pytest.MonkeyPatch):
    """When a server ends in the middle, the error says so, without the token; any other error of
    it stays what it is.
    """
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:4711/;token=hidden")
    causes = {
        "it has ended": SparkConnectGrpcException(
            message="x", grpc_status_code=grpc.StatusCode.UNAVAILABLE
        ),
        "it takes another token now": SparkConnectGrpcException(
            message="x", grpc_status_code=grpc.StatusCode.UNAUTHENTICATED
        ),
        "it does not know our session any more": SparkConnectGrpcException(
            message="x", errorClass="INVALID_HANDLE.SESSION_CHANGED"
        ),
    }
    for cause, error in causes.items():
        lost = lost_server(error)
        assert f"The Spark Connect server at localhost:4711 does not answer: {cause}" == str(lost)
    other = SparkConnectGrpcException(message="x", grpc_status_code=grpc.StatusCode.INTERNAL)
    assert lost_server(other) is None
    assert lost_server(ValueError("x")) is None


@pytest.mark.parametrize("url", ["localhost:15002", "http://localhost", "sc://"])
def test_address_of_another_kind_is_refused(url: str):
    """An address must be one of Spark Connect."""
    with pytest.raises(BadSettings, match="must be sc://"):
        remote_session(f"{url}/;token=hidden")


@pytest.mark.parametrize(
    ("line", "command", "spark"),
    [
        ("build --profiles-dir profiles", "build", True),
        ("--log-level debug build", "build", True),
        ("run-operation replay --args {}", "run-operation", True),
        ("docs generate", "docs", True),
        ("docs serve", "docs", False),
        ("parse", "parse", False),
        ("ls --select state:modified", "ls", False),
        ("--version", None, False),
        ("build --help", "build", False),
        ("", None, False),
    ],
)
def test_spark_is_started_only_for_what_needs_it(line: str, command: str | None, spark: bool):
    """A dbt command that reads only files starts no JVM and needs no outbox."""
    assert (command, spark) == (dbt_command(line.split()), needs_spark(line.split()))


def test_who_needs_a_server_takes_no_home(tmp_path: Path):
    """What works beside others, as the server of items does, leaves a home alone whose server has
    ended: it would hold it while a new one is started.
    """
    home = Home(root=tmp_path / "home").create()
    with pytest.raises(OutboxError) as caught, open_outbox(home=home, only_served=True):
        pass
    assert isinstance(caught.value, ServerNeeded)
    assert not home.lock_file.exists()
