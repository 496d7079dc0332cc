"""Replay, kill and release, as an operator asks for them: typed, checked values, no SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, NotRequired, TypedDict

from delta_outbox.core.errors import WrongUsage
from delta_outbox.core.literals import instant_literal
from delta_outbox.lifecycle.states import State
from delta_outbox.operations.argument_rules import MAX_ACTOR, MAX_TEXT, Arguments

REPLAYABLE: Final = (State.DEAD.value, State.PUBLISHED.value)


class WhoAndWhy(TypedDict):
    """What every request says; actor and reason are one printable line each."""

    actor: str
    reason: str
    dry_run: NotRequired[bool]


class ReplayArguments(WhoAndWhy):
    """The arguments of `replay_request`."""

    state: str
    event_type: NotRequired[str | None]
    since: NotRequired[datetime | None]
    until: NotRequired[datetime | None]
    event_ids: NotRequired[Sequence[str] | None]
    error: NotRequired[str | None]
    everything: NotRequired[bool]


class ReleaseArguments(WhoAndWhy):
    """The arguments of `release_request`."""

    event_ids: NotRequired[Sequence[str] | None]
    claim_ids: NotRequired[Sequence[str] | None]


# twin: macros/requests/check_request.sql::check_request
@dataclass(frozen=True, kw_only=True)
class Request:
    """What an operator asks for, checked.

    Args:
        actor: who asks.
        reason: why, in the actor's words.
        event_ids: only these; None for any.
        claim_ids: only these; None for any.
        event_type_regex: only types that match; None for any.
        since: only created at this instant or later.
        until: only created before this instant.
        error: only where the last error holds this text.
        state: where the deliveries stand; None where the operation does not ask.
        dry_run: show what would be asked for, and write nothing.
    """

    kind: ClassVar[str]

    actor: str
    reason: str
    event_ids: tuple[str, ...] | None = None
    claim_ids: tuple[str, ...] | None = None
    event_type_regex: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    error: str | None = None
    state: str | None = None
    dry_run: bool = True

    @property
    def created(self) -> str:
        """Return the condition on created_at; there is nothing but numbers in it."""
        conditions = []
        if self.since is not None:
            conditions.append(f"created_at >= {instant_literal(self.since)}")
        if self.until is not None:
            conditions.append(f"created_at < {instant_literal(self.until)}")
        return " and ".join(conditions) or "true"

    @property
    def is_named(self) -> bool:
        """Say whether the request names its events one by one."""
        return self.event_ids is not None

    @property
    def from_states(self) -> tuple[str, ...]:
        """Return the states to look into. Of a named event it is said why it cannot be had."""
        return tuple(State)


@dataclass(frozen=True, kw_only=True)
class Replay(Request):
    """Deliver again what is PUBLISHED or DEAD."""

    kind = "replay"

    @property
    def from_states(self) -> tuple[str, ...]:
        """Return the states to look into."""
        return tuple(State) if self.is_named else (str(self.state),)


@dataclass(frozen=True, kw_only=True)
class Kill(Request):
    """End named events without delivering them."""

    kind = "kill"


@dataclass(frozen=True, kw_only=True)
class Release(Request):
    """End claims whose lease is over."""

    kind = "release"

    @property
    def from_states(self) -> tuple[str, ...]:
        """Return the states to look into."""
        return tuple(State) if self.is_named else (State.CLAIMED.value,)


def replay_request(
    *,
    state: object = None,
    event_type: object = None,
    since: object = None,
    until: object = None,
    event_ids: object = None,
    error: object = None,
    everything: object = False,
    reason: object = None,
    actor: object = None,
    dry_run: object = True,
) -> Replay:
    """Check a request to deliver again.

    Every PUBLISHED event of an outbox is all that it ever delivered: that needs a filter, or the
    explicit wish for everything.

    Args:
        state: DEAD or PUBLISHED.
        event_type: a shell glob, as in the delivery policies.
        since: created at this instant or later; a datetime with an offset.
        until: created before this instant.
        event_ids: only these.
        error: only where the last error holds this text.
        everything: without a filter.
        reason: why, one line.
        actor: who asks, one line.
        dry_run: only show it.

    Raises:
        WrongUsage: arguments break rules; all of them are named.
    """
    given = Arguments()
    checked: dict[str, Any] = {
        "state": given.choice("state", state, REPLAYABLE),
        "event_type_regex": given.glob("event_type", event_type),
        "since": given.instant("since", since),
        "until": given.instant("until", until),
        "event_ids": given.ids("event_ids", event_ids),
        "error": given.part("error", error),
    }
    if checked["since"] and checked["until"] and checked["until"] <= checked["since"]:
        came = f"{checked['since']} to {checked['until']}"
        given.refuse("until", "must be after `since`", came)
    named = {
        "event_type": event_type,
        "since": since,
        "until": until,
        "event_ids": event_ids,
        "error": error,
    }
    filters = [name for name, value in named.items() if value is not None]
    wants_all = given.flag("everything", everything)
    if wants_all and filters:
        given.refuse("everything", "must not come with a filter", ", ".join(filters))
    if checked["state"] == State.PUBLISHED and not wants_all and not filters:
        rule = f"PUBLISHED needs a filter ({', '.join(named)}) or `everything`"
        given.refuse("state", rule, None)
    checked |= _shared("replay", given, actor=actor, reason=reason, dry_run=dry_run)
    return Replay(**checked)


def kill_request(
    *,
    event_ids: object = None,
    reason: object = None,
    actor: object = None,
    dry_run: object = True,
) -> Kill:
    """Check a request to end events without delivering them.

    Args:
        event_ids: the events.
        reason: why, one line.
        actor: who asks, one line.
        dry_run: only show it.

    Raises:
        WrongUsage: arguments break rules; all of them are named.
    """
    given = Arguments()
    ids = given.ids("event_ids", event_ids, required=True)
    checked = _shared("kill", given, actor=actor, reason=reason, dry_run=dry_run)
    return Kill(event_ids=ids, **checked)


def release_request(
    *,
    event_ids: object = None,
    claim_ids: object = None,
    reason: object = None,
    actor: object = None,
    dry_run: object = True,
) -> Release:
    """Check a request to end claims whose lease is over.

    Args:
        event_ids: only the claims of these.
        claim_ids: only these.
        reason: why, one line.
        actor: who asks, one line.
        dry_run: only show it.

    Raises:
        WrongUsage: arguments break rules; all of them are named.
    """
    given = Arguments()
    events = given.ids("event_ids", event_ids)
    claims = given.ids("claim_ids", claim_ids)
    checked = _shared("release", given, actor=actor, reason=reason, dry_run=dry_run)
    return Release(event_ids=events, claim_ids=claims, **checked)


def _shared(
    operation: str, given: Arguments, *, actor: object, reason: object, dry_run: object
) -> dict[str, Any]:
    """Check what every request says, and refuse the request if anything of it breaks a rule."""
    checked = {
        "reason": given.line("reason", reason, MAX_TEXT),
        "actor": given.line("actor", actor, MAX_ACTOR),
        "dry_run": given.flag("dry_run", dry_run),
    }
    if given.problems:
        raise WrongUsage(f"{operation}: {'; '.join(given.problems)}.")
    return checked
