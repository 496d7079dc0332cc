"""The local Kafka belongs to the process that started it."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from delta_outbox.core.errors import NoJava
from delta_outbox.demo.kafka_server import WATCHDOG, KafkaServer

_PARENT = """
import subprocess, sys, time
watchdog = subprocess.Popen(
    [sys.executable, "-c", sys.argv[1], "5", sys.executable, "-c", "import time; time.sleep(600)"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
print(watchdog.stdout.readline(), flush=True)
time.sleep(600)
"""


def test_a_broker_does_not_outlive_its_owner():
    """When the owner is killed, what it started ends too."""
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, WATCHDOG], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        broker = psutil.Process(int(owner.stdout.readline()))
        assert broker.is_running()
        owner.kill()
        broker.wait(timeout=20)


def test_the_last_words_of_a_broker_are_its_own():
    """When it ends by itself, what stands between us and it adds nothing to its log."""
    broker = [sys.executable, "-c", "import sys; sys.exit('no such port')"]
    with subprocess.Popen(
        [sys.executable, "-c", WATCHDOG, "5", *broker],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as between:
        assert between.stderr is not None
        assert between.stderr.read() == "no such port\n"
    assert between.returncode == 0


def test_no_java_is_one_sentence(monkeypatch, tmp_path):
    """Without Java the server says so, with the remedy, and starts nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(NoJava):
        KafkaServer(tmp_path / "data").start()
    assert not (tmp_path / "data").exists()
