"""Asks a read view for the open deliveries: what is eligible, what ends unsent, how much."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.clock import Clock
from delta_outbox.core.literals import instant_literal, listed
from delta_outbox.lifecycle.claim_policies import ClaimPolicies
from delta_outbox.lifecycle.claims import BLOCKS, COLUMNS, DELIVERIES, in_order
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.states import OPEN_STATES, State
from delta_outbox.runtime.statements import Statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


END_AT_ONCE: Final = 10_000  # deliveries ended without being sent, per poll
ENOUGH: Final = 10  # of what was asked for, such a part; to look further takes longer
MOST_OF_A_COMMIT: Final = 500_000  # deliveries held at once, beyond what is asked for
LATER: Final = timedelta(minutes=1)  # what has no key and is due later than that is not listed
_LISTED: Final = DELIVERIES.append(pa.field(BLOCKS, pa.bool_()))
_VIEW: Final = "outbox_open_deliveries"


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
class Overview:
    """What is open.

    Args:
        open: deliveries, waiting or claimed.
        due: of those that wait, how many are due.
        next_due: when the next of the others is.
        listed_until: what has no key and is due later is not listed.
        next_later: when the first of that is due.
        claims: claim_id, claimed_by, claimed_at, lease_expires_at and deliveries of each.
    """

    open: int
    due: int
    next_due: datetime | None
    listed_until: datetime
    next_later: datetime | None
    claims: Sequence[Mapping[str, Any]]

    @property
    def pending(self) -> int:
        """Return how many deliveries wait."""
        return self.open - sum(int(claim["deliveries"]) for claim in self.claims)

    def holds(self, *, but: str | None) -> bool:
        """Say whether something open may block what is due.

        Args:
            but: a worker whose claims do not count.
        """
        return self.due < self.pending or any(claim["claimed_by"] != but for claim in self.claims)


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
        held_by: str | None = None,
        per_destination: PerDestination | None = None,
        found: Overview | None = None,
        counts: pa.Table | None = None,
    ) -> pa.Table:
        """Return what is eligible in a read view, never more than a limit, in order.

        Args:
            read_view: the open deliveries.
            limit: deliveries, at least 0.
            held_by: a worker behind whose claims more may be taken: it keeps the order itself.
            per_destination: nothing for some destinations, and so many for each other one
                instead of the limit; None if they are not isolated.
            found: what is open in the read view, if that is known: then less has to be asked.
            counts: what `by_commit` says of the read view, if that is known.

        Returns:
            Columns of `claims.DELIVERIES`.
        """
        if held_by is not None:
            read_view = read_view.where(f"not (state = 'CLAIMED' and claimed_by = '{held_by}')")
        if per_destination is not None:
            # Names of the settings, which hold no quotes.
            without = "|".join(sorted(per_destination.unavailable))
            return self._asked(
                "eligible_per_destination",
                read_view,
                "order by position",
                unavailable=without,
                each=per_destination.each,
            )
        if found is None or found.pending > limit:
            if counts is None:
                counts = self.by_commit(read_view)
            return self._first(read_view, int(limit), counts)
        holds = self._policies().any_hold or found.holds(but=held_by)
        return in_order(self._asked("eligible" if holds else "eligible_all", read_view, ""))

    def by_commit(self, read_view: DataFrame) -> pa.Table:
        """Return how many deliveries wait of each commit of the event log, the first one first.

        Args:
            read_view: the open deliveries.

        Returns:
            Columns arrival; waiting; untouched: of those, to how many nothing has happened, as
            though their events had just been appended.
        """
        read_view.createOrReplaceTempView(_VIEW)
        return self._spark.sql(
            "select arrival, count(*) as waiting, count_if(changed_at is null "
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
            until: as `Overview.listed_until` has it.

        Returns:
            Columns of `claims.DELIVERIES`, in no order, and `BLOCKS`: true for what is claimed, or
            DEAD and holds its key.
        """
        read_view.createOrReplaceTempView(_VIEW)
        not_ours = f"claim_id not in ({listed(in_flight)})" if in_flight else "true"
        table = self._spark.sql(
            f"select {COLUMNS}, state <> 'PENDING' as {BLOCKS}, state from {_VIEW} where "
            "state = 'PENDING' and (ordering_key is not null "
            f"or coalesce(available_at <= {instant_literal(until)}, true)) "
            "or ordering_key is not null "
            f"and (state = 'CLAIMED' and {not_ours} "
            f"or state = 'DEAD' and reason <> 'operator') limit {limit + 1}"
        ).toArrow()
        if table.num_rows > limit:
            return None
        kinds = ClaimPolicies.by_type(table["event_type"], self._policies())
        kept = table.filter(pc.or_(kinds.hold, pc.not_equal(table["state"], State.DEAD)))
        return kept.drop_columns(["state"]).cast(_LISTED)

    def _first(self, read_view: DataFrame, limit: int, counts: pa.Table) -> pa.Table:
        """Return the first of what is eligible, by commits of the event log.

        To ask for the first of millions, Spark holds twice as many in memory as are asked for, in
        each task. What is blocked by something is blocked by what came before it, so of the commits
        behind those that hold enough nothing has to be looked at.
        """
        reached = np.cumsum(counts["waiting"].to_numpy())
        wanted = limit
        while limit and reached.size:
            place = min(int(np.searchsorted(reached, wanted)), reached.size - 1)
            front = read_view.where(f"arrival <= {counts['arrival'][place].as_py()}")
            if reached[place] > limit + MOST_OF_A_COMMIT:
                found = self._asked("eligible", front, f"order by position limit {limit}")
            else:
                found = in_order(self._asked("eligible", front, "")).slice(0, limit)
            if found.num_rows >= -(-limit // ENOUGH) or place == reached.size - 1:
                return found
            wanted = 2 * int(reached[place])
        return DELIVERIES.empty_table()

    def endable(self, read_view: DataFrame) -> pa.Table:
        """Return what waits and is to be ended without being sent: killed, or past its age.

        Args:
            read_view: the open deliveries.

        Returns:
            Columns of `claims.DELIVERIES`; at most `END_AT_ONCE` rows.
        """
        return self._asked("endable", read_view, f"limit {END_AT_ONCE}")

    def overview(self, read_view: DataFrame) -> Overview:
        """Return what is open in a read view: how much, due when, under which claims.

        Args:
            read_view: the open deliveries.
        """
        read_view.createOrReplaceTempView(_VIEW)
        at = self._clock.now()
        now, until = instant_literal(at), at + LATER
        rows: list[Mapping[str, Any]] = (
            self._spark.sql(
                "select claim_id, claimed_by, min(claimed_at) as claimed_at, "
                "max(lease_expires_at) as lease_expires_at, count(*) as deliveries, "
                f"min(case when available_at > {now} then available_at end) as next_due, "
                "min(case when ordering_key is null and available_at > "
                f"{instant_literal(until)} then available_at end) as next_later, "
                f"count_if(coalesce(available_at <= {now}, true)) as due "
                f"from {_VIEW} where state in ({listed(OPEN_STATES)}) "
                "group by claim_id, claimed_by"
            )
            .toArrow()
            .to_pylist()
        )
        pending = next((row for row in rows if row["claim_id"] is None), None)
        return Overview(
            open=sum(row["deliveries"] for row in rows),
            due=pending["due"] if pending else 0,
            next_due=pending["next_due"] if pending else None,
            listed_until=until,
            next_later=pending["next_later"] if pending else None,
            claims=[row for row in rows if row["claim_id"] is not None],
        )

    def _asked(self, statement: str, read_view: DataFrame, tail: str, **values: object) -> pa.Table:
        read_view.createOrReplaceTempView(_VIEW)
        text = self._statements.fill(statement, deliveries=_VIEW, now=self._now(), **values)
        table = self._spark.sql(f"select {COLUMNS} from ({text}) {tail}").toArrow()
        return table.cast(DELIVERIES)

    def _now(self) -> str:
        return instant_literal(self._clock.now())
