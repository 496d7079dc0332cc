"""The heartbeat of a relay, and who else is alive."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_outbox.core.clock import Clock
from delta_outbox.core.instants import LAST_INSTANT
from delta_outbox.core.tables import BEATS, Tables
from delta_outbox.core.version import __version__
from delta_outbox.delta.commit_history import CommitHistory
from delta_outbox.delta.commits import Commit
from delta_outbox.delta.durability import sync_outbox
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.delta.log_writer import append_rows
from delta_outbox.runtime.session import set_for_good
from delta_outbox.store.presence import Presence, Says

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

BEAT_SECONDS: Final = 10.0
ALIVE_SECONDS: Final = 30.0  # without a beat a relay no longer counts as alive
BUSY_SECONDS: Final = 120.0  # nor one whose process is known to live: it may hang
# Of the beats Spark appends each that leaves a checkpoint, and it counts only files of its own.
_COMPACT_FROM: Final = "spark.databricks.delta.autoCompact.minNumFiles", "2"
_SKEW: Final = timedelta(hours=1)  # beats are looked for so far back: clocks differ
_TOLD: Final = ("relay_id", "kind", "lanes", "at")
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True)
class Beats:
    """What a relay has said of itself, by its own clock.

    Args:
        first: its first beat.
        last: its last one.
        is_over: with the last one it stopped.
        lanes: on which it works, by the last one.
    """

    first: datetime
    last: datetime
    is_over: bool
    lanes: tuple[int, ...] = ()


class BeatWatch:
    """Remembers since when each relay has been silent by our own clock: skew keeps nobody alive,
    and declares nobody dead.

    Args:
        clock: whose monotonic seconds count.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heard: dict[str, tuple[datetime, float]] = {}  # relay -> (last beat, heard at)

    def living(
        self, beats: Mapping[str, Beats], *, is_there: Callable[[str], bool] = lambda _: False
    ) -> set[str]:
        """Return the relays that were heard in the last `ALIVE_SECONDS`.

        Args:
            beats: of each relay, as the table shows them now.
            is_there: whether the process of a relay is known to live; it may be silent for longer.
        """
        now, here = self._clock.now(), self._clock.monotonic()
        heard: dict[str, tuple[datetime, float]] = {}
        for relay_id, theirs in beats.items():
            if theirs.is_over:
                continue
            at = here
            before = self._heard.get(relay_id)
            if before is None:  # all there is to go by is what they wrote
                age = (now - theirs.last).total_seconds()
                # One from the future proves as little as an old one: its relay may have died with
                # a clock that was ahead.
                at = here - max(0.0, age) if age >= -ALIVE_SECONDS else float("-inf")
            elif before[0] == theirs.last:
                at = before[1]
            heard[relay_id] = (theirs.last, at)
        self._heard = heard
        return {
            name
            for name, (_, at) in heard.items()
            if here - at <= ALIVE_SECONDS or (here - at <= BUSY_SECONDS and is_there(name))
        }


class Heartbeat:
    """Says that a relay is alive. Ownership of a lane is advice; the expected sequence is the rule.

    Args:
        spark: the session.
        tables: the names of the relations.
        relay_id: whose heart.
        clock: the time.
        presence: the relays that work from the same home.
        says: returns what the relay says of itself, for `outbox status`.
    """

    def __init__(
        self,
        spark: SparkSession,
        tables: Tables,
        *,
        relay_id: str,
        clock: Clock,
        presence: Presence | None = None,
        says: Callable[[], Says] = dict,
    ) -> None:
        self._says = says
        self._spark = spark
        self._tables = tables
        self._relay_id = relay_id
        self._presence = presence or Presence(None)
        self._clock = clock
        self._last = float("-inf")
        self._at: datetime | None = None
        self._watch = BeatWatch(clock)
        set_for_good(spark, *_COMPACT_FROM)
        self._read: tuple[Commit | None, date, dict[str, Beats]] = None, date.min, {}
        self._lanes: tuple[int, ...] = (0,)

    def work_on(self, lanes: Iterable[int]) -> None:
        """Say with the next beat, which is due at once, on which lanes the relay works.

        Args:
            lanes: those, if they are others than before.
        """
        if (new := tuple(sorted(lanes))) != self._lanes:
            self._lanes, self._last = new, float("-inf")

    def beat(self, kind: str = "alive") -> bool:
        """Append a beat, at most one in `BEAT_SECONDS` unless it starts or stops.

        Args:
            kind: started, alive or stopped.

        Returns:
            Whether a beat was due.
        """
        if kind == "alive" and self._clock.monotonic() - self._last < BEAT_SECONDS:
            return False
        now = self._clock.now()
        # A clock that steps back must not make the end come before the beginning.
        self._at = now if self._at is None else max(now, self._at + _TICK)
        beat = {
            "relay_id": self._relay_id,
            "kind": kind,
            "lanes": self._lanes,
            "at": self._at,
            "version": __version__,
            "driver_id": driver_id(self._spark),
        }
        rows = pa.Table.from_pylist([beat], BEATS)
        append_rows(self._spark, self._tables.relays, rows, tag=f"beat/{uuid.uuid4().hex}")
        sync_outbox(self._spark, self._tables.schema)  # a torn beat would keep all relays away
        self._last = self._clock.monotonic()
        if kind == "started":
            self._presence.enter(self._relay_id)
        if kind == "stopped":
            self._presence.leave()
        else:
            self._presence.say(self._says())
        return True

    def is_gone(self, relay_id: str) -> bool:
        """Say whether it is known that the process of another relay has ended.

        Args:
            relay_id: the other.
        """
        return self._presence.is_gone(relay_id)

    def earlier(self) -> list[str]:
        """Return the other relays that are alive and began before this one.

        The start of each is read from the table, so all relays see the same order.
        """
        living = self.living()
        mine = list(living).index(self._relay_id)
        return sorted(list(living)[:mine])

    def living(self) -> dict[str, tuple[int, ...]]:
        """Return the relays that are alive and the lanes of each, in the order in which they began;
        this one is always among them.
        """
        now = self._clock.now()
        beats = self._beats(now)
        living = self._watch.living(beats, is_there=self._presence.is_there)
        living = {name for name in living if not self.is_gone(name)} - {self._relay_id}
        began = {name: beats[name].first for name in living}
        own = beats.get(self._relay_id)
        began[self._relay_id] = own.first if own else now
        return {
            name: self._lanes if name == self._relay_id else beats[name].lanes
            for name in sorted(began, key=lambda name: (began[name], name))
        }

    def _beats(self, now: datetime) -> dict[str, Beats]:
        """Return what the relays have said. What came since it was read is read from files where
        that is possible, but on another day all of it anew: so all relays see the same first beats.
        """
        newest = CommitHistory(self._spark).newest(self._tables.relays)
        seen, day, beats = self._read
        since = _day(now)
        if newest is None or newest != seen or day != since:
            new = None
            if newest is not None and seen is not None and day == since:
                new = LogReader(self._spark).rows_of_few_commits(
                    self._tables.relays, after=seen.version, to=newest.version, columns=_TOLD
                )
            if new is None:
                beats = _beats(self._spark, self._tables, now=now)
            else:
                beats = followed(beats, new, since=since)
            self._read = newest, since, beats
        return beats


def driver_id(spark: SparkSession) -> str:
    """Return the id of the Spark driver that a session works through: its application's.

    Args:
        spark: the session.
    """
    return str(spark.conf.get("spark.app.id", ""))


def is_any_alive(spark: SparkSession, tables: Tables, *, clock: Clock, presence: Presence) -> bool:
    """Say whether a relay was heard of just now, as relays judge each other at first sight.

    Args:
        spark: the session.
        tables: the names of the relations.
        clock: the time.
        presence: the relays that work from the same home.
    """
    beats = _beats(spark, tables, now=clock.now())
    return bool(BeatWatch(clock).living(beats, is_there=presence.is_there))


def followed(beats: Mapping[str, Beats], rows: pa.Table, *, since: date) -> dict[str, Beats]:
    """Return what relays have said with what they said later.

    Args:
        beats: what was known.
        rows: columns relay_id, kind, lanes and at of other beats, in any order.
        since: the first day of which beats count.
    """
    found = dict(beats)
    # A log of format 1 may hold a beat that Python cannot: nobody's.
    known = rows.filter(pc.less_equal(rows["at"].cast(pa.int64()), LAST_INSTANT))
    for row in known.sort_by("at").to_pylist():
        if row["at"].date() < since:
            continue
        before = found.get(row["relay_id"])
        if before is not None and row["at"] < before.last:
            found[row["relay_id"]] = replace(before, first=min(before.first, row["at"]))
        else:
            found[row["relay_id"]] = Beats(
                first=before.first if before is not None else row["at"],
                last=row["at"],
                is_over=row["kind"] == "stopped",
                lanes=tuple(row["lanes"] or ()),
            )
    return found


def _day(now: datetime) -> date:
    """Return the first day of which beats count."""
    return (now - _SKEW).date()


def _beats(spark: SparkSession, tables: Tables, *, now: datetime) -> dict[str, Beats]:
    rows = spark.sql(
        "select relay_id, min(at) as first, max(at) as last, max_by(kind, at) as kind, "
        "max_by(lanes, at) as lanes "
        # A log of format 1 may hold a beat that Python cannot: nobody's.
        f"from {tables.relays} where beat_date >= date'{_day(now)}' "
        f"and unix_micros(at) <= {LAST_INSTANT} group by relay_id"
    ).toArrow()
    return {
        row["relay_id"]: Beats(
            first=row["first"],
            last=row["last"],
            is_over=row["kind"] == "stopped",
            lanes=tuple(row["lanes"] or ()),
        )
        for row in rows.to_pylist()
    }
