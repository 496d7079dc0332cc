"""Clocks that are ten minutes off: order is by sequence, not by time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.outboxes import Store, check_lives, delivered, events, open_store

from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

TEN_MINUTES = 600.0  # seconds


class WrongClock:
    """The clock of this machine, wrong by as many seconds as a test says.

    Args:
        offset: seconds; those that count durations go on undisturbed, as on a machine.
    """

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = offset

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.offset)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share; each leaves nothing open."""
    with open_store(spark, home, "t_clocks") as store:
        store.add_policy(
            "order.*", lease_seconds="60", backoff_initial_seconds="0.01", backoff_jitter="0"
        )
        yield store


def in_order(rows: list[dict[str, object]], keys: dict[str, str]) -> bool:
    """Say whether the events of each key were published in the order of their ids."""
    by_key: dict[str, list[str]] = {}
    for row in rows:
        if row["to_state"] == "PUBLISHED" and (key := keys.get(str(row["event_id"]))):
            by_key.setdefault(key, []).append(str(row["event_id"]))
    return bool(by_key) and all(sorted(ids) == ids for ids in by_key.values())


def test_relays_whose_clocks_differ(store: Store, tmp_path: Path) -> None:
    """Two relays that take turns, one ten minutes ahead and one behind, deliver everything once and
    in order.
    """
    folder = tmp_path / "to"
    table = events("apart", 24, keys=3)
    store.outbox(folder).append(table).raise_if_rejected()
    workers = [
        store.outbox(folder, batch_size=8, clock=WrongClock(offset))
        for offset in (TEN_MINUTES, -TEN_MINUTES)
    ]
    summaries = [Relay(worker).run(Mode.ONCE) for worker in (*workers, workers[0])]
    assert [8, 8, 8] == [summary.published for summary in summaries]
    lines = delivered(folder)
    assert {f"apart-{n:03}": 1 for n in range(24)} == Counter(line["event_id"] for line in lines)
    rows = store.transitions("apart")
    check_lives(rows)
    assert "lease_expired" not in {row["reason"] for row in rows}
    keys = dict(zip(table["event_id"].to_pylist(), table["ordering_key"].to_pylist(), strict=True))
    assert in_order(rows, keys)
