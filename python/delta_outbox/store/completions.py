"""Completions of items that wait for a person: commands that end a claim of `todo` with an outcome.

Of several for one item the first in the command log counts, if it was asked for before the item
was to expire by what stands before it there, and comes before a kill; whoever applies commands does
so before claims of `todo` are ended by their lease (`ExpiredClaims.end_items`). The others stay in
the log as what they are: answers that came too late.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from delta_outbox.lifecycle.claims import OPEN_ITEM
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.store.extensions import deadline_at_its_place

KIND: Final = "complete"
_INSTANT: Final = pa.timestamp("us", tz="UTC")


def completion_arguments(
    outcome: str, data: Mapping[str, Any], content: str, key: str | None = None
) -> str:
    """Return what a command says of an answer, as JSON.

    Args:
        outcome: that was decided.
        data: that belongs to it.
        content: stands for what was answered, so that a repeat is known.
        key: stands for the request, so that a repeat with other words is known; None: nothing does.
    """
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    answer = {"outcome": outcome, "data": body, "content": content}
    if key is not None:
        answer["key"] = key
    return json.dumps(answer, ensure_ascii=False)


def completions_select(commands: str, state: str) -> str:
    """Return the items that completions end, as SQL: one row each, with what its ending says.

    Args:
        commands: a relation with rows of the command log and their _commit_version.
        state: a relation with the columns of the projection: where the items stand.
    """
    return (
        "select * except (turn, kind, deadline, requested_at, _commit_version) from ("
        "select *, row_number() over (partition by event_id, arrival "
        "order by _commit_version, command_id) as turn "
        "from (select c.kind, s.event_id, s.arrival, s.destination, s.lifecycle, s.ordering_key, "
        "s.attempts as attempt, s.publish_attempts, s.crashes, s.suspect, s.claim_id, "
        "get_json_object(c.arguments, '$.outcome') as outcome, "
        "get_json_object(c.arguments, '$.data') as outcome_data, c.command_id, c.actor, "
        "c._commit_version, c.requested_at, "
        f"{deadline_at_its_place('c', 's.lease_expires_at')} as deadline "
        f"from {commands} as c "
        f"inner join {state} as s on c.event_id = s.event_id and c.arrival = s.arrival "
        f"where {OPEN_ITEM} and c.lifecycle = s.lifecycle) "
        f"where kind = 'kill' or kind = '{KIND}' and requested_at <= deadline "
        "and outcome is not null"
        f") where turn = 1 and kind = '{KIND}'"
    )


def completion_rows(found: pa.Table, *, now: datetime, policy_version: str) -> pa.Table:
    """Return the transitions that end items.

    Args:
        found: as `completions_select` selects.
        now: when it was decided.
        policy_version: of the policies in force.
    """
    count = found.num_rows
    return pa.table(
        {
            **{name: found[name] for name in found.column_names},
            **_repeated(
                count,
                from_state=State.CLAIMED,
                to_state=State.PUBLISHED,
                reason=Reason.COMPLETED,
                policy_version=policy_version,
            ),
            "claim_size": pa.repeat(pa.scalar(1, pa.int32()), count),
            "occurred_at": pa.repeat(pa.scalar(now, _INSTANT), count),
        }
    )


def _repeated(count: int, **values: str) -> dict[str, pa.Array]:
    return {name: pa.repeat(pa.scalar(str(value)), count) for name, value in values.items()}
