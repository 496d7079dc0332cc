"""Rewrite the logs of an outbox on Delta in every way, and see what the next build finds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from delta_outbox.core.tables import Tables
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.runtime.dbt import run_dbt
from delta_outbox.runtime.home import Home
from delta_outbox.testing.conformance.adapter import Change, Noticed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGS: Final = ("outbox_commands", "outbox_transitions", "outbox_events")
_STATEMENTS: Final = {
    Change.UPDATE: "update {log} set event_id = concat(event_id, '?')",
    Change.DELETE: "delete from {log} where startswith(event_id, 'life')",
    Change.MERGE: (
        "merge into {log} as t using (select max(event_id) as event_id from {log}) as s "
        "on t.event_id = s.event_id when matched then delete"
    ),
    Change.INSERT_OVERWRITE: "insert overwrite {log} select * from {log} limit 1",
    Change.TRUNCATE: "truncate table {log}",
}


def tamper_with(spark: SparkSession, tables: Tables, home: Home) -> Mapping[Change, Noticed]:
    """Rewrite each log in every way, build, and say what was noticed; the least counts.

    Args:
        spark: the session.
        tables: the names of the relations.
        home: takes dbt's files.
    """
    versions: dict[Change, set[tuple[str, int]]] = {change: set() for change in Change}
    refused: set[Change] = set()
    for change, statement in _STATEMENTS.items():
        for log in _LOGS:
            before = _version(spark, tables[log])
            if _is_refused(spark, statement.format(log=tables[log])):
                refused.add(change)
                continue
            after = _version(spark, tables[log])
            versions[change] |= {(log, number) for number in range(before + 1, after + 1)}
    run_dbt(
        ["build", "--select", "outbox_state", "tag:invariants"], home=home, schema=tables.schema
    )
    rows = spark.sql(f"select details from {tables['rewritten_logs']}").collect()
    details = [json.loads(row["details"]) for row in rows]
    found = {(one["log"], int(one["version"])) for one in details}
    return {
        change: _noticed(commits, found, change in refused) for change, commits in versions.items()
    }


def _noticed(
    commits: set[tuple[str, int]], found: set[tuple[str, int]], is_refused: bool
) -> Noticed:
    """Say what became of a change: it must have been refused, or all its commits found."""
    if not commits:
        return Noticed.REFUSED if is_refused else Noticed.NO
    return Noticed.FOUND if commits <= found else Noticed.NO


def _is_refused(spark: SparkSession, statement: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        spark.sql(statement)
    except PySparkException:
        return True
    return False


def _version(spark: SparkSession, table: str) -> int:
    commit = CommitHistory(spark).newest(table)
    assert commit is not None
    return commit.version
