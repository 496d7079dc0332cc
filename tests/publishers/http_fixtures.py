"""What tests of webhooks share; each starts a receiver of its own, which takes no time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.publishers.http_server import SECRET, RawServer, read_request

from delta_outbox.publishers import Event, Result
from delta_outbox.publishers.http.publisher import HttpPublisher


@pytest.fixture
def open_http() -> Iterator[Callable[..., HttpPublisher]]:
    """Open publishers that are closed after the test."""
    opened: list[HttpPublisher] = []

    def open_one(url: str, **settings: Any) -> HttpPublisher:
        one = HttpPublisher()
        one.open({"url": url, "secrets": [SECRET], **settings})
        opened.append(one)
        return one

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def post(
    open_http: Callable[..., HttpPublisher], publish: Callable[..., list[Result]]
) -> Callable[..., list[Result]]:
    """Publish events to a URL and return the results."""

    def call(url: str, *events: Event, seconds: float = 30, **settings: Any) -> list[Result]:
        one = open_http(url, **settings)
        try:
            return publish(one, list(events), seconds)
        finally:
            one.close()

    return call


@pytest.fixture
def say(
    post: Callable[..., list[Result]], new_event: Callable[..., Event]
) -> Callable[..., Result]:
    """Answer a request with some bytes, end the connection, and return the result."""

    def call(data: bytes, **settings: Any) -> Result:
        def serve(connection, _):
            read_request(connection)
            connection.sendall(data)

        with RawServer(serve) as server:
            [result] = post(server.url, new_event("r"), **settings)
            assert server.connections == 1
        return result

    return call
