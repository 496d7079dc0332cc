"""A relay that goes on looks at what has come, and at everything only where it has to."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.integration.store import Store, check_lives, delivered, events, open_store

from delta_outbox.home import Home
from delta_outbox.outbox import Outbox
from delta_outbox.relay import Mode, Relay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 240.0  # seconds that a delivery may take on a busy machine


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share; each leaves nothing open."""
    with open_store(spark, home, "t_arrivals") as store:
        yield store


@contextmanager
def at_work(outbox: Outbox) -> Iterator[None]:
    """Let a relay work during a block."""
    stop = Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(Relay(outbox).run, Mode.CONTINUOUS, stop=stop)
        try:
            yield
        finally:
            stop.set()
            running.result()


def ended(store: Store, prefix: str) -> list[str]:
    """Return which deliveries were PUBLISHED, in the order of the log."""
    return [row["event_id"] for row in store.transitions(prefix) if row["to_state"] == "PUBLISHED"]


def wait_for(store: Store, prefix: str, count: int) -> None:
    """Wait until so many deliveries are PUBLISHED in the log."""
    until = time.monotonic() + PATIENCE
    while len(ended(store, prefix)) < count:
        assert time.monotonic() < until, ended(store, prefix)
        time.sleep(0.2)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that grows with each look at everything that is open."""
    made: list[object] = []
    picture = Outbox.picture

    def noted(self: Outbox, heads: object = None) -> object:
        made.append(heads)
        return picture(self, heads)  # type: ignore[arg-type]

    monkeypatch.setattr(Outbox, "picture", noted)
    return made


def test_arrivals_alone_are_looked_at(store: Store, tmp_path: Path, looks: list[object]) -> None:
    """Where nothing else is open, what comes is delivered by a look at it alone, once and in order.
    A copy of what the log has makes the relay look at everything, and is not delivered.
    """
    folder = tmp_path / "to"
    producer, relay = store.outbox(folder), store.outbox(folder)
    batches = [events("alone", 30, keys=2).slice(10 * n, 10) for n in range(3)]
    with at_work(relay):
        for number, batch in enumerate(batches):
            producer.append(batch).raise_if_rejected()
            wait_for(store, "alone", 10 * (number + 1))
            if number < 2:  # what the log holds is read at the second time
                looks.clear()
        assert [] == looks
        kind = "order.created"
        copy, twice = ("alone-000", kind, "copy"), ("alone-twice", kind, "{}")
        store.insert(copy, twice, twice, ("alone-plain", kind, "{}"))
        wait_for(store, "alone", 32)
        assert [] != looks
    lines = delivered(folder)
    wanted = [*(f"alone-{n:03}" for n in range(30)), "alone-twice", "alone-plain"]
    assert dict.fromkeys(wanted, 1) == Counter(line["event_id"] for line in lines)
    by_key = defaultdict(list)
    for line in lines:
        by_key[line["key"]].append(line["event_id"])
    for key in ("alone-key-0", "alone-key-1"):
        assert by_key[key] == sorted(by_key[key])
    check_lives(store.transitions("alone"))


@pytest.mark.parametrize("first", ["fails", "is scheduled"])
def test_what_waits_holds_up_its_key(
    store: Store, tmp_path: Path, looks: list[object], first: str
) -> None:
    """What comes behind an event that waits, of the same key, waits as well, and the others do not;
    a relay that works alone knows it without a look at everything.
    """
    publisher = "tests.integration.trouble:Trouble"
    producer = store.outbox(tmp_path)
    relay = store.outbox(tmp_path, publisher=publisher, further={})
    prefix = f"wait-{first[:2]}"
    payload = b"fail once" if first == "fails" else b"p"
    due = datetime.now(UTC) + timedelta(seconds=0 if first == "fails" else 20)

    def event(name: str, key: str | None, content: bytes, at: datetime | None) -> pa.Table:
        return pa.table(
            {
                "event_id": [f"{prefix}-{name}"],
                "event_type": ["order.created"],
                "payload": pa.array([content], pa.binary()),
                "ordering_key": pa.array([key], pa.string()),
                "available_at": pa.array([at], pa.timestamp("us", tz="UTC")),
            }
        )

    with at_work(relay):
        producer.append(event("0", None, b"p", None)).raise_if_rejected()
        wait_for(store, prefix, 1)
        producer.append(event("1", "k", payload, due)).raise_if_rejected()
        producer.append(event("2", "k", b"p", None)).raise_if_rejected()
        producer.append(event("3", None, b"p", None)).raise_if_rejected()
        wait_for(store, prefix, 4)
    order = ended(store, prefix)
    assert order.index(f"{prefix}-1") < order.index(f"{prefix}-2")
    assert [] == looks
    check_lives(store.transitions(prefix))
