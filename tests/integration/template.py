"""Copies of an outbox that dbt has built once: its tables and views, in a sixth of the time.

All processes of `run_tests.py` share one (`FOLDER_VARIABLE`); any other builds its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Self

from delta_outbox.core.tables import Tables
from delta_outbox.runtime.dbt import compile_sql
from delta_outbox.runtime.file_lock import file_locked
from delta_outbox.runtime.home import Home
from delta_outbox.runtime.statements import INLINE, Statements
from delta_outbox.store.opening import create_outbox

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "t_template"
FOLDER_VARIABLE = "OUTBOX_TESTS_TEMPLATE"

# What dbt replaces with each build: its files must go with it, as those of a managed table do.
REPLACED = ("delivery_policies", "policy_rows")

_NAME = re.compile(rf"\b{SCHEMA}\b")


@dataclass(frozen=True, kw_only=True)
class Template:
    """An outbox in which nothing has happened.

    Args:
        folder: where its tables are.
        tables: the names of its tables.
        views: what creates each view, in an order in which that works.
        statements: the text of the compiled SQL.
    """

    folder: str
    tables: Sequence[str]
    views: Sequence[str]
    statements: str

    @classmethod
    def find(cls, spark: SparkSession, home: Home) -> Self:
        """Return that of this run; whoever is first builds it.

        Args:
            spark: the session of the process.
            home: where it is built, and where its tables stay unless they are shared.
        """
        named = os.environ.get(FOLDER_VARIABLE)
        if named is None:
            return cls.build(spark, home)
        file, folder = Path(named) / "template.json", Path(named) / "tables"
        with file_locked(Path(named) / "lock"):
            if not file.exists():
                built = cls.build(spark, home)
                shutil.copytree(built.folder, folder)
                file.write_text(json.dumps(asdict(replace(built, folder=str(folder)))))
        return cls(**json.loads(file.read_text()))

    @classmethod
    def build(cls, spark: SparkSession, home: Home) -> Self:
        """Let dbt build it.

        Args:
            spark: the session of the process.
            home: where it will be.
        """
        create_outbox(spark, home, Tables(schema=SCHEMA))
        relations = spark.sql(f"show tables in {SCHEMA}").collect()
        names = {row["tableName"] for row in relations if not row["isTemporary"]}
        views = {
            row["viewName"]: str(
                spark.sql(f"show create table {SCHEMA}.{row['viewName']}").collect()[0][0]
            )
            for row in spark.sql(f"show views in {SCHEMA}").collect()
            if not row["isTemporary"]
        }
        needs = {
            name: {other for other in views if re.search(rf"\b{SCHEMA}\.{other}\b", text)} - {name}
            for name, text in views.items()
        }
        return cls(
            folder=str(home.warehouse / f"{SCHEMA}.db"),
            tables=sorted(names - set(views)),
            views=[views[name] for name in TopologicalSorter(needs).static_order()],
            statements=compile_sql(INLINE, home=home, schema=SCHEMA),
        )

    def copy(self, spark: SparkSession, home: Home, schema: str) -> Statements:
        """Make an outbox like it.

        Args:
            spark: the session of the process.
            home: the home of the run.
            schema: the name of the new one.

        Returns:
            Its compiled SQL.
        """
        spark.sql(f"create schema {schema}")
        for name in REPLACED:
            rows = f"select * from delta.`{self.folder}/{name}`"
            spark.sql(f"create table {schema}.{name} using delta as {rows}")
        for name in set(self.tables) - set(REPLACED):
            folder = home.warehouse / f"{schema}.db" / name
            shutil.copytree(Path(self.folder) / name, folder)
            spark.sql(f"create table {schema}.{name} using delta location '{folder.as_uri()}'")
        for text in self.views:
            spark.sql(_NAME.sub(schema, text))
        return Statements.parse(_NAME.sub(schema, self.statements))
