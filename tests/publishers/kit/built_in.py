"""Adapters of the built-in publishers that need no server."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Mapping
from pathlib import Path

from delta_outbox.publishers import Event
from delta_outbox.publishers.jsonl import JsonlPublisher, read_lines
from delta_outbox.publishers.memory import MemoryPublisher
from delta_outbox.testing.publishers import Adapter, Arrival


class MemoryAdapter(Adapter):
    """What is kept in this process."""

    publisher = MemoryPublisher
    settings = {"name": "kit"}  # noqa: RUF012 - an adapter is no shared state
    settle_seconds = 0.0

    def received(self) -> list[Arrival]:
        return [
            Arrival(
                delivery_id=event.delivery_id,
                key=event.key,
                headers=event.transport_headers(),
                payload=event.payload,
            )
            for event in MemoryPublisher.delivered("kit")
        ]

    def close(self) -> None:
        MemoryPublisher.clear("kit")


class JsonlAdapter(Adapter):
    """What is in the files of a folder."""

    publisher = JsonlPublisher
    settle_seconds = 0.0

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="outbox-kit-")
        self.path = Path(self.folder.name) / "delivered"
        self.settings = {"path": str(self.path)}

    def received(self) -> list[Arrival]:
        return [
            Arrival(
                delivery_id=f"{line['event_id']}:{line['lifecycle']}".removesuffix(":0"),
                key=line["key"],
                headers=line["headers"],
                payload=line["payload"].encode()
                if "payload" in line
                else base64.b64decode(line["payload_base64"]),
            )
            for line in read_lines(self.path)
        ]

    def expected_headers(self, event: Event) -> Mapping[str, str | None]:
        """Return the producer's: a line has fields of its own for what our headers say."""
        return event.headers or {}

    def close(self) -> None:
        self.folder.cleanup()
