"""Purge: remove the past by whole days of the event log, once all that they hold has ended.

A purge is a numbered write. What it removes is written down first, one row per delivery in
`outbox_purged`; the next number says so, and from then on it is certain that all of it goes: from
the event log, the transition log and the projection. The number after that says that it is done.
A purge that was interrupted is finished by the next one, or by `outbox maintain`; one that had not
come so far is given up, since its events may have been opened again meanwhile.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.core.errors import LogRewound, NoOutboxHere, SequenceTaken, WrongUsage
from delta_outbox.core.literals import listed
from delta_outbox.delta.log_writer import ATTEMPTS
from delta_outbox.delta.numbered_writes import NumberedWrite, NumberedWrites
from delta_outbox.lifecycle.states import OPEN_STATES, TERMINAL_STATES
from delta_outbox.operations.maintenance.purge_counts import PurgeCounts
from delta_outbox.operations.maintenance.purge_records import RECORDS_APP_ID, PurgeRecords
from delta_outbox.operations.maintenance.purge_request import PurgeReport, PurgeRequest
from delta_outbox.operations.maintenance.purge_rules import (
    Choice,
    choose,
    dates_listed,
    day_of,
    deliveries_of,
    reached,
)
from delta_outbox.operations.maintenance.removal import remove
from delta_outbox.projection.projection import Watermark
from delta_outbox.runtime.session import end_own_session, own_session

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)

WRITER: Final = "purge"
EVENTS_APP_ID: Final = "outbox/purge-events"


class Purge:
    """Purges one outbox.

    Args:
        outbox: the store.
    """

    def __init__(self, outbox: Store) -> None:
        """Open a session: the commits of it are marked."""
        self._outbox = outbox
        self._tables = outbox.tables
        self._spark = own_session(outbox.spark)
        self._plans = NumberedWrites(self._spark, outbox.tables, writer=WRITER, clock=outbox.clock)
        self._records = PurgeRecords(self._spark, outbox.tables)

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
        for _ in range(ATTEMPTS):
            if not request.dry_run:
                self.finish()
            # Whatever another purge writes down from here on, we come second, and look again.
            last = next(self._plans.last(), None)
            if not request.dry_run and _step(last) in ("planned", "recorded"):
                continue
            applied = self._outbox.commands_applied_to()  # before the projection sees what they did
            self._outbox.refresh(planned_by=self._outbox.worker_id)
            seen = self._seen()
            recent_from = self._outbox.clock.now() - timedelta(days=self._horizon_days)
            counts = PurgeCounts(
                self._spark,
                self._tables,
                seen,
                applied=applied,
                before=request.before,
                recent_from=recent_from,
            )
            choice = choose(counts.days(), include_dead=request.include_dead)
            if request.dry_run or not choice.days:
                return PurgeReport(choice=choice)
            plan = self._plans.append_after(
                last,
                self._planned(request, choice, counts.transitions(choice), seen, last),
                planned_by=self._outbox.worker_id,
            )
            if plan is None:
                continue
            recorded = self._record(plan)
            if recorded is not None:
                removed = self._execute(recorded)
                return PurgeReport(choice=choice, number=plan.number, removed=removed)
        raise SequenceTaken(writer=f"outbox/{WRITER}", number=ATTEMPTS)

    def unfinished(self) -> int | None:
        """Return the number of an interrupted purge that is to be finished, None if none is."""
        last = next(self._plans.last(), None)
        return int(last.plan["purge"]) if last is not None and _step(last) == "recorded" else None

    def finish(self) -> int | None:
        """Finish a purge that was interrupted, and return its number; None if none was finished.

        One that had not yet written down what it removes has removed nothing, and is given up.
        """
        last = next(self._plans.last(), None)
        if last is not None and _step(last) == "planned":
            self._give_up(last)
        if last is None or _step(last) != "recorded":
            return None
        number = int(last.plan["purge"])
        logger.warning("purge_finished_late", extra={"purge": number})
        self._execute(last)
        return number

    # --- what may go ------------------------------------------------------------------------

    @property
    def _horizon_days(self) -> int:
        """Return for how long new events are held against known ids, by `append` or by dbt."""
        projection = int(self._outbox.statements.texts["identity_horizon_days"])
        return max(self._outbox.settings.append.horizon_days, projection)

    def _check_before(self, before: date) -> None:
        days = self._horizon_days
        latest = self._outbox.clock.now().date() - timedelta(days=days)
        if before > latest:
            raise WrongUsage(
                f"purge: `before` must be {latest} or earlier: the ids of {days} days "
                "(append.horizon_days or identity_horizon_days) are held against new events. "
                f"Got: {before}."
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
        last: NumberedWrite | None,
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

    def _record(self, plan: NumberedWrite) -> NumberedWrite | None:
        """Write down what goes, and take the next number: it is certain then that all of it goes.

        None if one of its events has been opened again meanwhile, or somebody gave the plan up.
        """
        self._outbox.refresh(planned_by=self._outbox.worker_id)
        if self._left(plan.plan, OPEN_STATES):
            self._give_up(plan)
            return None
        deliveries = sum(plan.plan["counts"].values())  # none: only later copies go
        if deliveries and not self._records.write(plan.number, plan.plan):
            # Given up by a purge that came later and was faster.
            if self._plans.numbered(plan.number + 1) is None:
                raise LogRewound(
                    table=self._tables.purged, writer=RECORDS_APP_ID, number=plan.number
                )
            return None
        recorded = self._plans.append_after(
            plan,
            {**plan.plan, "step": "recorded", "purge": plan.number},
            planned_by=self._outbox.worker_id,
        )
        if recorded is None:
            self._records.forget(plan.number)
        return recorded

    def _give_up(self, plan: NumberedWrite) -> None:
        """Let a plan be for good, unless it is certain by now."""
        given_up = {
            **plan.plan,
            "step": "given up",
            "purge": plan.number,
            "lanes": plan.plan["lanes_before"],
        }
        if self._plans.append_after(plan, given_up, planned_by=self._outbox.worker_id) is not None:
            logger.warning("purge_given_up", extra={"purge": plan.number})
            self._records.forget(plan.number)

    def _execute(self, recorded: NumberedWrite) -> dict[str, int]:
        """Remove what was written down; what somebody has removed already is not counted."""
        given = recorded.plan
        removed = {
            "outbox_events": self._remove_events(given),
            "outbox_transitions": self._remove_transitions(given),
            "outbox_state": self._remove_state(given),
        }
        done = {
            **given,
            "step": "done",
            "reached": {
                "events": given["reached"]["events"],
                "transitions": self._outbox.projection.latest_version(self._tables.transitions),
            },
        }
        # If the number is taken, another has finished the same purge.
        self._plans.append_after(recorded, done, planned_by=self._outbox.worker_id)
        return removed

    def _remove_events(self, given: Mapping[str, Any]) -> int:
        """Remove the events, once, and nothing that came to their days after the plan was made.

        A DELETE of whole partitions would take that, too, and one that asks for the version at
        which a row came is refused by Delta. A second MERGE would take an event that was appended
        under a purged id after the first.
        """
        dates = dates_listed(given["dates"])
        table = self._tables.events
        return remove(
            self._spark,
            table,
            f"merge into {table} as t using (select distinct event_id "
            f"from {table} version as of {given['versions']['events']} "
            f"where {day_of()} in ({dates})) as s "
            f"on t.event_id = s.event_id and {day_of('t.')} in ({dates}) "
            "when matched then delete",
            tag=str(given["purge"]),
            once=(EVENTS_APP_ID, int(given["purge"])),
        )

    def _remove_transitions(self, given: Mapping[str, Any]) -> int:
        of_lane: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for row in given["transitions"]:
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
                tag=str(given["purge"]),
            )
        return removed

    def _remove_state(self, given: Mapping[str, Any]) -> int:
        """Remove the deliveries from the projection.

        What has ended lies apart from what refreshes write. Only a replay that came in between,
        or a rebuild that began before, leaves something.
        """
        removed = 0
        states: tuple[str, ...] = TERMINAL_STATES
        for _ in range(ATTEMPTS):
            removed += remove(
                self._spark,
                self._tables.state,
                f"delete from {self._tables.state} "
                f"where state in ({listed(states)}) and {deliveries_of(given)}",
                tag=str(given["purge"]),
            )
            self._outbox.refresh(planned_by=self._outbox.worker_id)
            states = (*TERMINAL_STATES, *OPEN_STATES)
            if not self._left(given, states):
                return removed
        raise SequenceTaken(writer=f"outbox/{WRITER}", number=int(given["purge"]))

    def _left(self, given: Mapping[str, Any], states: Sequence[str]) -> bool:
        found = self._spark.sql(
            f"select 1 from {self._tables.state} "
            f"where state in ({listed(states)}) and {deliveries_of(given)} limit 1"
        )
        return found.first() is not None


def _step(plan: NumberedWrite | None) -> str | None:
    """Return how far a plan is: planned, recorded, done or given up."""
    return None if plan is None else str(plan.plan["step"])
