"""An outbox in a PostgreSQL table, as the conformance kit sees it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.types.json import Jsonb
from tests.conformance.postgres_server import PostgresServer

from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected, Result, Unknown
from delta_outbox.lifecycle.states import State
from delta_outbox.testing.conformance.adapter import (
    SHORT_LIVED,
    Capability,
    Change,
    Held,
    Message,
    NewEvent,
    Noticed,
    Record,
    Refused,
    Step,
    Terms,
)
from delta_outbox.testing.conformance.clock import ManualClock

TERMS: Final = Terms(
    lease_seconds=30, backoff_seconds=60, max_attempts=3, max_crashes=2, age_seconds=600
)
SCHEMA: Final = Path(__file__).with_name("postgres_schema.sql")
STATES: Final = {
    "PENDING": "PENDING",
    "DELIVERING": "CLAIMED",
    "DELIVERED": "PUBLISHED",
    "DEAD": "DEAD",
}
_WORDS: Final = {state: word for word, state in STATES.items()}
_UNLOCKED: Final = (
    "locked_at = null, locked_by = null, locked_until = null, lock_id = null, lock_size = null"
)
_APPENDS, _CLAIMS = 1, 2  # advisory locks

Connection = psycopg.Connection[dict[str, Any]]


class PostgresStore:
    """The table, through short transactions; every call has a connection of its own.

    Args:
        server: where the table is.
    """

    # A table that is updated in place is no log, and says so.
    capabilities: frozenset[Capability] = frozenset(Capability) - {Capability.LOGS}
    terms: Terms = TERMS

    def __init__(self, server: PostgresServer) -> None:
        """Make the table anew."""
        self._server = server
        self._clock = ManualClock()
        with self._transaction() as db:
            db.execute(SCHEMA.read_text(encoding="utf-8"))

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._server.connect() as db:
            yield db

    def now(self) -> datetime:
        """Return the time of the store."""
        return self._clock.now()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._clock.sleep(seconds)

    def append(self, events: Sequence[NewEvent]) -> None:
        """Insert events in one transaction; what is there already must be the same."""
        with self._transaction() as db:
            # One at a time, so that positions follow commits.
            db.execute("select pg_advisory_xact_lock(%s)", (_APPENDS,))
            for event in events:
                values = {
                    **vars(event),
                    "headers": _json(event.headers),
                    "metadata": _json(event.metadata),
                    "now": self.now(),
                }
                inserted = db.execute(
                    "insert into outbox.events (id, event_type, payload, headers, metadata, "
                    "ordering_key, partition_key, created_at, available_at, ages_from) values ("
                    "%(event_id)s, %(event_type)s, %(payload)s, %(headers)s, %(metadata)s, "
                    "%(ordering_key)s, %(partition_key)s, %(now)s, %(available_at)s, "
                    "greatest(%(now)s, %(available_at)s::timestamptz)) "
                    "on conflict (id) do nothing returning id",
                    values,
                ).fetchone()
                if inserted is None and not self._is_same(db, event):
                    raise Refused(f"{event.event_id} is there with other content")

    def _is_same(self, db: Connection, event: NewEvent) -> bool:
        row = db.execute("select * from outbox.events where id = %s", (event.event_id,)).fetchone()
        assert row is not None
        names = ("event_type", "payload", "headers", "metadata", "ordering_key", "partition_key")
        return all(row[name] == getattr(event, name) for name in names)

    def retrieve(self, limit: int) -> Sequence[str]:
        """Return what is eligible, in order."""
        with self._transaction() as db:
            rows = db.execute(
                "select id from outbox.eligible(%s) order by position limit %s",
                (self.now(), limit),
            )
            return [row["id"] for row in rows]

    def claim(self, worker: str, limit: int) -> Held | None:
        """Lock what is eligible, one worker at a time: skipping locked rows would pass a key's
        head by.
        """
        lock_id = uuid.uuid4()
        now = self.now()
        with self._transaction() as db:
            db.execute("select pg_advisory_xact_lock(%s)", (_CLAIMS,))
            rows = db.execute(
                "with taken as (select id from outbox.eligible(%(now)s) "
                "order by position limit %(limit)s) "
                "update outbox.events as e set status = 'DELIVERING', attempts = attempts + 1, "
                "locked_at = %(now)s, locked_by = %(worker)s, locked_until = %(until)s, "
                "lock_id = %(lock_id)s, lock_size = (select count(*) from taken) "
                "from taken where e.id = taken.id returning e.id, e.position",
                {
                    "now": now,
                    "until": now + timedelta(seconds=TERMS.lease_seconds),
                    "limit": limit,
                    "worker": worker,
                    "lock_id": lock_id,
                },
            ).fetchall()
        ids = tuple(row["id"] for row in sorted(rows, key=lambda row: row["position"]))
        return Held(worker=worker, event_ids=ids, token=lock_id) if ids else None

    def messages(self, held: Held) -> Sequence[Message]:
        """Return what a publisher is given."""
        with self._transaction() as db:
            rows = db.execute(
                "select id, event_type, payload, headers, coalesce(ordering_key, partition_key) "
                "as key from outbox.events where id = any(%s) order by position",
                (list(held.event_ids),),
            )
            return [
                Message(
                    event_id=row["id"],
                    event_type=row["event_type"],
                    payload=row["payload"],
                    headers=row["headers"] or {},
                    key=row["key"],
                )
                for row in rows
            ]

    def end(self, held: Held, results: Sequence[Result]) -> None:
        """Unlock events, each by its own result, where this lock is still on them."""
        with self._transaction() as db:
            for event_id, result in zip(held.event_ids, results, strict=True):
                row = db.execute(
                    "select id, failures from outbox.events "
                    "where id = %s and status = 'DELIVERING' and lock_id = %s for update",
                    (event_id, held.token),
                ).fetchone()
                if row is not None:
                    self._end(db, row, result)

    def _end(self, db: Connection, row: dict[str, Any], result: Result) -> None:
        now = self.now()
        values: dict[str, Any] = {"status": "PENDING", "available_at": None}
        match result:
            case Delivered():
                values |= {"status": "DELIVERED", "delivered_at": now}
            case Rejected(error=error):
                values |= {"status": "DEAD", "last_error": error}
            case NotSent():
                pass
            case Failed() | Unknown():
                failures = row["failures"] + 1
                pause = min(2.0**failures, TERMS.backoff_seconds)
                values |= {
                    "failures": failures,
                    "last_error": result.error or "no answer",
                    "available_at": now + timedelta(seconds=pause),
                }
                if failures >= TERMS.max_attempts:
                    values |= {"status": "DEAD", "available_at": None}
        names = ", ".join(f"{name} = %({name})s" for name in values)
        db.execute(
            f"update outbox.events set {names}, {_UNLOCKED} where id = %(id)s",
            {**values, "id": row["id"]},
        )

    def reap(self) -> None:
        """Unlock what nobody works on any more; bury what is killed or too old."""
        values = {
            "now": self.now(),
            "max_crashes": TERMS.max_crashes,
            "short": SHORT_LIVED,
            "born": self.now() - timedelta(seconds=TERMS.age_seconds or 0),
        }
        with self._transaction() as db:
            db.execute("select pg_advisory_xact_lock(%s)", (_CLAIMS,))
            db.execute(
                "update outbox.events set status = case when lock_size = 1 "
                "and crashes + 1 >= %(max_crashes)s then 'DEAD' else 'PENDING' end, "
                "crashes = crashes + (lock_size = 1)::int, available_at = null, "
                f"last_error = 'the lease ran out', {_UNLOCKED} "
                "where status = 'DELIVERING' and locked_until <= %(now)s",
                values,
            )
            ended = db.execute(
                "update outbox.events set status = 'DELIVERING', attempts = attempts + 1, "
                "locked_at = %(now)s, locked_by = 'reaper', lock_id = gen_random_uuid() "
                "where status = 'PENDING' and coalesce(available_at <= %(now)s, true) "
                "and (killed or (event_type = %(short)s and ages_from <= %(born)s)) returning id",
                values,
            ).fetchall()
            db.execute(
                "update outbox.events set status = 'DEAD', "
                "last_error = case when killed then 'killed' else 'too old' end, "
                f"{_UNLOCKED} where id = any(%s)",
                ([row["id"] for row in ended],),
            )

    def replay(self, event_ids: Sequence[str], *, state: State) -> None:
        """Begin a new lifecycle."""
        with self._transaction() as db:
            db.execute(
                "update outbox.events set status = 'PENDING', lifecycle = lifecycle + 1, "
                "attempts = 0, failures = 0, crashes = 0, available_at = null, killed = false, "
                "delivered_at = null, ages_from = %s where id = any(%s) and status = %s "
                "and status in ('DELIVERED', 'DEAD')",
                (self.now(), list(event_ids), _WORDS[str(state)]),
            )

    def kill(self, event_ids: Sequence[str]) -> None:
        """Hide events; whoever reaps buries them when they are due."""
        with self._transaction() as db:
            db.execute(
                "update outbox.events set killed = true "
                "where id = any(%s) and status in ('PENDING', 'DELIVERING')",
                (list(event_ids),),
            )

    def read(self, event_ids: Sequence[str]) -> Sequence[Record]:
        """Return events in the words of the specification."""
        with self._transaction() as db:
            rows = db.execute(
                "select * from outbox.events where id = any(%s) order by position",
                (list(event_ids),),
            )
            return [_record(row) for row in rows]

    def history(self, event_ids: Sequence[str]) -> Sequence[Step]:
        """Return transitions in the words of the specification."""
        with self._transaction() as db:
            rows = db.execute(
                "select * from outbox.transitions where id = any(%s) order by number",
                (list(event_ids),),
            )
            return [
                Step(
                    event_id=row["id"],
                    from_state=STATES[row["from_status"]],
                    to_state=STATES[row["to_status"]],
                )
                for row in rows
            ]

    def reopen(self) -> None:
        """Crash the server and let it recover."""
        self._server.crash()

    def tamper(self) -> Mapping[Change, Noticed]:
        """Notice nothing: the table is no log, and claims to be none."""
        return dict.fromkeys(Change, Noticed.NO)


class PostgresStores:
    """A new table for every scenario, on one server."""

    name = "postgresql"

    def __init__(self) -> None:
        """Start the server."""
        self.server = PostgresServer()

    def fresh(self) -> PostgresStore:
        """Return an empty store."""
        return PostgresStore(self.server)

    def close(self) -> None:
        """Stop the server."""
        self.server.close()


def _json(value: Mapping[str, str] | None) -> Jsonb | None:
    return None if value is None else Jsonb(dict(value))


def _record(row: dict[str, Any]) -> Record:
    return Record(
        event_id=row["id"],
        event_type=row["event_type"],
        payload=row["payload"],
        state=STATES[row["status"]],
        created_at=row["created_at"],
        ordering_key=row["ordering_key"],
        partition_key=row["partition_key"],
        headers=row["headers"],
        metadata=row["metadata"],
        attempts=row["attempts"],
        last_error=row["last_error"],
        available_at=row["available_at"],
        claimed_at=row["locked_at"],
        claimed_by=row["locked_by"],
        published_at=row["delivered_at"],
    )
