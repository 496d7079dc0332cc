"""The projection: brought up to date by dbt's own script, and looked at together with the tail."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from delta_outbox.errors import ChangeFeedGone, NoOutboxHere
from delta_outbox.session import end_own_session, own_session
from delta_outbox.statements import Statements
from delta_outbox.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

_WRITE_SETTINGS: Final = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.commitInfo.userMetadata",
)
_MARK: Final = re.compile(r"outbox/projection/(\d+)")
_FEED_GONE: Final = (
    "DELTA_CHANGE_DATA_FILE_NOT_FOUND",
    "DELTA_MISSING_CHANGE_DATA",
    "FILE_NOT_EXIST",
)
OPEN_STATES: Final = ("PENDING", "CLAIMED")
_COMMITS_LOOKED_AT: Final = 50  # how far back the commit of a refresh may lie behind maintenance


@dataclass(frozen=True, kw_only=True)
class Watermark:
    """How far a version of the projection has seen the logs.

    Args:
        version: commit version of the projection.
        plan: number of the plan that it stands at.
        planned_at: when that was planned; the views are as of then.
        events: version of the event log, inclusive.
        transitions: version of the transition log, inclusive.
        commands: version of the command log, inclusive.
    """

    version: int
    plan: int
    planned_at: datetime
    events: int
    transitions: int
    commands: int

    def covers(self, heads: Mapping[str, int]) -> bool:
        """Say whether nothing was committed after it.

        Args:
            heads: as `Projection.heads` returns them.
        """
        return self.tail(heads) == 0

    def tail(self, heads: Mapping[str, int]) -> int:
        """Return how many commits the logs have after it.

        Args:
            heads: as `Projection.heads` returns them.
        """
        return (
            max(0, heads["events"] - self.events)
            + max(0, heads["transitions"] - self.transitions)
            + max(0, heads["commands"] - self.commands)
        )


class Projection:
    """The projection of one outbox.

    Args:
        spark: the session; refreshes run in one of their own.
        tables: the names of the relations.
        statements: the compiled SQL.
    """

    def __init__(self, spark: SparkSession, tables: Tables, statements: Statements) -> None:
        """Open a session for the refreshes: a write version left in a session skips writes."""
        self._spark = spark
        self._own = own_session(spark)
        self._tables = tables
        self._statements = statements
        self._known: Watermark | None = None

    def refresh(self, *, planned_by: str, rebuild: bool = False, touch: bool = False) -> int:
        """Bring the projection up to all that was committed before this call.

        Args:
            planned_by: who asks, for the record: letters, digits and -_.:/ only.
            rebuild: derive everything anew from the logs.
            touch: move `outbox_freshness.refreshed_at` although there is nothing new.

        Returns:
            The number of the plan that the projection stands at.

        Raises:
            ChangeFeedGone: the feed of a log no longer reaches back to the watermark.
        """
        heads = self.heads()
        seen = self.watermark()
        if seen is not None and seen.covers(heads) and not (rebuild or touch):
            return seen.plan
        script = self._statements.fill(
            "refresh",
            events_head=heads["events"],
            transitions_head=heads["transitions"],
            commands_head=heads["commands"],
            applied=seen.plan if seen is not None else 0,
            planned_by=re.sub(r"[^A-Za-z0-9_.:/-]", "_", planned_by),
            rebuild=str(rebuild).lower(),
        )
        try:
            row = self._own.sql(script).first()
        except Exception as error:
            if any(mark in str(error) for mark in _FEED_GONE):
                raise ChangeFeedGone(table=self._tables.events, version=heads["events"]) from error
            raise
        finally:
            for name in _WRITE_SETTINGS:
                self._own.conf.unset(name)
            self._known = None
        assert row is not None
        return int(row["number"])

    def close(self) -> None:
        """End the session of the refreshes."""
        end_own_session(self._own)

    def heads(self) -> dict[str, int]:
        """Return the latest versions of the logs, that of the events read last.

        In this order every transition and command up to the one finds its event up to the other.
        """
        return {
            "commands": self._head(self._tables.commands),
            "transitions": self._head(self._tables.transitions),
            "events": self._head(self._tables.events),
        }

    def _head(self, table: str) -> int:
        row = self._spark.sql(f"describe history {table} limit 1").first()
        if row is None:
            raise NoOutboxHere(where=table)
        return int(row["version"])

    def watermark(self) -> Watermark | None:
        """Return the newest version of the projection and how far it has seen the logs.

        None if no refresh is among its latest commits.
        """
        for limit in (1, _COMMITS_LOOKED_AT):
            commits = self._spark.sql(
                f"describe history {self._tables.state} limit {limit}"
            ).collect()
            for commit in commits:
                mark = _MARK.fullmatch(commit["userMetadata"] or "")
                if mark:
                    return self._watermark(version=int(commits[0]["version"]), plan=int(mark[1]))
        return None

    def _watermark(self, *, version: int, plan: int) -> Watermark:
        row = self._spark.sql(
            f"select plan, planned_at from {self._tables.progress} "
            f"where writer = 'projection' and number = {plan}"
        ).toArrow()
        if not row.num_rows:
            raise NoOutboxHere(where=self._tables.progress)
        found = row.to_pylist()[0]
        ranges = json.loads(found["plan"])
        return Watermark(
            version=version,
            plan=plan,
            planned_at=found["planned_at"],
            events=int(ranges["events"]["to"]),
            transitions=int(ranges["transitions"]["to"]),
            commands=int(ranges["commands"]["to"]),
        )

    def known_watermark(self) -> Watermark | None:
        """Return the watermark as this object knows it, read once after each of its refreshes.

        Somebody else's refresh makes it old, never wrong: the tails are longer then.
        """
        if self._known is None:
            self._known = self.watermark()
        return self._known

    def picture(
        self, *, with_holding: bool = False, heads: Mapping[str, int] | None = None
    ) -> tuple[DataFrame, int]:
        """Return the open deliveries now: the projection at a version, plus the tails of the logs.

        Args:
            with_holding: show the DEAD as well that may hold their key.
            heads: as `heads` has just returned them.

        Returns:
            A table with the columns of the projection, rows in PENDING and CLAIMED only (and DEAD,
            if asked for); and how many commits the tails hold.

        Raises:
            NoOutboxHere: the projection was never refreshed.
        """
        seen = self.known_watermark()
        if seen is None:
            raise NoOutboxHere(where=self._tables.state)
        heads = self.heads() if heads is None else heads
        state = f"{self._tables.state} version as of {seen.version}"
        states = _listed(OPEN_STATES + (("DEAD",) if with_holding else ()))
        if seen.covers(heads):
            return self._spark.sql(f"select * from {state} where state in ({states})"), 0
        self._tail_views(seen, heads)
        text = self._statements.fill(
            "picture",
            state=state,
            from_states=_listed(self._from_states(seen, heads)),
            shown_states=states,
        )
        return self._spark.sql(text), seen.tail(heads)

    def _tail_views(self, seen: Watermark, heads: Mapping[str, int]) -> None:
        fill = self._statements.fill
        for log in ("events", "transitions", "commands"):
            after = getattr(seen, log)
            source = (
                _changes(self._tables[f"outbox_{log}"], after, heads[log])
                if heads[log] > after
                else fill(f"no_{log}")
            )
            self._view(f"outbox_{log}_tail", fill(f"{log}_tail", source=source))
        bounds = None
        if heads["events"] > seen.events:
            bounds = self._spark.sql(
                "select min(created_date) as first, max(created_date) as last "
                "from outbox_events_tail"
            ).first()
        known = bounds is not None and bounds["first"] is not None
        self._view(
            "outbox_known_events",
            fill(
                "known_events",
                any_news=str(known).lower(),
                events_to=heads["events"],
                events_after=seen.events,
                news_from=f"date'{bounds['first']}'" if known and bounds else "current_date()",
                news_to=f"date'{bounds['last']}'" if known and bounds else "current_date()",
            ),
        )

    def _view(self, name: str, text: str) -> None:
        self._spark.sql(f"create or replace temporary view {name} as {text}")

    def _from_states(self, seen: Watermark, heads: Mapping[str, int]) -> tuple[str, ...]:
        """Return the partitions that the tails come from.

        Only a replay leaves a terminal one, and only a kill may touch the dead.
        """
        if heads["transitions"] > seen.transitions and self._holds(
            "outbox_transitions_tail where reason = 'replayed'"
        ):
            return (*OPEN_STATES, "PUBLISHED", "DEAD")
        if heads["commands"] > seen.commands and self._holds(
            "outbox_commands_tail where kind = 'kill'"
        ):
            return (*OPEN_STATES, "DEAD")
        return OPEN_STATES

    def _holds(self, rows: str) -> bool:
        return self._spark.sql(f"select 1 from {rows} limit 1").first() is not None


def _listed(states: Iterable[str]) -> str:
    return ", ".join(f"'{state}'" for state in states)


def _changes(table: str, after: int, to: int) -> str:
    return f"table_changes('{table}', {after + 1}, {to}) where _change_type = 'insert'"
