"""What maintenance and purges decide, without Spark."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from delta_outbox.core.errors import WrongUsage
from delta_outbox.operations.maintenance.compaction_rules import (
    MANY_FILES,
    SMALL_FILE,
    condition,
    partition_of,
    small,
    with_many_files,
)
from delta_outbox.operations.maintenance.file_retention import (
    RETAIN_HOURS,
    STALE,
    hours_to_retain,
    hours_told,
    oldest_positions,
    starts_unread_since,
)
from delta_outbox.operations.maintenance.purge_request import PurgeRequest
from delta_outbox.operations.maintenance.purge_rules import Day, choose, reached, removable

FIRST = date(2026, 1, 1)
NOW = datetime(2026, 2, 1, tzinfo=UTC)


def day(number: int, **given: Any) -> Day:
    """Return a day with one published event, but for what is given."""
    return Day(
        **{
            "created_date": FIRST + timedelta(days=number),
            "states": Counter({"PUBLISHED": 1}),
            **given,
        }
    )


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"states": {"PUBLISHED": 5, "PENDING": 1}}, "1 open"),
        ({"states": {"CLAIMED": 2, "PENDING": 1}}, "3 open"),
        ({"waiting_replays": 2}, "2 to be replayed"),
        ({"unknown": 3}, "3 unknown to the projection"),
        ({"recent": 6}, "6 appended lately: they may be appended once more"),
        ({"of_open_instances": 2}, "2 tasks of open instances"),
        ({"states": {"DEAD": 4}}, "4 DEAD; --include-dead purges them, too"),
    ],
)
def test_a_day_stays_while_something_of_it_is_needed(given: dict[str, Any], why: str) -> None:
    """One open event, a replay to come, a dead event keep their whole day, and that is said."""
    choice = choose([day(0, **given), day(1)], include_dead=False)
    assert [FIRST + timedelta(days=1)] == choice.dates
    assert [(FIRST, why)] == [(one.created_date, one.why) for one in choice.kept]


def test_dead_events_go_only_if_they_are_named() -> None:
    """DEAD events are purged with an explicit word, and counted by their state."""
    choice = choose([day(0, states={"DEAD": 4, "PUBLISHED": 2})], include_dead=True)
    assert ({"DEAD": 4, "PUBLISHED": 2}, []) == (choice.states, list(choice.kept))


def test_no_first_row_goes_while_a_copy_of_it_stays() -> None:
    """Whatever days hold copies of whose events: none that goes has a copy on one that stays, and
    none stays without a reason.
    """
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    for _ in range(300):
        size = chance.randrange(1, 8)
        dates = [FIRST + timedelta(days=number) for number in range(size + 1)]  # the last: younger
        days = [
            day(
                number,
                states={chance.choice(["PUBLISHED"] * 4 + ["PENDING"]): 1},
                repeated_on=frozenset(chance.sample(dates, chance.choice([0, 0, 1, 2]))),
            )
            for number in range(size)
        ]
        choice = choose(days, include_dead=False)
        going = set(choice.dates)
        assert going | {one.created_date for one in choice.kept} == set(dates[:-1]), seed
        for one in choice.days:
            assert one.repeated_on <= going, seed
        # As many go as may: no set of days that is closed under copies is larger.
        candidates = [one for one in days if "PENDING" not in one.states]
        for count in range(len(going) + 1, len(candidates) + 1):
            for some in itertools.combinations(candidates, count):
                chosen = {one.created_date for one in some}
                assert not all(one.repeated_on <= chosen for one in some), seed


def test_the_last_position_of_a_lane_stays() -> None:
    """A day of transitions goes if nothing of it stays; that with a lane's last append never."""

    def part(occurred: str, sequence: int, kept: int, epoch: int = 0) -> dict[str, Any]:
        names = ("epoch", "lane", "occurred_date", "sequence", "kept")
        return dict(zip(names, (epoch, 0, occurred, sequence, kept), strict=True))

    rows = [part("d1", 5, 0), part("d2", 9, 2), part("d3", 12, 0), part("d4", 14, 0)]
    found = removable(rows, {(0, 0): 14})
    assert ["d1", "d3"] == [row["occurred_date"] for row in found]
    # Two epochs on one day: it goes for both or for none.
    rows = [part("d1", 5, 0), part("d1", 2, 0, epoch=1)]
    assert [] == removable(rows, {(0, 0): 5, (1, 0): 7})
    assert 2 == len(removable(rows, {(0, 0): 6, (1, 0): 7}))
    assert [{"epoch": 0, "lane": 0, "sequence": 12}] == reached(
        [{"epoch": 0, "lane": 0, "sequence": 7}], found
    )


@pytest.mark.parametrize("given", [{"actor": " "}, {"reason": "two\nlines"}, {"actor": "x" * 201}])
def test_a_purge_needs_a_name_and_a_reason(given: dict[str, Any]) -> None:
    """Who purges says who and why, in one line each."""
    with pytest.raises(WrongUsage, match="purge: `"):
        PurgeRequest(**{"before": FIRST, "actor": "me", "reason": "old", **given})


def test_only_partitions_with_many_files_are_compacted() -> None:
    """A partition with few files is left alone, so that a second run has nothing to do."""
    root = "file:/w/outbox.db/outbox_transitions"
    paths = [f"{root}/lane=0/occurred_date=2026-01-01/{n}.parquet" for n in range(MANY_FILES)]
    paths += [f"{root}/lane=1/occurred_date=2026-01-01/{n}.parquet" for n in range(MANY_FILES - 1)]
    columns = ("lane", "occurred_date")
    found = with_many_files(paths, columns)
    assert [("0", "2026-01-01")] == found
    assert "(lane = 0 and occurred_date = date'2026-01-01')" == condition(found, columns)
    assert ("relay's",) == partition_of("file:/w/writer=relay%2527s/1.parquet", ("writer",))
    hostile = [f"file:/w/writer=' or true --/{n}.parquet" for n in range(MANY_FILES)]
    assert [] == with_many_files(hostile, ("writer",))
    flat = [f"file:/w/outbox_purged/{n}.parquet" for n in range(MANY_FILES)]
    assert [()] == with_many_files(flat, ())


def test_a_partition_of_large_files_is_not_compacted_again() -> None:
    """Only small files count, so that a day of many large ones is not written anew every hour."""
    root = "file:/w/outbox.db/outbox_events/created_date=2026-01-01"
    sizes = {f"{root}/{n}.parquet": SMALL_FILE for n in range(2 * MANY_FILES)}
    assert [] == with_many_files(small(sizes), ("created_date",))
    sizes |= {f"{root}/small-{n}.parquet": SMALL_FILE - 1 for n in range(MANY_FILES)}
    assert [("2026-01-01",)] == with_many_files(small(sizes), ("created_date",))


def test_no_file_goes_that_a_derived_writer_has_not_read() -> None:
    """Removed files stay until the slowest derived writer has read the commit that brought them;
    a position that the invariants would not go on from blocks nothing.
    """
    plans = [
        {
            "writer": "projection",
            "plan": {"events": {"to": 9}, "transitions": {"to": 7}, "commands": {"to": 5}},
        },
        {"writer": "commands", "plan": {"commands": {"after": 1, "to": 3}}},
        {"writer": "destinations", "plan": {"commands": {"to": 1}, "destinations": {}}},
        {"writer": "capture", "plan": {"events": {"after": 0, "to": 4}}},
        {"writer": "policy", "plan": {"version": "x", "rows": []}},
        {"writer": "invariants", "plan": {"events": {"to": 2}, "heads": {"events": 1}}},
    ]
    fresh = [{**one, "planned_at": NOW - STALE} for one in plans]
    assert {"events": 2, "transitions": 7, "commands": 3} == oldest_positions(fresh, now=NOW)
    stale = [{**one, "planned_at": NOW - STALE - timedelta(seconds=1)} for one in plans]
    assert {"events": 4, "transitions": 7, "commands": 3} == oldest_positions(stale, now=NOW)
    # Commands that nobody has applied yet are read from the first on.
    unasked = [one for one in fresh if one["writer"] != "commands"]
    assert 0 == oldest_positions(unasked, now=NOW)["commands"]
    assert {"commands": 0} == oldest_positions([], now=NOW)
    assert RETAIN_HOURS == hours_to_retain(None, now=NOW)
    assert RETAIN_HOURS == hours_to_retain(NOW - timedelta(hours=3), now=NOW)
    long_ago = timedelta(hours=RETAIN_HOURS)
    assert RETAIN_HOURS + 1 == hours_to_retain(NOW - long_ago, now=NOW)
    assert RETAIN_HOURS + 2 == hours_to_retain(NOW - long_ago - timedelta(seconds=1), now=NOW)


def test_no_file_goes_that_the_first_derivation_reads() -> None:
    """As long as nobody derives what follows in workflows, the events stay that were appended since
    workflows were put into force first.
    """
    first = NOW - timedelta(days=10)
    plans = [
        {"writer": "projection", "first_at": first - timedelta(days=1)},
        {"writer": "workflows", "first_at": first},
    ]
    assert first == starts_unread_since(plans)
    assert RETAIN_HOURS < hours_to_retain(starts_unread_since(plans), now=NOW)
    assert starts_unread_since(plans[:1]) is None
    assert starts_unread_since([*plans, {"writer": "derived_events", "first_at": NOW}]) is None


@pytest.mark.parametrize(
    ("interval", "hours"),
    [
        ("interval 30 days", 720),
        ("INTERVAL 1 week", 168),
        ("36 hours", 36),
        ("interval 1 day 2 hours", 0),
        (None, 0),
    ],
)
def test_a_table_may_ask_for_more(interval: str | None, hours: int) -> None:
    """An operator may let a table keep its files for longer; else VACUUM would be refused."""
    assert hours == hours_told(interval)
