"""A publisher that is right, from which wrong ones are made, and its adapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from line_server import LineServer
from outbox_line import LinePublisher

from delta_outbox.publishers import Delivered, Event, EventBatch, NotSent, Publisher, Result
from delta_outbox.testing.publishers import Arrival, TcpAdapter

PASSWORD = "kit-right-password"


class RightPublisher(LinePublisher):
    """The publisher of the example, which takes a password too, and several events of a key.

    What a wrong publisher gets wrong is a method of its own here, so that it is one defect.
    """

    ordered: ClassVar[bool] = True
    caught_by: ClassVar[tuple[str, ...]] = ()
    """The checks that must fail on a wrong publisher."""

    @classmethod
    def validate(cls, settings: Mapping[str, Any]) -> None:
        if unknown := sorted(set(settings) - {"host", "port", "password"}):
            raise ValueError(f"right: there is no setting {', '.join(unknown)}.")

    def open(self, settings: Mapping[str, Any]) -> None:
        self.validate(settings)
        super().open(settings)
        self.password = settings["password"]

    def publish(self, events: EventBatch) -> list[Result]:
        results: list[Result] = []
        held: set[str] = set()
        for event in events:
            if event.ordering_key in held:
                results.append(NotSent())
                continue
            results.append(self.attempt(event, events.remaining_seconds()))
            if event.ordering_key is not None and self.holds_its_key(results[-1]):
                held.add(event.ordering_key)
        return results

    def holds_its_key(self, result: Result) -> bool:
        return not isinstance(result, Delivered)


class LineAdapter(TcpAdapter):
    """The line, without patience: nothing here takes long."""

    answer_seconds = 1.5
    silence_seconds = 0.6
    settle_seconds = 0.05
    grace_seconds = 0.5

    def __init__(self, server: LineServer, publisher: type[Publisher] = RightPublisher) -> None:
        super().__init__(server.port)
        self.server = server
        self.publisher = publisher
        self.settings = {"host": self.host, "port": self.port, "password": PASSWORD}

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
