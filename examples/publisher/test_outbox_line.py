"""The publisher of the example, put to the kit."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from line_server import LineServer
from outbox_line import LinePublisher

from delta_outbox.publishers import Event
from delta_outbox.testing.publishers import NAMES, Arrival, Finding, TcpAdapter, check


class LineAdapter(TcpAdapter):
    """What the kit needs to know of the line and its publisher."""

    publisher = LinePublisher

    def __init__(self, server: LineServer) -> None:
        super().__init__(server.port)
        self.server = server
        self.settings = {"host": self.host, "port": self.port}

    def received(self) -> list[Arrival]:
        return [
            Arrival(
                delivery_id=line["id"],
                key=line["key"],
                headers=line["headers"],
                payload=line["payload"].encode("latin-1"),
            )
            for line in list(self.server.lines)
        ]

    def refused(self, event: Event) -> Event:
        return replace(event, route="closed")

    def failing(self, event: Event) -> Event:
        return replace(event, route="busy")


@pytest.fixture(scope="module")
def findings() -> Iterator[dict[str, Finding]]:
    with LineServer() as server:
        adapter = LineAdapter(server)
        yield {finding.name: finding for finding in check(adapter)}
        adapter.close()


@pytest.mark.parametrize("name", NAMES)
def test_line_publisher(findings: dict[str, Finding], name: str) -> None:
    findings[name].demand()
