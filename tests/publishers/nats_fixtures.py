"""A real NATS for the whole run, and what its tests share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.publishers.nats_server import NatsServer

from delta_outbox.publishers.nats.publisher import NatsPublisher


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    """Start one server for all tests; none may leave it stopped."""
    with NatsServer("max_payload: 1MB\nmax_pending: 256MB") as server:
        yield server


@pytest.fixture
def running_nats(nats_server: NatsServer) -> Iterator[NatsServer]:
    """Give a test the server to stop or freeze, and start it again afterwards."""
    yield nats_server
    nats_server.resume()
    nats_server.start()


@pytest.fixture(scope="session")
def new_stream(nats_server: NatsServer) -> Callable[..., str]:
    """Create a stream and return its name, which is the first part of its subjects."""
    numbers = itertools.count()

    def create(**config: Any) -> str:
        name = f"s{next(numbers)}"
        nats_server.add_stream(name, f"{name}.>", **config)
        return name

    return create


@pytest.fixture
def open_nats(nats_server: NatsServer) -> Iterator[Callable[..., NatsPublisher]]:
    """Open publishers that are closed after the test."""
    opened: list[NatsPublisher] = []

    def open_one(**settings: Any) -> NatsPublisher:
        one = NatsPublisher()
        one.open({"servers": [nats_server.url], "subjects": ["*"], **settings})
        opened.append(one)
        return one

    yield open_one
    for one in opened:
        one.close()
