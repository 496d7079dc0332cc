"""Extensions of items that wait for a person: commands that let an item expire later.

The log of transitions says who holds an item and until when, so an extension ends the claim of
`todo` (`released`) and makes it anew with the later end. Between these two appends the item is open
for nobody: it is not due before the new end, and whoever applies the same command again finds it so
and claims it. An extension counts if it was asked for before the item was to expire; of several the
latest end holds.

Tasks that are no items have no claim that says when they expire: see workflow_engine/deadlines.py.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.lifecycle.claims import OPEN_ITEM, new_claim_id
from delta_outbox.lifecycle.states import Reason, State

KIND: Final = "extend"
_INSTANT: Final = pa.timestamp("us", tz="UTC")

_COLUMNS: Final = (
    "s.event_id, s.arrival, s.destination, s.lifecycle, s.ordering_key, s.attempts as attempt, "
    "s.publish_attempts, s.crashes, s.suspect"
)


def end_before(command: str) -> str:
    """Return when a task was to expire as its extension was asked for, as SQL.

    Args:
        command: name of a row of the command log.
    """
    return f"try_cast(get_json_object({command}.arguments, '$.from') as timestamp)"


# twin: macros/workflows/end_after.sql::end_after
def end_after(command: str) -> str:
    """Return when a task expires by its extension, as SQL.

    Args:
        command: name of a row of the command log.
    """
    return f"try_cast(get_json_object({command}.arguments, '$.until') as timestamp)"


def asked_in_time(command: str) -> str:
    """Return the condition, as SQL, that a command is an extension that counts.

    Args:
        command: name of a row of the command log.
    """
    return f"({command}.kind = '{KIND}' and {command}.requested_at <= {end_before(command)})"


def deadline_at_its_place(command: str, lease: str) -> str:
    """Return when an item was to expire by the commands before one of its commands, as SQL.

    Args:
        command: name of a row of the command log; all commands of an item are there, or none of
            them is an extension.
        lease: when the claim of the item ends.
    """
    its = f"partition by {command}.event_id, {command}.arrival"
    before = "rows between unbounded preceding and 1 preceding"
    return (
        f"greatest(coalesce(min(if({asked_in_time(command)}, {end_before(command)}, null)) "
        f"over ({its}), {lease}), "
        f"max(if({asked_in_time(command)}, {end_after(command)}, null)) over ({its} "
        f"order by {command}._commit_version, {command}.command_id {before}))"
    )


def extended_select(commands: str, state: str) -> str:
    """Return the open items that expire later by their commands, as SQL: one row each.

    Args:
        commands: a relation with rows of the command log.
        state: a relation with the columns of the projection: where the items stand.
    """
    until = end_after("c")
    return (
        f"select {_COLUMNS}, s.claim_id, max({until}) as available_at, "
        f"max_by(c.command_id, {until}) as command_id, max_by(c.actor, {until}) as actor "
        f"from {commands} as c inner join {state} as s "
        "on c.event_id = s.event_id and c.arrival = s.arrival and c.lifecycle = s.lifecycle "
        f"where {OPEN_ITEM} and s.kill_command_id is null and {asked_in_time('c')} "
        f"and {until} > s.lease_expires_at group by all"
    )


def released_select(commands: str, state: str) -> str:
    """Return the items that extensions have released and nobody has claimed anew, as SQL.

    Args:
        commands: a relation with rows of the command log.
        state: a relation with the columns of the projection: where the items stand.
    """
    return (
        f"select {_COLUMNS}, s.available_at as lease_expires_at, "
        "min(c.command_id) as command_id, min_by(c.actor, c.command_id) as actor "
        f"from {commands} as c inner join {state} as s "
        "on c.event_id = s.event_id and c.arrival = s.arrival and c.lifecycle = s.lifecycle "
        f"where s.state = '{State.PENDING}' and s.reason = '{Reason.RELEASED}' "
        f"and s.destination = '{TO_DO}' and {asked_in_time('c')} "
        f"and s.available_at = {end_after('c')} group by all"
    )


def release_rows(found: pa.Table, *, now: datetime, policy_version: str) -> pa.Table:
    """Return the transitions that end claims of items because these expire later.

    Args:
        found: as `extended_select` selects.
        now: when it was decided.
        policy_version: of the policies in force.
    """
    return _rows(
        found,
        now=now,
        from_state=State.CLAIMED,
        to_state=State.PENDING,
        reason=Reason.RELEASED,
        policy_version=policy_version,
    )


def claim_rows(found: pa.Table, *, now: datetime, policy_version: str) -> pa.Table:
    """Return the transitions that claim items anew for `todo`, until they expire.

    Args:
        found: as `released_select` selects.
        now: when it was decided.
        policy_version: of the policies in force.
    """
    rows = _rows(
        found,
        now=now,
        from_state=State.PENDING,
        to_state=State.CLAIMED,
        reason=Reason.CLAIMED,
        relay_id=TO_DO,
        policy_version=policy_version,
    )
    attempt = pc.add(found["attempt"], pa.scalar(1, pa.int32()))
    rows = rows.set_column(rows.schema.get_field_index("attempt"), "attempt", attempt)
    ids = pa.array([new_claim_id() for _ in range(found.num_rows)], pa.string())
    return rows.append_column("claim_id", ids)


def _rows(found: pa.Table, *, now: datetime, **values: str) -> pa.Table:
    count = found.num_rows
    return pa.table(
        {
            **{name: found[name] for name in found.column_names},
            **{name: pa.repeat(pa.scalar(str(value)), count) for name, value in values.items()},
            "claim_size": pa.repeat(pa.scalar(1, pa.int32()), count),
            "occurred_at": pa.repeat(pa.scalar(now, _INSTANT), count),
        }
    )
