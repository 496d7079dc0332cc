"""Asks a read view for the open deliveries: what is eligible, what ends unsent, how much."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.clock import Clock
from delta_outbox.core.globs import glob_to_regex
from delta_outbox.core.hashing import Numbers, numbers_of
from delta_outbox.core.instants import instant_of
from delta_outbox.core.literals import instant_literal, listed
from delta_outbox.core.reserved_names import TO_DO, reserved
from delta_outbox.lifecycle.claim_policies import ClaimPolicies
from delta_outbox.lifecycle.claims import COLUMNS, DELIVERIES, OPEN_ITEM, in_order, joined, without
from delta_outbox.lifecycle.order_scopes import goes_to
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.states import OPEN_STATES, State
from delta_outbox.runtime.statements import Statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


END_AT_ONCE: Final = 10_000  # deliveries ended without being sent, per poll
ENOUGH: Final = 10  # of what was asked for, such a part; to look further takes longer
MOST_OF_A_COMMIT: Final = 500_000  # deliveries held at once, beyond what is asked for
LATER: Final = timedelta(minutes=1)  # what is due later than that is not held
_VIEW: Final = "outbox_open_deliveries"
_POLICIES_VIEW: Final = "outbox_policies"
_POLICIES: Final = pa.schema(
    [
        ("position", pa.int32()),
        ("event_type", pa.string()),
        ("event_type_regex", pa.string()),
        ("destination", pa.string()),
        ("ordering", pa.string()),
        ("order_scope", pa.string()),
        ("on_dead", pa.string()),
        ("expires_after_seconds", pa.float64()),
    ]
)
_ORDERED: Final = f"(ordering_key is not null and not {reserved('event_type')})"
"""What may wait for others of its key. A task has the key of its instance, for its lane only."""


@dataclass(frozen=True, kw_only=True)
class PerDestination:
    """How to ask for what is eligible where destinations are isolated.

    Args:
        unavailable: destinations that nothing is taken for.
        each: deliveries for each destination, at most.
    """

    unavailable: frozenset[str]
    each: int


@dataclass(frozen=True, kw_only=True)
class Eligible:
    """What is eligible in a read view.

    Args:
        rows: the first of it, in order: columns of `claims.DELIVERIES`.
        is_all: there is no more.
    """

    rows: pa.Table
    is_all: bool


@dataclass(frozen=True, kw_only=True)
class First:
    """The first of what is open.

    Args:
        rows: of what is eligible and of what is to be ended, in order: columns of
            `claims.DELIVERIES`.
        is_all: there is no more of that.
        blocked: if it is all, the numbers of the order scopes in which something else blocks what
            comes after it, ascending.
        next_due: if it is all, when the first of the rest may be eligible or is to be ended; None
            if time changes nothing.
    """

    rows: pa.Table
    is_all: bool
    blocked: Numbers | None = None
    next_due: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Overview:
    """What is open, but for the items that wait for people: they are open for weeks, in any
    number, and nobody works on them.

    Args:
        at: when that was asked.
        open: deliveries, waiting or claimed.
        due: of those that wait, how many are due.
        later: of those that wait, how many have no key and are due later than `soon`.
        next_due: when the next of those is that are not due.
        next_later: when the first of those is that are due later than `soon`.
        claims: claim_id, claimed_by, claimed_at, lease_expires_at and deliveries of each.
        items_over: when the first item is over, now if one was killed; None if there is none.
    """

    at: datetime
    open: int
    due: int
    later: int
    next_due: datetime | None
    next_later: datetime | None
    claims: Sequence[Mapping[str, Any]]
    items_over: datetime | None = None

    @property
    def soon(self) -> datetime:
        """Return until when something is due soon."""
        return self.at + LATER

    @property
    def claimed(self) -> int:
        """Return how many deliveries are claimed."""
        return sum(int(claim["deliveries"]) for claim in self.claims)

    @property
    def has_items_over(self) -> bool:
        """Say whether an item is over."""
        return self.items_over is not None and self.items_over <= self.at

    @property
    def listable(self) -> int:
        """Return how many deliveries wait that are due soon, or may keep others waiting."""
        return self.open - self.claimed - self.later


class OpenDeliveries:
    """Asks read views of the open deliveries, as `Outbox.read_view` returns them.

    Args:
        spark: the session.
        statements: the SQL that dbt compiled.
        clock: what is due by.
        policies: returns those in force.
    """

    def __init__(
        self,
        spark: SparkSession,
        statements: Statements,
        *,
        clock: Clock,
        policies: Callable[[], PolicySet],
    ) -> None:
        self._spark = spark
        self._statements = statements
        self._clock = clock
        self._policies = policies

    def eligible(
        self,
        read_view: DataFrame,
        limit: int,
        *,
        at: datetime | None = None,
        per_destination: PerDestination | None = None,
        counts: pa.Table | None = None,
    ) -> Eligible:
        """Return what is eligible in a read view, never more than a limit.

        Args:
            read_view: the open deliveries.
            limit: deliveries, at least 0.
            at: when; now if left out.
            per_destination: nothing for some destinations, and so many for each other one
                instead of the limit; None if they are not isolated.
            counts: what `by_commit` says of the read view, if that is known.
        """
        at = at or self._clock.now()
        if per_destination is None:
            return self._first(read_view, int(limit), at, counts)
        # Names of the settings, which hold no quotes.
        rows = self._asked(
            "eligible_per_destination",
            read_view,
            "order by position",
            at=at,
            unavailable="|".join(sorted(per_destination.unavailable)),
            each=per_destination.each,
        )
        kinds = ClaimPolicies.by_type(rows["event_type"], self._policies())
        each = pc.value_counts(goes_to(rows, kinds)).field("counts")
        return Eligible(rows=rows, is_all=(pc.max(each).as_py() or 0) < per_destination.each)

    def first(
        self,
        read_view: DataFrame,
        limit: int,
        *,
        found: Overview,
        may_end: bool,
        per_destination: PerDestination | None = None,
        counts: pa.Table | None = None,
    ) -> First:
        """Return the first of what is eligible soon, and of what is to be ended without being sent.
        If that is more than the limit, and most of it is not due yet, return what is eligible now.

        Args:
            read_view: the open deliveries.
            limit: deliveries.
            found: what is open in the read view, or in more of it.
            may_end: something may be killed, or too old.
            per_destination: as in `eligible`.
            counts: what `by_commit` says of the read view at `found.soon`, if that is known.
        """
        at, next_due = found.soon, found.next_later
        first = self.eligible(
            read_view, limit, at=at, per_destination=per_destination, counts=counts
        )
        waiting = pc.sum(pc.greater(first.rows["available_at"], found.at)).as_py() or 0
        if not first.is_all and 2 * waiting > first.rows.num_rows:
            at, next_due = found.at, found.next_due
            first = self.eligible(
                read_view, limit, at=at, per_destination=per_destination, counts=counts
            )
        rows, is_all = first.rows, first.is_all
        if may_end:
            ends = self.endable(read_view, due_by=at)
            rows = in_order(joined(without(rows, ends), ends))
            is_all = is_all and ends.num_rows < END_AT_ONCE
        if not is_all:
            return First(rows=rows, is_all=False)
        too_old = self.next_too_old(read_view) if self._policies().any_age else None
        if too_old is not None:  # not listed again more often than each minute because of that
            too_old = max(too_old, found.soon)
            next_due = min(next_due or too_old, too_old)
        unavailable = per_destination.unavailable if per_destination else ()
        blocked = self.blocked_scopes(read_view, at=at, unavailable=unavailable)
        return First(rows=rows, is_all=True, blocked=blocked, next_due=next_due)

    def blocked_scopes(
        self, read_view: DataFrame, *, at: datetime, unavailable: Collection[str] = ()
    ) -> Numbers:
        """Return the order scopes in which something is not eligible itself and blocks what comes
        after it: their numbers, ascending.

        Args:
            read_view: the open deliveries.
            at: when.
            unavailable: destinations that nothing is taken for.
        """
        self._show(read_view)
        text = self._statements.fill(
            "blocked_scopes",
            deliveries=_VIEW,
            now=instant_literal(at),
            unavailable="|".join(sorted(unavailable)),
        )
        # They are numbered where they are found: of a million keys 8 MB come here.
        found = (
            self._spark.sql(f"select concat(destinations, char(0), ordering_key) from ({text})")
            .mapInArrow(_numbered, "number bigint")
            .toArrow()
        )
        return np.sort(found["number"].to_numpy().view(np.uint64))

    def by_commit(self, read_view: DataFrame, *, at: datetime) -> pa.Table:
        """Return how many deliveries wait of each commit of the event log, the first one first.

        Args:
            read_view: the open deliveries.
            at: when.

        Returns:
            Columns arrival; due: of those that wait, how many are due; untouched: to how many
            nothing has happened, as though their events had just been appended.
        """
        read_view.createOrReplaceTempView(_VIEW)
        return self._spark.sql(
            f"select arrival, count_if({self._is_due(at)}) as due, count_if(changed_at is null "
            "and kill_command_id is null and not ambiguous) as untouched "
            f"from {_VIEW} where state = 'PENDING' group by arrival order by arrival"
        ).toArrow()

    def listed(
        self, read_view: DataFrame, *, limit: int, in_flight: Collection[str], until: datetime
    ) -> pa.Table | None:
        """Return what is open or keeps that from being claimed, but for what has no key and is due
        later; None if that is more than a limit.

        Args:
            read_view: the open deliveries, and the DEAD ones where a policy holds.
            limit: deliveries.
            in_flight: claims that are left out.
            until: as `Overview.soon` has it.

        Returns:
            Columns of `claims.DELIVERIES`, in no order.
        """
        read_view.createOrReplaceTempView(_VIEW)
        not_ours = f"claim_id not in ({listed(in_flight)})" if in_flight else "true"
        table = self._spark.sql(
            f"select {COLUMNS}, state from {_VIEW} where "
            f"state = 'PENDING' and ({_ORDERED} "
            f"or {self._is_due(until)}) "
            f"or {_ORDERED} "
            f"and (state = 'CLAIMED' and {not_ours} "
            f"or state = 'DEAD' and {self._statements.fill('may_hold')}) "
            f"limit {limit + 1}"
        ).toArrow()
        if table.num_rows > limit:
            return None
        kinds = ClaimPolicies.by_type(table["event_type"], self._policies())
        kept = table.filter(pc.or_(kinds.hold, pc.not_equal(table["state"], State.DEAD)))
        return kept.drop_columns(["state"]).cast(DELIVERIES)

    def _first(
        self, read_view: DataFrame, limit: int, at: datetime, counts: pa.Table | None
    ) -> Eligible:
        """Return the first of what is eligible, by commits of the event log.

        To ask for the first of millions, Spark holds twice as many in memory as are asked for, in
        each task. What is blocked by something is blocked by what came before it, so of the commits
        behind those that hold enough nothing has to be looked at.
        """
        counts = self.by_commit(read_view, at=at) if counts is None else counts
        reached = np.cumsum(counts["due"].to_numpy())
        wanted = limit
        while limit and reached.size:
            place = min(int(np.searchsorted(reached, wanted)), reached.size - 1)
            is_last = place == reached.size - 1
            front = read_view.where(f"arrival <= {counts['arrival'][place].as_py()}")
            is_large = reached[place] > limit + MOST_OF_A_COMMIT
            tail = f"order by position limit {limit + 1}" if is_large else ""
            found = in_order(self._asked("eligible", front, tail, at=at))
            if is_last or found.num_rows >= -(-limit // ENOUGH):
                return Eligible(
                    rows=found.slice(0, limit), is_all=is_last and found.num_rows <= limit
                )
            wanted = 2 * int(reached[place])
        return Eligible(rows=DELIVERIES.empty_table(), is_all=not reached.size)

    def endable(self, read_view: DataFrame, *, due_by: datetime | None = None) -> pa.Table:
        """Return what waits and is to be ended without being sent: killed, or past its age.

        Args:
            read_view: the open deliveries.
            due_by: when it is due, to know it before; now if left out.

        Returns:
            Columns of `claims.DELIVERIES`; at most `END_AT_ONCE` rows.
        """
        now = self._clock.now()
        return self._asked(
            "endable",
            read_view,
            f"limit {END_AT_ONCE}",
            at=now,
            due_by=instant_literal(due_by or now),
        )

    def next_too_old(self, read_view: DataFrame) -> datetime | None:
        """Return when the first of what waits will be past its age, and due; None if time makes
        none so.

        Args:
            read_view: the open deliveries.
        """
        self._show(read_view)
        now = instant_literal(self._clock.now())
        text = self._statements.fill("next_too_old", deliveries=_VIEW, now=now)
        [row] = self._spark.sql(text).collect()
        return None if row["at"] is None else instant_of(int(row["at"]))

    def _is_due(self, at: datetime) -> str:
        return self._statements.fill("is_due", now=instant_literal(at))

    def overview(self, read_view: DataFrame) -> Overview:
        """Return what is open in a read view: how much, due when, under which claims.

        Args:
            read_view: the open deliveries.
        """
        read_view.createOrReplaceTempView(_VIEW)
        at = self._clock.now()
        now, soon = instant_literal(at), instant_literal(at + LATER)
        rows: list[Mapping[str, Any]] = (
            self._spark.sql(
                f"select if({OPEN_ITEM}, null, claim_id) as claim_id, claimed_by, "
                "min(claimed_at) as claimed_at, max(lease_expires_at) as lease_expires_at, "
                f"min(if(kill_command_id is null, lease_expires_at, {now})) as first_over, "
                "count(*) as deliveries, "
                f"min(case when available_at > {now} then available_at end) as next_due, "
                f"min(case when available_at > {soon} then available_at end) as next_later, "
                f"count_if(not {_ORDERED} and available_at > {soon}) as later, "
                f"count_if({self._is_due(at)}) as due "
                f"from {_VIEW} where state in ({listed(OPEN_STATES)}) "
                f"group by if({OPEN_ITEM}, null, claim_id), claimed_by"
            )
            .toArrow()
            .to_pylist()
        )
        pending = next((row for row in rows if row["claimed_by"] is None), None)
        items = next((row for row in rows if row["claimed_by"] == TO_DO), None)
        return Overview(
            at=at,
            open=sum(row["deliveries"] for row in rows if row is not items),
            due=pending["due"] if pending else 0,
            later=pending["later"] if pending else 0,
            next_due=pending["next_due"] if pending else None,
            next_later=pending["next_later"] if pending else None,
            claims=[row for row in rows if row["claim_id"] is not None],
            items_over=items["first_over"] if items else None,
        )

    def _asked(
        self, statement: str, read_view: DataFrame, tail: str, *, at: datetime, **values: object
    ) -> pa.Table:
        self._show(read_view)
        text = self._statements.fill(statement, deliveries=_VIEW, now=instant_literal(at), **values)
        table = self._spark.sql(f"select {COLUMNS} from ({text}) {tail}").toArrow()
        return table.cast(DELIVERIES)

    def _show(self, read_view: DataFrame) -> None:
        """Make the views that the statements read: a session may be a new one after a pause."""
        read_view.createOrReplaceTempView(_VIEW)
        rows = [
            policy.as_row()
            | {"position": place, "event_type_regex": glob_to_regex(policy.event_type)}
            for place, policy in enumerate(self._policies().all, start=1)
        ]
        policies = self._spark.createDataFrame(pa.Table.from_pylist(rows, schema=_POLICIES))
        policies.createOrReplaceTempView(_POLICIES_VIEW)


def _numbered(scopes: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in scopes:
        numbers = numbers_of(pa.chunked_array([batch.column(0)]))
        yield pa.RecordBatch.from_arrays([pa.array(numbers.view(np.int64))], ["number"])
