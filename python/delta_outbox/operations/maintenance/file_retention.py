"""How long the files of each log must stay: until every derived writer has read them."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.core.reserved_names import DERIVED, WORKFLOWS
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.store.apply_commands import WRITER as COMMANDS
from delta_outbox.store.destination_states import WRITER as DESTINATIONS

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

LOGS: Final = ("events", "transitions", "commands")
RETAIN_HOURS: Final = 168  # Delta's own default: whoever reads an old version is safe for a week
STALE: Final = timedelta(days=6)  # then the invariants read everything anew (invariant_range.sql)
RETENTION_PROPERTY: Final = "delta.deletedFileRetentionDuration"
_MARGIN_HOURS: Final = 1
_HOURS: Final = {"hour": 1, "day": 24, "week": 168}
_INTERVAL: Final = re.compile(r"(?:interval\s+)?([0-9]+)\s+(hour|day|week)s?", re.IGNORECASE)


def oldest_positions(plans: Iterable[Mapping[str, Any]], *, now: datetime) -> dict[str, int]:
    """Return up to which version every derived writer has read each log.

    A derived writer is whoever writes down `{"<log>": {"to": <version>}}` (docs/decisions/0002).
    Whoever applies commands reads them from the first on, and says so with its first plan; the
    plans of destinations name the last command that they knew, and nobody reads on from there.

    Args:
        plans: writer, plan (a mapping) and planned_at, the newest plan of each writer.
        now: the current instant.
    """
    found: dict[str, list[int]] = defaultdict(list)
    rows = list(plans)
    if all(row["writer"] != COMMANDS for row in rows):
        found["commands"].append(0)
    for row in rows:
        if row["writer"] == DESTINATIONS:
            continue
        if row["writer"] == "invariants" and now - row["planned_at"] > STALE:
            continue
        for log in LOGS:
            read = row["plan"].get(log)
            if isinstance(read, Mapping) and "to" in read:
                found[log].append(int(read["to"]))
    return {log: min(versions) for log, versions in found.items()}


def starts_unread_since(plans: Iterable[Mapping[str, Any]]) -> datetime | None:
    """Return since when events are appended that start workflows, and are read by nobody; None if
    somebody reads them, and says how far (`oldest_positions`), or there are no workflows.

    Args:
        plans: writer, and first_at, the instant of its first plan, of each writer.
    """
    first = {row["writer"]: row["first_at"] for row in plans}
    return None if DERIVED in first else first.get(WORKFLOWS)


def hours_to_retain(unread_since: datetime | None, *, now: datetime) -> int:
    """Return how long removed files stay.

    A file that a compaction or a purge has replaced is needed as long as the commit that brought
    it is unread. It was replaced after that commit.

    Args:
        unread_since: the time of the oldest commit that some writer has not read; None if all
            have been read.
        now: the current instant.
    """
    if unread_since is None:
        return RETAIN_HOURS
    hours = math.ceil((now - unread_since).total_seconds() / 3600) + _MARGIN_HOURS
    return max(RETAIN_HOURS, hours)


def hours_told(interval: str | None) -> int:
    """Return for how long a table itself says that removed files stay; Delta refuses to keep less.

    Args:
        interval: the table property, as in "interval 30 days"; 0 for what is not so simple.
    """
    found = _INTERVAL.fullmatch((interval or "").strip())
    return int(found[1]) * _HOURS[found[2].lower()] if found else 0


def retention(outbox: Store) -> dict[str, int]:
    """Return the hours for which the removed files of each log stay.

    Args:
        outbox: where to look, refreshed.
    """
    now = outbox.clock.now()
    rows = outbox.spark.sql(
        "select writer, max_by(plan, number) as plan, max_by(planned_at, number) as planned_at, "
        "min_by(planned_at, number) as first_at "
        f"from {outbox.tables.progress} group by writer"
    ).toArrow()
    plans = [{**row, "plan": json.loads(row["plan"])} for row in rows.to_pylist()]
    positions = oldest_positions(plans, now=now)
    since = {log: _unread_since(outbox, log, positions.get(log)) for log in LOGS}
    starts = starts_unread_since(plans)
    if starts is not None:
        since["events"] = min(starts, since["events"] or starts)
    return {log: hours_to_retain(since[log], now=now) for log in LOGS}


def _unread_since(outbox: Store, log: str, position: int | None) -> datetime | None:
    """Return the time of the first commit of a log after a position; None if there is none."""
    table = outbox.tables[f"outbox_{log}"]
    latest = outbox.projection.latest_version(table)
    if position is None or latest <= position:
        return None
    first = None
    for commit in CommitHistory(outbox.spark).commits(table, limit=latest - position):
        if commit.version > position:
            first = commit.at
    return None if first is None else datetime.fromtimestamp(first / 1000, UTC)
