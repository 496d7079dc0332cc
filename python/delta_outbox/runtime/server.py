"""Serves a home: a Spark Connect server in the JVM of a local session.

Its life hangs on this process like that of any local session (jvm.py): the JVM inherits the
home's lock and ends when this process does, however that ends.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from delta_outbox.core.errors import OutboxError
from delta_outbox.core.redaction import describe
from delta_outbox.runtime.dead_clients import end_sessions
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.jvm import process_of
from delta_outbox.runtime.questions import Answer, answering
from delta_outbox.runtime.served_home import Served, remove_served, write_served
from delta_outbox.runtime.session import local_session, stop_session
from delta_outbox.runtime.spark_settings import served_settings

if TYPE_CHECKING:
    import subprocess

logger = logging.getLogger(__name__)

# Not a setting: those are arguments of the JVM, which every user of the machine can list.
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
TOKEN_BYTES = 32


class ServerEnded(OutboxError):
    """The server ended by itself: the log of its JVM says why."""

    code = "SERVER_ENDED"
    remedy = "Read logs/jvm.log and logs/spark.log in the home, then start it again: `outbox up`."


class PortTaken(OutboxError):
    """Somebody listens on the port already: choose another one, or leave the choice to us."""

    code = "PORT_TAKEN"
    remedy = "Leave out --port, and a free one is taken, or name another; clients find it anyway."


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server that runs in a JVM of this process.

    Args:
        served: where it is.
        process: the JVM.
    """

    served: Served
    process: subprocess.Popen[bytes]

    def check(self) -> None:
        """Demand that it still runs.

        Raises:
            ServerEnded: it does not.
        """
        code = self.process.poll()
        if code is not None:
            raise ServerEnded(f"The server at {self.served.address} ended by itself (exit {code}).")

    def end_sessions_of_the_dead(self) -> None:
        """End the sessions of clients whose process has ended without a word. Where that fails, it
        is tried again next time: nobody else is to suffer from it.
        """
        from py4j.protocol import Py4JError

        try:
            ended = end_sessions(_service())
        except Py4JError as error:
            logger.warning("sessions_of_the_dead_stay", extra={"cause": describe(error)})
            return
        if ended:
            logger.info("sessions_of_the_dead_ended", extra={"sessions": ended})


@contextlib.contextmanager
def serving(
    home: Home,
    *,
    port: int | None = None,
    answer: Answer | None = None,
    short_lived: bool = False,
    debug: bool = False,
) -> Iterator[Server]:
    """Serve a home for a block: take its lock, start the server, write down where it is.

    Args:
        home: the home.
        port: of 127.0.0.1; a free one if left out.
        answer: to the questions of other processes (questions.py), if any are to be asked.
        short_lived: start fast and compute slower.
        debug: show what Spark prints, on standard error.

    Raises:
        HomeInUse: another process works in this home, or serves it.
        PortTaken: the port is not free.
        SparkNotStarted: the server did not start.
    """
    _check_port(port)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    home.lock.acquire(serves=True)
    try:
        local_session(
            home,
            app_name="outbox serve",
            extra_conf=served_settings(port=port),
            environment={TOKEN_VARIABLE: token},
            short_lived=short_lived,
            small_query_mode=short_lived,  # who asks what is not known
            debug=debug,
        )
        with answering(token, answer) as questions_port:
            served = Served(
                address=f"sc://localhost:{_port()}",
                token=token,
                pid=os.getpid(),
                since=datetime.now(UTC).replace(microsecond=0),
                home=home.root,
                questions_port=questions_port,
            )
            write_served(home, served)
            logger.info("serving", extra={"address": served.address, "home": str(home.root)})
            try:
                yield Server(served=served, process=process_of(_gateway()))
            finally:
                remove_served(home, served)
    finally:
        stop_session()
        home.lock.release()


def _check_port(port: int | None) -> None:
    """Refuse a port that is taken before a JVM takes seconds to find that out."""
    if port is None:
        return
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server: not who left
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise PortTaken(
                f"--port: must be a port of 127.0.0.1 that nobody listens on. Got: {port} "
                f"({error.strerror})."
            ) from error


def _gateway() -> Any:
    from pyspark import SparkContext

    return SparkContext._gateway


def _service() -> Any:
    service = getattr(_gateway().jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    return getattr(service, "MODULE$")


def _port() -> int:
    """Return the port that the server listens on; it does so before the session is there."""
    return int(_service().localPort())
