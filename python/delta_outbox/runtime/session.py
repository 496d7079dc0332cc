"""The SparkSession: a classic local one in a home, or a remote one through Spark Connect."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import socket
import sys
import warnings
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from delta_outbox.core.errors import BadSettings, ServerUnreachable, StoragePrecondition
from delta_outbox.runtime.catalog_places import follow_home
from delta_outbox.runtime.connect import is_forgotten, keep_apart
from delta_outbox.runtime.dead_clients import user_of_process
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.interrupts import handlers_kept
from delta_outbox.runtime.jvm import SparkNotStarted, end_jvm, kill_jvm, process_of, start_jvm
from delta_outbox.runtime.served_home import REMOTE_VARIABLE
from delta_outbox.runtime.spark_settings import (
    APP_NAME,
    BOUNDS,
    REQUIRED,
    check_settings,
    local_settings,
    prepare,
)
from delta_outbox.runtime.torn_commits import check_commits, remove_unmade

if TYPE_CHECKING:
    import subprocess

    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from delta_outbox.runtime.class_archive import ClassArchive
    from delta_outbox.runtime.served_home import Served

CONNECT_PORT = 15002
CONNECT_TIMEOUT = 5.0  # seconds
CONNECT_RETRIES = 5  # about 3 s together
# A connection that something between us and the server has dropped without a word (a firewall that
# forgets it, a machine that is gone) looks as if the server were still thinking. After so long
# without a word in a request the client asks the other end whether it is there. Not more often: a
# server ends the connection of whoever asks within five minutes (gRPC's own rule).
KEEPALIVE = {
    "grpc.keepalive_time_ms": 320_000,
    "grpc.keepalive_timeout_ms": 20_000,  # until what was sent is acknowledged (TCP_USER_TIMEOUT)
    "grpc.http2.ping_timeout_ms": 20_000,  # until the answer
}
"""Settings of the channel to a server; with them a request waits for six minutes at most."""


# What a code of gRPC means in the middle.
_LOST = {"UNAVAILABLE": "it has ended", "UNAUTHENTICATED": "it takes another token now"}


def local_session(
    home: Home,
    *,
    app_name: str = APP_NAME,
    extra_conf: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    short_lived: bool = False,
    small_query_mode: bool = True,
    record_classes: bool = False,
    debug: bool = False,
) -> SparkSession:
    """Start the SparkSession of a home, and take the home's lock for it.

    The lock stays with this process and its JVM; `stop_session` ends both. It runs by itself when
    Python exits, so the next command finds the home free.

    Args:
        home: where the tables, the catalog and the logs lie.
        app_name: the name in Spark's logs.
        extra_conf: settings that are added to ours, or win over them.
        environment: variables for its JVM alone; what is secret belongs here.
        short_lived: start fast and compute slower, for a command of a minute at most.
        small_query_mode: begin in small-query mode (query_mode.py).
        record_classes: at the end, which takes some seconds more, write what makes later starts
            faster; if it is there already, do nothing.
        debug: show what Spark prints, on standard error.

    Raises:
        HomeInUse: another process works in this home.
        NoJava: no Java that is new enough.
        TornCommit: the last commit of a table of an outbox is not whole.
        JarsUnavailable: Delta's jars are missing and could not be fetched.
        SparkNotStarted: the JVM or the session failed to start.
        BadSettings: a variable of ours is wrong, or SPARK_REMOTE asks for another session.
    """
    if os.environ.get(REMOTE_VARIABLE):
        raise BadSettings(
            f"{REMOTE_VARIABLE}: must not be set for a local session.",
            remedy=f"Unset {REMOTE_VARIABLE}, or use the session that it names.",
        )
    check_settings({**REQUIRED, **(extra_conf or {})}.get)
    held_before, running_before = home.lock.held, len(_jvms)
    # First of all: whoever comes second must not wait for imports to learn that.
    home.lock.acquire()
    try:
        if not held_before:
            remove_unmade(home)
        check_commits(home)
        spark = _started(
            home,
            app_name=app_name,
            extra=extra_conf or {},
            environment=environment or {},
            short_lived=short_lived,
            small_query_mode=small_query_mode,
            record_classes=record_classes,
            debug=debug,
        )
    except BaseException:
        _kill_rest(but=running_before)
        if not held_before:
            home.lock.release()
        raise
    atexit.register(_stop_home, home)
    return spark


def _started(
    home: Home,
    *,
    app_name: str,
    extra: Mapping[str, str],
    environment: Mapping[str, str],
    short_lived: bool,
    small_query_mode: bool,
    record_classes: bool,
    debug: bool,
) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        raise SparkNotStarted(
            "This process has a SparkSession already.",
            remedy="Use that one, or stop it first: one process, one local session.",
        )
    archive = prepare(home, record_classes=record_classes)
    settings = local_settings(
        home, archive, app_name=app_name, short_lived=short_lived, small_query_mode=small_query_mode
    )
    log = home.logs / "jvm.log"
    gateway = start_jvm(
        {**settings, **extra},
        log=log,
        inherit=(home.lock.descriptor,),
        environment=environment,
        debug=debug,
        on_start=lambda process: _begin(home, process),
    )
    try:
        gateway.class_archive = archive
        follow_home(gateway, home)
        SparkContext._ensure_initialized(gateway=gateway)
        with handlers_kept():
            SparkContext(conf=SparkConf())  # the JVM was started with our settings
        spark = SparkSession.builder.getOrCreate()
        check_session(spark)
    except (Py4JError, PySparkException) as error:
        cause = _cause(error)  # asks the JVM, which ends now
        stop_session()
        # Not `from error`: to print it later would ask the JVM again.
        raise SparkNotStarted(f"Spark did not start: {cause} (log: {log})") from None
    except BaseException:
        stop_session()
        raise
    return spark


# The JVM of the session of this process, from its first moment on.
_jvms: list[subprocess.Popen[bytes]] = []


def _begin(home: Home, process: subprocess.Popen[bytes]) -> None:
    """Note a JVM that was just started, for ourselves and for whoever finds the home in use."""
    _jvms.append(process)
    home.lock.shared_with(process.pid)


def _kill_rest(*, but: int = 0) -> None:
    """Kill a JVM of this process that has not ended in order; without one, do nothing.

    Args:
        but: how many are left alone, those that were there first.
    """
    while len(_jvms) > but:
        kill_jvm(_jvms[-1])
        _jvms.pop()


def _cause(error: Exception) -> str:
    """Return the first line that Java says about an error; pyspark's own first line is a frame."""
    java = getattr(error, "java_exception", None)
    return _first_line(Exception(java.toString())) if java is not None else _first_line(error)


def _stop_home(home: Home) -> None:
    stop_session()
    home.lock.release()


def stop_session() -> None:
    """Stop the local session and wait until its JVM is gone; without one, do nothing.

    `spark.stop()` alone leaves the JVM running, and with it the lock and the catalog. Whoever
    interrupts this does not want to wait: the JVM is killed then.
    """
    try:
        _stop_session()
    finally:
        _kill_rest()


def _stop_session() -> None:
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
        archive: ClassArchive | None = getattr(gateway, "class_archive", None)
        try:
            # What fails or is interrupted has not loaded what an archive is to hold.
            is_well = sys.exc_info()[0] is None and process_of(gateway).poll() is None
            if archive is not None and is_well:
                archive.write(gateway)
        finally:
            end_jvm(gateway)


def remote_session(url: str, *, user: str | None = None) -> SparkSession:
    """Open a session of its own at a Spark Connect server.

    Args:
        url: the address, `sc://host:port/;token=...`.
        user: whom the server takes the session for; as pyspark has it if left out.

    Raises:
        BadSettings: the address is not one, or the server's settings break a rule.
        ServerUnreachable: nobody answers there, or the server refuses us.
    """
    from pyspark.errors import PySparkException

    parts = urlparse(url)
    if parts.scheme != "sc" or not parts.hostname:
        raise BadSettings(f"{REMOTE_VARIABLE}: must be sc://host:port/;... Got: {_bare(url)!r}.")
    address = f"{parts.hostname}:{parts.port or CONNECT_PORT}"
    try:
        # The client would try for minutes; a closed port is known at once.
        probe = (parts.hostname, parts.port or CONNECT_PORT)
        socket.create_connection(probe, timeout=CONNECT_TIMEOUT).close()
        spark = _connected(url, user)
        keep_apart(_client(spark))
        try:
            with _quick_to_give_up(spark):
                spark.conf.set("spark.sql.session.timeZone", "UTC")
        except PySparkException:
            # Open, it would ask the server once more at exit, for minutes if nobody answers.
            _client(spark).close()
            raise
        if parts.hostname == "localhost":
            _try_for_seconds(spark)  # no network that may come back: a server that ends is gone
    except OSError as error:
        cause = error.strerror or str(error)
        raise ServerUnreachable(address=address, cause=cause) from error
    except PySparkException as error:
        raise ServerUnreachable(address=address, cause=_first_line(error)) from error
    check_session(spark)
    return spark


def _connected(url: str, user: str | None) -> SparkSession:
    """Return a new session at an address, as `SparkSession.builder.remote` does, which takes no
    settings of the channel.
    """
    from pyspark.sql.connect.client import ChannelBuilder, DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    channel = DefaultChannelBuilder(url, channelOptions=list(KEEPALIVE.items()))
    if user is not None:
        channel.set(ChannelBuilder.PARAM_USER_ID, user)
    remote: Any = RemoteSession.builder.channelBuilder(channel).create()
    spark: SparkSession = remote
    return spark


@contextlib.contextmanager
def _quick_to_give_up(spark: SparkSession) -> Iterator[None]:
    """Let a client try for seconds instead of ten minutes; afterwards it is patient again.

    A token with another host name than `localhost` makes the client speak TLS, which a server
    without certificates never answers.
    """
    client = _client(spark)
    patient = client.get_retry_policies()
    _try_for_seconds(spark)
    try:
        with warnings.catch_warnings():
            # What it warns about is the error that we raise.
            warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]", UserWarning)
            yield
    finally:
        client.set_retry_policies(patient)


def _try_for_seconds(spark: SparkSession) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    policy = DefaultPolicy(max_retries=CONNECT_RETRIES, max_backoff=1000)
    _client(spark).set_retry_policies([policy])


def _client(spark: SparkSession) -> Any:
    remote: Any = spark  # typed as a classic session, whose `client` is something else
    return remote.client


def lost_server(error: Exception) -> ServerUnreachable | None:
    """Return the error of ours if a server went away in the middle, None for any other error.

    Args:
        error: what Spark raised.
    """
    code = getattr(error, "getGrpcStatusCode", None)
    name = getattr(code(), "name", "") if code is not None else ""
    cause = "it does not know our session any more" if is_forgotten(error) else _LOST.get(name)
    if cause is None:
        return None
    url = _bare(os.environ.get(REMOTE_VARIABLE, ""))
    return ServerUnreachable(address=url.removeprefix("sc://"), cause=cause)


def _bare(url: str) -> str:
    """Return an address without its parameters: a token is one of them."""
    return url.split(";", 1)[0].rstrip("/")


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    details = re.search(r'^\s*details = "(.+)"$', text, re.MULTILINE)  # of gRPC
    return details[1] if details else (text.splitlines() or [type(error).__name__])[0]


@dataclass(frozen=True, kw_only=True, eq=False)
class Machine:
    """What the sessions of one Spark have in common whose files this process can read.

    Args:
        served: the process that runs it, if that is another one.
    """

    served: Served | None = None


# Of the sessions of a server; weak, because nobody says of each when it is let go.
_here: weakref.WeakKeyDictionary[SparkSession, Machine] = weakref.WeakKeyDictionary()


@contextlib.contextmanager
def using_server(address: str, *, served: Served | None = None) -> Iterator[SparkSession]:
    """Use a server for a block: for us, and for the dbt that runs in this process.

    Args:
        address: as SPARK_REMOTE holds it.
        served: the server, if it is known to be a process of this machine, that of a home of ours.

    Raises:
        ServerUnreachable: the server does not answer.
    """
    before = os.environ.get(REMOTE_VARIABLE)
    spark = remote_session(address, user=None if served is None else user_of_process())
    if served is not None:
        _here[spark] = Machine(served=served)
    os.environ[REMOTE_VARIABLE] = address  # where dbt looks for its session
    try:
        yield spark
    finally:
        spark.stop()
        if before is None:
            os.environ.pop(REMOTE_VARIABLE, None)


def is_remote(spark: SparkSession) -> bool:
    """Say whether a session is one of Spark Connect.

    Args:
        spark: the session.
    """
    kinds = type(spark).__mro__  # no import: a local session needs none of Spark Connect
    return any(kind.__module__.startswith("pyspark.sql.connect.") for kind in kinds)


def spark_here(spark: SparkSession) -> SparkContext | Machine | None:
    """Return what all sessions of a Spark share whose files this process can read.

    Args:
        spark: a classic session or one of Spark Connect.

    Returns:
        None if it is a server that may work on another machine.
    """
    return _here.get(spark) if is_remote(spark) else spark.sparkContext


def own_session(spark: SparkSession) -> SparkSession:
    """Return a session of its own on the same Spark: settings and temporary views are private.

    One on a server is made anew where that has forgotten it (lasting_session.py).

    Args:
        spark: a classic session or one of Spark Connect.

    Raises:
        SessionClosed: the server does not know the given session any more.
    """
    if not is_remote(spark):
        return spark.newSession()
    from delta_outbox.runtime.lasting_session import LastingSession

    remote: Any = spark  # typed as a classic session
    own: Any = LastingSession(remote)
    for name, value in BOUNDS.items():
        own.set_for_good(name, value)
    if spark in _here:
        _here[own] = _here[spark]
    result: SparkSession = own
    return result


def set_for_good(spark: SparkSession, name: str, value: str) -> None:
    """Set what a session of ours needs as long as it lives.

    Args:
        spark: what `own_session` returned.
        name: of the setting.
        value: its value.
    """
    if is_remote(spark):
        remote: Any = spark
        remote.set_for_good(name, value)
    else:
        spark.conf.set(name, value)


def kept(frame: DataFrame) -> DataFrame:
    """Compute a frame now and return what keeps its rows; a later append does not change them.

    Args:
        frame: of a classic session or one of Spark Connect.
    """
    spark = frame.sparkSession
    if not is_remote(spark):
        return frame.localCheckpoint()
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    # The client of Spark 4.1 takes the rows for those of the thread's active session, if there is
    # one, whose server has maybe never heard of them (pyspark.sql.connect.conversion).
    of_thread: Any = RemoteSession._active_session
    before = getattr(of_thread, "session", None)
    of_thread.session = spark
    try:
        result = frame.localCheckpoint()
    finally:
        of_thread.session = before
    remote: Any = result
    remote._plan._spark_session = _Keeper(client=_client(spark))
    return result


@dataclass(frozen=True, kw_only=True)
class _Keeper:
    """What lets kept rows go, from within the garbage collector: it must wait for nobody.

    Args:
        client: of the session that keeps them; one that is made anew has never heard of them.
    """

    client: Any


def end_own_session(spark: SparkSession) -> None:
    """Let a server forget a session; a classic one ends with its Spark.

    A server keeps a session for an hour after its last word, with all that it holds.

    Args:
        spark: what `own_session` returned; nothing is asked of it any more.
    """
    if not is_remote(spark):
        return
    spark.stop()


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
