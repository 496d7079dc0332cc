"""Purge: remove the past by whole days of the event log, once all that they hold has ended.

A purge is a numbered plan. What it removes is written down first, one row per delivery in
`outbox_purged`, then it goes from the event log, the transition log and the projection. A purge
that was interrupted is finished by the next one, or by `outbox maintain`.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.commits import ATTEMPTS
from delta_outbox.errors import LogRewound, NoOutboxHere, SequenceTaken, WrongUsage
from delta_outbox.maintenance.purge_counts import TERMINAL, PurgeCounts
from delta_outbox.maintenance.purge_request import PurgeReport, PurgeRequest
from delta_outbox.maintenance.purge_rules import Choice, choose, dates_listed, reached
from delta_outbox.maintenance.removal import remove
from delta_outbox.progress import NumberedPlan, NumberedPlans
from delta_outbox.projection import Watermark
from delta_outbox.session import end_own_session, own_session
from delta_outbox.storage import writing_to
from delta_outbox.tails import OPEN_STATES, listed

if TYPE_CHECKING:
    from delta_outbox.outbox import Outbox

logger = logging.getLogger(__name__)

WRITER: Final = "purge"
RECORDS_APP_ID: Final = "outbox/purge-records"
EVENTS_APP_ID: Final = "outbox/purge-events"


class Purge:
    """Purges one outbox.

    Args:
        outbox: the store.
    """

    def __init__(self, outbox: Outbox) -> None:
        """Open a session: the commits of it are marked."""
        self._outbox = outbox
        self._tables = outbox.tables
        self._spark = own_session(outbox.spark)
        self._plans = NumberedPlans(self._spark, outbox.tables, writer=WRITER, clock=outbox.clock)

    def close(self) -> None:
        """End the session."""
        end_own_session(self._spark)

    def run(self, request: PurgeRequest) -> PurgeReport:
        """Remove what a request names and nothing depends on; a dry run only looks.

        Args:
            request: what is to go.

        Raises:
            WrongUsage: the days are so young that new events are held against them.
            SequenceTaken: other writers were faster many times in a row.
        """
        self._check_before(request.before)
        if not request.dry_run:
            self.finish()
        for _ in range(ATTEMPTS):
            self._outbox.refresh(planned_by=self._outbox.worker_id)
            seen = self._seen()
            counts = PurgeCounts(self._spark, self._tables, seen, before=request.before)
            choice = choose(counts.days(), include_dead=request.include_dead)
            if request.dry_run or not choice.days:
                return PurgeReport(choice=choice)
            last = next(self._plans.last(), None)
            plan = self._plans.append_after(
                last,
                self._planned(request, choice, counts.transitions(choice), seen, last),
                planned_by=self._outbox.worker_id,
            )
            if plan is None:
                continue
            removed = self._carry_out(plan)
            if removed is not None:
                return PurgeReport(choice=choice, number=plan.number, removed=removed)
        raise SequenceTaken(writer=f"outbox/{WRITER}", number=ATTEMPTS)

    def unfinished(self) -> int | None:
        """Return the number of a purge that was interrupted, None if there is none."""
        last = next(self._plans.last(), None)
        return last.number if last is not None and last.plan["step"] == "planned" else None

    def finish(self) -> int | None:
        """Finish a purge that was interrupted, and return its number; None if there is none."""
        last = next(self._plans.last(), None)
        if last is None or last.plan["step"] != "planned":
            return None
        logger.warning("purge_finished_late", extra={"purge": last.number})
        self._carry_out(last)
        return last.number

    # --- what may go ------------------------------------------------------------------------

    def _check_before(self, before: date) -> None:
        days = self._outbox.settings.append.horizon_days
        latest = self._outbox.clock.now().date() - timedelta(days=days)
        if before > latest:
            raise WrongUsage(
                f"purge: `before` must be {latest} or earlier: the ids of {days} days "
                f"(append.horizon_days) are held against new events. Got: {before}."
            )

    def _seen(self) -> Watermark:
        seen = self._outbox.projection.watermark()
        if seen is None:
            raise NoOutboxHere(where=self._tables.state)
        return seen

    # --- the plan ---------------------------------------------------------------------------

    def _planned(
        self,
        request: PurgeRequest,
        choice: Choice,
        transitions: Sequence[Mapping[str, object]],
        seen: Watermark,
        last: NumberedPlan | None,
    ) -> dict[str, object]:
        before: Mapping[str, Any] = last.plan if last is not None else {}
        events = seen.versions["events"]
        return {
            "step": "planned",
            "before": request.before.isoformat(),
            "actor": request.actor.strip(),
            "reason": request.reason.strip(),
            "include_dead": request.include_dead,
            "dates": [one.isoformat() for one in choice.dates],
            "counts": choice.states,
            "transitions": list(transitions),
            "state_version": seen.version,
            "versions": {"events": events, "transitions": seen.versions["transitions"]},
            # What this purge and all before it have taken, for the invariants.
            "reached": {
                "events": max(events, before.get("reached", {}).get("events", -1)),
                "transitions": seen.versions["transitions"],
            },
            "lanes_before": before.get("lanes", []),
            "lanes": reached(before.get("lanes", []), transitions),
        }

    def _carry_out(self, plan: NumberedPlan) -> dict[str, int] | None:
        """Remove what a plan names; None if one of its events has been opened again meanwhile."""
        given = plan.plan
        # A day may hold nothing but later copies.
        if sum(given["counts"].values()) and not self._is_recorded(plan.number):
            self._outbox.refresh(planned_by=self._outbox.worker_id)
            if self._left(given, OPEN_STATES):
                self._plans.append_after(
                    plan,
                    {
                        **given,
                        "step": "given up",
                        "purge": plan.number,
                        "lanes": given["lanes_before"],
                    },
                    planned_by=self._outbox.worker_id,
                )
                return None
            self._record(plan)
        removed = {
            "outbox_events": self._remove_events(plan),
            "outbox_transitions": self._remove_transitions(plan),
            "outbox_state": self._remove_state(plan),
        }
        done = {
            **given,
            "step": "done",
            "purge": plan.number,
            "reached": {
                "events": given["reached"]["events"],
                "transitions": self._outbox.projection.head(self._tables.transitions),
            },
        }
        self._plans.append_after(plan, done, planned_by=self._outbox.worker_id)
        return removed

    def _is_recorded(self, number: int) -> bool:
        found = self._spark.sql(f"select 1 from {self._tables.purged} where number = {number}")
        return found.limit(1).first() is not None

    def _record(self, plan: NumberedPlan) -> None:
        """Write down every delivery that goes, once."""
        given = plan.plan
        frame = self._spark.sql(
            f"select {plan.number}L as number, s.event_id, s.arrival, s.destination, "
            "s.event_type, s.created_at, s.state, s.changed_at as ended_at, "
            "array_compact(array_append(coalesce(c.command_ids, array()), s.kill_command_id)) "
            "as command_ids, "
            f"{given['versions']['events']}L as events_version "
            f"from {self._tables.state} version as of {given['state_version']} as s "
            "left join (select event_id, arrival, destination, "
            "collect_set(command_id) as command_ids "
            f"from {self._tables.transitions} version as of {given['versions']['transitions']} "
            "where command_id is not null group by event_id, arrival, destination) as c "
            "on s.event_id = c.event_id and s.arrival = c.arrival "
            f"and s.destination = c.destination where {_deliveries(given, 's.')}"
        )
        with writing_to(self._tables.purged):
            (
                frame.write.format("delta")
                .mode("append")
                .option("txnAppId", RECORDS_APP_ID)
                .option("txnVersion", plan.number)
                .saveAsTable(self._tables.purged)
            )
        if not self._is_recorded(plan.number):
            raise LogRewound(table=self._tables.purged, writer=RECORDS_APP_ID, number=plan.number)

    def _remove_events(self, plan: NumberedPlan) -> int:
        """Remove the events, once, and nothing that came to their days after the plan was made.

        A DELETE of whole partitions would take that, too, and one that asks for the version at
        which a row came is refused by Delta. A second MERGE would take an event that was appended
        under a purged id after the first.
        """
        dates = dates_listed(plan.plan["dates"])
        table = self._tables.events
        return remove(
            self._spark,
            table,
            f"merge into {table} as t using (select distinct event_id "
            f"from {table} version as of {plan.plan['versions']['events']} "
            f"where created_date in ({dates})) as s "
            f"on t.event_id = s.event_id and t.created_date in ({dates}) "
            "when matched then delete",
            mark=str(plan.number),
            once=(EVENTS_APP_ID, plan.number),
        )

    def _remove_transitions(self, plan: NumberedPlan) -> int:
        of_lane: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for row in plan.plan["transitions"]:
            of_lane[int(row["lane"])].append(row)
        removed = 0
        for lane, rows in sorted(of_lane.items()):
            dates = dates_listed(sorted({str(row["occurred_date"]) for row in rows}))
            positions = " or ".join(
                f"(epoch = {row['epoch']} and sequence <= {row['sequence']})" for row in rows
            )
            removed += remove(
                self._spark,
                self._tables.transitions,
                f"delete from {self._tables.transitions} "
                f"where lane = {lane} and occurred_date in ({dates}) and ({positions})",
                mark=str(plan.number),
            )
        return removed

    def _remove_state(self, plan: NumberedPlan) -> int:
        """Remove the deliveries from the projection.

        What has ended lies apart from what refreshes write. Only a replay that came in between,
        or a rebuild that began before, leaves something.
        """
        removed = 0
        states: tuple[str, ...] = TERMINAL
        for _ in range(ATTEMPTS):
            removed += remove(
                self._spark,
                self._tables.state,
                f"delete from {self._tables.state} "
                f"where state in ({listed(states)}) and {_deliveries(plan.plan)}",
                mark=str(plan.number),
            )
            self._outbox.refresh(planned_by=self._outbox.worker_id)
            states = (*TERMINAL, *OPEN_STATES)
            if not self._left(plan.plan, states):
                return removed
        raise SequenceTaken(writer=f"outbox/{WRITER}", number=plan.number)

    def _left(self, given: Mapping[str, Any], states: Sequence[str]) -> bool:
        found = self._spark.sql(
            f"select 1 from {self._tables.state} "
            f"where state in ({listed(states)}) and {_deliveries(given)} limit 1"
        )
        return found.first() is not None


def _deliveries(given: Mapping[str, Any], alias: str = "") -> str:
    """Return the rows of the projection that a plan removes, as a condition."""
    first = min(given["dates"])
    after = date.fromisoformat(max(given["dates"])) + timedelta(days=1)
    return (
        f"cast({alias}created_at as date) in ({dates_listed(given['dates'])}) "
        f"and {alias}created_at >= timestamp'{first} 00:00:00' "
        f"and {alias}created_at < timestamp'{after} 00:00:00' "
        f"and {alias}arrival <= {given['versions']['events']}"
    )
