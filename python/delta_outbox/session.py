"""The SparkSession: a classic local one in a home, or a remote one through Spark Connect."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from delta_outbox import jars
from delta_outbox.errors import BadSettings, ServerUnreachable, StoragePrecondition
from delta_outbox.home import Home
from delta_outbox.jvm import SparkNotStarted, end_jvm, process_of, set_environment, start_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP_NAME = "delta-outbox"
REMOTE_VARIABLE = "SPARK_REMOTE"
DRIVER_MEMORY_VARIABLE = "OUTBOX_DRIVER_MEMORY"
CORES_VARIABLE = "OUTBOX_CORES"
DEFAULT_DRIVER_MEMORY = "2g"
CONNECT_PORT = 15002
CONNECT_TIMEOUT = 5.0  # seconds
TASK_ATTEMPTS = 4

# What every session of ours needs, local or served; the relay's promises rest on the last two.
REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.speculation": "false",
    "spark.stage.maxConsecutiveAttempts": "1",
}

_WHY = {
    "spark.sql.session.timeZone": "timestamps are UTC instants",
    "spark.speculation": "a speculative copy of a task would publish a second time",
    "spark.stage.maxConsecutiveAttempts": "a repeated stage would publish a second time",
}
_DEFAULTS = {"spark.speculation": "false", "spark.stage.maxConsecutiveAttempts": "4"}

_LOG4J = """\
# Written at every start: Spark's own words go to a file, never to the terminal.
status = fatal
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {logs}/spark.log
appender.file.filePattern = {logs}/spark.%i.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}}{{UTC}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
# Derby's catalog is created without these tables' versions: the warnings tell nobody anything.
logger.metastore.name = org.apache.hadoop.hive.metastore
logger.metastore.level = error
logger.hiveconf.name = org.apache.hadoop.hive.conf
logger.hiveconf.level = error
"""


def _cores() -> int:
    named = os.environ.get(CORES_VARIABLE, "").strip()
    if not named:
        return os.cpu_count() or 1
    if not re.fullmatch(r"[1-9]\d*", named):
        raise BadSettings(f"{CORES_VARIABLE}: must be a whole number above 0. Got: {named!r}.")
    return int(named)


def _driver_memory() -> str:
    named = os.environ.get(DRIVER_MEMORY_VARIABLE, "").strip().lower() or DEFAULT_DRIVER_MEMORY
    if not re.fullmatch(r"[1-9]\d*[mg]", named):
        raise BadSettings(
            f"{DRIVER_MEMORY_VARIABLE}: must be a number with m or g, such as 2g. Got: {named!r}."
        )
    return named


def local_settings(
    home: Home, *, app_name: str = APP_NAME, short_lived: bool = False
) -> dict[str, str]:
    """Return the settings of a Spark that works in a home, for a session or a server of it."""
    java_options = [
        # Quoted: a home may lie below a folder with a space in its name.
        f'"-Dderby.stream.error.file={home.logs / "derby.log"}"',
        f'"-Djava.io.tmpdir={home.scratch}"',
        "-Duser.timezone=UTC",
        "-Djava.net.preferIPv4Stack=true",
    ]
    if short_lived:
        # The optimising compiler pays off after minutes; until then it takes half of the CPU time
        # (measured on 2 cores, start to first query: 19 s of CPU time instead of 36).
        java_options.append("-XX:TieredStopAtLevel=1")
    return {
        **REQUIRED,
        # More than one attempt: a killed Python worker fails its task, not the job. What a
        # repeated task does not do is publish (design rule 3).
        "spark.master": f"local[{_cores()},{TASK_ATTEMPTS}]",
        "spark.app.name": app_name,
        "spark.driver.memory": _driver_memory(),
        "spark.driver.extraJavaOptions": " ".join(java_options),
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in jars.resolve()),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(home.warehouse),
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={home.metastore};create=true"
        ),
        "spark.hadoop.hive.exec.scratchdir": str(home.scratch / "hive"),
        "spark.hadoop.hive.exec.local.scratchdir": str(home.scratch / "hive-local"),
        # Small jobs on few cores: about three times faster than the defaults (200 and 50).
        "spark.sql.shuffle.partitions": "4",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }


def prepare(home: Home) -> None:
    """Make a home ready for a Spark that starts in it; the caller holds its lock."""
    shutil.rmtree(home.scratch, ignore_errors=True)  # what a killed Spark has left
    for folder in (home.scratch, home.spark_conf, home.logs):
        folder.mkdir(mode=0o700, exist_ok=True)
    log4j = _LOG4J.format(logs=home.logs)
    (home.spark_conf / "log4j2.properties").write_text(log4j, encoding="utf-8")
    set_environment(spark_conf=home.spark_conf, scratch=home.scratch)


def local_session(
    home: Home,
    *,
    app_name: str = APP_NAME,
    extra_conf: Mapping[str, str] | None = None,
    short_lived: bool = False,
    debug: bool = False,
) -> SparkSession:
    """Start the SparkSession of a home, and take the home's lock for it.

    The lock stays with this process and its JVM; `stop_session` ends both. It runs by itself when
    Python exits, so the next command finds the home free.

    Args:
        home: where the tables, the catalog and the logs lie.
        app_name: the name in Spark's logs.
        extra_conf: settings that are added to ours, or win over them.
        short_lived: start fast and compute slower, for a command of a minute at most.
        debug: show what Spark prints, on standard error.

    Raises:
        HomeInUse: another process works in this home.
        NoJava: no Java that is new enough.
        JarsUnavailable: Delta's jars are missing and could not be fetched.
        SparkNotStarted: the JVM or the session failed to start.
        BadSettings: a variable of ours is wrong, or SPARK_REMOTE asks for another session.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if os.environ.get(REMOTE_VARIABLE):
        raise BadSettings(
            f"{REMOTE_VARIABLE}: must not be set for a local session.",
            remedy=f"Unset {REMOTE_VARIABLE}, or use the session that it names.",
        )
    if SparkContext._active_spark_context is not None:
        raise SparkNotStarted(
            "This process has a SparkSession already.",
            remedy="Use that one, or stop it first: one process, one local session.",
        )
    check_settings({**REQUIRED, **(extra_conf or {})}.get)
    home.lock.acquire()
    try:
        prepare(home)
        settings = local_settings(home, app_name=app_name, short_lived=short_lived)
        settings.update(extra_conf or {})
        log = home.logs / "jvm.log"
        gateway = start_jvm(settings, log=log, inherit=(home.lock.descriptor,), debug=debug)
    except BaseException:
        home.lock.release()
        raise
    home.lock.shared_with(process_of(gateway).pid)
    try:
        # From here on pyspark knows the JVM; the settings are in it already.
        SparkContext(conf=SparkConf(_jvm=gateway.jvm), gateway=gateway)
        spark = SparkSession.builder.getOrCreate()
        check_session(spark)
    except BaseException:
        stop_session()
        home.lock.release()
        raise
    atexit.register(_stop_home, home)
    return spark


def _stop_home(home: Home) -> None:
    stop_session()
    home.lock.release()


def stop_session() -> None:
    """Stop the local session and wait until its JVM is gone; without one, do nothing.

    `spark.stop()` alone leaves the JVM running, and with it the lock and the catalog.
    """
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    if gateway is None:
        return
    try:
        # A JVM that has ended already (killed, out of memory) has nothing to be asked.
        if context is not None and process_of(gateway).poll() is None:
            with contextlib.suppress(Py4JError):
                (SparkSession._instantiatedSession or context).stop()
    finally:
        # pyspark keeps the gateway for good; without it the next session starts a JVM of its own.
        SparkContext._active_spark_context = None
        SparkContext._gateway = None
        SparkContext._jvm = None
        SparkSession._instantiatedSession = None
        end_jvm(gateway)


def remote_session(url: str) -> SparkSession:
    """Open a session of its own at a Spark Connect server.

    Args:
        url: the address, `sc://host:port/;token=...`.

    Raises:
        BadSettings: the address is not one, or the server's settings break a rule.
        ServerUnreachable: nobody answers there, or the server refuses us.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    parts = urlparse(url)
    if parts.scheme != "sc" or not parts.hostname:
        raise BadSettings(f"{REMOTE_VARIABLE}: must be sc://host:port/;... Got: {_bare(url)!r}.")
    address = f"{parts.hostname}:{parts.port or CONNECT_PORT}"
    try:
        # The client would try for minutes; a closed port is known at once.
        probe = (parts.hostname, parts.port or CONNECT_PORT)
        socket.create_connection(probe, timeout=CONNECT_TIMEOUT).close()
        spark: SparkSession = SparkSession.builder.remote(url).create()
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    except OSError as error:
        cause = error.strerror or str(error)
        raise ServerUnreachable(address=address, cause=cause) from error
    except PySparkException as error:
        raise ServerUnreachable(address=address, cause=_first_line(error)) from error
    check_session(spark)
    return spark


def _bare(url: str) -> str:
    """Return an address without its parameters: a token is one of them."""
    return url.split(";", 1)[0].rstrip("/")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def check_session(spark: SparkSession) -> None:
    """Refuse a session whose settings break a promise.

    What it cannot know: whether other drivers write to the same file:// tables. A local home's
    lock and `outbox serve` see to that; elsewhere it is a precondition (design rule 10).

    Raises:
        BadSettings: a setting differs from `REQUIRED`.
        StoragePrecondition: a cluster with a warehouse on each machine's own disk.
    """
    check_settings(lambda name: spark.conf.get(name, None))
    master = spark.conf.get("spark.master", None) or "local"
    warehouse = spark.conf.get("spark.sql.warehouse.dir", None) or ""
    if not master.startswith("local") and warehouse.startswith("file:"):
        raise StoragePrecondition(
            f"A file:// warehouse needs a local master. Got: {warehouse} with {master}."
        )


def check_settings(setting: Callable[[str], str | None]) -> None:
    """Refuse settings that break a promise, before or after a session has them.

    Args:
        setting: returns what a setting is, None if it is left at Spark's default.

    Raises:
        BadSettings: a setting differs from `REQUIRED`.
    """
    for name, required in REQUIRED.items():
        found = (setting(name) or _DEFAULTS.get(name, "")).strip()
        if found.lower() != required.lower():
            raise BadSettings(
                f"{name}: must be {required}, because {_WHY[name]}. Got: {found!r}.",
                remedy=f"Start Spark with --conf {name}={required}.",
            )
