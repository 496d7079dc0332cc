"""The tails of the logs: what was committed after the projection, as temporary views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from delta_outbox.statements import Statements
from delta_outbox.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPEN_STATES: Final = ("PENDING", "CLAIMED")
LOGS: Final = ("events", "transitions", "commands")


class Tails:
    """The views that the macro `fold` reads, in one session.

    Args:
        spark: the session that gets the views.
        tables: the names of the relations.
        statements: the compiled SQL.
    """

    def __init__(self, spark: SparkSession, tables: Tables, statements: Statements) -> None:
        """Make no view yet."""
        self._spark = spark
        self._tables = tables
        self._statements = statements
        self._new: frozenset[str] = frozenset()
        self._of_transitions: tuple[bool, bool] | None = None

    def between(self, after: Mapping[str, int], heads: Mapping[str, int]) -> None:
        """Make the views of a range of each log.

        Args:
            after: version of each log, not included.
            heads: version of each log, included.
        """
        self._new = frozenset(log for log in LOGS if heads[log] > after[log])
        self._of_transitions = None
        for log in LOGS:
            table = self._tables[f"outbox_{log}"]
            source = (
                f"table_changes('{table}', {after[log] + 1}, {heads[log]}) "
                "where _change_type = 'insert'"
                if log in self._new
                else self._statements.fill(f"no_{log}")
            )
            self._tail(log, source, arrival="_commit_version")
        self._known(heads["events"], after=after["events"], any_news="events" in self._new)

    def whole(self, heads: Mapping[str, int]) -> None:
        """Make the views of everything, from snapshots of the logs.

        Args:
            heads: version of each log.
        """
        self._new = frozenset(LOGS)
        self._of_transitions = None
        for log in LOGS:
            source = f"{self._tables[f'outbox_{log}']} version as of {heads[log]}"
            self._tail(log, source, arrival="_metadata.row_commit_version")
        self._known(heads["events"], after=-1, any_news=False)

    @property
    def news(self) -> str:
        """Return what the tails may hold, as the macro `fold` is told."""
        if "commands" in self._new:
            return "etcd"
        letters = "".join(log[0] for log in LOGS if log in self._new)
        return letters + "d" if "t" in letters and self._has_several_destinations else letters

    def from_states(self) -> tuple[str, ...]:
        """Return the partitions of the projection that what is in the views comes from.

        Only a replay leaves a terminal one, and only a kill may touch the dead.
        """
        if "transitions" in self._new and self._has_replays:
            return (*OPEN_STATES, "PUBLISHED", "DEAD")
        if "commands" in self._new and self._has_kills():
            return (*OPEN_STATES, "DEAD")
        return OPEN_STATES

    @property
    def _has_replays(self) -> bool:
        return self._look_at_transitions()[0]

    @property
    def _has_several_destinations(self) -> bool:
        return self._look_at_transitions()[1]

    def _look_at_transitions(self) -> tuple[bool, bool]:
        """Say of the transitions whether one is a replay, and whether their destinations differ."""
        if self._of_transitions is None:
            row = self._spark.sql(
                "select bool_or(reason = 'replayed') as replays, "
                "min(destination) <> max(destination) as several from outbox_transitions_tail"
            ).first()
            assert row is not None
            self._of_transitions = bool(row["replays"]), bool(row["several"])
        return self._of_transitions

    def _tail(self, log: str, source: str, *, arrival: str) -> None:
        text = self._statements.fill(f"{log}_tail", arrival=arrival, source=source)
        self._view(f"outbox_{log}_tail", text)

    def _known(self, to: int, *, after: int, any_news: bool) -> None:
        """Make the view of the earlier events that a new one could repeat."""
        first = last = None
        if any_news:
            bounds = self._spark.sql(
                # As text: Python knows no year after 9999.
                "select string(min(created_date)) as first, string(max(created_date)) as last "
                "from outbox_events_tail"
            ).first()
            if bounds is not None:
                first, last = bounds["first"], bounds["last"]
        self._view(
            "outbox_known_events",
            self._statements.fill(
                "known_events",
                any_news=str(first is not None).lower(),
                events_to=to,
                events_after=after,
                news_from=f"date'{first}'" if first is not None else "current_date()",
                news_to=f"date'{last}'" if last is not None else "current_date()",
            ),
        )

    def _view(self, name: str, text: str) -> None:
        self._spark.sql(f"create or replace temporary view {name} as {text}")

    def _has_kills(self) -> bool:
        found = self._spark.sql("select 1 from outbox_commands_tail where kind = 'kill' limit 1")
        return found.first() is not None


def listed(states: Iterable[str]) -> str:
    """Return states as the literals of an SQL list.

    Args:
        states: at least one.
    """
    return ", ".join(f"'{state}'" for state in states)
