"""One relay on real tables and real servers: what the consumers of five destinations get.

The servers are read through the adapters by which the publisher kit sees them.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import trustme
from tests.integration.outboxes import Store, check_lives, events, open_store
from tests.publishers.http_adapter import HttpAdapter
from tests.publishers.http_server import Receiver
from tests.publishers.nats_adapter import PASSWORD, USER, USERS
from tests.publishers.nats_adapter import StreamAdapter as NatsAdapter
from tests.publishers.nats_server import NatsServer
from tests.publishers.rabbitmq_adapter import RabbitAdapter
from tests.publishers.rabbitmq_fixtures import declare
from tests.publishers.rabbitmq_server import RabbitServer
from tests.publishers.redis_adapter import StreamAdapter as RedisAdapter
from tests.publishers.redis_server import RedisServer
from tests.publishers.sqs_adapter import SqsAdapter
from tests.publishers.sqs_fixtures import connect, take
from tests.publishers.sqs_server import MotoServer

from delta_outbox.cli.main import main
from delta_outbox.runtime.home import Home
from delta_outbox.testing.publishers import TcpAdapter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "t_destinations"
NAMES = ("http", "nats", "rabbitmq", "redis", "sqs")
COUNT = 9  # events of a destination: three of each of two keys, three without
KEYS = 2
PAYLOADS = (b'{"n":0}', b"", bytes(range(256)), *(b'{"n":%d}' % n for n in range(3, COUNT)))
HEADERS = {"tenant": "blue", "trace": "4bf92f3577b34da6-01"}
QUEUE = "destinations"
# What each says of an event that it has taken; RabbitMQ's confirm says no more than that.
RECEIPTS = {
    "http": {"status"},
    "nats": {"stream", "seq", "duplicate"},
    "rabbitmq": set[str](),
    "redis": {"stream", "id"},
    "sqs": {"message_id", "sequence_number"},
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """An outbox whose events go to five destinations, each by its type.

    Args:
        store: its tables.
        destinations: by name, as their consumers see them.
        config: the settings file.
        given: all events that were appended, by destination.
    """

    store: Store
    destinations: Mapping[str, TcpAdapter]
    config: Path
    given: dict[str, list[dict[str, Any]]]

    def append(self, name: str, prefix: str, count: int = COUNT) -> None:
        """Append events for a destination."""
        table = events(
            prefix, count, keys=KEYS, event_type=f"{name}.created", payloads=PAYLOADS[:count]
        )
        headers = pa.array([list(HEADERS.items())] * count, pa.map_(pa.string(), pa.string()))
        table = table.append_column("headers", headers)
        self.store.outbox(Path()).append(table).raise_if_rejected()
        self.given[name] += table.to_pylist()

    def drain(self, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
        """Relay all that is open; return the exit code and the document."""
        capsys.readouterr()
        code = main(["relay", "--drain", "--json", "--config", str(self.config)])
        return code, json.loads(capsys.readouterr().out)

    def check_arrivals(self, name: str) -> None:
        """Demand that a consumer got each event once, whole, and in order within its key."""
        adapter = self.destinations[name]
        arrivals = list(adapter.received())
        expected = {
            event["event_id"]: (event["payload"], _seen(event), _key(adapter, event))
            for event in self.given[name]
        }
        found = {one.delivery_id: (one.payload, dict(one.headers), one.key) for one in arrivals}
        assert expected == found
        assert dict.fromkeys(expected, 1) == Counter(one.delivery_id for one in arrivals)
        keys = {event["event_id"]: event["ordering_key"] for event in self.given[name]}
        by_key: dict[str, list[str]] = defaultdict(list)
        for one in arrivals:
            if (key := keys[one.delivery_id]) is not None:
                by_key[key].append(one.delivery_id)
        assert {*keys.values()} - {None} == by_key.keys()
        assert {key: sorted(ids) for key, ids in by_key.items()} == by_key


def _seen(event: Mapping[str, Any]) -> dict[str, str]:
    ours = {
        "outbox-event-id": event["event_id"],
        "outbox-event-type": event["event_type"],
        "outbox-lifecycle": "0",
    }
    return {**HEADERS, **ours}


def _key(adapter: TcpAdapter, event: Mapping[str, Any]) -> str | None:
    if not adapter.carries_keys:
        return None
    # The group of a FIFO queue is never empty: without a key an event is its own.
    alone = event["event_id"] if isinstance(adapter, SqsAdapter) else None
    return event["ordering_key"] or alone


@pytest.fixture(scope="module")
def destinations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, TcpAdapter]]:
    """Start the servers, and read them as their consumers do."""
    authority = trustme.CA()
    ca_file = tmp_path_factory.mktemp("authority") / "ca.pem"
    authority.cert_pem.write_to_path(ca_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with contextlib.ExitStack() as stack:
        receiver = stack.enter_context(Receiver(context=context))
        nats = stack.enter_context(NatsServer(USERS, user=USER, password=PASSWORD))
        redis = stack.enter_context(RedisServer())
        rabbit = stack.enter_context(RabbitServer())
        declare(rabbit, QUEUE)
        moto = stack.enter_context(MotoServer())
        sqs = stack.enter_context(contextlib.closing(connect(moto)))
        fifo = f"{QUEUE}.fifo"
        sqs.create_queue(QueueName=fifo, Attributes={"FifoQueue": "true"})
        adapters: dict[str, TcpAdapter] = {
            "http": HttpAdapter(receiver, ca_file),
            "nats": NatsAdapter(nats),
            "rabbitmq": RabbitAdapter(rabbit, queue=QUEUE),
            "redis": RedisAdapter(redis),
            "sqs": SqsAdapter(moto, queue=fifo, take=partial(take, sqs)),
        }
        for adapter in adapters.values():
            stack.callback(adapter.close)
        yield adapters


@pytest.fixture(scope="module")
def place(
    spark: SparkSession,
    home: Home,
    destinations: dict[str, TcpAdapter],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Place]:
    """Return an outbox with a policy for each destination."""
    config = tmp_path_factory.mktemp("destinations") / "outbox.toml"
    lines = ["[relay]", "poll_seconds = 0.05", "parallelism = 2", "[publishers.default]"]
    lines.append('type = "null"')
    for name, adapter in destinations.items():
        settings = {"type": name, **adapter.settings}
        lines += [f"[publishers.{name}]", *(f"{k} = {json.dumps(v)}" for k, v in settings.items())]
    config.write_text("\n".join(lines))
    with open_store(spark, home, SCHEMA) as store, store.commands():
        for name, adapter in destinations.items():
            store.add_policy(
                f"{name}.*", destination=name, route=adapter.route, lease_seconds="120"
            )
        given: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMES}
        yield Place(store=store, destinations=destinations, config=config, given=given)


def test_every_destination_gets_what_was_appended(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """A drain brings each event once to the destination that its type says: the payload byte for
    byte, its headers with ours, its key where consumers see one, and a key's events in order.
    """
    for name in NAMES:
        place.append(name, name)
    code, summary = place.drain(capsys)
    assert (0, COUNT * len(NAMES), 0) == (code, summary["published"], summary["waiting"])
    for name in NAMES:
        place.check_arrivals(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_log_holds_what_the_destination_said(place: Place, name: str) -> None:
    """Every event of the drain was claimed and published once, at its destination, and has the
    receipt of that destination for that very event.
    """
    rows = place.store.transitions(f"{name}-")
    check_lives(rows)
    ids = {f"{name}-{number:03}" for number in range(COUNT)}
    assert {name} == {row["destination"] for row in rows}
    endings = [row for row in rows if row["from_state"] == "CLAIMED"]
    assert dict.fromkeys(ids, 1) == Counter(row["event_id"] for row in endings)
    assert {("PUBLISHED", "delivered", None)} == {
        (row["to_state"], row["reason"], row["error"]) for row in endings
    }
    assert dict.fromkeys(ids, "PUBLISHED") == place.store.states(f"{name}-")
    receipts = [json.loads(row["receipt"]) if row["receipt"] else {} for row in endings]
    assert [RECEIPTS[name]] * COUNT == [set(receipt) for receipt in receipts]
    different = {"nats": "seq", "redis": "id", "sqs": "message_id"}.get(name)
    if different is not None:
        assert COUNT == len({receipt[different] for receipt in receipts})


@pytest.mark.rest
def test_nothing_is_claimed_without_library_or_server(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the library of one destination is missing, or one destination is down, a relay ends
    with 2 and the remedy before it claims anything, for the other destinations too; afterwards it
    delivers what has waited.
    """
    for name in ("nats", "redis"):
        place.append(name, f"later-{name}", 4)
    before = len(place.store.transitions())

    with monkeypatch.context() as missing:
        loaded = [one for one in sys.modules if one.startswith("delta_outbox.publishers.http")]
        for module in loaded:
            missing.delitem(sys.modules, module)
        missing.setitem(sys.modules, "h11", None)
        code, document = place.drain(capsys)
    assert (2, "PUBLISHER_NOT_LOADED") == (code, document["error"]["code"])
    assert "publishers.http: the Python package 'h11' is missing" in document["error"]["message"]
    assert "pip install 'delta-outbox[http]'" in document["error"]["remedy"]

    place.destinations["nats"].stop()
    try:
        code, document = place.drain(capsys)
    finally:
        place.destinations["nats"].start()
    assert (2, "PUBLISHER_UNAVAILABLE") == (code, document["error"]["code"])
    assert "'nats' is unavailable" in document["error"]["message"]
    assert before == len(place.store.transitions())

    code, summary = place.drain(capsys)
    assert (0, 8, 0) == (code, summary["published"], summary["waiting"])
    for name in NAMES:
        place.check_arrivals(name)
