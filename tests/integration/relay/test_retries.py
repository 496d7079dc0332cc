"""Events that fail, kill their worker or grow too old, among events that are well."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.integration.gates import more
from tests.integration.outboxes import Store, check_lives, events, open_store

from delta_outbox.operations import event_life
from delta_outbox.relay import Mode, Relay
from delta_outbox.relay.destinations.isolation import Isolation
from delta_outbox.relay.plan import planning
from delta_outbox.runtime.home import Home
from delta_outbox.store import open_deliveries
from delta_outbox.store.heartbeat import Heartbeat
from delta_outbox.testing.conformance.clock import ManualClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUBLISHER = "tests.integration.relay.trouble:Trouble"
QUICK = {"backoff_initial_seconds": "0.01", "backoff_jitter": "0", "lease_seconds": "60"}
AMONG = int(os.environ.get("OUTBOX_POISON_AMONG", "20"))  # events; `make soak` wants 100,000
AGE = 3600  # seconds after which an event of type aging.* is too old
NAMING = ("event_id", "event_type", "ordering_key", "partition_key")
TEXT = "'order. \u00e9 \ufffd \ufeff \U0001f600'"
LIMIT = max(8, AMONG // 10)  # deliveries per claim


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share; each leaves nothing open."""
    with open_store(spark, home, "t_troubled_events") as store:
        store.add_policy("order.*", **QUICK, max_crashes="2")
        store.add_policy("old.*", **QUICK, expires_after_seconds="0.001")
        store.add_policy("aging.*", **QUICK, expires_after_seconds=str(AGE))
        store.add_policy("held.*", **QUICK, max_attempts="1", on_dead="hold")
        yield store


def test_poison_dies_alone(store: Store, tmp_path: Path) -> None:
    """An event that kills its worker each time is DEAD in the end, by claims of its own; its
    neighbours lose their worker with it, and are all delivered.
    """
    outbox = store.outbox(tmp_path, publisher=PUBLISHER, batch_size=LIMIT)
    payloads = [b"kill" if number == 5 else b"fine" for number in range(AMONG)]
    outbox.append(events("poison", AMONG, payloads=payloads)).raise_if_rejected()
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (AMONG - 1, 1, 0) == (summary.published, summary.dead, summary.waiting)
    rows = store.transitions("poison")
    check_lives(rows)
    ends = {row["event_id"]: row for row in rows}
    assert {"DEAD"} == {ends["poison-005"]["to_state"]}
    assert ("exhausted", 2) == (ends["poison-005"]["reason"], ends["poison-005"]["crashes"])
    sizes = [r["claim_size"] for r in rows if r["event_id"] == "poison-005"]
    assert sorted(sizes, reverse=True) == sizes
    assert [1, 1] == sizes[-2:]
    assert {0} == {row["crashes"] for name, row in ends.items() if name != "poison-005"}


@pytest.mark.rest
def test_a_header_that_is_no_text_dies_alone(store: Store, tmp_path: Path) -> None:
    """Spark takes any bytes for a string. In a header they end the event that has them, in
    metadata, which stay here, nothing; `show` shows both.
    """
    outbox = store.outbox(tmp_path, publisher=PUBLISHER)
    bytes_ = "map('x', cast(x'ff61' as string))"
    store.spark.sql(
        f"insert into {store.tables.events} (event_id, event_type, payload, headers, metadata) "
        f"values ('bytes-0', 'order.x', cast('fine' as binary), {bytes_}, null), "
        f"('bytes-1', 'order.x', cast('fine' as binary), map('x', 'y'), {bytes_})"
    )
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (1, 1, 0) == (summary.published, summary.dead, summary.waiting)
    rows = store.transitions("bytes")
    check_lives(rows)
    ends = {row["event_id"]: (row["reason"], row["error"]) for row in rows}
    reason = "the header 'x' holds CR, LF or NUL, or is not UTF-8"
    assert {"bytes-0": ("rejected", reason), "bytes-1": ("delivered", None)} == ends
    for number in range(2):
        shown: Any = event_life.show(outbox, f"bytes-{number}")
        assert ["x"] == shown["event"]["header_names"]


@pytest.mark.rest
def test_what_names_an_event_must_be_text(store: Store, tmp_path: Path) -> None:
    """The table itself refuses an id, a type or a key that is not UTF-8, and takes any text."""
    values = {"payload": "cast('fine' as binary)"} | dict.fromkeys(NAMING, TEXT)
    insert = f"insert into {store.tables.events} ({', '.join(values)}) values "
    for column in NAMING:
        for bad in ("ff", "c0af", "eda080", "f09f98"):  # stray, overlong, half a pair, cut off
            told = values | {column: f"cast(x'61{bad}' as string)"}
            with pytest.raises(Exception, match="text_is_utf8"):
                store.spark.sql(f"{insert}({', '.join(told.values())})")
    store.spark.sql(f"{insert}({', '.join(values.values())})")
    summary = Relay(store.outbox(tmp_path, publisher=PUBLISHER)).run(Mode.DRAIN)
    assert (1, 0, 0) == (summary.published, summary.dead, summary.waiting)
    assert 2 == len(store.transitions(TEXT.strip("'")))


@pytest.mark.rest
def test_order_is_kept_through_a_failure(store: Store, tmp_path: Path) -> None:
    """While the first event of a key waits for its next attempt the later ones wait with it, also
    those of batches that were planned or claimed already; other keys go on.
    """
    outbox = store.outbox(tmp_path, publisher=PUBLISHER, batch_size=3)
    count = 12
    payloads = [b"fail once" if number == 1 else b"fine" for number in range(count)]
    table = events("chain", count, payloads=payloads).set_column(
        3, "ordering_key", pa.array([f"chain-{number % 2}" for number in range(count)])
    )
    outbox.append(table).raise_if_rejected()
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (count, 0) == (summary.published, summary.waiting)
    rows = store.transitions("chain")
    check_lives(rows)
    for key in range(2):
        own = [r for r in rows if int(r["event_id"][-3:]) % 2 == key]
        ended = [r for r in own if r["to_state"] == "PUBLISHED"]
        places = [(row["sequence"], row["event_id"]) for row in ended]
        assert sorted(places, key=lambda place: place[1]) == sorted(places)
    failed = next(r["sequence"] for r in rows if r["reason"] == "failed")
    done = next(
        r["sequence"] for r in rows if r["event_id"] == "chain-001" and r["to_state"] == "PUBLISHED"
    )
    later = [r for r in rows if r["event_id"] in ("chain-003", "chain-005")]
    assert all(r["sequence"] >= done for r in later if r["to_state"] == "PUBLISHED")
    assert failed < done


@pytest.mark.rest
def test_event_that_fails_slowly_is_overtaken(store: Store, tmp_path: Path) -> None:
    """While an event takes its time to fail, all others that wait are claimed and delivered: it
    fails only when it has seen the last one of them arrive.
    """
    outbox = store.outbox(tmp_path, publisher=PUBLISHER, batch_size=4)
    arrived = tmp_path / "arrived"
    payloads = [b"fine"] * 10
    payloads[0] = f"slow until {arrived}".encode()
    payloads[-1] = f"enough until {arrived}".encode()
    outbox.append(events("slow", 10, payloads=payloads)).raise_if_rejected()
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (10, 0, 0) == (summary.published, summary.dead, summary.waiting)
    rows = store.transitions("slow")
    check_lives(rows)
    (failed,) = (row for row in rows if row["reason"] == "failed")
    assert ("slow-000", "overtaken: True") == (failed["event_id"], failed["error"])


@pytest.mark.rest
@pytest.mark.parametrize("at_once", [1, *more(10)])
def test_too_old_is_ended_without_being_sent(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """An event past its age is claimed only to be ended, and its budget is not touched; also if
    there are more of them than are ended at once.
    """
    monkeypatch.setattr(open_deliveries, "END_AT_ONCE", at_once)
    outbox = store.outbox(tmp_path, publisher=PUBLISHER)
    prefix = f"aged-{at_once}-"
    table = events(prefix, 2, event_type="old.news", payloads=[b"kill", b"fail"])
    outbox.append(table).raise_if_rejected()
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (0, 2, 0) == (summary.published, summary.dead, summary.waiting)
    rows = store.transitions(prefix)
    check_lives(rows)
    assert ["claimed", "expired"] * 2 == [
        row["reason"] for row in sorted(rows, key=lambda r: (r["event_id"], r["sequence"]))
    ]
    assert {0} == {row["publish_attempts"] for row in rows}


@pytest.mark.rest
def test_what_grows_too_old_in_the_window_is_not_taken(
    store: Store, tmp_path: Path, read_views: list[str]
) -> None:
    """Where policies limit an age or hold keys, a relay lists what is open once and follows the
    log; what grows too old in its window ends unsent, without another poll.
    """
    clock = ManualClock()
    outbox = store.outbox(tmp_path, publisher=PUBLISHER, clock=clock)
    outbox.append(events("aging", 1, event_type="aging.news")).raise_if_rejected()
    heart = Heartbeat(outbox.spark, outbox.tables, relay_id=outbox.worker_id, clock=clock)
    relay = planning.Planning(outbox, heart, batch_size=1, isolation=Isolation(outbox))
    relay.poll(alive=set(), takes_over=True)
    assert 1 == len(relay.select() or ())
    asked = len(read_views)
    outbox.append(events("aging-next", 1, event_type="aging.news")).raise_if_rejected()
    relay.poll(alive=set(), takes_over=True)
    assert (2, asked) == (len(relay.select() or ()), len(read_views))
    clock.sleep(AGE + 60)
    assert (None, True) == (relay.select(), relay.has_work)
    assert 2 == Relay(outbox).run(Mode.DRAIN).dead


@pytest.mark.rest
def test_a_dead_event_holds_its_key_until_an_operator_lets_it_go(
    store: Store, tmp_path: Path
) -> None:
    """Under `on_dead = hold` nothing of the key is sent after a dead event, also not by a relay
    that finds it so; its kill sets the rest free, in order.
    """
    outbox = store.outbox(tmp_path, publisher=PUBLISHER)
    payloads = [b"fail", b"fine", b"fine"]
    table = events("held", 3, event_type="held.back", payloads=payloads).set_column(
        3, "ordering_key", pa.array(["held"] * 3)
    )
    outbox.append(table).raise_if_rejected()
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (0, 1, 2) == (summary.published, summary.dead, summary.waiting)
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (0, 2) == (summary.claimed, summary.waiting)
    outbox.kill(["held-000"], actor="me", reason="it will never work", dry_run=False)
    summary = Relay(outbox).run(Mode.DRAIN)
    assert (2, 0) == (summary.published, summary.waiting)
    rows = store.transitions("held")
    check_lives(rows)
    assert ["held-001", "held-002"] == [
        row["event_id"] for row in rows if row["to_state"] == "PUBLISHED"
    ]
