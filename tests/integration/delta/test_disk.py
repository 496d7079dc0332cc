"""A disk that is full and a log that may not be written: nothing half done, and nothing lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.disk import SmallDisk
from tests.integration.outboxes import (
    Store,
    as_if_ended,
    check_lives,
    delivered,
    events,
    open_store,
)

from delta_outbox.api import Outbox
from delta_outbox.core.errors import DiskFull, NotWritable, OutboxError
from delta_outbox.lifecycle.results import Delivered
from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

SCHEMA = "t_disk"

Fault = Callable[[str], type[OutboxError]]


@pytest.fixture(scope="module")
def _disk(home: Home) -> Iterator[SmallDisk]:
    """Lay a small disk under the tables of this file."""
    disk = SmallDisk(home.warehouse / f"{SCHEMA}.db")
    yield disk
    disk.close()


@pytest.fixture(scope="module")
def store(_disk: SmallDisk, spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox on the small disk; each test leaves nothing open."""
    with open_store(spark, home, SCHEMA) as store:
        yield store


@pytest.fixture
def disk(_disk: SmallDisk) -> Iterator[SmallDisk]:
    """Give a test the disk to spoil, and mend it afterwards."""
    yield _disk
    _disk.mend()


@pytest.fixture(params=["full", "protected"])
def spoil(request: pytest.FixtureRequest, disk: SmallDisk, home: Home) -> Fault:
    """Return what makes writes to a table fail, and tells the error that says so."""

    def fill(_table: str) -> type[OutboxError]:
        disk.fill()
        return DiskFull

    def protect(table: str) -> type[OutboxError]:
        disk.protect(log_of(home, table))
        return NotWritable

    return fill if request.param == "full" else protect


def log_of(home: Home, table: str) -> Path:
    """Return the folder of a table's commits."""
    return home.warehouse / f"{SCHEMA}.db" / table / "_delta_log"


def commits(store: Store, table: str) -> int:
    """Return the latest version of a table."""
    return int(store.rows(f"describe history {table} limit 1")[0]["version"])


def lose(outbox: Outbox) -> None:
    """Treat a worker as if it had been a process that ended."""
    as_if_ended(outbox)


def test_an_append_that_fails_appends_nothing(store: Store, disk: SmallDisk) -> None:
    """Events that find no room are refused with the remedy, all of them, and the same batch is
    appended once it is there.
    """
    outbox = store.outbox(Path())
    before = commits(store, store.tables.events)
    disk.fill()
    with pytest.raises(DiskFull, match=store.tables.events):
        outbox.append(events("append", 5))
    disk.mend()
    assert before == commits(store, store.tables.events)
    report = outbox.append(events("append", 5))
    assert (5, 0) == (report.appended, report.already_present)
    claim = outbox.claim(5)
    assert claim is not None
    outbox.end(claim, [Delivered()] * 5)


def test_nothing_is_sent_without_a_claim_on_record(
    store: Store, disk: SmallDisk, home: Home, tmp_path: Path
) -> None:
    """A relay whose claim cannot be written sends nothing and says why; later all is delivered."""
    folder = tmp_path / "to"
    outbox = store.outbox(folder)
    outbox.append(events("claim", 5)).raise_if_rejected()
    disk.protect(log_of(home, "outbox_transitions"))
    with pytest.raises(NotWritable, match=store.tables.transitions):
        Relay(outbox).run(Mode.DRAIN)
    disk.mend()
    assert [] == store.transitions("claim")
    assert [] == delivered(folder)
    lose(outbox)
    assert 5 == Relay(store.outbox(folder)).run(Mode.DRAIN).published
    assert {1} == set(Counter(line["event_id"] for line in delivered(folder)).values())


def test_an_ending_that_cannot_be_written_is_not_believed(
    store: Store, disk: SmallDisk, spoil: Fault, tmp_path: Path
) -> None:
    """When endings find no room their events count as not delivered: all are delivered later, and
    twice at most those of the batch in flight.
    """
    prefix, folder = f"end-{spoil.__name__}", tmp_path / "to"
    outbox = store.outbox(folder, batch_size=8)
    outbox.append(events(prefix, 20, keys=3)).raise_if_rejected()
    errors: list[type[OutboxError]] = []
    with pytest.raises(OutboxError) as caught:
        Relay(outbox).run(
            Mode.DRAIN, on_progress=lambda _: errors.append(spoil("outbox_transitions"))
        )
    assert {type(caught.value)} == set(errors)
    assert store.tables.transitions in str(caught.value)
    disk.mend()
    in_flight = {line["event_id"] for line in delivered(folder)}
    rows = store.transitions(prefix)
    assert {"claimed"} == {row["reason"] for row in rows}
    assert {row["event_id"] for row in rows} == in_flight

    lose(outbox)
    summary = Relay(store.outbox(folder)).run(Mode.DRAIN)
    assert (20, 0) == (summary.published, summary.waiting)
    times = Counter(line["event_id"] for line in delivered(folder))
    assert {f"{prefix}-{n:03}" for n in range(20)} == set(times)
    assert in_flight == {event_id for event_id, count in times.items() if count == 2}
    assert {1, 2} == set(times.values())
    check_lives(store.transitions(prefix))
    assert {"PUBLISHED"} == set(store.states(prefix).values())


def test_a_refresh_that_fails_is_finished_by_the_next(store: Store, disk: SmallDisk) -> None:
    """A refresh that cannot write the projection says so, and the next one brings it up to date."""
    outbox = store.outbox(Path())
    outbox.append(events("refresh", 2)).raise_if_rejected()
    disk.fill()
    with pytest.raises(DiskFull):
        outbox.refresh()
    disk.mend()
    outbox.refresh()
    assert {"PENDING"} == set(store.states("refresh").values())
    claim = outbox.claim(2)
    assert claim is not None
    outbox.end(claim, [Delivered()] * 2)
    outbox.refresh()
    assert {"PUBLISHED"} == set(store.states("refresh").values())
