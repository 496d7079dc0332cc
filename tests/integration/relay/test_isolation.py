"""Destinations isolated from each other: what one does not take, the others do not wait for."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.integration.outboxes import Store, check_lives, delivered, open_store
from tests.publishers.http_server import OK, SECRET, RawServer, Receiver, read_request

from delta_outbox.api import Outbox
from delta_outbox.core.errors import UnknownDestination
from delta_outbox.core.settings import (
    DestinationLimits,
    PublisherSettings,
    RelaySettings,
    SecretMapping,
    Settings,
)
from delta_outbox.operations import command_life, inspection
from delta_outbox.operations.pauses import append_pausing, pausing_request
from delta_outbox.relay import Mode, Relay
from delta_outbox.runtime.dbt import check_result, run_dbt
from delta_outbox.runtime.home import Home
from delta_outbox.testing.conformance.clock import ManualClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "t_isolation"
PATIENCE = 240.0  # seconds that a condition is waited for before the test fails
BREAKER_SECONDS = 3600.0  # longer than the test takes: the view asks the real clock


@pytest.fixture(scope="module")
def store(spark: SparkSession, home: Home) -> Iterator[Store]:
    """Return an outbox that the tests of this file share; each leaves nothing open."""
    with open_store(spark, home, SCHEMA) as store:
        slow = {"lease_seconds": "600", "backoff_initial_seconds": "1", "backoff_jitter": "0"}
        store.add_policy("shop.*", destination="shop", **slow)
        store.add_policy("both.*", destination="shop|default", **slow)
        yield store


@dataclass(frozen=True, kw_only=True)
class Two:
    """An outbox with a web shop and a folder.

    Args:
        store: the store.
        url: of the shop.
        folder: the other destination.
    """

    store: Store
    url: str
    folder: Path

    def outbox(
        self, *, clock: ManualClock | None = None, batch_size: int = 2, **limits: Any
    ) -> Outbox:
        """Open a worker.

        Args:
            clock: the time; that of this machine if left out.
            batch_size: deliveries per claim; two, so that a claim is soon full.
            limits: of the shop.
        """
        shop = SecretMapping({"url": self.url, "secrets": [SECRET], "timeout_seconds": 300})
        settings = Settings(
            relay=RelaySettings(batch_size=batch_size, poll_seconds=0.05, parallelism=2),
            publishers={
                "shop": PublisherSettings(
                    type="http", settings=shop, limits=DestinationLimits(**limits)
                ),
                "default": PublisherSettings(
                    type="jsonl", settings=SecretMapping({"path": str(self.folder)})
                ),
            },
        )
        return self.store.open(settings, exclusive=False, clock=clock)

    def shown(self, outbox: Outbox) -> dict[str, object]:
        """Return what the view shows of the shop."""
        found = {row["destination"]: row for row in inspection.destinations(outbox)}
        return found["shop"]


def append(outbox: Outbox, *rows: tuple[str, str, str | None]) -> None:
    """Append events: id, type, ordering key."""
    outbox.append(
        pa.table(
            {
                "event_id": [row[0] for row in rows],
                "event_type": [row[1] for row in rows],
                "payload": pa.array([b"{}"] * len(rows), pa.binary()),
                "ordering_key": pa.array([row[2] for row in rows], pa.string()),
            }
        )
    ).raise_if_rejected()


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    event, until = threading.Event(), time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until, f"in vain: {what}"
        event.wait(0.1)


@pytest.mark.rest
@pytest.mark.local
def test_an_endpoint_that_hangs_holds_up_nobody_else(store: Store, tmp_path: Path) -> None:
    """While an endpoint takes requests and answers none, everything for the other destination is
    delivered and on record, also what arrives only then; an event of the same key waits for it.
    """
    may_answer = threading.Event()

    def hang(connection: socket.socket, _: int) -> None:
        while read_request(connection):
            may_answer.wait()
            connection.sendall(OK)

    def others(prefix: str) -> set[str]:
        found = store.transitions(prefix)
        return {row["event_id"] for row in found if row["to_state"] == "PUBLISHED"}

    folder = tmp_path / "to"
    with RawServer(hang) as server, ThreadPoolExecutor(1) as pool:
        two = Two(store=store, url=server.url, folder=folder)
        outbox = two.outbox()
        append(
            outbox,
            *((f"hang-shop-{n}", "shop.sold", f"shop-{n}") for n in range(5)),
            *((f"hang-other-{n}", "order", f"other-{n}") for n in range(5)),
            ("hang-same", "order", "shop-0"),
        )
        stop = threading.Event()
        run = pool.submit(Relay(outbox).run, Mode.CONTINUOUS, stop=stop)
        try:
            wait_until(
                lambda: run.done() or len(others("hang-other")) == 5, "the others are delivered"
            )
            assert server.connections > 0
            append(two.outbox(), ("hang-later", "order", None))
            wait_until(lambda: run.done() or bool(others("hang-later")), "what came later is too")
            ends = [row for row in store.transitions("hang-s") if row["from_state"] != "PENDING"]
            assert [] == ends
            assert "hang-same" not in {row["event_id"] for row in store.transitions("hang-s")}
            may_answer.set()
            wait_until(lambda: run.done() or len(others("hang-s")) == 6, "the rest is delivered")
        finally:
            may_answer.set()
            stop.set()
        assert 0 == run.result().waiting
    rows = store.transitions("hang")
    check_lives(rows)
    sequences = {row["event_id"]: row["sequence"] for row in rows if row["to_state"] == "PUBLISHED"}
    assert sequences["hang-shop-0"] < sequences["hang-same"]


@pytest.mark.rest
def test_a_breaker_opens_probes_and_closes(store: Store, tmp_path: Path) -> None:
    """After failures in a row nothing more is sent: what waits keeps its attempts, also after a
    restart; then one delivery is a probe, and once it gets through, everything goes.
    """
    clock = ManualClock()
    with Receiver(answer=lambda _: (503, {})) as receiver:
        two = Two(store=store, url=receiver.url, folder=tmp_path / "to")

        def drain() -> tuple[Outbox, int, int]:
            outbox = two.outbox(clock=clock, breaker_failures=2, breaker_seconds=BREAKER_SECONDS)
            summary = Relay(outbox).run(Mode.DRAIN, max_wait=0)
            return outbox, len(receiver.requests), summary.waiting

        names = [f"breaker-{n}" for n in range(6)]
        append(two.outbox(), *((name, "shop.sold", None) for name in names))
        append(two.outbox(), ("breaker-other", "order", None))
        outbox, requests, waiting = drain()
        assert (2, 6) == (requests, waiting)
        attempts = store.rows(
            f"select attempts from {store.tables['outbox']} where startswith(event_id, 'breaker-') "
            "and event_id <> 'breaker-other' and state = 'PENDING' order by attempts"
        )
        assert [0, 0, 0, 0, 1, 1] == [row["attempts"] for row in attempts]
        assert "PUBLISHED" == store.states("breaker-other")["breaker-other"]
        shown = two.shown(outbox)
        assert ("open", False) == (shown["breaker"], shown["paused"])
        assert "503" in str(shown["breaker_error"])

        _, requests, waiting = drain()  # another relay: it knows from the log
        assert (2, 6) == (requests, waiting)
        clock.sleep(BREAKER_SECONDS)
        _, requests, waiting = drain()
        assert (3, 6) == (requests, waiting)
        clock.sleep(BREAKER_SECONDS)
        receiver.answer = lambda _: (200, {})
        outbox, requests, waiting = drain()
        assert (9, 0) == (requests, waiting)
        assert "closed" == two.shown(outbox)["breaker"]
    rows = store.transitions("breaker")
    check_lives(rows)
    assert Counter(delivered=7, failed=3) == Counter(
        row["reason"] for row in rows if row["from_state"] == "CLAIMED"
    )


@pytest.mark.rest
def test_a_breaker_lets_a_relay_start_without_the_destination(store: Store, tmp_path: Path) -> None:
    """A relay whose destination does not even take a connection serves the others at once."""
    with Receiver() as receiver:
        url = receiver.url  # nobody listens there from now on
    two = Two(store=store, url=url, folder=tmp_path / "to")
    outbox = two.outbox(breaker_failures=2, breaker_seconds=BREAKER_SECONDS)
    append(outbox, ("away-shop", "shop.sold", None), ("away-other", "order", None))
    summary = Relay(outbox).run(Mode.DRAIN, max_wait=0)
    assert (1, 1, 1) == (summary.claimed, summary.published, summary.waiting)
    assert "open" == two.shown(outbox)["breaker"]
    with Receiver() as receiver:
        two = Two(store=store, url=receiver.url, folder=tmp_path / "to")
        assert 1 == Relay(two.outbox()).run(Mode.DRAIN).published
        # The settings have no breaker any more: what an earlier relay left open is closed.
        assert "closed" == two.shown(two.outbox())["breaker"]


@pytest.mark.rest
def test_a_paused_destination_waits_alone(store: Store, tmp_path: Path) -> None:
    """Nothing is taken for a paused destination, by any relay, and it fills no plan; other
    destinations go on, also with events that go to both; a later event of a key waits. Resumed, all
    of it is delivered in order.
    """
    folder = tmp_path / "to"
    with Receiver() as receiver:
        two = Two(store=store, url=receiver.url, folder=folder)
        outbox = two.outbox()
        asked = run_dbt(
            ["run-operation", "pause", "--args", "{destination: shop, actor: ann, reason: repair}"],
            home=store.home,
            schema=SCHEMA,
        )
        check_result(asked)
        refused = run_dbt(
            ["run-operation", "pause", "--args", "{destination: elsewhere}"],
            home=store.home,
            schema=SCHEMA,
        )
        assert not refused.success
        with pytest.raises(UnknownDestination):
            append_pausing(
                outbox, pausing_request("pause", destination="x", actor="ann", reason="none")
            )
        append(
            outbox,
            *((f"pause-shop-{n:02}", "shop.sold", "k") for n in range(6)),
            ("pause-same", "order", "k"),
            ("pause-both", "both.told", "b"),
            ("pause-both-later", "both.told", "b"),
            ("pause-other", "order", None),
        )
        for _ in range(2):  # the second one is a relay that was started again
            Relay(two.outbox()).run(Mode.DRAIN, max_wait=0)
            assert [] == receiver.requests
            assert {"pause-both", "pause-other"} == {line["event_id"] for line in delivered(folder)}
        shown = two.shown(outbox)
        assert (True, "ann", "repair") == (
            shown["paused"],
            shown["paused_by"],
            shown["pause_reason"],
        )
        states = store.rows(
            f"select destination, state, attempts, publish_attempts from {store.tables['outbox']} "
            "where event_id = 'pause-both' order by destination"
        )
        assert [("default", "PUBLISHED", 1, 0), ("shop", "PENDING", 1, 0)] == [
            tuple(row.values()) for row in states
        ]
        resumed = append_pausing(
            outbox, pausing_request("resume", destination="shop", actor="ann", reason="mended")
        )
        summary = Relay(two.outbox()).run(Mode.DRAIN, max_wait=0)
        assert (10, 0) == (summary.published, summary.waiting)
        command = command_life.show_command(outbox, resumed)
        assert command is not None
        assert "done" == command["status"]
        assert not two.shown(outbox)["paused"]
        sent = [request.by_name["webhook-id"] for request in receiver.requests]
    assert [f"pause-shop-{n:02}" for n in range(6)] == [id_ for id_ in sent if "shop" in id_]
    assert ["pause-both", "pause-both-later"] == [id_ for id_ in sent if "both" in id_]
    rows = store.transitions("pause")
    check_lives(rows)
    # One append holds the ending of what was in the way and the claim of what waited for it.
    last = max(row["sequence"] for row in rows if row["event_id"] == "pause-shop-05")
    assert last <= min(row["sequence"] for row in rows if row["event_id"] == "pause-same")


@pytest.mark.rest
def test_a_rate_is_kept(store: Store, tmp_path: Path) -> None:
    """A batch holds no more than the rates let pass: of a key, and in all; the rest follows."""
    clock = ManualClock()
    with Receiver() as receiver:
        two = Two(store=store, url=receiver.url, folder=tmp_path / "to")
        keys = ["a", "a", "b", "c", None]
        append(two.outbox(), *((f"rate-{n}", "shop.sold", key) for n, key in enumerate(keys)))
        limited = two.outbox(clock=clock, rate_per_second=3, rate_per_key_per_second=1)
        relay = Relay(limited)
        assert 2 == relay.run(Mode.ONCE).published  # a batch; not both of one key
        sent = [request.by_name["webhook-id"] for request in receiver.requests]
        assert ["rate-0", "rate-2"] == sorted(sent)
        assert 3 == Relay(two.outbox(rate_per_second=20)).run(Mode.DRAIN).published
        assert 5 == len({r.by_name["webhook-id"] for r in receiver.requests})
    check_lives(store.transitions("rate"))


@pytest.mark.rest
def test_several_destinations_are_planned_from_what_has_come(
    store: Store, tmp_path: Path, read_views: list[str]
) -> None:
    """While all are well, a relay asks for no read view for them, also where
    something fails and is tried again; the order of a key spans its destinations.
    """
    answers = iter([503])
    folder = tmp_path / "to"
    with Receiver(answer=lambda _: (next(answers, 200), {})) as receiver:
        two = Two(store=store, url=receiver.url, folder=folder)
        for number in range(4):
            append(
                two.outbox(),
                (f"news-shop-{number}", "shop.sold", "k"),
                (f"news-both-{number}", "both.told", "k"),
                (f"news-other-{number}", "order", "k"),
                (f"news-more-{number}", "order", None),
            )
        summary = Relay(two.outbox()).run(Mode.DRAIN)
        assert (20, 0) == (summary.published, summary.waiting)
        assert [] == read_views
        sent = list(dict.fromkeys(request.by_name["webhook-id"] for request in receiver.requests))
    assert [f"news-{kind}-{n}" for n in range(4) for kind in ("shop", "both")] == sent
    rows = store.transitions("news")
    check_lives(rows)
    ended = [row["event_id"] for row in rows if row["to_state"] == "PUBLISHED"]
    of_the_key = list(dict.fromkeys(name for name in ended if "more" not in name))
    wanted = [f"news-{kind}-{n}" for n in range(4) for kind in ("shop", "both", "other")]
    assert wanted == of_the_key


@pytest.mark.rest
def test_what_waits_for_its_destination_fills_no_plan(store: Store, tmp_path: Path) -> None:
    """More events than a plan holds that have to wait for their destination keep nobody from what
    came after them for another one.
    """
    with Receiver() as receiver:
        two = Two(store=store, url=receiver.url, folder=tmp_path / "to")
        # In batches of two a plan holds twenty.
        append(two.outbox(), *((f"fill-shop-{n}", "shop.sold", None) for n in range(25)))
        append(two.outbox(), ("fill-other", "order", None))
        summary = Relay(two.outbox(rate_per_second=0.01)).run(Mode.DRAIN, max_wait=0)
        assert (2, 24) == (summary.published, summary.waiting)
        assert "PUBLISHED" == store.states("fill-other")["fill-other"]
        assert 24 == Relay(two.outbox(batch_size=50)).run(Mode.DRAIN).published
