"""The outbox on Delta, as the kit sees it: through `Outbox`, and its public views."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from delta_outbox.api import Outbox
from delta_outbox.core.tables import Tables
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.lifecycle.results import Result
from delta_outbox.lifecycle.states import State
from delta_outbox.runtime.home import Home, find_home
from delta_outbox.runtime.session import local_session, stop_session
from delta_outbox.runtime.statements import Statements
from delta_outbox.store.opening import create_outbox, load_statements
from delta_outbox.testing.conformance.adapter import (
    Capability,
    Change,
    Held,
    Message,
    NewEvent,
    Noticed,
    Record,
    Refused,
    Step,
    Terms,
)
from delta_outbox.testing.conformance.clock import ManualClock
from delta_outbox.testing.conformance.delta_setup import TERMS, messages_of, set_policies
from delta_outbox.testing.conformance.delta_tampering import tamper_with

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_INSTANT: Final = pa.timestamp("us", tz="UTC")
_STRINGS: Final = pa.map_(pa.string(), pa.string())
_APPENDED: Final = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_type", pa.string()),
        ("payload", pa.binary()),
        ("ordering_key", pa.string()),
        ("partition_key", pa.string()),
        ("headers", _STRINGS),
        ("metadata", _STRINGS),
        ("available_at", _INSTANT),
    ]
)
_SHOWN: Final = tuple(Record.__dataclass_fields__)
_WHO: Final[dict[str, Any]] = {"actor": "kit", "reason": "conformance", "dry_run": False}


class DeltaStore:
    """One outbox, and a worker of its own for every relay that the kit names.

    Args:
        spark: the session that dbt uses.
        home: takes dbt's files.
        tables: the names of the relations.
        statements: the compiled SQL.
        folder: takes what is published.
    """

    capabilities: frozenset[Capability] = frozenset(Capability)
    terms: Terms = TERMS

    def __init__(
        self,
        spark: SparkSession,
        *,
        home: Home,
        tables: Tables,
        statements: Statements,
        folder: Path,
    ) -> None:
        self._spark = spark
        self._home = home
        self._tables = tables
        self._statements = statements
        self._folder = folder
        self._clock = ManualClock()
        self._workers: dict[str, Outbox] = {}
        self._lock = threading.Lock()

    def _outbox(self, worker: str = "operator") -> Outbox:
        with self._lock:
            if worker not in self._workers:
                self._workers[worker] = Outbox(
                    self._spark,
                    tables=self._tables,
                    statements=self._statements,
                    clock=self._clock,
                    home=self._home,
                    exclusive=True,
                    worker_id=worker,
                )
            return self._workers[worker]

    def now(self) -> datetime:
        """Return the time of the store."""
        return self._clock.now()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._clock.sleep(seconds)

    def append(self, events: Sequence[NewEvent]) -> None:
        """Append events in one commit."""
        rows = [
            {
                **{name: getattr(event, name) for name in _APPENDED.names},
                "headers": _pairs(event.headers),
                "metadata": _pairs(event.metadata),
            }
            for event in events
        ]
        report = self._outbox().append(pa.Table.from_pylist(rows, schema=_APPENDED))
        if report.rejected:
            raise Refused(report.rejected[0].message)

    def retrieve(self, limit: int) -> Sequence[str]:
        """Return what is eligible, in order."""
        ids: list[str] = self._outbox().retrieve(limit).deliveries["event_id"].to_pylist()
        return ids

    def claim(self, worker: str, limit: int) -> Held | None:
        """Claim what is eligible."""
        claim = self._outbox(worker).claim(limit)
        if claim is None:
            return None
        ids = tuple(claim.deliveries["event_id"].to_pylist())
        return Held(worker=worker, event_ids=ids, token=claim)

    def messages(self, held: Held) -> Sequence[Message]:
        """Publish a claim to files, and return what is in them."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        found = messages_of(self._outbox(held.worker), _claim(held), folder)
        return [found[event_id] for event_id in held.event_ids]

    def end(self, held: Held, results: Sequence[Result]) -> None:
        """End a claim; what is no longer under it is left out."""
        self._outbox(held.worker).end(_claim(held), results)

    def reap(self) -> None:
        """Do what every command of the outbox does first."""
        outbox = self._outbox()
        outbox.release_expired_claims()
        outbox.apply_commands_if_alone()

    def replay(self, event_ids: Sequence[str], *, state: State) -> None:
        """Ask for a replay."""
        self._outbox().replay(state=str(state), event_ids=list(event_ids), **_WHO)

    def kill(self, event_ids: Sequence[str]) -> None:
        """Ask for the end of events."""
        self._outbox().kill(list(event_ids), **_WHO)

    def read(self, event_ids: Sequence[str]) -> Sequence[Record]:
        """Return rows of the view `outbox`."""
        self._outbox().refresh()
        rows = self._rows("outbox", event_ids).select(*_SHOWN).toArrow().to_pylist()
        return [
            Record(
                **{
                    **row,
                    "headers": _mapping(row["headers"]),
                    "metadata": _mapping(row["metadata"]),
                }
            )
            for row in rows
        ]

    def history(self, event_ids: Sequence[str]) -> Sequence[Step]:
        """Return rows of the log of transitions."""
        rows = (
            self._rows("outbox_transitions", event_ids)
            .orderBy("epoch", "lane", "sequence")
            .select("event_id", "from_state", "to_state")
            .toArrow()
        )
        return [Step(**row) for row in rows.to_pylist()]

    def reopen(self) -> None:
        """Close every worker; new ones know only what is in the tables."""
        workers, self._workers = self._workers, {}
        for outbox in workers.values():
            outbox.close()

    def tamper(self) -> Mapping[Change, Noticed]:
        """Rewrite each log in every way, then build."""
        return tamper_with(self._spark, self._tables, self._home)

    def _rows(self, relation: str, event_ids: Sequence[str]) -> DataFrame:
        from pyspark.sql import functions as sf

        wanted = sf.col("event_id").isin(list(event_ids))
        return self._outbox().spark.table(self._tables[relation]).where(wanted)


class DeltaStores:
    """The same outbox for every scenario; events of the kit have ids and keys of their own.

    Args:
        spark: the session of the process; one in a new home if left out.
        home: its home.
        schema: where the outbox is made.
    """

    name = "delta"

    def __init__(
        self,
        spark: SparkSession | None = None,
        home: Home | None = None,
        schema: str = "conformance",
    ) -> None:
        self._open = ExitStack()
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="outbox-kit-")))
        if spark is None or home is None:
            home = find_home(environ={"OUTBOX_HOME": str(folder / "home")}, create=True)
            spark = local_session(home, app_name="conformance", short_lived=True)
            self._open.callback(home.lock.release)
            self._open.callback(stop_session)
        tables = Tables(schema=schema)
        create_outbox(spark, home, tables)
        self._open.callback(spark.sql, f"drop schema if exists {schema} cascade")
        set_policies(spark, tables)
        self._store = DeltaStore(
            spark,
            home=home,
            tables=tables,
            statements=load_statements(home, tables),
            folder=folder,
        )
        self._open.callback(self._store.reopen)

    def fresh(self) -> DeltaStore:
        """Return the outbox; a scenario leaves nothing open."""
        return self._store

    def close(self) -> None:
        """Drop the outbox, and end the session if it is ours."""
        self._open.close()


def _claim(held: Held) -> Claim:
    assert isinstance(held.token, Claim)
    return held.token


def _pairs(value: Mapping[str, str] | None) -> list[tuple[str, str]] | None:
    return None if value is None else list(value.items())


def _mapping(value: Iterator[tuple[str, str | None]] | None) -> dict[str, str | None] | None:
    return None if value is None else dict(value)
