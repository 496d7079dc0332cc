"""What tests of the store share: an outbox in a schema of its own, events, their lives."""

from __future__ import annotations

import gc
import itertools
import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
from pyspark.sql import functions as sf
from tests.integration.template import Template

from delta_outbox.api import Outbox
from delta_outbox.core.globs import glob_to_regex
from delta_outbox.core.settings import PublisherSettings, RelaySettings, SecretMapping, Settings
from delta_outbox.core.tables import Tables
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.publishers.jsonl import read_lines
from delta_outbox.runtime.dbt import check_result, run_dbt
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.log_folder import commit_file
from delta_outbox.runtime.session import is_remote, spark_here
from delta_outbox.runtime.settings_file import load_settings
from delta_outbox.runtime.statements import Statements
from delta_outbox.store.expired_claims import WORKERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_folders = itertools.count(1)
_templates: dict[Path, Template] = {}  # by the home


@dataclass(frozen=True, kw_only=True)
class Store:
    """The tables of one outbox, on which a test opens as many workers as it needs.

    Args:
        spark: the session of the process.
        home: the home of the run.
        tables: the names of the relations.
        statements: the compiled SQL.
    """

    spark: SparkSession
    home: Home
    tables: Tables
    statements: Statements = field(repr=False)

    def outbox(
        self,
        folder: Path,
        *,
        publisher: str = "jsonl",
        further: Mapping[str, object] | None = None,
        batch_size: int = 10,
        **given: Any,
    ) -> Outbox:
        """Open a worker that delivers into a folder.

        Args:
            folder: the `path` of the destination.
            publisher: its type.
            further: settings of it.
            batch_size: deliveries per claim.
            given: more for `Outbox`.
        """
        path = {"path": str(folder)} if publisher == "jsonl" else {}
        own = SecretMapping({**path, **(further or {})})
        settings = Settings(
            relay=RelaySettings(batch_size=batch_size, poll_seconds=0.05, parallelism=2),
            publishers={"default": PublisherSettings(type=publisher, settings=own)},
        )
        return self.open(settings, **given)

    def open(self, settings: Settings, **given: Any) -> Outbox:
        """Open a worker with settings of its own.

        Args:
            settings: of the outbox.
            given: more for `Outbox`.
        """
        if spark_here(self.spark) is None:  # stands for a server elsewhere
            given.setdefault("location", "elsewhere")
        return Outbox(
            self.spark,
            tables=self.tables,
            settings=settings,
            statements=self.statements,
            home=self.home,
            **{"exclusive": not is_remote(self.spark), **given},
        )

    @contextmanager
    def commands(self, opened: Callable[[Path | None], Outbox] | None = None) -> Iterator[None]:
        """Let commands of this process work here for a block, in the session there is: by itself
        each would take the home, and end the session.

        Args:
            opened: returns the outbox of a command; given `--config`, if it names one.
        """

        def with_settings(config: Path | None) -> Outbox:
            return self.open(load_settings(home=self.home.root, path=config), exclusive=False)

        @contextmanager
        def open_outbox(*, config: Path | None = None, **_: object) -> Iterator[Outbox]:
            yield (opened or with_settings)(config)

        with (
            mock.patch("delta_outbox.api.open_outbox", open_outbox),
            mock.patch("delta_outbox.cli.answers.told_by_server", return_value=None),
        ):
            yield

    def transitions(self, prefix: str = "") -> list[dict[str, Any]]:
        """Return the log of the events whose ids begin so, in order."""
        return self.rows(
            f"select * from {self.tables.transitions} where startswith(event_id, '{prefix}') "
            "order by epoch, lane, sequence, event_id"
        )

    def states(self, prefix: str = "") -> dict[str, str]:
        """Return the state of the events whose ids begin so, as of the last refresh."""
        found = self.rows(
            f"select event_id, state from {self.tables.state} "
            f"where startswith(event_id, '{prefix}')"
        )
        return {row["event_id"]: row["state"] for row in found}

    def rows(self, text: str) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        rows: list[dict[str, Any]] = self.spark.sql(text).toArrow().to_pylist()
        return rows

    def drop(self, name: str) -> None:
        """Drop a table with its files, which do not go by themselves (template.py).

        Args:
            name: without the schema.
        """
        self.spark.sql(f"drop table {self.tables[name]}")
        shutil.rmtree(self.home.warehouse / f"{self.tables.schema}.db" / name)

    def insert(
        self,
        *rows: tuple[str, str, str],
        created_at: str = "current_timestamp()",
        appended_at: str = "current_timestamp()",
    ) -> None:
        """Insert (event_id, event_type, payload) with plain SQL, in one commit."""
        values = ", ".join(
            f"('{event_id}', '{kind}', cast('{payload}' as binary), {created_at}, {appended_at})"
            for event_id, kind, payload in rows
        )
        self.spark.sql(
            f"insert into {self.tables.events} "
            f"(event_id, event_type, payload, created_at, appended_at) values {values}"
        )

    def add_policy(self, event_type: str, **given: str) -> None:
        """Put a policy before all others; it delivers to `default`.

        Args:
            event_type: the pattern.
            given: its other columns.
        """
        position = self.rows(f"select min(position) as first from {self.tables['policy_rows']}")
        row = {
            "position": position[0]["first"] - 1,
            "event_type": event_type,
            "event_type_regex": glob_to_regex(event_type),
            "destination": "default",
            "route": "{event_type}",
            "format": "raw",
            "ordering": "strict",
            "order_scope": "key",
            "on_dead": "continue",
            **given,
        }
        (
            self.spark.createDataFrame(pa.Table.from_pylist([row]))
            .withColumn("position", sf.col("position").cast("int"))
            .write.format("delta")
            .mode("append")
            .saveAsTable(self.tables["policy_rows"])
        )


@contextmanager
def empty_logs(spark: SparkSession, home: Home, schema: str) -> Iterator[Tables]:
    """Make logs to which nobody writes for a block, for tests that copy one of them.

    Args:
        spark: the session of the process.
        home: the home of the run.
        schema: where they are to be.
    """
    check_result(run_dbt(["run-operation", "create_logs"], home=home, schema=schema))
    yield Tables(schema=schema)
    spark.sql(f"drop schema {schema} cascade")


def new_transition_log(spark: SparkSession, like: Tables, schema: str) -> Tables:
    """Make an empty transition log in a schema of its own, with the rules of another.

    Args:
        spark: the session of the process.
        like: the tables that the other one is of.
        schema: what is made.
    """
    tables = Tables(schema=schema)
    spark.sql(f"create schema {schema}")
    spark.sql(f"create table {tables.transitions} like {like.transitions}")
    return tables


def as_if_ended(outbox: Outbox) -> None:
    """Let others take a worker of this process for one whose process has ended.

    Args:
        outbox: the worker.
    """
    WORKERS.discard(outbox.worker_id)


@contextmanager
def left_to_spark(spark: SparkSession, *tables: str) -> Iterator[None]:
    """Let tables be Spark's to append to for a block: each has a rule that only Spark knows.

    Args:
        spark: the session of the process.
        tables: their names.
    """
    for table in tables:
        spark.sql(f"alter table {table} add constraint of_spark check (hash(1) is not null)")
    try:
        yield
    finally:
        for table in tables:
            spark.sql(f"alter table {table} drop constraint of_spark")


def appended_by_spark(spark: SparkSession, table: str) -> int:
    """Return how many appends to a table are Spark's, and not files that we have written.

    Args:
        spark: the session of the process.
        table: its name.
    """
    history = spark.sql(f"describe history {table}").where("operation = 'WRITE'")
    return history.where("not startswith(engineInfo, 'delta-outbox/')").count()


@contextmanager
def open_store(spark: SparkSession, home: Home, schema: str) -> Iterator[Store]:
    """Make an outbox in a schema and drop it afterwards."""
    if home.root not in _templates:
        _templates[home.root] = Template.find(spark, home)
    statements = _templates[home.root].copy(spark, home, schema)
    yield Store(spark=spark, home=home, tables=Tables(schema=schema), statements=statements)
    spark.sql(f"drop schema if exists {schema} cascade")
    _forget_tables(spark)


def _forget_tables(spark: SparkSession) -> None:
    """Let the JVM forget tables that are gone: Delta keeps what it knows of each for an hour, and
    the plans of a DataFrame stay until Python has found that nobody holds it.
    """
    gc.collect()
    if not is_remote(spark):
        jvm: Any = spark.sparkContext._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def events(
    prefix: str,
    count: int,
    *,
    keys: int = 0,
    event_type: str = "order.created",
    payloads: Sequence[bytes] = (),
) -> pa.Table:
    """Return events `<prefix>-000`, ...; with keys, they take turns and every third has none."""
    numbers = range(count)
    given = [None if not keys or n % 3 == 2 else f"{prefix}-key-{n % keys}" for n in numbers]
    return pa.table(
        {
            "event_id": [f"{prefix}-{n:03}" for n in numbers],
            "event_type": [event_type] * count,
            "payload": pa.array(list(payloads) or [b'{"n":%d}' % n for n in numbers], pa.binary()),
            "ordering_key": pa.array(given, pa.string()),
        }
    )


def delivered(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of a `jsonl` destination, in the order in which its files were ended.

    A file's name tells its second only; a key's events of two claims may share one.
    """
    found: list[tuple[int, dict[str, Any]]] = []
    for file in folder.rglob("*.jsonl"):
        ended = file.stat().st_mtime_ns
        link = folder.parent / f"one-{next(_folders)}"
        link.mkdir()
        (link / file.name).hardlink_to(file)
        found += [(ended, line) for line in read_lines(link)]
    return [line for _, line in sorted(found, key=lambda pair: pair[0])]


def check_lives(rows: Sequence[dict[str, Any]]) -> None:
    """Demand that each delivery's transitions join on, and that a claim is ended under its name."""
    lives: dict[tuple[str, int, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        lives[row["event_id"], row["arrival"], row["destination"]].append(row)
    for life in lives.values():
        state, claim_id, position = "PENDING", None, (0, 0)
        for row in life:
            assert state == row["from_state"], life
            assert position < (row["epoch"], row["sequence"]), life
            if state == "CLAIMED":
                assert claim_id == row["claim_id"], life
            state, claim_id = row["to_state"], row["claim_id"]
            position = row["epoch"], row["sequence"]


def commit_actions(spark: SparkSession, table: str, version: int | None) -> dict[str, list[Any]]:
    """Return what a commit of a table says, by the kinds of Delta's actions."""
    folder = CommitHistory(spark).folder(table)
    assert folder is not None
    assert version is not None
    found: dict[str, list[Any]] = {}
    for line in commit_file(folder, version).read_text(encoding="utf-8").splitlines():
        for kind, action in json.loads(line).items():
            found.setdefault(kind, []).append(action)
    return found


def projected(store: Store) -> list[dict[str, Any]]:
    """Return the rows of the projection, in an order that they alone decide on."""
    return sorted(store.rows(f"select * from {store.tables.state}"), key=repr)


def check_derived(store: Store) -> None:
    """Demand that the projection equals one that is derived anew from the logs."""
    outbox = store.outbox(Path())
    outbox.refresh()
    step_by_step = projected(store)
    outbox.refresh(rebuild=True)
    assert step_by_step == projected(store)
