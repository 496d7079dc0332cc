"""Which days of the event log may be purged: pure, over what the logs and the projection count."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from delta_outbox.lifecycle.states import OPEN_STATES


@dataclass(frozen=True, kw_only=True)
class Day:
    """What a day of the event log holds.

    Args:
        created_date: the day, a partition of the log.
        states: state to the deliveries of its events.
        waiting_replays: replays of its events that nobody has applied.
        repeated_on: other days that hold a later copy of one of its events.
        unknown: rows of events that the projection does not show.
        recent: rows that were appended so lately that the same ids may come once more.
        of_open_instances: tasks of workflow instances of which the log does not have the end.
    """

    created_date: date
    states: Mapping[str, int] = field(default_factory=Counter)
    waiting_replays: int = 0
    repeated_on: frozenset[date] = frozenset()
    unknown: int = 0
    recent: int = 0
    of_open_instances: int = 0


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A day that a purge leaves as it is.

    Args:
        created_date: the day.
        why: in words.
    """

    created_date: date
    why: str


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a purge removes and what it leaves.

    Args:
        days: removed, in order.
        kept: left, in order.
    """

    days: Sequence[Day] = ()
    kept: Sequence[Kept] = ()

    @property
    def dates(self) -> list[date]:
        """Return the days that are removed."""
        return [day.created_date for day in self.days]

    @property
    def states(self) -> dict[str, int]:
        """Return the deliveries that are removed, by state."""
        total: Counter[str] = Counter()
        for day in self.days:
            total.update(day.states)
        return dict(sorted(total.items()))


def choose(days: Iterable[Day], *, include_dead: bool) -> Choice:
    """Choose the days of which everything has ended and nothing else depends on.

    The first row of an event may not go while a later copy of it stays: that one would become the
    event, and be delivered again.

    Args:
        days: those before the date that was asked for.
        include_dead: DEAD events go, too.
    """
    found = {day.created_date: day for day in days}
    kept = {
        day.created_date: why
        for day in found.values()
        if (why := _hindrance(day, include_dead=include_dead)) is not None
    }
    waits_for = defaultdict(set)
    for day in found.values():
        for other in day.repeated_on:
            waits_for[other].add(day.created_date)
    left = [other for other in waits_for if other not in found or other in kept]
    while left:
        other = left.pop()
        for first in waits_for[other] - kept.keys():
            kept[first] = "an event of it is repeated on a day that stays"
            left.append(first)
    return Choice(
        days=[found[one] for one in sorted(found.keys() - kept.keys())],
        kept=[Kept(created_date=one, why=kept[one]) for one in sorted(kept)],
    )


def _hindrance(day: Day, *, include_dead: bool) -> str | None:
    open_ = sum(count for state, count in day.states.items() if state in OPEN_STATES)
    dead = day.states.get("DEAD", 0)
    if open_:
        return f"{open_} open"
    if day.waiting_replays:
        return f"{day.waiting_replays} to be replayed"
    if day.unknown:
        return f"{day.unknown} unknown to the projection"
    if day.recent:
        return f"{day.recent} appended lately: they may be appended once more"
    if day.of_open_instances:
        return f"{day.of_open_instances} tasks of open instances"
    if dead and not include_dead:
        return f"{dead} DEAD; --include-dead purges them, too"
    return None


def removable(
    partitions: Iterable[Mapping[str, object]], last: Mapping[tuple[int, int], int]
) -> list[dict[str, object]]:
    """Return the partitions of the transition log that hold nothing but what is purged.

    The one with the last append of a lane stays: it is where the next writer finds the position.

    Args:
        partitions: epoch, lane, occurred_date, sequence (the highest) and kept (transitions of
            events that stay) of each.
        last: (epoch, lane) to the last sequence.
    """
    of_date: dict[tuple[object, object], list[Mapping[str, object]]] = defaultdict(list)
    for row in partitions:
        of_date[row["lane"], row["occurred_date"]].append(row)
    chosen: list[dict[str, object]] = []
    for rows in of_date.values():
        stays = any(
            row["kept"] or row["sequence"] == last[int(str(row["epoch"])), int(str(row["lane"]))]
            for row in rows
        )
        if not stays:
            names = ("epoch", "lane", "occurred_date", "sequence")
            chosen += [{name: row[name] for name in names} for row in rows]
    return chosen


def reached(
    before: Iterable[Mapping[str, int]], removed: Iterable[Mapping[str, object]]
) -> list[dict[str, int]]:
    """Return up to which sequence each lane has lost transitions.

    Args:
        before: epoch, lane and sequence, by earlier purges.
        removed: as `removable` returns them.
    """
    highest: dict[tuple[int, int], int] = {}
    for row in (*before, *removed):
        key = int(str(row["epoch"])), int(str(row["lane"]))
        highest[key] = max(highest.get(key, 0), int(str(row["sequence"])))
    return [
        {"epoch": epoch, "lane": lane, "sequence": sequence}
        for (epoch, lane), sequence in sorted(highest.items())
    ]


def day_of(alias: str = "") -> str:
    """Return the day of a row of the event log, as SQL: that of its event in the projection, which
    knows none before the year 1.

    Args:
        alias: of the log, with its dot.
    """
    return f"greatest({alias}created_date, date'{date.min}')"


def dates_listed(dates: Iterable[object]) -> str:
    """Return days as the literals of an SQL list.

    Args:
        dates: days, or their ISO form as we wrote it.
    """
    return ", ".join(f"date'{one}'" for one in dates)


def deliveries_of(given: Mapping[str, Any], alias: str = "") -> str:
    """Return the rows of the projection that a plan removes, as a condition.

    Args:
        given: the plan, with its dates and versions.
        alias: of the projection, with its dot.
    """
    first = min(given["dates"])
    after = date.fromisoformat(max(given["dates"])) + timedelta(days=1)
    return (
        f"cast({alias}created_at as date) in ({dates_listed(given['dates'])}) "
        f"and {alias}created_at >= timestamp'{first} 00:00:00' "
        f"and {alias}created_at < timestamp'{after} 00:00:00' "
        f"and {alias}arrival <= {given['versions']['events']}"
    )
