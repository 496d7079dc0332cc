"""The API keys of an outbox: numbered writes of `todo_keys`, each with all keys that count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.core.errors import OutboxError, WrongUsage
from delta_outbox.core.instants import iso_text
from delta_outbox.delta.numbered_writes import NumberedWrite
from delta_outbox.operations.argument_rules import MAX_ACTOR, MAX_TEXT, Arguments
from delta_outbox.todo.keys import Key, new_key
from delta_outbox.workflow_engine.workflow_plans import NewestWrites

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

WRITER: Final = "todo_keys"
MOST_KEYS: Final = 1000
MOST_ROLES: Final = 20  # of one key
MAX_ROLE: Final = 100  # characters


class UnknownKey(OutboxError):
    """No key has this id, or it was revoked before."""

    code = "UNKNOWN_KEY"
    remedy = "Name the id of a key: `outbox todo keys list`."


class KeyLog:
    """The keys of one outbox. Whoever adds or revokes one writes all that count anew, by the next
    number, so of two at once the second starts from what the first has written.

    Args:
        outbox: whose.
    """

    def __init__(self, outbox: Store) -> None:
        self._clock, self._worker_id = outbox.clock, outbox.worker_id
        self._writes = NewestWrites(
            outbox.spark, outbox.tables, writers=[WRITER], clock=outbox.clock
        )

    def current(self) -> dict[str, Key]:
        """Return the keys that count, by id. Without news that costs no query."""
        return _keys(self._writes.of(WRITER))

    def add(self, *, person: str, roles: Sequence[str], actor: str, reason: str) -> tuple[Key, str]:
        """Add a key, and return it with its token, which nobody can be shown again.

        Args:
            person: whom it stands for, one line.
            roles: of that person, one line each.
            actor: who adds it, one line.
            reason: why, one line.

        Raises:
            WrongUsage: an argument breaks a rule, or there are too many keys.
        """
        given = Arguments()
        person = given.line("person", person, MAX_ACTOR)
        roles = [given.line("role", one, MAX_ROLE) for one in roles]
        if not 0 < len(roles) <= MOST_ROLES:
            given.refuse("role", f"must be given 1 to {MOST_ROLES} times", f"{len(roles)} roles")
        who = _who(given, actor, reason)
        key, token = new_key(person=person, roles=roles, at=iso_text(self._clock.now()), by=who[0])

        def added(keys: Mapping[str, Key]) -> dict[str, Key]:
            if len(keys) >= MOST_KEYS:
                raise WrongUsage(
                    f"todo keys add: there must be at most {MOST_KEYS} keys.",
                    remedy="Revoke those that nobody uses: `outbox todo keys list`.",
                )
            return {**keys, key.id: key}

        self._change(added, {"added": key.id}, who)
        return key, token

    def revoke(self, name: str, *, actor: str, reason: str) -> Key:
        """Revoke a key, and return what it was. Servers refuse it within ten seconds.

        Args:
            name: its id.
            actor: who revokes it, one line.
            reason: why, one line.

        Raises:
            UnknownKey: there is none of this id.
            WrongUsage: an argument breaks a rule.
        """
        who = _who(Arguments(), actor, reason)
        revoked: list[Key] = []

        def without(keys: Mapping[str, Key]) -> dict[str, Key]:
            if name not in keys:
                raise UnknownKey(f"There is no key {name!r:.80}.")
            revoked[:] = [keys[name]]
            return {other: key for other, key in keys.items() if other != name}

        self._change(without, {"revoked": name}, who)
        return revoked[0]

    def _change(self, change: Any, what: Mapping[str, str], who: tuple[str, str]) -> None:
        def next_plan(last: NumberedWrite | None) -> dict[str, Any]:
            keys = change(_keys(last))
            return {
                "keys": [key.kept() for key in keys.values()],
                **what,
                "actor": who[0],
                "reason": who[1],
            }

        self._writes.writes[WRITER].append(next_plan, planned_by=self._worker_id)


def _keys(write: NumberedWrite | None) -> dict[str, Key]:
    kept = write.plan["keys"] if write is not None else ()
    return {key.id: key for key in map(Key.read, kept)}


def _who(given: Arguments, actor: str, reason: str) -> tuple[str, str]:
    who = given.line("actor", actor, MAX_ACTOR), given.line("reason", reason, MAX_TEXT)
    if given.problems:
        raise WrongUsage(f"todo keys: {'; '.join(given.problems)}.")
    return who
