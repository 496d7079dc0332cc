"""A real single-node Kafka on loopback, for the demo and the tests; no container, no root."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from delta_outbox.core.errors import OutboxError
from delta_outbox.demo.kafka_jars import kafka_jars
from delta_outbox.demo.ports import free_ports
from delta_outbox.runtime.java import find_java

_READY_TIMEOUT: Final = 60.0  # seconds
_STOP_TIMEOUT: Final = 15.0  # seconds until SIGTERM becomes SIGKILL
_START_TRIES: Final = 3  # a free port may be taken by somebody else before the broker has it
_HEAP: Final = "-Xmx512m"

# The code of a process between us and the broker: it ends the broker when we ask or when we are
# gone, whatever the reason, because the pipe that it reads closes with us. Linux alone could do
# without (PR_SET_PDEATHSIG); this works on macOS too. A frozen broker needs SIGKILL to end.
WATCHDOG: Final = """
import os, signal, subprocess, sys, threading
broker = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=sys.stderr)
print(broker.pid, flush=True)
def end():
    broker.terminate()
    try:
        broker.wait(float(sys.argv[1]))
    except subprocess.TimeoutExpired:
        broker.kill()
def watch():
    sys.stdin.buffer.read()
    end()
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=end).start())
threading.Thread(target=watch, daemon=True).start()
broker.wait()
os._exit(0)  # an end of the usual kind may abort while a thread reads stdin
"""


class KafkaNotStarted(OutboxError):
    """The local Kafka did not start: its log says why."""

    code: ClassVar[str] = "KAFKA_NOT_STARTED"
    remedy = "Read the last lines of its log above; free some memory or disk, and start again."


def freeze(pid: int) -> None:
    """Freeze a process: it keeps its connections and answers nothing.

    To see that takes psutil, which the tests have.

    Args:
        pid: of the process; on a busy machine it goes on for a moment after the signal.
    """
    import psutil

    os.kill(pid, signal.SIGSTOP)
    while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
        time.sleep(0.001)


class KafkaServer:
    """A single-node KRaft broker that belongs to this process.

    Args:
        data_dir: where it keeps its data; None makes a temporary folder that goes with `close`.
        settings: further broker properties.
        proxy_port: of a proxy on loopback in front of a second listener: whoever comes through it
            is told to come back through it.
        secure: properties of a third listener, SASL_SSL at localhost, without their prefix.
    """

    def __init__(
        self,
        data_dir: Path | str | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        proxy_port: int | None = None,
        secure: Mapping[str, str] | None = None,
    ) -> None:
        self._temporary = data_dir is None
        self.data_dir = (
            Path(tempfile.mkdtemp(prefix="delta-outbox-kafka-"))
            if data_dir is None
            else Path(data_dir).absolute()
        )
        self._settings = dict(settings or {})
        self._proxy_port = proxy_port
        self._secure = dict(secure or {})
        self._ports: list[int] | None = None
        self._watchdog: subprocess.Popen[str] | None = None
        self._broker_pid: int | None = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        """Return the address for `bootstrap.servers`; it survives a restart."""
        if self._ports is None:
            raise KafkaNotStarted("The local Kafka has no address before its first start.")
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def behind_proxy(self) -> int:
        """Return the port of the second listener, where the proxy is to connect to."""
        if self._ports is None:
            raise KafkaNotStarted("The local Kafka has no address before its first start.")
        return self._ports[2]

    @property
    def secure_port(self) -> int:
        """Return the port of the listener that wants TLS and a login."""
        if self._ports is None:
            raise KafkaNotStarted("The local Kafka has no address before its first start.")
        return self._ports[3]

    @property
    def pid(self) -> int | None:
        """Return the process id of the running broker."""
        running = self._watchdog is not None and self._watchdog.poll() is None
        return self._broker_pid if running else None

    def start(self) -> Self:
        """Start the broker, again on the same port and data, and wait until it answers.

        Raises:
            NoJava: there is no Java 17 or newer.
            JarsUnavailable: the broker's jars cannot be fetched.
            KafkaNotStarted: the broker ended or did not answer within 60 s.
        """
        if self.pid is not None:
            return self
        java, jars = str(find_java().executable), kafka_jars()
        first = self._ports is None
        for last in (*[False] * (_START_TRIES - 1), True):
            if self._ports is None:
                self._ports = free_ports(4)
            self._configure(java, jars)
            self._launch(java, jars)
            try:
                self._wait_until_ready()
            except KafkaNotStarted:
                self.stop()
                if last or not first:
                    raise
                self._ports = None
            else:
                break
        return self

    def stop(self) -> None:
        """Stop the broker, kindly first; data and port are kept for `start`."""
        watchdog, self._watchdog, self._broker_pid = self._watchdog, None, None
        if watchdog is None:
            return
        assert watchdog.stdin is not None
        assert watchdog.stdout is not None
        watchdog.stdin.close()
        watchdog.stdout.close()
        watchdog.wait()

    def kill(self) -> None:
        """End the broker with SIGKILL, as a crash would."""
        self._signal(signal.SIGKILL)
        self.stop()

    def pause(self) -> None:
        """Freeze the broker: it keeps its connections and answers nothing."""
        freeze(self._running())

    def resume(self) -> None:
        """Let a frozen broker go on."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Stop the broker and remove its data if the folder was a temporary one."""
        self.stop()
        if self._temporary:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def create_topic(
        self, name: str, partitions: int = 1, *, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic and wait until all its partitions have a leader; one that exists is left.

        Args:
            name: the topic.
            partitions: how many.
            config: topic settings, for example `max.message.bytes`.
        """
        admin = self._admin()
        topic = NewTopic(name, num_partitions=partitions, config=dict(config or {}))
        created = admin.create_topics([topic])[name]
        try:
            created.result(timeout=_READY_TIMEOUT)
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise
        deadline = time.monotonic() + _READY_TIMEOUT
        while time.monotonic() < deadline:
            known = admin.list_topics(name, timeout=_READY_TIMEOUT).topics[name].partitions
            if known and all(partition.leader >= 0 for partition in known.values()):
                return
            time.sleep(0.05)
        raise KafkaNotStarted(f"The topic {name} has partitions without a leader after 60 s.")

    def _admin(self) -> AdminClient:
        # The log line of every refused connection while the broker starts helps nobody.
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def _signal(self, number: signal.Signals) -> None:
        os.kill(self._running(), number)

    def _running(self) -> int:
        if self.pid is None:
            raise KafkaNotStarted("The local Kafka is not running.")
        return self.pid

    @property
    def _log(self) -> Path:
        return self.data_dir / "server.log"

    def _configure(self, java: str, jars: Path) -> None:
        assert self._ports is not None
        broker, controller, behind_proxy, secure = self._ports
        listeners = f"PLAINTEXT://127.0.0.1:{broker}"
        advertised = listeners
        if self._proxy_port is not None:
            listeners += f",PROXIED://127.0.0.1:{behind_proxy}"
            advertised += f",PROXIED://127.0.0.1:{self._proxy_port}"
        if self._secure:
            listeners += f",SECURE://127.0.0.1:{secure}"
            advertised += f",SECURE://localhost:{secure}"
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": advertised,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,SECURE:SASL_SSL"
            ),
            "log.dirs": str(self.data_dir / "log"),
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "num.network.threads": "2",
            "num.io.threads": "2",
            **{f"listener.name.secure.{name}": value for name, value in self._secure.items()},
            **self._settings,
        }
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._properties.write_text("".join(f"{k}={v}\n" for k, v in properties.items()))
        if (self.data_dir / "log" / "meta.properties").exists():
            return
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        done = subprocess.run(
            (
                *(java, "-cp", f"{jars}/*", "kafka.tools.StorageTool", "format"),
                *("--cluster-id", f"A{cluster[1:]}", "--config", str(self._properties)),
            ),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            message = (done.stderr or done.stdout).strip().splitlines()[-3:]
            raise KafkaNotStarted(f"The storage of Kafka cannot be formatted: {' '.join(message)}")

    @property
    def _properties(self) -> Path:
        return self.data_dir / "server.properties"

    def _launch(self, java: str, jars: Path) -> None:
        broker = [java, _HEAP, "-Djava.awt.headless=true", "-Djava.net.preferIPv4Stack=true"]
        broker += ["-cp", f"{jars}/*", "kafka.Kafka", str(self._properties)]
        with self._log.open("w") as log:
            self._watchdog = subprocess.Popen(
                [sys.executable, "-I", "-c", WATCHDOG, str(_STOP_TIMEOUT), *broker],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # Ctrl-C in the terminal is for us; the relay still needs the broker then.
                start_new_session=True,
            )
        assert self._watchdog.stdout is not None
        self._broker_pid = int(self._watchdog.stdout.readline())

    def _wait_until_ready(self) -> None:
        admin = self._admin()
        deadline = time.monotonic() + _READY_TIMEOUT
        while time.monotonic() < deadline and self.pid is not None:
            try:
                if admin.list_topics(timeout=1.0).brokers:
                    return
            except KafkaException:
                time.sleep(0.05)
        message = " ".join(self._log.read_text(errors="replace").splitlines()[-3:])[-500:]
        raise KafkaNotStarted(f"The local Kafka did not start. Its log ends with: {message}")
