"""The JVM behind a local session: its environment, its start and its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta_outbox.core.errors import OutboxError
from delta_outbox.runtime.interrupts import held
from delta_outbox.runtime.java import Java, find_java
from delta_outbox.runtime.ownership import open_own

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

STOP_TIMEOUT = 20.0  # seconds; a JVM that takes longer is killed
LOG_READ = 100_000  # bytes of jvm.log that are searched for the reason of a failed start

# Settings of some other Spark on this machine must not bend ours. Options for the JVM itself
# (proxies, trust stores) are kept.
_FOREIGN_PREFIXES = ("SPARK_", "PYSPARK_")
_FOREIGN_NAMES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_KEPT = frozenset({"SPARK_SUBMIT_OPTS"})

_CHATTER = ("WARNING:", "NOTE:", "Picked up ")


class SparkNotStarted(OutboxError):
    """Spark did not start: the log of its JVM says why."""

    code = "SPARK_NOT_STARTED"
    remedy = "Read the log that the message names."


def set_environment(*, spark_conf: Path, scratch: Path) -> Java:
    """Set this process's Spark variables: pyspark reads them at start and again later.

    Every SPARK_* and PYSPARK_* variable of the user, HADOOP_CONF_DIR and YARN_CONF_DIR are taken
    out: they belong to another Spark.

    Returns:
        The Java that Spark will find.

    Raises:
        NoJava: no Java that is new enough.
    """
    import pyspark

    java = find_java()
    for name in list(os.environ):
        if name in _FOREIGN_NAMES or (name.startswith(_FOREIGN_PREFIXES) and name not in _KEPT):
            del os.environ[name]
    if java.home is None:
        os.environ.pop("JAVA_HOME", None)  # Spark's scripts prefer it to PATH, even if it is wrong
    else:
        os.environ["JAVA_HOME"] = str(java.home)
    os.environ.update(
        SPARK_HOME=str(Path(pyspark.__file__).parent),
        SPARK_CONF_DIR=str(spark_conf),
        SPARK_LOCAL_DIRS=str(scratch),
        SPARK_LOCAL_IP="127.0.0.1",
        # The interpreter of the virtual environment, or the workers miss pyarrow.
        PYSPARK_PYTHON=sys.executable,
        PYSPARK_DRIVER_PYTHON=sys.executable,
    )
    return java


def start_jvm(
    settings: Mapping[str, str],
    *,
    log: Path,
    inherit: tuple[int, ...] = (),
    environment: Mapping[str, str] | None = None,
    debug: bool = False,
    on_start: Callable[[subprocess.Popen[bytes]], None] | None = None,
) -> JavaGateway:
    """Start a JVM with Spark's classes and return the gateway to it.

    Args:
        settings: Spark's settings, in force before the first class is loaded.
        log: the file that takes what the JVM and its Python workers print.
        inherit: file descriptors that the JVM keeps open until it ends.
        environment: variables for the JVM alone; settings are visible to every user of the
            machine, these to nobody else.
        debug: let what is printed reach this process's standard error instead.
        on_start: is told of the process as soon as there is one, before it can do anything and
            before anything can interrupt us.

    Raises:
        SparkNotStarted: the JVM ended before it answered.
    """
    from pyspark import SparkConf
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(settings.items()))
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with os.fdopen(open_own(log, flags, 0o666), "ab") as file:
        since = file.seek(0, os.SEEK_END)
        output = sys.stderr.fileno() if debug else file.fileno()
        started: list[subprocess.Popen[bytes]] = []

        def known(process: subprocess.Popen[bytes]) -> None:
            started.append(process)
            if on_start is not None:
                on_start(process)

        try:
            with _variables(environment or {}), _told_of_processes(known):
                return launch_gateway(  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
                    conf=conf,
                    popen_kwargs={
                        "stdout": output,
                        "stderr": output,
                        "pass_fds": inherit,
                        # A signal to our process group is for us: we finish what is in flight,
                        # and for that the JVM and its workers must still be there.
                        "start_new_session": True,
                    },
                )
        except PySparkRuntimeError as error:
            raise SparkNotStarted(
                f"Spark did not start: {_reason(log, since=since)} (log: {log})"
            ) from error
        except BaseException:
            # pyspark forgets a JVM whose start is interrupted, and it would never end: it waits for
            # the folder into which it is to write its port, and that is gone.
            for process in started:
                kill_jvm(process)
            raise


@contextlib.contextmanager
def _told_of_processes(known: Callable[[subprocess.Popen[bytes]], None]) -> Iterator[None]:
    """Tell of each process that pyspark starts within a block, with no moment in between."""
    from pyspark import java_gateway

    def start(*args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:
        with held():
            process: subprocess.Popen[bytes] = subprocess.Popen(*args, **kwargs)
            known(process)
        return process

    module: Any = java_gateway
    before = module.Popen
    module.Popen = start
    try:
        yield
    finally:
        module.Popen = before


def kill_jvm(process: subprocess.Popen[bytes]) -> None:
    """Kill a JVM that `start_jvm` has started, with all that it has started, and wait for its end.

    Args:
        process: the JVM, or the script that becomes it; the first of a session of its own.
    """
    with held():
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()


@contextlib.contextmanager
def _variables(environment: Mapping[str, str]) -> Iterator[None]:
    """Set variables for a block: pyspark starts the JVM with those of this process."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _reason(log: Path, *, since: int) -> str:
    """Return the first complaint that a start has added to the log; the rest are consequences."""
    with log.open("rb") as file:
        file.seek(since)
        text = file.read(LOG_READ).decode(errors="replace")
    message = [line.strip() for line in text.splitlines()]
    return next(
        (line for line in message if line and not line.startswith(_CHATTER)), "it says nothing"
    )


def process_of(gateway: JavaGateway) -> subprocess.Popen[bytes]:
    """Return the process behind a gateway that `start_jvm` has started."""
    process: Any = gateway.proc
    assert isinstance(process, subprocess.Popen)
    return process


def end_jvm(gateway: JavaGateway, *, timeout: float = STOP_TIMEOUT) -> bool:
    """End a JVM and wait until it is gone, so that what it holds is free.

    Args:
        gateway: to it.
        timeout: seconds; if it takes longer, it is killed.

    Returns:
        Whether it ended by itself.
    """
    process = process_of(gateway)
    try:
        gateway.shutdown()
        if process.stdin is not None:
            process.stdin.close()  # the JVM ends when its standard input does
        return process.wait(timeout=timeout) == 0
    except subprocess.TimeoutExpired:
        kill_jvm(process)
        return False
    except BaseException:  # whoever interrupts us does not want to wait
        kill_jvm(process)
        raise


@contextlib.contextmanager
def running_jvm(
    settings: Mapping[str, str], *, log: Path, debug: bool = False
) -> Iterator[JavaGateway]:
    """Run a JVM for a block."""
    gateway = start_jvm(settings, log=log, debug=debug)
    try:
        yield gateway
    finally:
        end_jvm(gateway)
