"""A session on a Spark Connect server that is made anew where the server has forgotten it.

A server closes a session that was not used for a while (an hour, unless it is told otherwise), and
knows none from before its own start. What it takes to make a session anew is noted while the server
knows it. After each pause the server is asked before the next request is sent: so none is repeated.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import threading
import time
import uuid
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.errors.utils import is_debugging_enabled
from pyspark.sql.connect import proto
from pyspark.sql.connect.client import ChannelBuilder, SparkConnectClient
from pyspark.sql.connect.conf import RuntimeConf
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import SQL
from pyspark.sql.connect.session import SparkSession

from delta_outbox.core.errors import SessionClosed
from delta_outbox.runtime.connect import is_forgotten, keep_apart

logger = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 1.0  # without a request; less than any time-out of a server
_OF_SESSIONS: Final = ("spark.sql.", "spark.databricks.")  # settings; the others are the server's
_TIME_ZONE: Final = "spark.sql.session.timeZone"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What it takes to make a session anew.

    Args:
        catalog: the current one.
        database: the current one.
        settings: those of sessions, by name.
    """

    catalog: str
    database: str
    settings: dict[str, str]

    @classmethod
    def of(cls, spark: SparkSession) -> Origin:
        """Read it from a session.

        Args:
            spark: the session.

        Raises:
            SessionClosed: the server does not know it any more.
        """
        if isinstance(spark, LastingSession):
            return spark.origin
        try:
            settings = _settings(RuntimeConf(spark.client))
            names = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
        except PySparkException as error:
            if is_forgotten(error):
                raise SessionClosed from error
            raise
        return cls(catalog=names[0], database=names[1], settings=settings)

    def restore(self, client: SparkConnectClient) -> None:
        """Bring a new session to where this one was.

        Args:
            client: of the new one.
        """
        there = _settings(RuntimeConf(client))
        pairs = [
            proto.KeyValue(key=name, value=value)
            for name, value in self.settings.items()
            if there.get(name) != value
        ]
        # Silent: what the server lets no session set was its own.
        operation = proto.ConfigRequest.Set(pairs=pairs, silent=True)
        client.config(proto.ConfigRequest.Operation(set=operation))
        place = (f"`{name.replace('`', '``')}`" for name in (self.catalog, self.database))
        client.execute_command(SQL(f"use {'.'.join(place)}").command(client))


class LastingSession(SparkSession):
    """A copy of a session. All that asks it finds a client that the server knows.

    Temporary views, rows that the server has kept and files that were added are gone where it was
    made anew: nobody of ours leaves such a thing for after a pause.

    Args:
        spark: of which it is a copy.

    Raises:
        SessionClosed: the server does not know that one any more.
    """

    def __init__(self, spark: SparkSession) -> None:
        origin = Origin.of(spark)
        # A copy: `set_for_good` is of this session alone.
        self.origin = replace(origin, settings=dict(origin.settings))
        self._turns = threading.RLock()
        self._used = 0.0  # seconds of the system clock, which goes on while a machine sleeps
        self._is_over = False
        # Functions of pyspark ask the active session for it, once for the process: later its server
        # may have forgotten it.
        is_debugging_enabled()
        self._now = _kept_apart(spark.client.clone(), like=spark.client)

    def __del__(self) -> None:
        # Without a word to the server: who collects garbage must wait for nobody.
        with contextlib.suppress(Exception):
            self._now.close()

    @property
    def _client(self) -> SparkConnectClient:  # type: ignore[override]  # pyspark's is no property
        with self._turns:
            paused = abs(time.time() - self._used) >= PAUSE_SECONDS
            if paused and not self._is_over and not _is_known(self._now):
                self._make_anew()
            self._used = time.time()
            return self._now

    @property
    def _session_id(self) -> str:  # type: ignore[override]  # likewise
        return self._now._session_id

    def sql(self, sqlQuery: str, *args: Any, **kwargs: Any) -> Any:  # noqa: N803 - pyspark's
        """Run a statement, or return the rows of a query as pyspark does; but what begins with
        `select` is not analysed before its rows are asked for, which pyspark does and forgets.

        Args:
            sqlQuery: the text.
            args: as pyspark takes them.
            kwargs: likewise.
        """
        if args or kwargs or not sqlQuery.lower().startswith("select "):
            return super().sql(sqlQuery, *args, **kwargs)
        return DataFrame(SQL(sqlQuery), self)

    def set_for_good(self, name: str, value: str) -> None:
        """Set what is to hold as well when the session has been made anew.

        Args:
            name: of a setting of sessions.
            value: its value.
        """
        self.conf.set(name, value)
        self.origin.settings[name] = value

    def stop(self) -> None:
        """Let the server forget it, if it has not done so."""
        with self._turns:
            if self._is_over:
                return
            self._is_over = True
            with contextlib.suppress(Exception):
                self._now.release_session()
            with contextlib.suppress(Exception):
                self._now.close()

    def _make_anew(self) -> None:
        old = self._now
        builder = copy.deepcopy(old._builder)
        builder.set(ChannelBuilder.PARAM_SESSION_ID, str(uuid.uuid4()))
        new = _kept_apart(SparkConnectClient(builder, user_id=old._user_id), like=old)
        try:
            self.origin.restore(new)
        except BaseException:
            new.close()
            raise
        self._now = new
        old.close()
        logger.info("session_made_anew", extra={"session": new._session_id})


def _kept_apart(client: SparkConnectClient, *, like: SparkConnectClient) -> SparkConnectClient:
    """Return a new client that is as patient as another one, and whose end is nobody else's."""
    keep_apart(client)
    client.set_retry_policies(like.get_retry_policies())
    return client


def _is_known(client: SparkConnectClient) -> bool:
    try:
        client.get_configs(_TIME_ZONE)
    except PySparkException as error:
        if is_forgotten(error):
            return False
        raise
    return True


def _settings(conf: RuntimeConf) -> dict[str, str]:
    return {name: value for name, value in conf.getAll.items() if name.startswith(_OF_SESSIONS)}
