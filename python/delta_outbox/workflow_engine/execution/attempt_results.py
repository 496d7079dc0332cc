"""What an attempt is on record: how its claim ends."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from delta_outbox.lifecycle.endings import Attempted
from delta_outbox.lifecycle.results import to_json
from delta_outbox.lifecycle.states import Reason
from delta_outbox.railway.algorithms.history import History
from delta_outbox.railway.outcomes import DEFAULT_EXIT, Exit
from delta_outbox.railway.routing import CAUSES, LeadsNowhere, Routing, TaskEnding
from delta_outbox.store.completions import KIND as COMPLETE
from delta_outbox.workflow_engine.hosts.attempts import AttemptReport


def attempted(
    report: AttemptReport, routing: Routing, task: str, after: History, *, now: datetime
) -> Attempted:
    """Return how the claim of a task ends.

    Args:
        report: how the attempt has ended.
        routing: of the version that the instance has started with.
        task: its name.
        after: the history with this attempt.
        now: the current instant.
    """
    ending = report.ending
    errors = [] if ending.error is None else [str(ending.error)]
    error = "; ".join([*errors, *report.remarks])
    if not ending.final:
        waits = after.available_at
        return Attempted(
            reason=ending.reason,
            wait=0.0 if waits is None else max(0.0, (waits - now).total_seconds()),
            is_last=ending.last,
            error=error or None,
            is_verdict=report.is_verdict,
        )
    decided = ending.decided
    chosen = decided.outcome if decided else report.on_fault
    return Attempted(
        reason=ending.reason,
        outcome=outcome_of(routing, task, CAUSES[ending.reason], chosen),
        outcome_data=to_json(decided.data) if decided else None,
        error=error or None,
        is_verdict=report.is_verdict,
    )


def expired(routing: Routing, task: str) -> Attempted:
    """Return how the claim of a task ends that has expired before anything of it was done.

    Args:
        routing: of the version that the instance has started with.
        task: its name.
    """
    return Attempted(
        reason=Reason.EXPIRED,
        outcome=outcome_of(routing, task, CAUSES[Reason.EXPIRED], None),
    )


def outcome_of(routing: Routing, task: str, cause: str, chosen: str | Exit | None) -> str:
    """Return what goes on record as the outcome of a task: what was chosen, else what its rows
    say. Where they say nothing it is the cause, and derivation tells that the instance is stranded.

    Args:
        routing: of the version of its instance.
        task: its name.
        cause: what has happened to it.
        chosen: by the code of its author; None if nobody chose.
    """
    try:
        outcome = routing.outcome(task, TaskEnding(cause=cause, outcome=chosen))
    except LeadsNowhere:
        return cause
    return DEFAULT_EXIT.value if isinstance(outcome, Exit) else str(outcome)


def late_answer(ending: Mapping[str, Any], *, by: str) -> dict[str, object]:
    """Return the command that keeps an outcome which came too late, as an answer to an item would:
    it is applied to nothing, the view `late_answers` has it, and operators may accept it.

    Args:
        ending: a row of `claims.ending_rows` with an outcome.
        by: the relay that has got it.
    """
    return {
        "command_id": uuid.uuid4().hex,
        "kind": COMPLETE,
        "event_id": ending["event_id"],
        "arrival": ending["arrival"],
        "destination": ending["destination"],
        "lifecycle": ending["lifecycle"],
        "arguments": json.dumps(
            {"outcome": ending["outcome"], "data": ending["outcome_data"]}, ensure_ascii=False
        ),
        "actor": by,
        "reason": "its claim had ended",
        "requested_at": ending["occurred_at"],
    }
