"""Keeps which destinations are paused, and whose circuit breaker is open.

The numbered writes of `destinations`: each holds all of it, so the last one is the truth
(the view outbox_destinations reads it). Pauses come from commands, in the order of their commits;
a plan says up to which version of the command log they are in it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.core.clock import Clock
from delta_outbox.core.instants import micros
from delta_outbox.core.tables import Tables
from delta_outbox.delta.numbered_writes import NumberedWrite, NumberedWrites

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

WRITER: Final = "destinations"
_PAUSE: Final = "pause"
_BREAKER: Final = "breaker"

_State = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class OpenBreaker:
    """A breaker that is open.

    Args:
        since: microseconds since 1970, when it opened.
        probe_at: the same, when the destination is to be tried again.
        error: why it opened; scrubbed.
    """

    since: int
    probe_at: int
    error: str


@dataclass(frozen=True, kw_only=True)
class KnownStates:
    """What the last plan says.

    Args:
        paused: destinations that an operator has paused.
        breakers: destination to its breaker, of those that are open.
    """

    paused: frozenset[str]
    breakers: Mapping[str, OpenBreaker]


class DestinationStates:
    """The states of the destinations of one outbox.

    Args:
        spark: the session.
        tables: the names of the relations.
        clock: the time.
    """

    def __init__(self, spark: SparkSession, tables: Tables, *, clock: Clock) -> None:
        self._spark = spark
        self._clock = clock
        self._plans = NumberedWrites(spark, tables, writer=WRITER, clock=clock)

    def has_news(self) -> bool:
        """Say whether somebody may have written since this was asked."""
        return self._plans.have_news()

    def read(self) -> KnownStates:
        """Return what is known; reads one small partition."""
        states = _states(next(self._plans.last(), None))
        return KnownStates(
            paused=frozenset(name for name, state in states.items() if state.get(_PAUSE)),
            breakers={
                name: OpenBreaker(**state[_BREAKER])
                for name, state in states.items()
                if state.get(_BREAKER)
            },
        )

    def applied_to(self) -> int:
        """Return the version of the command log up to which pauses are applied."""
        return _commands(next(self._plans.last(), None))

    def apply(self, commands: str, *, planned_by: str) -> None:
        """Apply what operators ask for: the last word on each destination counts.

        Args:
            commands: SQL, a relation with rows of the command log and their _commit_version.
            planned_by: who applies them, for the record.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        asked = (
            self._spark.sql(
                "select _commit_version as version, kind, destination, command_id, actor, reason, "
                f"unix_micros(requested_at) as at from {commands} "
                "where kind in ('pause', 'resume') and destination is not null "
                "order by _commit_version, requested_at, command_id"
            )
            .toArrow()
            .to_pylist()
        )
        if not asked:
            return

        def decide(last: NumberedWrite | None) -> Mapping[str, Any] | None:
            done = _commands(last)
            new = [row for row in asked if row["version"] > done]
            if not new:
                return None
            states = _states(last)
            for row in new:
                _ask(states.setdefault(row["destination"], {}), row)
            return _plan(states, commands=new[-1]["version"])

        self._plans.append(decide, planned_by=planned_by)
        logger.info("destinations_asked_for", extra={"commands": len(asked)})

    def record(self, breakers: Mapping[str, OpenBreaker | None], *, planned_by: str) -> None:
        """Write down that breakers have opened, have stayed open, or have closed.

        Args:
            breakers: destination to its breaker; None: it is closed.
            planned_by: who says so, for the record.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """

        def decide(last: NumberedWrite | None) -> Mapping[str, Any] | None:
            before, states = _states(last), _states(last)
            for name, breaker in breakers.items():
                state = states.setdefault(name, {})
                state.pop(_BREAKER, None)
                if breaker is not None:
                    since = before.get(name, {}).get(_BREAKER, {}).get("since", breaker.since)
                    state[_BREAKER] = {
                        "since": since,
                        "probe_at": breaker.probe_at,
                        "error": breaker.error,
                    }
            plan = _plan(states, commands=_commands(last))
            return None if last is not None and plan == last.plan else plan

        self._plans.append(decide, planned_by=planned_by)

    def breaker(self, *, wait: float, error: str) -> OpenBreaker:
        """Return a breaker that has opened now.

        Args:
            wait: seconds until the destination is tried again.
            error: why it opened; scrubbed.
        """
        now = micros(self._clock.now())
        return OpenBreaker(since=now, probe_at=now + round(wait * 1e6), error=error)

    def wait(self, breaker: OpenBreaker) -> float:
        """Return the seconds until a destination is to be tried again; negative if it is due.

        Args:
            breaker: as it was read.
        """
        return (breaker.probe_at - micros(self._clock.now())) / 1e6


def _ask(state: _State, row: Mapping[str, Any]) -> None:
    """Pause or resume; who has paused first stays on record."""
    if row["kind"] == "resume":
        state.pop(_PAUSE, None)
    else:
        state.setdefault(
            _PAUSE, {name: row[name] for name in ("at", "actor", "reason", "command_id")}
        )


def _states(last: NumberedWrite | None) -> dict[str, _State]:
    if last is None:
        return {}
    return {name: dict(state) for name, state in last.plan["destinations"].items()}


def _commands(last: NumberedWrite | None) -> int:
    return int(last.plan["commands"]["to"]) if last is not None else 0


def _plan(states: Mapping[str, _State], *, commands: int) -> Mapping[str, Any]:
    kept = {name: state for name, state in states.items() if state}
    return {"commands": {"to": commands}, "destinations": kept}
