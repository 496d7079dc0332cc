"""The transition log: whoever names the position that it has seen appends next, or loses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.integration.outboxes import empty_logs, new_transition_log

from delta_outbox.core.errors import LaneClosed, LogRewound, SequenceTaken
from delta_outbox.core.instants import LAST_INSTANT
from delta_outbox.core.tables import Tables
from delta_outbox.runtime.home import Home
from delta_outbox.store.transition_log import TransitionLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def empty(spark: SparkSession, home: Home) -> Iterator[Tables]:
    """Return logs to which nobody writes."""
    with empty_logs(spark, home, "t_log") as tables:
        yield tables


@pytest.fixture
def tables(spark: SparkSession, empty: Tables, outbox_schema: str) -> Tables:
    """Return a new log, a copy of the empty one with its rules."""
    return new_transition_log(spark, empty, outbox_schema)


def claim_of(*event_ids: str) -> pa.Table:
    """Return rows that claim events."""
    count = len(event_ids)
    return pa.table(
        {
            "event_id": list(event_ids),
            "arrival": [1] * count,
            "destination": ["d"] * count,
            "lifecycle": [0] * count,
            "attempt": [1] * count,
            "from_state": ["PENDING"] * count,
            "to_state": ["CLAIMED"] * count,
            "reason": ["claimed"] * count,
            "claim_id": [f"claim of {event_ids[0]}"] * count,
            "claim_size": [count] * count,
            "lease_expires_at": [NOW] * count,
            "publish_attempts": [0] * count,
            "crashes": [0] * count,
            "suspect": [0] * count,
            "occurred_at": [NOW] * count,
        }
    )


def test_one_of_two_wins(spark: SparkSession, tables: Tables) -> None:
    """Of two writers at one position one appends; the other learns it, reads on, and succeeds."""
    first, second = (TransitionLog(spark, tables, relay_id=name) for name in ("one", "two"))
    first.append(claim_of("a", "b"))
    with pytest.raises(SequenceTaken):
        second.append(claim_of("a"))
    assert (1, 0) == (first.sequence, second.sequence)
    news = second.rows_after(0)
    assert ["one", "one"] == news["relay_id"].to_pylist()
    second.catch_up()
    second.append(claim_of("c"))
    assert 2 == second.sequence
    with pytest.raises(SequenceTaken):
        first.append(claim_of("d"))
    rows = spark.sql(f"select sequence, event_id from {tables.transitions}").collect()
    assert {(1, "a"), (1, "b"), (2, "c")} == {(row.sequence, row.event_id) for row in rows}


@pytest.mark.rest
def test_a_plan_stands_where_its_read_view_was_taken(spark: SparkSession, tables: Tables) -> None:
    """What is appended after the read view of a plan makes the plan lose, however late its writer
    asks for the position.
    """
    first, second = (TransitionLog(spark, tables, relay_id=name) for name in ("one", "two"))
    first.append(claim_of("a"))
    assert first.version is not None
    viewed = first.version
    first.append(claim_of("b"))
    second.catch_up(viewed)
    assert 1 == second.sequence
    with pytest.raises(SequenceTaken):
        second.append(claim_of("b"))
    first.catch_up(first.version)
    assert 2 == first.sequence


@pytest.mark.local
def test_files_say_what_the_table_says(spark: SparkSession, tables: Tables) -> None:
    """Who knows a commit at which a position was the last reads what came since from the files of
    its lane, whoever has written them; who knows none asks Spark. Both are told the same, of all
    rows, of some claims, and of the first row.
    """
    one, two = (TransitionLog(spark, tables, relay_id=name) for name in ("one", "two"))
    beside = TransitionLog(spark, tables, relay_id="beside", lane=1)
    one.append(claim_of("a", "b"))
    two.catch_up()
    one.append(claim_of("c"))
    beside.append(claim_of("x"))
    seen = beside.version
    assert seen is not None
    beside.append(claim_of("y"))
    spark.sql(f"optimize {tables.transitions}")
    one.append(claim_of("d"))
    fresh = TransitionLog(spark, tables, relay_id="fresh")
    told = [fresh.rows_after(after).to_pylist() for after in range(4)]
    assert [4, 2, 1, 0] == [len(rows) for rows in told]
    claim = told[2][0]["claim_id"]
    bounds: list[dict[str, Any]] = [{"of": [claim]}, {"of": ["nobody's"]}, {"limit": 1}]
    bounded = [fresh.rows_after(1, **one).to_pylist() for one in bounds]
    assert [[told[2][0]], [], [told[1][0]]] == bounded
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransitionLog, "_asked", None)
        for log, known in ((one, 1), (two, 1)):
            for after in range(known, 4):
                assert told[after] == log.rows_after(after).to_pylist()
            assert bounded == [log.rows_after(1, **one).to_pylist() for one in bounds]
        with pytest.raises(TypeError, match="not callable"):
            fresh.rows_after(0)
        newest = two.newest_here()
        assert newest is not None
        for log, version, at in ((two, seen, 2), (two, newest, 3), (two, seen, 3)):
            assert log.follow(version)
            assert at == log.sequence
        assert beside.follow(newest)
        assert 2 == beside.sequence
        assert two.rows_after(1).num_rows == 2


@pytest.mark.rest
def test_lanes_and_epochs_are_apart(spark: SparkSession, tables: Tables) -> None:
    """Each lane of each epoch counts for itself."""
    for epoch, lane in ((0, 0), (0, 1), (1, 0)):
        log = TransitionLog(spark, tables, relay_id="r", epoch=epoch, lane=lane)
        log.catch_up()
        log.append(claim_of("a"))
        assert 1 == log.sequence


def test_a_closed_lane_takes_nothing_more(spark: SparkSession, tables: Tables) -> None:
    """Who closes a lane loses to an append that he has not seen; once he has won, every writer
    loses, and is told that the epoch has ended. No row is there for it.
    """
    one, two, closer = (
        TransitionLog(spark, tables, relay_id=name, is_ending=lambda _: True)
        for name in ("one", "two", "closer")
    )
    one.append(claim_of("a"))
    assert not closer.close()
    closer.catch_up()
    assert closer.close()
    assert not two.close()  # it has not seen the end
    two.catch_up()
    assert two.close()
    for log in (one, two):
        with pytest.raises(LaneClosed):
            log.append(claim_of("b"))
    assert ["a"] == one.rows_after(0)["event_id"].to_pylist()


@pytest.mark.local
def test_what_a_restored_log_keeps_is_still_known(spark: SparkSession, tables: Tables) -> None:
    """Who knows a position that a restored log no longer reaches is told all the same what came
    before it: that others have ended a claim.
    """
    one, other = (TransitionLog(spark, tables, relay_id=name) for name in ("one", "other"))
    one.append(claim_of("a"))
    other.catch_up()
    other.append(claim_of("b"))
    kept = other.version
    other.append(claim_of("c"))
    one.catch_up()
    assert 3 == one.sequence
    spark.sql(f"restore table {tables.transitions} to version as of {kept}")
    one.catch_up(one.newest_here())
    assert 3 == one.sequence
    assert ["b"] == one.rows_after(1)["event_id"].to_pylist()


def test_a_restored_log_is_noticed(spark: SparkSession, tables: Tables) -> None:
    """A number that was used and whose rows are gone is an error, never a silent loss."""
    log = TransitionLog(spark, tables, relay_id="r")
    log.append(claim_of("a"))
    version = spark.sql(f"describe history {tables.transitions} limit 1").collect()[0]["version"]
    log.append(claim_of("b"))
    spark.sql(f"restore table {tables.transitions} to version as of {version}")
    fresh = TransitionLog(spark, tables, relay_id="fresh")
    fresh.catch_up()
    assert 1 == fresh.sequence
    with pytest.raises(LogRewound, match="number 2 "):
        fresh.append(claim_of("b"))


@pytest.mark.parametrize(
    ("rule", "column", "value"),
    [
        ("text_not_too_long", "event_id", "repeat('e', 513)"),
        ("instants_in_range", "created_at", f"timestamp_micros({LAST_INSTANT + 1})"),
    ],
)
def test_what_no_relay_could_read_is_refused(
    spark: SparkSession, empty: Tables, rule: str, column: str, value: str
) -> None:
    """The table of the events refuses a text that is too long, and an instant beyond the year
    9999, whoever writes it.
    """
    values = {"event_id": "'e'", "event_type": "'t'", "payload": "x'00'", column: value}
    insert = f"insert into {empty.events} ({', '.join(values)}) values "
    with pytest.raises(Exception, match=rule):
        spark.sql(f"{insert}({', '.join(values.values())})")


def test_an_illegal_transition_is_refused(spark: SparkSession, tables: Tables) -> None:
    """The table itself refuses what the lifecycle does not know, whoever writes it."""
    log = TransitionLog(spark, tables, relay_id="r")
    rows = claim_of("a")
    at = rows.schema.get_field_index("to_state")
    with pytest.raises(Exception, match=r"(?i)constraint"):
        log.append(rows.set_column(at, "to_state", pa.array(["DEAD"])))
    log.append(rows)
    assert 1 == log.sequence
