"""The tails of the logs: what was committed after the projection, as common tables of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from delta_outbox.core.horizon import day_ranges, days_condition
from delta_outbox.core.literals import listed, text_literal
from delta_outbox.core.tables import TRANSITIONS, Tables
from delta_outbox.delta.files.event_files import NARROW
from delta_outbox.delta.log_reader import LogReader, changes
from delta_outbox.delta.table_files import may_hold_between
from delta_outbox.lifecycle.states import OPEN_STATES, TERMINAL_STATES, State
from delta_outbox.projection.tail_claims import KIND, NOTHING, TailClaims, claims_of, read_claims
from delta_outbox.runtime.query_mode import use_large_query_mode
from delta_outbox.runtime.statements import Statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOGS: Final = ("events", "transitions", "commands")

LARGE_QUERY_ROWS: Final = 20_000  # of fewer it costs more to ask whether an id is there twice
BACKLOG: Final = 500_000  # events that nothing has happened to; of as many, order is kept
MOST_PARTS: Final = 30  # of a backlog; each is planned by itself

_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "events": (*NARROW, "created_date", "payload_bytes"),
    # Receipts and what came of an event may be long, and no fold reads them.
    "transitions": [n for n in TRANSITIONS.names if n not in ("receipt", "outcome_data")],
    "commands": (
        *("kind", "event_id", "arrival", "destination", "lifecycle", "command_id", "actor"),
        "reason",
    ),
}
"""What the tail of a log is selected from."""


class Tails:
    """The common tables that a fold reads.

    Args:
        spark: the session that asks.
        tables: the names of the relations.
        statements: the compiled SQL.
    """

    def __init__(self, spark: SparkSession, tables: Tables, statements: Statements) -> None:
        self._spark = spark
        self._tables = tables
        self._statements = statements
        self._reader = LogReader(spark)
        self._texts: dict[str, str] = {}  # common table -> what it is
        self._ranges: dict[str, tuple[int, int]] = {}  # log -> what is new, but for `whole`
        self._are_whole = False
        self._new: frozenset[str] = frozenset()
        self._transitions = ""  # the text of all of them
        self._of_transitions: TailClaims | None = None
        self._of_kills: tuple[int, int] | None = None
        self._new_events = 0  # how many
        self._ids = "", ""  # the least and the greatest of them
        self._repeats: bool | None = None  # whether one may be there twice, once that was asked

    def between(self, after: Mapping[str, int], latest: Mapping[str, int]) -> None:
        """Take a range of each log.

        Args:
            after: version of each log, not included.
            latest: version of each log, included.
        """
        self._are_whole = False
        self._new = frozenset(log for log in LOGS if latest[log] > after[log])
        self._of_transitions = self._of_kills = None
        self._ranges = {log: (after[log], latest[log]) for log in self._new}
        for log in LOGS:
            source = (
                self._source(log, after=after[log], to=latest[log])
                if log in self._new
                else self._statements.fill(f"no_{log}")
            )
            self._tail(log, source, arrival="_commit_version")
        self._known(latest["events"], after=after["events"], any_news="events" in self._new)

    def whole(self, latest: Mapping[str, int]) -> None:
        """Take everything, from snapshots of the logs.

        Args:
            latest: version of each log.
        """
        self._are_whole = True
        self._new = frozenset(LOGS)
        self._of_transitions, self._of_kills, self._ranges = None, None, {}
        found = self._spark.sql(  # Delta's log knows
            f"select count(*) as events from {self._tables.events} version as of {latest['events']}"
        ).first()
        if found is not None and found["events"] >= LARGE_QUERY_ROWS:
            use_large_query_mode(self._spark)
        for log in LOGS:
            source = f"{self._tables[f'outbox_{log}']} version as of {latest[log]}"
            self._tail(log, source, arrival="_metadata.row_commit_version")
        self._known(latest["events"], after=-1, any_news=False)

    @property
    def fold(self) -> str:
        """Return which of the three folds does what the tails need, and least besides."""
        if "commands" in self._new:  # also where everything is derived anew
            return "all"
        return "transitions" if "transitions" in self._new else "new_events"

    def fold_inputs(self) -> Mapping[str, str]:
        """Return which texts give a fold its new events and its last transitions: what the tails
        cannot hold is not looked for. `fold_all` has its own.
        """
        if self.fold == "all":
            return {}
        new_events, last_transitions = "no_copies", "sole_transitions"
        if "events" in self._new:
            new_events = "first_copies" if self._may_repeat() else "sole_copies"
        if "transitions" in self._new:
            found = self._look_at_transitions()
            if found.more_than_one or found.several_destinations:
                last_transitions = "last_transitions"
        return {"new_events": new_events, "last_transitions": last_transitions}

    def filled(self, text: str, **values: object) -> str:
        """Return the text that folds the tails, or that shows what is open with them.

        Args:
            text: `fold` or `read_view`.
            values: of its other placeholders.
        """
        inputs = {name: self._statements.texts[one] for name, one in self.fold_inputs().items()}
        name = f"{text}_{self.fold}"
        states = listed(self.from_states())
        return self._with_tails(
            self._statements.fill(
                name, **inputs, touched=self.touched, from_states=states, **values
            )
        )

    @property
    def touched(self) -> str:
        """Return the condition on rows of the projection that the tails may touch."""
        first, last = self.arrivals()
        states = listed(self.from_states())
        return f"state in ({states}) and arrival between {first} and {last}"

    def set_apart(self) -> Sequence[tuple[int, int]]:
        """Take out the new events that come after all that has transitions, if they are many: a
        backlog, which nothing has to be joined with, and whose order is worth keeping.

        Returns:
            Ranges of commits of the event log, as `changes` takes them; empty if none are many.
        """
        given = self._ranges.get("events")
        if given is None or "commands" in self._new or self._new_events < BACKLOG:
            return []
        if self._may_repeat():
            return []
        after, to = given
        touched = max(after, self.arrivals()[1])
        if touched >= to:
            return []
        counts = self._reader.counts(self._tables.events, after=touched, to=to)
        parts = parts_of(counts, after=touched, to=to, size=BACKLOG)
        if parts and touched > after:
            self._tail(
                "events",
                changes(self._tables.events, after=after, to=touched),
                arrival="_commit_version",
            )
        elif parts:
            self._new -= {"events"}
        return parts

    @property
    def are_empty(self) -> bool:
        """Say whether they hold nothing."""
        return not self._new

    @property
    def are_few(self) -> bool:
        """Say whether what is new touches few deliveries."""
        if self._are_whole or "commands" in self._new:
            return False
        touched = self._new_events
        if "transitions" in self._new:
            touched += self._look_at_transitions().deliveries
        return touched < LARGE_QUERY_ROWS

    # twin: macros/projection/refresh/refresh_touched.sql::refresh_touched
    def from_states(self) -> tuple[str, ...]:
        """Return the partitions of the projection that what is in the tails comes from.

        Only a replay leaves a terminal one, and only a kill may touch the dead. Where everything is
        derived anew, it comes from none.
        """
        if self._are_whole:
            return ("",)
        if "transitions" in self._new and self._look_at_transitions().replays:
            return (*OPEN_STATES, *TERMINAL_STATES)
        if "commands" in self._new and self._look_at_kills() != NOTHING:
            return (*OPEN_STATES, State.DEAD.value)
        return OPEN_STATES

    def arrivals(self) -> tuple[int, int]:
        """Return the first and the last arrival of the events that transitions and kills in the
        tails are about: of others, nothing in the projection is touched.
        """
        if self._are_whole:
            return NOTHING
        of_transitions = of_kills = NOTHING
        if "transitions" in self._new:
            of_transitions = self._look_at_transitions().arrivals
        if "commands" in self._new:
            of_kills = self._look_at_kills()
        found = [one for one in (of_transitions, of_kills) if one != NOTHING]
        if not found:
            return NOTHING
        return min(first for first, _ in found), max(last for _, last in found)

    def are_most_of(self, rows: int) -> bool:
        """Say whether the transitions are about many deliveries, and about most of those that the
        projection has of the states and arrivals that are touched.

        Args:
            rows: how many it has.
        """
        if "commands" in self._new or self.from_states() != OPEN_STATES:
            return False
        touched = self._look_at_transitions().deliveries
        return touched >= LARGE_QUERY_ROWS and rows <= 2 * touched

    def _look_at_transitions(self) -> TailClaims:
        """Look at the transitions claim by claim, once, and leave out what is over: a claim all of
        whose endings are there as well says nothing about any delivery.
        """
        if self._of_transitions is None:
            after, to = self._ranges["transitions"]
            groups = self._reader.groups(
                self._tables.transitions, after=after, to=to, by=KIND, of="arrival"
            )
            claims = claims_of(groups)
            if sum(claim["transitions"] for claim in claims) >= LARGE_QUERY_ROWS:
                use_large_query_mode(self._spark)
            self._of_transitions = read_claims(claims)
            if self._of_transitions.over:
                over = listed(self._of_transitions.over)
                self._texts["outbox_transitions_tail"] = (
                    f"select * from ({self._transitions}) "
                    f"where not (to_state = 'CLAIMED' and claim_id in ({over}))"
                )
        return self._of_transitions

    def _source(self, log: str, *, after: int, to: int) -> str:
        """Return what was appended to a log, to select from."""
        return self._reader.relation(
            self._tables[f"outbox_{log}"],
            after=after,
            to=to,
            columns=_COLUMNS[log],
            few=LARGE_QUERY_ROWS,
        )

    def _tail(self, log: str, source: str, *, arrival: str) -> None:
        text = self._statements.fill(f"{log}_tail", arrival=arrival, source=source)
        if log == "transitions":
            self._transitions = text
        self._texts[f"outbox_{log}_tail"] = text

    def _known(self, to: int, *, after: int, any_news: bool) -> None:
        """Take the earlier events that a new one could repeat."""
        groups = (
            self._reader.groups(
                self._tables.events, after=after, to=to, by=("created_date",), of="event_id"
            )
            if any_news
            else ()
        )
        first_id = min((group["least"] for group in groups), key=str.encode, default="")
        last_id = max((group["greatest"] for group in groups), key=str.encode, default="")
        self._new_events, self._repeats = sum(group["rows"] for group in groups), None
        self._ids = first_id, last_id
        if self._are_many:
            use_large_query_mode(self._spark)
        back = int(self._statements.texts["identity_horizon_days"])
        ranges = day_ranges([group["created_date"] for group in groups], back=back)
        self._texts["outbox_known_events"] = self._statements.fill(
            "known_events",
            any_news=str(bool(ranges)).lower(),
            events_to=to,
            events_after=after,
            news_days=days_condition(ranges),
            first_id=text_literal(first_id),
            last_id=text_literal(last_id),
        )

    def _may_repeat(self) -> bool:
        """Say whether a new event may have the id of another one; asked once. Of few, only files
        are asked.
        """
        if self._repeats is None:
            after, to = self._ranges["events"]
            self._repeats = self._may_be_known(after) or self._reader.may_repeat(
                self._tables.events, after=after, to=to, column="event_id"
            )
            if self._repeats and self._are_many:
                repeated = self.asked(
                    "select event_id from (select event_id, true as is_new from outbox_events_tail "
                    "union all select event_id, false as is_new from outbox_known_events) "
                    "group by event_id having count(*) > 1 and bool_or(is_new) limit 1"
                )
                self._repeats = not repeated.isEmpty()
        return self._repeats

    def _may_be_known(self, version: int) -> bool:
        """Say whether the log may have an id between those of the new events."""
        first, last = self._ids
        events = self._tables.events
        by_files = may_hold_between(
            self._spark, events, version=version, column="event_id", first=first, last=last
        )
        if by_files is False or not self._are_many:
            return by_files is not False
        return not self.asked("select * from outbox_known_events").isEmpty()

    @property
    def _are_many(self) -> bool:
        return self._new_events >= LARGE_QUERY_ROWS

    def _with_tails(self, text: str) -> str:
        """Return a query with the tails that it names: made as views, each would be analysed by
        itself.
        """
        tables = [f"{name} as ({its})" for name, its in self._texts.items() if name in text]
        some = f"with {', '.join(tables)} " if tables else ""
        return f"select * from ({some}select * from ({text}))"

    def asked(self, text: str) -> DataFrame:
        """Return the rows of a query that names tails.

        Args:
            text: of our own making.
        """
        return self._spark.sql(self._with_tails(text))

    def _look_at_kills(self) -> tuple[int, int]:
        """Return the first and the last arrival of what is killed; asked once."""
        if self._of_kills is None:
            found = self.asked(
                "select min(arrival) as first, max(arrival) as last from outbox_commands_tail "
                "where kind = 'kill' and event_id is not null"
            ).first()
            self._of_kills = NOTHING
            if found is not None and found["first"] is not None:
                self._of_kills = int(found["first"]), int(found["last"])
        return self._of_kills


def parts_of(
    counts: Mapping[int, int], *, after: int, to: int, size: int
) -> Sequence[tuple[int, int]]:
    """Cut what commits have added into parts of whole commits.

    Args:
        counts: how many events each commit has added, in order.
        after: version after which the commits come.
        to: the last version.
        size: events that a part holds at least, but for the last one.

    Returns:
        Of each part the version after which it begins, and its last one. Nothing if there are
        fewer events than that.
    """
    events = sum(counts.values())
    if events < size:
        return []
    least = max(size, events // MOST_PARTS)
    ends = []
    held = 0
    for version in [*counts][:-1]:
        held += counts[version]
        if held >= least:
            ends.append(version)
            held = 0
    return list(pairwise([after, *ends, to]))
