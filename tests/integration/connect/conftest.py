"""The same session fixtures, through a Spark Connect server of our own settings.

A process holds one kind of session: run this folder in a pytest process of its own.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from delta_outbox.home import Home
from delta_outbox.spark_settings import local_settings, prepare

START_LIMIT = 180.0  # seconds; a cold JVM on a busy machine
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture(scope="session")
def remote_url(home: Home) -> Iterator[str]:
    """Start a server in the run's home and return its address, with its token."""
    home.lock.acquire()
    prepare(home)
    port, token = _free_port(), secrets.token_hex(16)
    settings = {
        **local_settings(home, app_name="tests-connect", short_lived=True),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.authenticate.token": token,
    }
    command = [str(Path(os.environ["SPARK_HOME"]) / "bin" / "spark-submit"), "--class", SERVER]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    log = home.logs / "jvm.log"
    with log.open("ab") as file:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            pass_fds=(home.lock.descriptor,),
        )
    try:
        _wait_for(port, server, log)
        # In the environment as well: dbt opens its session by itself.
        os.environ["SPARK_REMOTE"] = f"sc://localhost:{port}/;token={token}"
        yield os.environ["SPARK_REMOTE"]
    finally:
        os.environ.pop("SPARK_REMOTE", None)
        server.terminate()
        server.wait()
        home.lock.release()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    started = time.monotonic()
    while time.monotonic() - started < START_LIMIT:
        assert server.poll() is None, log.read_text(encoding="utf-8", errors="replace")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"The server does not answer. Its log: {log}")
