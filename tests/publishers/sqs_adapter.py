"""SQS as the publisher kit sees it: a queue, emptied as docs/publishers/sqs.md tells consumers."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mypy_boto3_sqs.type_defs import MessageTypeDef
from tests.publishers.sqs_fixtures import ACCESS
from tests.publishers.sqs_server import MotoServer

from delta_outbox.publishers import Event
from delta_outbox.publishers.sqs.publisher import SqsPublisher
from delta_outbox.testing.publishers import Arrival, TcpAdapter, delivery_id_of

_MAX_MESSAGE: int = 1_048_576  # bytes


class SqsAdapter(TcpAdapter):
    """A queue of a server.

    Args:
        server: a running one.
        queue: for the events.
        take: empties a queue.
    """

    publisher = SqsPublisher

    def __init__(
        self,
        server: MotoServer,
        *,
        queue: str,
        take: Callable[[str], Sequence[MessageTypeDef]],
    ) -> None:
        super().__init__(server.port)
        self.route = queue
        # Only a group of a FIFO queue shows the key.
        self.carries_keys = queue.endswith(".fifo")
        self.settings = {"endpoint_url": f"http://{self.host}:{self.port}", **ACCESS}
        self._take = take
        self._arrived: list[Arrival] = []

    def received(self) -> list[Arrival]:
        self._arrived += map(_arrival, self._take(self.route))
        return self._arrived

    def refused(self, event: Event) -> Event:
        """Return it larger than SQS takes any message."""
        return replace(event, payload=event.payload + b"x" * _MAX_MESSAGE)

    def failing(self, event: Event) -> Event:
        """Return it for a queue that somebody may still create."""
        return replace(event, route=f"not-yet-{self.route}")


def _arrival(message: MessageTypeDef) -> Arrival:
    given: Mapping[str, Any] = message.get("MessageAttributes", {})
    attributes = {name: value["StringValue"] for name, value in given.items()}
    encoding = attributes.pop("outbox-payload-encoding", None)
    packed = attributes.pop("outbox-headers", None)
    headers = attributes if packed is None else json.loads(packed)
    body = message["Body"]
    payload = b"" if encoding == "empty" else base64.b64decode(body) if encoding else body.encode()
    return Arrival(
        delivery_id=delivery_id_of(headers),
        payload=payload,
        headers=headers,
        key=dict(message.get("Attributes", {})).get("MessageGroupId"),
    )
