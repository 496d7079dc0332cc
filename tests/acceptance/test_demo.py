"""The demo with a broker of its own, on a few days of flights; the other one is in the README."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.told import number, said

pytestmark = pytest.mark.rest

DAYS = 3
PATIENCE = 600.0  # seconds for one run on a busy machine


def test_kafka_demo_proves_itself(
    repository: Path, strangers_environment: dict[str, str], tmp_path: Path
) -> None:
    """With a real Kafka the demo delivers and proves it, and its broker ends with it; the event
    that it says to look at is there.
    """
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**strangers_environment, "PYTHONPATH": str(repository / "python")}
    environment["PATH"] = commands
    run = subprocess.run(
        [
            *(sys.executable, "-m", "delta_outbox.demo"),
            *("--days", str(DAYS), "--publisher", "kafka"),
        ],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    text = run.stdout
    assert run.returncode == 0, text
    assert said(text, "published") == number(text, "delivered") == number(text, "expected") > 0
    address = re.search(r"127\.0\.0\.1:(\d+)", text)
    assert address is not None
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(address[1]))) != 0
    assert [tmp_path / ".outbox-kafka"] == list(tmp_path.iterdir())
    advised = re.search(r"^ *(\S.* show (\S+))$", text, re.MULTILINE)
    assert advised is not None, text
    words = ["bash", "-c", f"{advised[1]} --json"]
    shown = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert advised[2] == json.loads(shown.stdout)["event"]["event_id"]
