"""Maintenance: compact what has many small files, forget old heartbeats, remove unused files.

Everything here may run beside producers, relays and `dbt build`, again and again: what has been
done already is left alone, so that the cost follows the news.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from delta_outbox.delta.delta_errors import is_conflict
from delta_outbox.delta.durability import sync_outbox
from delta_outbox.delta.log_writer import ATTEMPTS
from delta_outbox.delta.storage_errors import writing_to
from delta_outbox.operations.maintenance.compaction_rules import (
    SMALL_FILE,
    condition,
    small,
    with_many_files,
)
from delta_outbox.operations.maintenance.file_retention import (
    RETAIN_HOURS,
    RETENTION_PROPERTY,
    hours_told,
    retention,
)
from delta_outbox.operations.maintenance.purge import Purge
from delta_outbox.operations.maintenance.removal import remove
from delta_outbox.runtime.session import end_own_session, own_session

if TYPE_CHECKING:
    from pyspark.sql import Row

    from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)

HEARTBEAT_DAYS: Final = 7  # nobody asks for an older one
LARGE_FILE: Final = 256 * 1024 * 1024  # bytes; a compaction makes none larger


@dataclass(frozen=True, kw_only=True)
class Table:
    """How a table is kept.

    Args:
        name: of the relation.
        partitions: its partition columns.
        order: the column by which a closed day is written anew; None for as it came.
        retained_as: the log whose readers decide how long unused files stay; None for a week.
        short_lived: unused files stay only as long as the table itself says (ddl_relays.sql).
    """

    name: str
    partitions: Sequence[str] = ()
    order: str | None = None
    retained_as: str | None = None
    short_lived: bool = False


TABLES: Final = (
    Table(
        name="outbox_events",
        partitions=("created_date",),
        order="created_at",
        retained_as="events",
    ),
    Table(
        name="outbox_transitions",
        partitions=("lane", "occurred_date"),
        order="sequence",
        retained_as="transitions",
    ),
    Table(name="outbox_commands", partitions=("requested_date",), retained_as="commands"),
    Table(name="outbox_progress", partitions=("writer",)),
    Table(name="outbox_relays", partitions=("beat_date",), short_lived=True),
    Table(name="outbox_purged"),
    Table(name="outbox_state", partitions=("state",)),
)


@dataclass(frozen=True, kw_only=True)
class TableReport:
    """What maintenance did with a table, or would do.

    Args:
        table: its name.
        files_before, files_after: files that it consists of.
        bytes_before, bytes_after: their size.
        compacted: partitions that were written anew.
        removed: unused files that were deleted from the storage.
        retain_hours: for how long unused files stay; None for as long as the table says.
    """

    table: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    compacted: int
    removed: int
    retain_hours: int | None


@dataclass(frozen=True, kw_only=True)
class MaintenanceReport:
    """What maintenance did, or would do.

    Args:
        tables: one each.
        purge: number of the purge that was interrupted, and is finished now.
        heartbeats: old ones that are gone.
    """

    tables: Sequence[TableReport]
    purge: int | None
    heartbeats: int

    def as_dict(self) -> dict[str, object]:
        """Return the document that --json prints."""
        return {
            "tables": [asdict(one) for one in self.tables],
            "finished_purge": self.purge,
            "heartbeats_removed": self.heartbeats,
        }


class Maintenance:
    """Maintains one outbox.

    Args:
        outbox: the store.
    """

    def __init__(self, outbox: Store) -> None:
        """Open a session: its settings are for compaction only."""
        self._outbox = outbox
        self._tables = outbox.tables
        self._spark = own_session(outbox.spark)
        self._spark.conf.set("spark.databricks.delta.optimize.minFileSize", SMALL_FILE)
        self._spark.conf.set("spark.databricks.delta.optimize.maxFileSize", LARGE_FILE)

    def close(self) -> None:
        """End the session."""
        end_own_session(self._spark)

    def run(self, *, dry_run: bool = False) -> MaintenanceReport:
        """Maintain every table; a dry run only looks.

        The projection is refreshed first, so that its position blocks nothing.

        Args:
            dry_run: write nothing but that refresh.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        self._outbox.refresh(planned_by=self._outbox.worker_id)
        purge = Purge(self._outbox)
        try:
            number = purge.unfinished() if dry_run else purge.finish()
        finally:
            purge.close()
        heartbeats = self._forget_heartbeats(dry_run=dry_run)
        hours = retention(self._outbox)
        reports = [self._maintain(table, hours, dry_run=dry_run) for table in TABLES]
        return MaintenanceReport(tables=reports, purge=number, heartbeats=heartbeats)

    def _forget_heartbeats(self, *, dry_run: bool) -> int:
        since = self._outbox.clock.now().date() - timedelta(days=HEARTBEAT_DAYS)
        old = f"beat_date < date'{since}'"
        row = self._spark.sql(
            f"select count(*) as beats from {self._tables.relays} where {old}"
        ).first()
        count = int(row["beats"]) if row is not None else 0
        if count and not dry_run:
            statement = f"delete from {self._tables.relays} where {old}"
            remove(self._spark, self._tables.relays, statement, tag="heartbeats")
        return count

    def _maintain(self, table: Table, hours: Mapping[str, int], *, dry_run: bool) -> TableReport:
        name = self._tables[table.name]
        before = self._detail(name)
        compacted = self._compact(table, dry_run=dry_run)
        # Before VACUUM removes what was replaced, that which took its place is on the disk.
        sync_outbox(self._spark, self._tables.schema)
        retain = None
        if not table.short_lived:
            needed = RETAIN_HOURS if table.retained_as is None else hours[table.retained_as]
            retain = max(needed, hours_told(before["properties"].get(RETENTION_PROPERTY)))
        removed = self._vacuum(name, retain, dry_run=dry_run)
        after = self._detail(name)
        report = TableReport(
            table=table.name,
            files_before=before["numFiles"],
            files_after=after["numFiles"],
            bytes_before=before["sizeInBytes"],
            bytes_after=after["sizeInBytes"],
            compacted=compacted,
            removed=removed,
            retain_hours=retain,
        )
        logger.info("maintained", extra=asdict(report))
        return report

    def _detail(self, table: str) -> Row:
        return self._spark.sql(f"describe detail {table}").collect()[0]

    def _compact(self, table: Table, *, dry_run: bool) -> int:
        """Compact the partitions with many small files, and return how many were, or would be.

        A day that is over is put in order, as well: its files then tell ranges apart.
        """
        found = self._to_compact(table)
        if dry_run or not found:
            return len(found)
        today = self._outbox.clock.now().date().isoformat()
        closed = [one for one in found if table.order is not None and one[-1] < today]
        current = [one for one in found if one not in closed]
        compacted = 0
        for partitions, order in ((closed, f"zorder by ({table.order})"), (current, "")):
            if partitions:
                where = f"where {condition(partitions, table.partitions)} "
                if self._optimize(table.name, where if table.partitions else "", order):
                    compacted += len(partitions)
        return compacted

    def _to_compact(self, table: Table) -> list[tuple[str, ...]]:
        """Return the partitions with many small files; sizes cost more to ask for than paths."""
        name = self._tables[table.name]
        found = with_many_files(self._spark.table(name).inputFiles(), table.partitions)
        if not found:
            return []
        where = f" where {condition(found, table.partitions)}" if table.partitions else ""
        rows = self._spark.sql(
            "select distinct _metadata.file_path as path, _metadata.file_size as size "
            f"from {name}{where}"
        ).collect()
        return with_many_files(small({row["path"]: row["size"] for row in rows}), table.partitions)

    def _optimize(self, name: str, where: str, order: str) -> bool:
        """Compact; beside a refresh of the projection the one that comes second tries again.

        Returns:
            False if others were quicker each time.
        """
        table = self._tables[name]
        for _ in range(ATTEMPTS):
            try:
                with writing_to(table):
                    self._spark.sql(f"optimize {table} {where}{order}")
            except Exception as error:
                if not is_conflict(error):
                    raise
                logger.info("optimize_lost", extra={"table": table})
                continue
            return True
        # A table that is so busy is compacted by the next run.
        logger.warning("optimize_given_up", extra={"table": table})
        return False

    def _vacuum(self, table: str, hours: int | None, *, dry_run: bool) -> int:
        """Delete the files that no version of the last hours needs; return how many these are."""
        vacuum = f"vacuum {table}" + ("" if hours is None else f" retain {hours} hours")
        # Folders are listed as well.
        found = self._spark.sql(f"{vacuum} dry run").collect()
        unused = sum(str(row["path"]).endswith(".parquet") for row in found)
        if unused and not dry_run:
            with writing_to(table):
                self._spark.sql(vacuum)
        return unused
