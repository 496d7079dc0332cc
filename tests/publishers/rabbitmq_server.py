"""A real RabbitMQ: a node of its own in a temporary folder, on free loopback ports.

It shares nothing with a RabbitMQ of the system: neither node name, cookie, ports nor epmd, which
it starts and ends itself, on loopback and on a port of its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from delta_outbox.demo.kafka_server import WATCHDOG, freeze
from delta_outbox.demo.ports import free_ports

ROOT: Final = Path(__file__).resolve().parents[2]
USER: Final = "outbox"
PASSWORD: Final = "correct horse"
READER: Final = "reader"  # may read everything and write nothing
MAX_MESSAGE_SIZE: Final = 1_000_000  # bytes
_READY_TIMEOUT: Final = 90.0  # seconds; the Erlang VM starts slowly on a busy machine
_STOP_TIMEOUT: Final = 20.0  # seconds until SIGTERM becomes SIGKILL
_FOLDER: Final = Path("/usr/lib/rabbitmq/bin")
_PATH: Final = os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin"


class RabbitNotStarted(Exception):
    """The RabbitMQ of the tests is missing, or it did not start: the message says why."""


def find_programs() -> Path:
    """Return the folder of rabbitmq-server and rabbitmqctl; install them where that is possible.

    Debian's own commands change to the user of the system's service, so its scripts behind them
    are taken.

    Raises:
        RabbitNotStarted: they are missing and cannot be installed.
    """
    if not (_FOLDER / "rabbitmq-server").exists():
        command = ["sh", str(ROOT / "scripts" / "apt_install.sh"), "rabbitmq-server"]
        subprocess.run(command, check=False)
    if not (_FOLDER / "rabbitmq-server").exists():
        raise RabbitNotStarted(
            "RabbitMQ is missing and cannot be installed here: install it "
            "(Debian, Ubuntu: sudo apt-get install rabbitmq-server), then run the tests again."
        )
    return _FOLDER


class RabbitServer:
    """A broker that belongs to this process; it ends with it, whatever the reason.

    Attributes:
        port: for AMQP; it survives a restart.
        tls_port: for AMQP over TLS.
        authority: the file of the certificate that signed the broker's.
    """

    def __init__(self) -> None:
        """Prepare folder, certificate, users; nothing is started yet."""
        self._programs = find_programs()
        self.folder = Path(tempfile.mkdtemp(prefix="delta-outbox-rabbitmq-"))
        self.port, self.tls_port, self._distribution, self._epmd_port = free_ports(4)
        self._node = f"delta-outbox-{uuid.uuid4().hex[:8]}@localhost"
        self._epmd: subprocess.Popen[str] | None = None
        self._broker: subprocess.Popen[str] | None = None
        self.pid = self.epmd_pid = 0
        self.authority = self.folder / "authority.pem"

    def __enter__(self) -> Self:
        try:
            self._make_certificates()
            self._configure()
            self._epmd, self.epmd_pid = self._own(
                ["epmd", "-port", str(self._epmd_port), "-address", "127.0.0.1"]
            )
            self._wait_for_port(self._epmd_port, self._epmd)
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the broker, again on the same ports and data, and wait until it answers.

        Raises:
            RabbitNotStarted: it ended, or did not answer in time.
        """
        if self._broker is not None:
            return
        self._broker, self.pid = self._own([str(self._programs / "rabbitmq-server")])
        self._wait_for_port(self.port, self._broker)
        self._wait_for_port(self.tls_port, self._broker)

    def stop(self) -> None:
        """Stop the broker, kindly first; data and ports are kept for `start`."""
        broker, self._broker = self._broker, None
        _end(broker)

    def write_down(self) -> None:
        """Return when the queues that were declared are on disk: the broker answers before."""
        self.control("eval", "catch mnesia:sync_log().")

    def kill(self) -> None:
        """End the broker with SIGKILL, as a crash would."""
        os.kill(self.pid, signal.SIGKILL)
        self.stop()

    def pause(self) -> None:
        """Freeze the broker: it keeps its connections and answers nothing."""
        freeze(self.pid)

    def resume(self) -> None:
        """Let a frozen broker go on."""
        os.kill(self.pid, signal.SIGCONT)

    def control(self, *arguments: str) -> None:
        """Run rabbitmqctl.

        Args:
            arguments: its own, for example `set_vm_memory_high_watermark`.
        """
        command = [str(self._programs / "rabbitmqctl"), "--quiet", *arguments]
        subprocess.run(command, env=self._environment(), check=True, capture_output=True)

    def close(self) -> None:
        """Stop broker and epmd and remove the folder."""
        self.stop()
        epmd, self._epmd = self._epmd, None
        _end(epmd)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _own(self, command: list[str]) -> tuple[subprocess.Popen[str], int]:
        """Start a process that ends with us; return its watchdog and its id."""
        with (self.folder / "log").open("ab") as log:
            watchdog = subprocess.Popen(
                [sys.executable, "-c", WATCHDOG, str(_STOP_TIMEOUT), *command],
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert watchdog.stdout is not None
        return watchdog, int(watchdog.stdout.readline())

    def _wait_for_port(self, port: int, process: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    text = (self.folder / "log").read_text(errors="replace")
                    words = " | ".join(text.splitlines()[-8:])
                    raise RabbitNotStarted(f"RabbitMQ did not start: {words}") from None
                time.sleep(0.05)
            else:
                return

    def _environment(self) -> Mapping[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        folder = str(self.folder)
        return {
            **kept,
            "PATH": _PATH,
            "HOME": folder,  # where Erlang keeps the cookie
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_ALLOW_INPUT": "true",  # the VM takes the place of the script, for its signals
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq.conf",
            "RABBITMQ_ADVANCED_CONFIG_FILE": f"{folder}/advanced.config",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/enabled_plugins",
            "RABBITMQ_MNESIA_BASE": f"{folder}/data",
            "RABBITMQ_LOG_BASE": folder,
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": f"{folder}/pid",
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false -noinput +sbwt none"
            ),
            "RABBITMQ_CTL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _configure(self) -> None:
        definitions = {
            "users": [
                {
                    "name": name,
                    "password_hash": _password_hash(PASSWORD),
                    "hashing_algorithm": "rabbit_password_hashing_sha256",
                    "tags": "",
                }
                for name in (USER, READER)
            ],
            "vhosts": [{"name": "/"}, {"name": "other"}],
            "permissions": [
                {"user": USER, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
                {"user": READER, "vhost": "/", "configure": "", "write": "", "read": ".*"},
            ],
        }
        (self.folder / "definitions.json").write_text(json.dumps(definitions))
        (self.folder / "enabled_plugins").write_text("[].\n")
        (self.folder / "rabbitmq.conf").write_text(
            f"""\
listeners.tcp.1 = 127.0.0.1:{self.port}
listeners.ssl.1 = 127.0.0.1:{self.tls_port}
ssl_options.cacertfile = {self.authority}
ssl_options.certfile = {self.folder}/server.pem
ssl_options.keyfile = {self.folder}/server.key
ssl_options.verify = verify_none
max_message_size = {MAX_MESSAGE_SIZE}
disk_free_limit.absolute = 1MB
load_definitions = {self.folder}/definitions.json
log.console = true
log.console.level = warning
log.file = false
"""
        )

    def _make_certificates(self) -> None:
        request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        signed = ["-CA", "authority.pem", "-CAkey", "authority.key"]
        signed += ["-addext", "subjectAltName=DNS:localhost"]
        signed += ["-addext", "basicConstraints=critical,CA:FALSE"]
        for name, more in (
            ("authority", ["-subj", "/CN=tests"]),
            ("server", ["-subj", "/CN=localhost", *signed]),
        ):
            files = ["-out", f"{name}.pem", "-keyout", f"{name}.key"]
            command = [*request, *more, *files]
            subprocess.run(command, cwd=self.folder, check=True, capture_output=True)


def _password_hash(password: str) -> str:
    salt = os.urandom(4)
    digest = hashlib.sha256(salt + password.encode()).digest()
    return base64.b64encode(salt + digest).decode()


def _end(watchdog: subprocess.Popen[str] | None) -> None:
    if watchdog is None:
        return
    assert watchdog.stdin is not None
    assert watchdog.stdout is not None
    watchdog.stdin.close()  # it ends what it watches
    watchdog.stdout.close()
    watchdog.wait()
