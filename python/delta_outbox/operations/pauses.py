"""Pause and resume a destination: what an operator asks for, checked and appended."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_outbox.core.errors import UnknownDestination, WrongUsage
from delta_outbox.core.reserved_names import FORMER_PLANS, WORKFLOWS
from delta_outbox.operations.argument_rules import MAX_ACTOR, MAX_TEXT, Arguments

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Pausing:
    """A request to pause or to resume, checked.

    Args:
        kind: pause or resume.
        destination: its name.
        actor: who asks.
        reason: why, in the actor's words.
    """

    kind: str
    destination: str
    actor: str
    reason: str


def pausing_request(kind: str, *, destination: str, actor: object, reason: object) -> Pausing:
    """Check a request.

    Args:
        kind: pause or resume.
        destination: its name.
        actor: who asks, one line.
        reason: why, one line.

    Raises:
        WrongUsage: arguments break rules; all of them are named.
    """
    given = Arguments()
    checked = Pausing(
        kind=kind,
        destination=destination,
        actor=given.line("actor", actor, MAX_ACTOR),
        reason=given.line("reason", reason, MAX_TEXT),
    )
    if given.problems:
        raise WrongUsage(f"{kind}: {'; '.join(given.problems)}.")
    return checked


# twin: macros/requests/append_pausing.sql::append_pausing
def append_pausing(outbox: Store, request: Pausing) -> str:
    """Append a request, and return the id of the command.

    Args:
        outbox: where to ask.
        request: checked.

    Raises:
        UnknownDestination: neither the settings nor the policies have it, nor any workflows, and it
            is not paused; nothing was written.
    """
    from delta_outbox.operations.command_log import append_commands

    known = {
        *outbox.settings.publishers,
        *outbox.policies_in_force.destinations,
        *outbox.settings.third_parties,
        *_third_parties(outbox),
        *outbox.destinations.read().paused,  # some of them may have been removed since
    }
    if request.destination not in known:
        raise UnknownDestination(
            destination=request.destination,
            known=sorted(known),
            remedy=f"Name one of them: `outbox {request.kind} DESTINATION`.",
        )
    command_id = uuid.uuid4().hex
    row = {
        "kind": request.kind,
        "command_id": command_id,
        "destination": request.destination,
        "arguments": "{}",
        "actor": request.actor,
        "reason": request.reason,
    }
    append_commands(outbox, [row])
    logger.info(
        "command_appended",
        extra={
            "command_id": command_id,
            "kind": request.kind,
            "destination": request.destination,
        },
    )
    return command_id


def _third_parties(outbox: Store) -> set[str]:
    """Return the third parties of workflows, former ones too: a relay with older code goes on by
    them.
    """
    from delta_outbox.delta.numbered_writes import NumberedWrites

    writes = NumberedWrites(outbox.spark, outbox.tables, writer=WORKFLOWS, clock=outbox.clock)
    tasks = (row for one in writes.last(FORMER_PLANS) for row in one.plan["rows"]["railway_tasks"])
    return {row["third_party"] for row in tasks if row["third_party"]}
