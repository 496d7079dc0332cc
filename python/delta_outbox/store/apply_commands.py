"""Applies the commands of operators: replays, releases, completions and extensions become
transitions in the log, pauses a numbered write.

A request is a blind append to outbox_commands and conflicts with nothing. Whoever applies commands
next, a relay or a command, decides what it means for the delivery as it stands by then; a command
does so only where no relay is alive (`Store.apply_commands_if_alone`). A kill is
not among them: it is folded into the state of its delivery, and ended by a claim of its own; only
an item that waits for a person ends here, for nobody works on it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from delta_outbox.core.arrow import is_one_of
from delta_outbox.core.errors import LaneClosed
from delta_outbox.core.literals import listed
from delta_outbox.core.reserved_names import reserved
from delta_outbox.delta.frames import frame_of
from delta_outbox.delta.log_reader import LogReader, changes
from delta_outbox.delta.numbered_writes import NumberedWrites
from delta_outbox.lifecycle.claims import OPEN_ITEM
from delta_outbox.lifecycle.states import TERMINAL_STATES, Reason, State
from delta_outbox.store import extensions
from delta_outbox.store.command_arguments import arguments_of
from delta_outbox.store.completions import KIND as COMPLETE
from delta_outbox.store.completions import completion_rows, completions_select
from delta_outbox.store.extensions import KIND as EXTEND

if TYPE_CHECKING:
    from delta_outbox.store.store import Store

logger = logging.getLogger(__name__)

WRITER: Final = "commands"
ASSIGN: Final = "assign"
OF_ITEMS: Final = frozenset({COMPLETE, ASSIGN})
"""Kinds of commands that change nothing but items which a person holds, or nothing at all."""

_PAUSES: Final = frozenset({"pause", "resume"})
_ITEMS: Final = "outbox_answered_items"
_INSTANT: Final = pa.timestamp("us", tz="UTC")


class Commands:
    """Applies the commands of one outbox.

    Args:
        outbox: the store; its worker id is on the rows.
    """

    def __init__(self, outbox: Store) -> None:
        self._outbox = outbox
        self._plans = NumberedWrites(outbox.spark, outbox.tables, writer=WRITER, clock=outbox.clock)

    def applied_to(self) -> int:
        """Return the version of the command log up to which commands have been applied."""
        last = next(self._plans.last(), None)
        return int(last.plan["commands"]["to"]) if last else 0

    def are_of_items(self, *, after: int, to: int) -> bool:
        """Say whether all commands between two versions of their log are of kinds in `OF_ITEMS`.

        Args:
            after: version, not included.
            to: version, included; later than the other.
        """
        return OF_ITEMS.issuperset(self._named(after, to)["kind"].unique().to_pylist())

    def _named(self, after: int, to: int) -> pa.Table:
        """Return kind and event_id of the commands between two versions of their log."""
        reader, log = LogReader(self._outbox.spark), self._outbox.tables.commands
        found = reader.added(log, after=after, to=to, columns=("kind", "event_id"))
        assert found is not None, "without a limit all is read"
        return found.rows

    def apply(self, *, to: int | None = None) -> int:
        """Apply every command that was committed before this call and that nobody has.

        Args:
            to: version of the command log; later commands are left to the next call.

        Returns:
            How many transitions that took.

        Raises:
            SequenceTaken: other writers were faster many times in a row.
        """
        outbox = self._outbox
        last = next(self._plans.last(), None)
        after = int(last.plan["commands"]["to"]) if last else 0
        latest = outbox.projection.latest_version(outbox.tables.commands) if to is None else to
        if latest <= after:
            return 0
        commands = f"(select * from {changes(outbox.tables.commands, after=after, to=latest)})"
        named = self._named(after, latest)
        kinds = {*named["kind"].unique().to_pylist()}
        try:
            count = self._append(lambda: self._replays(commands)) if "replay" in kinds else 0
            count += self._apply_to_items(commands, kinds, _items_of(named), latest=latest)
            count += self._release(commands) if "release" in kinds else 0
            count += self._end_killed_items() if "kill" in kinds else 0
        except LaneClosed:  # they wait for the next epoch
            return 0
        if kinds & _PAUSES:
            outbox.destinations.apply(commands, planned_by=outbox.worker_id)
        # If somebody else was faster, the commands are written off already.
        self._plans.append_after(
            last, {"commands": {"after": after, "to": latest}}, planned_by=outbox.worker_id
        )
        if count:
            logger.info("commands_applied", extra={"transitions": count})
        return count

    def _append(self, rows: Callable[[], pa.Table]) -> int:
        """Append transitions, decided anew as often as an append is lost; returns how many."""
        return self._outbox.logs.append_until_won(rows(), rows)

    def _apply_to_items(
        self, commands: str, kinds: Set[str], ids: Sequence[str], *, latest: int
    ) -> int:
        """Apply what people say of open items; returns how many transitions that took.

        What an extension has released is claimed anew first, where a process has died in between:
        an answer that came after it finds the item open.

        Args:
            commands: what is to be applied.
            kinds: of them.
            ids: of the items that are answered or extended.
            latest: version of the command log, up to which they are.
        """
        if not ids:
            return 0
        if EXTEND not in kinds:
            return self._append(lambda: self._completions(commands, ids))
        # Whether an answer came in time depends on all extensions before it.
        its = f"select event_id from {commands} where kind in ('{COMPLETE}', '{EXTEND}')"
        every = (
            "(select *, _metadata.row_commit_version as _commit_version "
            f"from {self._outbox.tables.commands} version as of {latest} "
            f"where kind in ('{COMPLETE}', '{EXTEND}', 'kill') and event_id in ({its}))"
        )
        count = self._append(lambda: self._claims_anew(commands, ids))
        count += self._append(lambda: self._completions(every, ids))
        count += self._append(lambda: self._extensions(commands, ids))
        return count + self._append(lambda: self._claims_anew(commands, ids))

    def _extensions(self, commands: str, ids: Sequence[str]) -> pa.Table:
        """Return the transitions that release the items which expire later."""
        return self._decided(commands, ids, extensions.extended_select, extensions.release_rows)

    def _claims_anew(self, commands: str, ids: Sequence[str]) -> pa.Table:
        """Return the transitions that claim what extensions have released."""
        return self._decided(commands, ids, extensions.released_select, extensions.claim_rows)

    def _completions(self, commands: str, ids: Sequence[str]) -> pa.Table:
        """Return the transitions of the completions that still hold, one per item."""
        return self._decided(commands, ids, completions_select, completion_rows)

    def _decided(
        self,
        commands: str,
        ids: Sequence[str],
        select: Callable[[str, str], str],
        rows: Callable[..., pa.Table],
    ) -> pa.Table:
        """Return the transitions that commands about items come to. People answer all the time, so
        no refresh is made for that.

        The position moves to the end of the log before it is asked where the items stand: what is
        appended after it makes an append lose, never wrong.

        Args:
            commands: a relation with rows of the command log.
            ids: of the items that they name.
            select: returns SQL about commands and where items stand.
            rows: makes transitions of what is selected.
        """
        from pyspark.sql import functions as sf

        outbox = self._outbox
        outbox.logs.catch_up(outbox.projection.latest_version(outbox.tables.transitions))
        items = outbox.projection.standing(
            lambda every: every.where(sf.col("event_id").isin(ids)), planned_by=outbox.worker_id
        )
        frame_of(outbox.spark, items).createOrReplaceTempView(_ITEMS)
        return rows(
            outbox.spark.sql(select(commands, _ITEMS)).toArrow(),
            now=outbox.clock.now(),
            policy_version=outbox.policies_in_force.version,
        )

    def _catch_up(self) -> None:
        """Bring position and projection up to now: the position first, so that what is appended
        after it makes an append lose, never wrong.
        """
        self._outbox.logs.catch_up()
        self._outbox.refresh(planned_by=self._outbox.worker_id)

    def _replays(self, commands: str) -> pa.Table:
        """Return the transitions of the replays that still hold, one per delivery.

        A replay is void once the delivery has moved on from where the operator saw it, and of a
        task always.
        """
        outbox = self._outbox
        self._catch_up()
        found = outbox.spark.sql(
            "select s.event_id, s.arrival, s.destination, s.lifecycle, s.state, s.ordering_key, "
            "c.command_id, c.actor from ("
            "  select *, row_number() over (partition by event_id, arrival, destination"
            "   order by _commit_version, command_id) as turn"
            f" from {commands} where kind = 'replay') as c "
            f"inner join {outbox.tables.state} as s on c.event_id = s.event_id "
            "and c.arrival = s.arrival and c.destination = s.destination "
            f"where c.turn = 1 and s.state in ({listed(TERMINAL_STATES)}) "
            f"and c.lifecycle = s.lifecycle and not {reserved('s.event_type')}"
        ).toArrow()
        count = found.num_rows
        zeros = pa.repeat(pa.scalar(0, pa.int32()), count)
        return pa.table(
            {
                "event_id": found["event_id"],
                "ordering_key": found["ordering_key"],
                "arrival": found["arrival"],
                "destination": found["destination"],
                "lifecycle": pa.array(
                    [value + 1 for value in found["lifecycle"].to_pylist()], pa.int32()
                ),
                "attempt": zeros,
                "from_state": found["state"],
                "to_state": pa.repeat(pa.scalar(str(State.PENDING)), count),
                "reason": pa.repeat(pa.scalar(str(Reason.REPLAYED)), count),
                "publish_attempts": zeros,
                "crashes": zeros,
                "suspect": zeros,
                "occurred_at": pa.repeat(pa.scalar(outbox.clock.now(), _INSTANT), count),
                "actor": found["actor"],
                "command_id": found["command_id"],
                "policy_version": pa.repeat(pa.scalar(outbox.policies_in_force.version), count),
            }
        )

    def _end_killed_items(self) -> int:
        """End items that were killed; returns how many. As a rule the projection says: none."""
        outbox, count = self._outbox, 0
        self._catch_up()
        killed = outbox.spark.sql(
            f"select 1 from {outbox.tables.state} "
            f"where {OPEN_ITEM} and kill_command_id is not null limit 1"
        )
        if killed.isEmpty():
            return 0
        while True:
            outbox.logs.catch_up()
            ended = outbox.expired_claims.end_items(outbox.read_view())
            if not ended:
                return count
            count += ended

    def _release(self, commands: str) -> int:
        """End the claims that operators name and whose worker is proven to be gone.

        The others are ended by a relay that observes their lease, as ever (design rule 4).
        """
        outbox = self._outbox
        asked: dict[str, dict[str, Any]] = {}
        rows = outbox.spark.sql(
            f"select arguments, actor, command_id from {commands} where kind = 'release' "
            "order by _commit_version, command_id"
        ).collect()
        for row in rows:
            claim_id = _text_of(row["arguments"], "claim_id")
            if claim_id is not None:
                who = {"actor": row["actor"], "command_id": row["command_id"]}
                asked.setdefault(claim_id, who)
        if not asked:
            return 0
        self._catch_up()
        read_view = outbox.read_view()
        over = [
            claim["claim_id"]
            for claim in outbox.deliveries.overview(read_view).claims
            if claim["claim_id"] in asked and outbox.expired_claims.is_over(claim)
        ]
        return outbox.expired_claims.expire(read_view, over, asked=asked)


def _items_of(named: pa.Table) -> Sequence[str]:
    """Return the items that are answered or extended; hand-written rows may name nothing."""
    its = named.filter(is_one_of(named["kind"], (COMPLETE, EXTEND)))
    ids: Sequence[str] = its["event_id"].drop_null().unique().to_pylist()
    return ids


def _text_of(arguments: str | None, name: str) -> str | None:
    """Return an argument of a command as text, None if there is none."""
    found = arguments_of(arguments).get(name)
    return str(found) if found else None
