"""A producer that goes on appending knows the ids of the log, whoever brought them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.integration.outboxes import Store, events, open_store

from delta_outbox.api import Outbox
from delta_outbox.delta.log_reader import LogReader
from delta_outbox.producer import append as appending
from delta_outbox.producer import id_index
from delta_outbox.producer.id_index import IdIndex, number_of
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

# ascii, beyond ASCII, beyond the BMP, what SQL might take for its own, long
IDS = ("a", "zürich-β", "🚲", "it's \\ \n ${x}", "x" * 512)


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share; each names its events by itself."""
    with open_store(spark, home, "t_known_ids") as store:
        yield store


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the size of each batch that is looked up in the log."""
    sizes: list[int] = []
    look_up = appending._known

    def noted(spark: SparkSession, *args: object) -> pa.Table:
        sizes.append(args[1].num_rows)  # type: ignore[attr-defined]
        return look_up(spark, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(appending, "_known", noted)
    return sizes


@pytest.fixture
def producer(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outbox:
    """Return a producer that has appended often enough to know the ids."""
    monkeypatch.setattr(id_index, "ASKED_FIRST", 1)
    producer = store.outbox(tmp_path)
    for name in ("first", "second"):
        producer.append(events(f"{tmp_path.name}-{name}", 3)).raise_if_rejected()
    return producer


def test_what_is_new_is_not_looked_up(producer: Outbox, tmp_path: Path, asked: list[int]) -> None:
    """A producer alone looks up nothing; what it has brought itself, it finds again."""
    for number in range(3):
        assert 2 == producer.append(events(f"new-{number}", 2)).appended
    assert [] == asked
    first, second = f"{tmp_path.name}-first", f"{tmp_path.name}-second"
    for known in (first, second, "new-0", "new-2"):
        report = producer.append(events(known, 2))
        assert (0, 2) == (report.appended, report.already_present)
    assert [2] * 4 == asked


def test_ids_that_grow_are_asked_for_before_they_are_read(
    store: Store, tmp_path: Path, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ids of the log are read where asking for a range was not enough, for many ids or from
    the second time on, or was asked often.
    """
    monkeypatch.setattr(id_index, "ASKED_FIRST", 3)
    growing, mixed = store.outbox(tmp_path), store.outbox(tmp_path)

    def append(producer: Outbox, *names: str) -> bool:
        batch = pa.concat_tables([events(name, 1) for name in names])
        assert len(names) == producer.append(batch).appended
        return producer._id_index.is_read

    assert [False] * 3 + [True] == [append(growing, f"zz-{number}") for number in range(4)]
    assert [] == asked
    around = [("zz-00", "zz-11"), ("zz-01", "zz-21")]  # each with one of the others between
    assert [False, True] == [append(mixed, *names) for names in around]
    assert [2] == asked
    assert 1 == mixed.append(events("zz-2", 1)).already_present
    monkeypatch.setattr(id_index, "LARGE_QUERY_ROWS", 2)
    asked.clear()
    once = store.outbox(tmp_path)
    assert append(once, "zz-03", "zz-31")  # the first of this producer, and large
    assert [] == asked


@pytest.mark.parametrize("way", ["files", "feed"])
def test_what_others_bring_is_known(
    store: Store,
    producer: Outbox,
    tmp_path: Path,
    asked: list[int],
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    """By another producer, by a plain INSERT, and beside an OPTIMIZE; whether the files of the log
    can be read here or Spark has to be asked for its change feed.
    """
    if way == "feed":
        monkeypatch.setattr(LogReader, "_files", lambda *_: None)
    other = store.outbox(tmp_path)
    other.append(events(f"{way}-other", 4)).raise_if_rejected()
    asked.clear()
    producer.append(events(f"{way}-beside", 1)).raise_if_rejected()
    assert [] == asked
    assert 4 == producer.append(events(f"{way}-other", 4)).already_present
    store.spark.sql(
        f"insert into {store.tables.events} (event_id, event_type, payload, created_at) "
        f"values ('{way}-plain', 'x', x'70', current_timestamp())"
    )
    store.spark.sql(f"optimize {store.tables.events}")
    (rejection,) = producer.append(pa.table(_row(f"{way}-plain", b"other"))).rejected
    assert "same_id_same_content" == rejection.rule
    assert 1 == producer.append(pa.table(_row(f"{way}-plain", b"p"))).already_present
    assert 1 == producer.append(events(f"{way}-newer", 1)).appended


def test_older_days_are_read_when_they_count(producer: Outbox, asked: list[int]) -> None:
    """A batch of long ago is held against the ids of its own days."""
    then = datetime.now(UTC) - timedelta(days=400)

    def old(name: str, count: int) -> pa.Table:
        at = pa.array([then] * count, pa.timestamp("us", tz="UTC"))
        return events(name, count).append_column("created_at", at)

    assert 2 == producer.append(old("old", 2)).appended
    assert 2 == producer.append(old("old", 2)).already_present
    assert 1 == producer.append(events("today", 1)).appended
    assert [2] == asked


def test_what_came_later_does_not_count(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relay that begins anew at an earlier version is not told of ids that it has seen since."""
    monkeypatch.setattr(id_index, "ASKED_FIRST", 1)
    producer, since = store.outbox(tmp_path), date(2000, 1, 1)
    known = IdIndex(store.spark, store.tables.events)
    versions = [producer.projection.latest_version(store.tables.events)]
    for name in ("earlier", "later"):
        batch = events(name, 2)
        assert not known.may_hold(batch["event_id"], since=since, version=versions[-1])
        producer.append(batch).raise_if_rejected()
        versions.append(producer.projection.latest_version(store.tables.events))
        known.add_asked(version=versions[-1])
    assert known.is_read
    held = [known.may_hold(batch["event_id"], since=since, version=one) for one in versions[1:]]
    assert [False, True] == held


@pytest.mark.parametrize("limit", ["MOST_IDS", "MOST_COMMITS"])
def test_too_much_is_looked_up(
    store: Store,
    tmp_path: Path,
    asked: list[int],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
) -> None:
    """With more ids or commits than a producer keeps or reads, nothing is missed either."""
    monkeypatch.setattr(id_index, limit, 2)
    monkeypatch.setattr(id_index, "ASKED_FIRST", 1)
    producer, other = store.outbox(tmp_path), store.outbox(tmp_path)
    for number in range(3):
        producer.append(events(f"{limit}-own-{number}", 1)).raise_if_rejected()
    for number in range(4):
        other.append(events(f"{limit}-other-{number}", 1)).raise_if_rejected()
    for name in ("own-1", "other-0", "other-3", "own-2"):
        assert 1 == producer.append(events(f"{limit}-{name}", 1)).already_present
    assert 1 == producer.append(events(f"{limit}-new", 1)).appended


def test_an_append_whose_answer_was_lost_is_found(
    producer: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that a producer does not know to be there are found when it appends them again."""

    def lost(*_: object, **__: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as patched:
        patched.setattr(IdIndex, "appended", lost)
        with pytest.raises(ConnectionError):
            producer.append(events("lost", 2))
    assert 2 == producer.append(events("lost", 2)).already_present


@pytest.mark.parametrize("event_id", IDS)
def test_spark_numbers_ids_alike(spark: SparkSession, event_id: str) -> None:
    """The number of an id is the same in SQL and in Python."""
    frame = spark.createDataFrame(pa.table({"event_id": [event_id]}))
    (row,) = frame.selectExpr(f"{id_index.number_in_sql('event_id')} as number").collect()
    assert number_of(event_id) == row["number"]


def test_a_table_made_anew_is_read_anew(store: Store, producer: Outbox, tmp_path: Path) -> None:
    """After a RESTORE and a purge of the log nothing that is there is taken for new."""
    producer.append(events("third", 3)).raise_if_rejected()
    before = store.rows(f"describe history {store.tables.events} limit 1")[0]["version"]
    store.spark.sql(f"delete from {store.tables.events} where created_date >= '2000-01-01'")
    assert 3 == producer.append(events("third", 3)).appended  # asked, and found to be new
    store.spark.sql(f"restore table {store.tables.events} to version as of {before}")
    assert 3 == producer.append(events(f"{tmp_path.name}-second", 3)).already_present
    assert 3 == producer.append(events("third", 3)).already_present


def _row(event_id: str, payload: bytes) -> dict[str, pa.Array]:
    return {
        "event_id": pa.array([event_id]),
        "event_type": pa.array(["x"]),
        "payload": pa.array([payload], pa.binary()),
    }
