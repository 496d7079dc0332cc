"""The proof of the demo: it holds for what should be delivered, and counts every fault."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_outbox.demo.delivered import delivered_lines
from delta_outbox.demo.flights import TABLE, flight_events, load_flights
from delta_outbox.demo.verify import Proof, prove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rest

Line = dict[str, Any]


@pytest.fixture
def lines(spark: SparkSession) -> Iterator[list[Line]]:
    """Return what is to be delivered of a day of flights, in order, as `jsonl` writes it."""
    loaded = load_flights(spark, days=1, now=datetime.now(UTC))
    yield [
        {
            "event_id": event["event_id"],
            "event_type": event["event_type"],
            "key": event["ordering_key"],
            "headers": dict(event["headers"]),
            "payload": event["payload"].decode(),
            "lifecycle": 0,
        }
        for event in flight_events(spark, created_at=loaded.started_at).toArrow().to_pylist()
    ]
    spark.sql(f"drop schema {TABLE.split('.')[0]} cascade")


def _proof(spark: SparkSession, lines: Sequence[Line], folder: Path) -> Proof:
    folder.mkdir()
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return prove(spark, delivered_lines(spark, folder))


def test_every_fault_of_a_delivery_is_counted(
    spark: SparkSession, lines: list[Line], tmp_path: Path
) -> None:
    """A lost, a foreign, a changed, a repeated event, and one that was overtaken, each count once,
    and nothing counts where there is no fault.
    """
    good = _proof(spark, lines, tmp_path / "good")

    count = len(lines)
    keys = [line["key"] for line in lines]
    first, second = next(
        pair
        for pair in itertools.combinations(range(count), 2)
        if keys[pair[0]] is not None and keys[pair[0]] == keys[pair[1]]
    )
    others = (number for number in range(count) if keys[number] != keys[first])
    lost, changed, repeated = itertools.islice(others, 3)
    wrong = list(lines)
    wrong[first], wrong[second] = lines[second], lines[first]
    told = lines[changed]["payload"].replace('"distance_miles":', '"distance_miles":1')
    wrong[changed] = {**lines[changed], "payload": told}
    wrong.append(lines[repeated])
    wrong.append({**lines[repeated], "event_id": "flight-20130101-XX1-EWR-0000-departed"})
    del wrong[lost]
    bad = _proof(spark, wrong, tmp_path / "bad")

    assert good.holds
    assert (count, count, 0, 0) == (good.expected, good.delivered, good.duplicates, good.others)
    assert not bad.holds
    assert (count, count + 1) == (bad.expected, bad.delivered)
    assert (1, 1, 1, 1) == (bad.missing, bad.unexpected, bad.altered, bad.duplicates)
    assert 1 == bad.out_of_order
