"""Counts what the days of the event log and the partitions of the transition log hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from delta_outbox.core.literals import instant_literal, listed
from delta_outbox.core.reserved_names import reserved
from delta_outbox.core.tables import Tables
from delta_outbox.lifecycle.states import TERMINAL_STATES
from delta_outbox.operations.maintenance.purge_rules import (
    Choice,
    Day,
    dates_listed,
    day_of,
    removable,
)
from delta_outbox.projection.projection import Watermark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class PurgeCounts:
    """Counts, as the projection has seen the logs.

    Args:
        spark: the session.
        tables: the names of the relations.
        seen: the version of the projection, and how far it has seen the logs.
        applied: the version of the command log up to which commands have been applied.
        before: younger days are left out.
        recent_from: rows that were appended since then are recent.
    """

    def __init__(
        self,
        spark: SparkSession,
        tables: Tables,
        seen: Watermark,
        *,
        applied: int,
        before: date,
        recent_from: datetime,
    ) -> None:
        self._spark = spark
        self._applied = applied
        self._before = before
        self._recent_from = recent_from
        self._state = f"{tables.state} version as of {seen.version}"
        self._events = f"{tables.events} version as of {seen.versions['events']}"
        self._log = f"{tables.transitions} version as of {seen.versions['transitions']}"
        self._commands = tables.commands
        self._purged = tables.purged

    def days(self) -> list[Day]:
        """Return the days before the date, in order."""
        before, state, limit = self._before, self._state, f"date'{self._before}'"
        counts: dict[date, Counter[str]] = defaultdict(Counter)
        for row in self._rows(
            "select cast(created_at as date) as created_date, state, count(*) as deliveries "
            f"from {state} where created_at < timestamp'{before} 00:00:00' "
            "group by cast(created_at as date), state"
        ):
            counts[row["created_date"]][row["state"]] = row["deliveries"]
        # The rows of the log whose day is not that of their event: later copies.
        day = day_of("e.")
        repeated: dict[date, set[date]] = defaultdict(set)
        unknown: Counter[date] = Counter()
        for row in self._rows(
            f"select least({day}, {limit}) as created_date, s.first_date, "
            f"count(*) as copies from {self._events} as e "
            "left join (select distinct event_id, cast(created_at as date) as first_date "
            f"from {state}) as s on e.event_id = s.event_id "
            f"where ({day} < {limit} or s.first_date < {limit}) "
            f"and not {day} <=> s.first_date group by least({day}, {limit}), s.first_date"
        ):
            if row["first_date"] is None:
                unknown[row["created_date"]] += row["copies"]
            else:
                repeated[row["first_date"]].add(row["created_date"])
        replays = self._waiting_replays()
        recent = self._recent()
        of_open_instances = self._of_open_instances()
        copies = {one for days in repeated.values() for one in days}
        names = {one for one in {*counts, *unknown, *repeated, *copies} if one < before}
        return [
            Day(
                created_date=name,
                states=counts[name],
                waiting_replays=replays[name],
                repeated_on=frozenset(repeated[name]),
                unknown=unknown[name],
                recent=recent[name],
                of_open_instances=of_open_instances[name],
            )
            for name in sorted(names)
        ]

    def _recent(self) -> Counter[date]:
        rows = self._rows(
            f"select {day_of()} as created_date, count(*) as events from {self._events} "
            f"where created_date < date'{self._before}' "
            f"and appended_at >= {instant_literal(self._recent_from)} group by {day_of()}"
        )
        return Counter({row["created_date"]: row["events"] for row in rows})

    def _of_open_instances(self) -> Counter[date]:
        """Count the tasks whose instance has not ended: the event that ends it has its key as id,
        or an operator has ended it when it was stranded.

        Such a task may have ended itself, and what follows is not written yet, or nobody can say
        what does.
        """
        tasks = (
            f"select {day_of()} as created_date, ordering_key from {self._events} "
            f"where created_date < date'{self._before}' "
            f"and {reserved('event_type')} and {reserved('ordering_key')}"
        )
        if not self._rows(f"{tasks} limit 1"):
            return Counter()
        ended = (
            f"select event_id from {self._events} where {reserved('event_id')} "
            "and metadata['task_id'] is not null"
        )
        gone = f"select event_id from {self._purged} where {reserved('event_id')}"
        given_up = (
            "select get_json_object(arguments, '$.instance') as event_id "
            f"from {self._commands} where kind = 'cancel'"
        )
        rows = self._rows(
            f"select created_date, count(*) as tasks from ({tasks}) as t "
            f"left anti join ({ended} union all {gone} union all {given_up}) as e "
            "on e.event_id = t.ordering_key group by created_date"
        )
        return Counter({row["created_date"]: row["tasks"] for row in rows})

    def _waiting_replays(self) -> Counter[date]:
        rows = self._rows(
            "select cast(s.created_at as date) as created_date, count(*) as deliveries "
            f"from (select * from {self._commands} where kind = 'replay' "
            f"and _metadata.row_commit_version > {self._applied}) as c "
            f"inner join {self._state} as s on c.event_id = s.event_id and c.arrival = s.arrival "
            "and c.destination = s.destination and c.lifecycle = s.lifecycle "
            f"where s.state in ({listed(TERMINAL_STATES)}) group by cast(s.created_at as date)"
        )
        return Counter({row["created_date"]: row["deliveries"] for row in rows})

    def transitions(self, choice: Choice) -> list[dict[str, object]]:
        """Return the partitions of the transition log that the days leave without an event.

        Args:
            choice: the days that go.
        """
        last = self._rows(
            f"select epoch, lane, max(sequence) as sequence from {self._log} group by epoch, lane"
        )
        partitions = self._rows(
            "select t.epoch, t.lane, string(t.occurred_date) as occurred_date, "
            "max(t.sequence) as sequence, count(s.event_id) as kept "
            f"from {self._log} as t left join (select distinct event_id, arrival "
            f"from {self._state} "
            f"where cast(created_at as date) not in ({dates_listed(choice.dates)})) as s "
            "on t.event_id = s.event_id and t.arrival = s.arrival "
            f"where t.occurred_date < date'{self._before}' "
            "group by t.epoch, t.lane, t.occurred_date"
        )
        return removable(partitions, {(row["epoch"], row["lane"]): row["sequence"] for row in last})

    def _rows(self, text: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._spark.sql(text).toArrow().to_pylist()
        return rows
