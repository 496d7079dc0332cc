"""One id, appended several times; well-known formats of ids."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from delta_outbox.testing.conformance.adapter import NewEvent, Record
from delta_outbox.testing.conformance.check import Scenario
from delta_outbox.testing.conformance.stage import Look, Stage
from delta_outbox.testing.demands import holds, same

FIRST: Final = b"first"
OTHER: Final = b"other"
_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # the letters of a ULID


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What was seen.

    Args:
        copies: records of the id that was appended again and again.
        refused: whether the store refused an append of a new event beside an id with other
            content.
        beside: that new event, as far as it is there.
        eligible: after the appends.
        taken: by all claims.
        ids: the UUID and the ULID that were appended.
        known: those of them that were found and delivered under that very id.
        final: the last look.
    """

    copies: Sequence[Record]
    refused: bool
    beside: Look
    eligible: tuple[str, ...]
    taken: tuple[str, ...]
    ids: tuple[str, str]
    known: frozenset[str]
    final: Look


def play(stage: Stage) -> Identity:
    """Append the same id again and again.

    Args:
        stage: where.
    """
    ids = (str(uuid.uuid4()), "0" + "".join(secrets.choice(_CROCKFORD) for _ in range(25)))
    stage.append(NewEvent(event_id="once", payload=FIRST))
    stage.append(NewEvent(event_id="once", payload=FIRST))
    appended = stage.append(NewEvent(event_id="beside"), NewEvent(event_id="once", payload=OTHER))
    stage.store.append([NewEvent(event_id=one) for one in ids])
    copies, beside, eligible = stage.copies("once"), stage.look("beside"), stage.retrieve()
    taken = stage.take("relay-1", *ids, "once", *beside)
    stage.end(taken)
    later = stage.take("relay-1", "once", "beside")
    stage.end(later)
    found = {record.event_id for record in stage.store.read(ids) if record.state == "PUBLISHED"}
    return Identity(
        copies=copies,
        refused=not appended,
        beside=beside,
        eligible=eligible,
        taken=taken.names + later.names,
        ids=ids,
        known=frozenset(found),
        final=stage.look(),
    )


IDENTITY: Final = Scenario("identity", play)


@IDENTITY.check()
def an_event_id_is_unique(seen: Identity) -> None:
    """Appended three times, an id is one event."""
    same(1, len(seen.copies), "records of one event_id")
    same(1, seen.eligible.count("once"), "how often one event_id is retrieved")


@IDENTITY.check()
def the_first_content_stays(seen: Identity) -> None:
    """Another content under the same id does not change the event."""
    for record in (seen.copies[0], seen.final["once"]):
        same(FIRST, record.payload, "payload of an event whose id was appended again")


@IDENTITY.check()
def an_id_is_delivered_once(seen: Identity) -> None:
    """Appended three times, an id is claimed once."""
    same(1, seen.taken.count("once"), "how often one event_id is claimed")


@IDENTITY.check()
def a_refused_append_leaves_nothing(seen: Identity) -> None:
    """An append is whole: if the store refuses it, no event of it is visible; else all are."""
    shown = (len(seen.beside), seen.eligible.count("beside"))
    same((0, 0) if seen.refused else (1, 1), shown, "the other event of that append is visible")


@IDENTITY.check()
def uuid_and_ulid_are_kept(seen: Identity) -> None:
    """Ids in the well-known formats are stored and found as they are."""
    holds(seen.known == set(seen.ids), f"delivered under its id: {sorted(seen.known)}")
    missing = set(seen.ids) - set(seen.eligible)
    holds(not missing, f"not retrieved under its id: {sorted(missing)}")
