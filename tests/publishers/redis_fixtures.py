"""A real Redis for the whole run, and what its tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.publishers.redis_server import RedisServer

from delta_outbox.publishers.redis.publisher import RedisPublisher


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """Start one server for all tests; none may leave it stopped."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def running_redis(redis_server: RedisServer) -> Iterator[RedisServer]:
    """Give a test the server, empty, to write to and disturb, and put it right afterwards."""
    yield redis_server
    redis_server.resume()
    redis_server.start()
    with redis_server.client() as client:
        client.replicaof("NO", "ONE")
        for name, value in (("maxmemory", 0), ("min-replicas-to-write", 0)):
            client.config_set(name, value)
        client.flushall()


@pytest.fixture
def open_redis(redis_server: RedisServer) -> Iterator[Callable[..., RedisPublisher]]:
    """Open publishers that are closed after the test."""
    opened: list[RedisPublisher] = []

    def open_one(**settings: Any) -> RedisPublisher:
        one = RedisPublisher()
        routes = {"channels": "*"} if settings.get("mode") == "pubsub" else {"streams": "*"}
        one.open({"host": "127.0.0.1", "port": redis_server.port, **routes, **settings})
        opened.append(one)
        return one

    yield open_one
    for one in opened:
        one.close()
