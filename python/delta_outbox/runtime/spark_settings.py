"""The settings of Spark: what a local one starts with, and what no session may break."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from delta_outbox.core.errors import BadSettings
from delta_outbox.runtime import jars
from delta_outbox.runtime.class_archive import ClassArchive
from delta_outbox.runtime.home import HOME_SETTING, Home
from delta_outbox.runtime.java import Java
from delta_outbox.runtime.jvm import set_environment
from delta_outbox.runtime.ownership import write_own
from delta_outbox.runtime.query_mode import SHUFFLE_PARTS, SMALL_QUERY_MODE, USUAL_PARTS

APP_NAME = "delta-outbox"
DRIVER_MEMORY_VARIABLE = "OUTBOX_DRIVER_MEMORY"
CORES_VARIABLE = "OUTBOX_CORES"
DEFAULT_DRIVER_MEMORY = "2g"
TASK_ATTEMPTS = 4

# What every session of ours needs, local or served; the relay's promises rest on the last two.
REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.speculation": "false",
    "spark.stage.maxConsecutiveAttempts": "1",
}

# The ports of Spark's driver are on loopback, and so open to every user of the machine. With this
# it takes no message of anybody who does not know a secret that is made anew in the JVM.
NOBODY_ELSE = {"spark.authenticate": "true"}

# What Spark reads and hands on at once, so that large payloads do not fill its heap: by default
# 4,096 rows of a file, and 10,000 rows to a Python worker (decision 0051).
BOUNDS = {
    "spark.sql.parquet.columnarReaderBatchSize": "32",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 * 1024**2),
}

_WHY = {
    "spark.sql.session.timeZone": "timestamps are UTC instants",
    "spark.speculation": "a speculative copy of a task would publish a second time",
    "spark.stage.maxConsecutiveAttempts": "a repeated stage would publish a second time",
}
_DEFAULTS = {"spark.speculation": "false", "spark.stage.maxConsecutiveAttempts": "4"}

# The optimising compiler pays off after minutes; until then it takes half of the CPU time (measured
# on 2 cores, start to first query: 19 s of CPU time instead of 36).
SHORT_LIVED = ("-XX:TieredStopAtLevel=1",)
"""Options of a JVM that lives for minutes."""

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
# That a plan is too long to be kept whole is how we want it (spark.sql.maxPlanStringLength).
logger.plans.name = org.apache.spark.sql.catalyst.util.StringUtils
logger.plans.level = error
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


def served_settings(*, port: int | None = None) -> dict[str, str]:
    """Return what a server's settings have beyond those of a local session.

    Args:
        port: the port to listen on; a free one if left out.
    """
    return {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port or 0),
        # Rows that a client sends are part of its query. This rule computes them one by one before
        # the query runs, wherever its plan has them (measured: 1.3 s without it instead of 1.6 for
        # what is open, after 9,000 transitions since the last refresh).
        "spark.sql.optimizer.excludedRules": (
            "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
        ),
    }


def local_settings(
    home: Home,
    archive: ClassArchive,
    *,
    app_name: str = APP_NAME,
    short_lived: bool = False,
    small_query_mode: bool = True,
) -> dict[str, str]:
    """Return the settings of a Spark that works in a home, for a session or a server of it.

    Args:
        home: where it works.
        archive: of the JVM's classes.
        app_name: the name in Spark's logs.
        short_lived: start fast and compute slower, as who ends within a minute.
        small_query_mode: begin in small-query mode (query_mode.py).
    """
    java_options = [
        # Quoted: a home may lie below a folder with a space in its name.
        f'"-Dderby.stream.error.file={home.logs / "derby.log"}"',
        f'"-Djava.io.tmpdir={home.scratch}"',
        f'"-Dlog4j2.configurationFile={_log4j_file(home).as_uri()}"',
        "-Duser.timezone=UTC",
        "-Djava.net.preferIPv4Stack=true",
        # Spark compiles every query. C1 alone has 48 MB for compiled code by default: full after a
        # few dozen queries, and from then on the JVM mostly throws code away and makes it anew.
        "-XX:ReservedCodeCacheSize=512m",
        # G1 marks the whole heap for every large array that a Parquet file takes (measured: 140
        # collections of 340 in three minutes of small batches, and a tenth of the CPU time).
        "-XX:+UseParallelGC",
        # What makes plans runs often enough to be made fast by default, but not long enough to pay
        # for it; what is done for each row reaches these soon (a drain takes 13 % less CPU).
        "-XX:Tier4InvocationThreshold=30000",
        "-XX:Tier4MinInvocationThreshold=10000",
        "-XX:Tier4CompileThreshold=60000",
        "-XX:Tier4BackEdgeThreshold=300000",
        *archive.options(),
    ]
    if short_lived:
        java_options += SHORT_LIVED
    return {
        **REQUIRED,
        **NOBODY_ELSE,
        **BOUNDS,
        # More than one attempt: a killed Python worker fails its task, not the job. What a
        # repeated task does not do is publish (design rule 3). Twice as many slots as cores: a
        # relay waits for its destination in one task per core, and what others read and write
        # meanwhile must neither wait for that nor keep it waiting (decision 0033).
        "spark.master": f"local[{2 * _cores()},{TASK_ATTEMPTS}]",
        "spark.default.parallelism": str(_cores()),
        "spark.scheduler.mode": "FAIR",
        "spark.app.name": app_name,
        # By it dbt knows a Spark that holds the lock of a home (macros/storage/check_storage.sql).
        HOME_SETTING: str(home.root),
        "spark.driver.memory": _driver_memory(),
        "spark.driver.extraJavaOptions": " ".join(java_options),
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in jars.resolve()),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Rows that are part of a plan are walked through by every rule of the planner: to append
        # 100,000 transitions took a quarter more of the CPU with Spark's own limit (48 MB).
        "spark.sql.execution.arrow.localRelationThreshold": "64k",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark remembers what it did for a page that nobody can see: a plan of half a megabyte for
        # each of the last 1,000 queries fills the heap, and it takes time to write them down.
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.maxPlanStringLength": "10000",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(home.warehouse),
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={home.metastore};create=true"
        ),
        "spark.hadoop.hive.exec.scratchdir": str(home.scratch / "hive"),
        "spark.hadoop.hive.exec.local.scratchdir": str(home.scratch / "hive-local"),
        # Small jobs on few cores: about three times faster than the defaults (200 and 50). What
        # Delta asks of a log is a few hundred rows, and each task writes Java for all their fields.
        SHUFFLE_PARTS: USUAL_PARTS,
        "spark.databricks.delta.snapshotPartitions": "1",
        # Spark writes Java for every query and keeps 100 classes of it. One cycle of a relay needs
        # more, so that each was written, compiled and made fast anew (measured: half of the CPU
        # time of a drain).
        "spark.sql.codegen.cache.maxEntries": "2000",
        # Without this, rows are sorted by the partitions of their table before they are written.
        "spark.sql.maxConcurrentOutputFileWriters": "8",
        # VACUUM lists folders in as many tasks as this says, 10,000 by default.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        **(SMALL_QUERY_MODE if small_query_mode else {}),
    }


def _log4j_file(home: Home) -> Path:
    return home.spark_conf / "log4j2.properties"


def prepare(home: Home, *, record_classes: bool = False) -> ClassArchive:
    """Make a home ready for a Spark that starts in it; the caller holds its lock.

    Args:
        home: where it will work.
        record_classes: let its JVM write an archive of its classes if there is none.

    Raises:
        NoJava: no Java that is new enough.
        JarsUnavailable: Delta's jars are missing and could not be fetched.
    """
    home.check_links()
    home.empty_scratch()
    for folder in (home.scratch, home.spark_conf, home.logs):
        folder.mkdir(mode=0o700, exist_ok=True)
    log4j = _LOG4J.format(logs=home.logs)
    write_own(_log4j_file(home), log4j)
    # Spark puts its configuration folder on the class path. An archive of classes demands that
    # this be the same path each time, and that folders on it be empty.
    spark_conf = jars.cache_folder() / "spark-conf"
    spark_conf.mkdir(mode=0o700, parents=True, exist_ok=True)
    java = set_environment(spark_conf=spark_conf, scratch=home.scratch)
    return class_archive(java, record=record_classes)


def class_archive(java: Java, *, record: bool = False) -> ClassArchive:
    """Return the archive that a session of this installation uses.

    Args:
        java: which Java.
        record: let its JVM write the archive if there is none.

    Raises:
        JarsUnavailable: Delta's jars are missing and could not be fetched.
    """
    return ClassArchive.of(
        java=java.version, jars=jars.resolve(), cache=jars.cache_folder(), record=record
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
