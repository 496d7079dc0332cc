"""Appending through `Outbox.append`: all or nothing, and known events are recognised."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.integration.outboxes import Store, events, open_store

from delta_outbox.api import Outbox
from delta_outbox.core.errors import RejectedRows
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share."""
    with open_store(spark, home, "t_append") as store:
        yield store


@pytest.fixture
def outbox(store: Store, tmp_path: Path) -> Outbox:
    """Return a worker."""
    return store.outbox(tmp_path)


def count(store: Store, prefix: str) -> int:
    """Count the rows of the log whose ids begin so."""
    found = store.rows(
        f"select count(*) as n from {store.tables.events} where startswith(event_id, '{prefix}')"
    )
    return int(found[0]["n"])


def changed(batch: pa.Table, column: str, row: int, value: object) -> pa.Table:
    """Return a batch with one value replaced."""
    values = batch[column].to_pylist()
    values[row] = value
    at = batch.schema.get_field_index(column)
    return batch.set_column(at, column, pa.array(values, batch.schema.field(column).type))


def test_one_bad_row_means_nothing_is_appended(store: Store, outbox: Outbox) -> None:
    """With rejections nothing is appended, and every broken rule is reported with its line."""
    batch = changed(events("bad", 5), "event_id", 1, "")
    batch = changed(batch, "payload", 3, None)
    report = outbox.append(batch)
    assert 0 == report.appended
    assert [(2, "event_id"), (4, "payload")] == [(one.line, one.field) for one in report.rejected]
    with pytest.raises(RejectedRows):
        report.raise_if_rejected()
    assert 0 == count(store, "bad")


def test_the_same_batch_again_is_already_present(store: Store, outbox: Outbox) -> None:
    """A batch that is appended again adds nothing; what is new in it is added."""
    batch = events("again", 4, keys=2)
    assert (4, 0) == (outbox.append(batch).appended, outbox.append(batch).appended)
    report = outbox.append(events("again", 6, keys=2))
    assert (2, 4, ()) == (report.appended, report.already_present, report.rejected)
    assert 6 == count(store, "again")


def test_the_same_id_with_other_content_is_rejected(store: Store, outbox: Outbox) -> None:
    """An id stands for one content: another one under it is rejected, with the whole batch."""
    outbox.append(events("other", 2)).raise_if_rejected()
    report = outbox.append(changed(events("other", 3), "payload", 1, b"other"))
    assert (0, [2]) == (report.appended, [one.line for one in report.rejected])
    assert 2 == count(store, "other")


def test_a_given_order_is_kept(store: Store, outbox: Outbox) -> None:
    """Rows of one batch are taken in the order in which they were given."""
    batch = events("order", 5)
    turned = batch.take(pa.array([4, 2, 0, 3, 1]))
    outbox.append(turned).raise_if_rejected()
    taken = outbox.retrieve(100).deliveries["event_id"].to_pylist()
    assert turned["event_id"].to_pylist() == [one for one in taken if one.startswith("order")]


def test_a_scheduled_event_waits(store: Store, outbox: Outbox) -> None:
    """An event is not eligible before its `available_at`, and holds the later ones of its key."""
    due = datetime.now(UTC) + timedelta(days=1)
    batch = pa.table(
        {
            "event_id": ["wait-1", "wait-2", "wait-3"],
            "event_type": ["x"] * 3,
            "payload": pa.array([b"p"] * 3, pa.binary()),
            "ordering_key": ["k", "k", "free"],
            "available_at": pa.array([due, None, None], pa.timestamp("us", "UTC")),
        }
    )
    outbox.append(batch).raise_if_rejected()
    taken = outbox.retrieve(100).deliveries["event_id"].to_pylist()
    assert ["wait-3"] == [one for one in taken if one.startswith("wait")]


def test_a_data_frame_is_taken_too(store: Store, outbox: Outbox) -> None:
    """A DataFrame is appended like an Arrow table."""
    frame = outbox.spark.createDataFrame(events("frame", 2))
    assert 2 == outbox.append(frame).appended
    assert 2 == count(store, "frame")
