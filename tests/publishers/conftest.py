"""What tests of publishers share, and the fixtures of servers: one starts where it is asked for."""

# ruff: noqa: F401 - pytest finds fixtures by their names here

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.publishers.http_fixtures import open_http, post, say
from tests.publishers.kafka_fixtures import (
    authority,
    check_answers,
    forbid_writing,
    kafka,
    network,
    new_topic,
    proxy,
    publisher,
    read,
    running,
    scram,
)
from tests.publishers.nats_fixtures import (
    nats_server,
    new_stream,
    open_nats,
    running_nats,
)
from tests.publishers.rabbitmq_fixtures import (
    depth,
    new_queue,
    open_rabbit,
    rabbit,
    rabbit_proxy,
    received,
    running_rabbit,
)
from tests.publishers.redis_fixtures import (
    open_redis,
    redis_server,
    running_redis,
)
from tests.publishers.sqs_fixtures import (
    front,
    moto,
    new_sqs_queue,
    open_sqs,
    running_moto,
    sqs_client,
    taken,
)
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from delta_outbox.publishers import Event, EventBatch, Publisher, Result

CREATED_AT = datetime(2026, 1, 1, tzinfo=UTC)


class ByServer(LoadScopeScheduling):  # type: ignore[misc] # it ships no types
    """Give all tests of a server to one worker, so that it is started once: test_NAME_what.py."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("::")[0].rsplit("/test_")[-1].split("_")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByServer:
    """Share the tests out; the groups of xdist itself do not reach pytest 9.2."""
    return ByServer(config, log)


@pytest.fixture(scope="session")
def new_event() -> Callable[..., Event]:
    """Make an event whose key is its ordering key, as under strict ordering."""
    numbers = itertools.count()

    def make(route: str, key: str | None = None, **fields: Any) -> Event:
        given: dict[str, Any] = {
            "event_id": f"event-{next(numbers)}",
            "event_type": "flight.departed",
            "key": key,
            "ordering_key": key,
            "payload": b"{}",
            "created_at": CREATED_AT,
            "route": route,
            **fields,
        }
        return Event(**given)

    return make


@pytest.fixture(scope="session")
def publish() -> Callable[..., list[Result]]:
    """Publish events within so many seconds."""

    def call(one: Publisher, events: list[Event], seconds: float = 30) -> list[Result]:
        return one.publish(EventBatch(events, deadline=time.monotonic() + seconds))

    return call
