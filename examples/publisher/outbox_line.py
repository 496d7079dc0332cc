"""A publisher of one's own: an event is a line of JSON over TCP, and each line is answered."""

import json
import socket
from typing import Any

from delta_outbox import publishers


class LinePublisher(publishers.Publisher):
    """Send every event by a connection of its own, and wait for the answer."""

    @classmethod
    def validate(cls, settings: Any) -> None:
        """Refuse anything but `host` and `port`."""
        if set(settings) != {"host", "port"}:
            raise ValueError(f"line: needs `host` and `port`. Got: {', '.join(sorted(settings))}.")

    @classmethod
    def probe(cls, settings: Any, timeout: float) -> None:
        """Ask for a sign of life."""
        ask(settings, timeout, {"ping": True})

    def open(self, settings: Any) -> None:
        """Keep the address."""
        self.settings = settings

    def publish(self, events: publishers.EventBatch) -> list[publishers.Result]:
        """Attempt every event once, in order."""
        return [self.attempt(event, events.remaining_seconds()) for event in events]

    def attempt(self, event: publishers.Event, seconds: float) -> publishers.Result:
        """Say what is known: it was not sent, nobody listened, no answer came, or the answer."""
        if seconds <= 0:
            return publishers.NotSent()
        line: dict[str, Any] = {"id": event.delivery_id, "key": event.key, "to": event.route}
        # JSON has no bytes: latin-1 makes a character of each.
        line |= {"headers": event.transport_headers(), "payload": event.payload.decode("latin-1")}
        try:
            answer = ask(self.settings, seconds, line)
        except ConnectionRefusedError:
            return publishers.Failed(error="nobody listens")
        except OSError:
            return publishers.Unknown(error="no answer came")
        if "number" in answer:
            return publishers.Delivered(receipt=answer)
        verdict = publishers.Failed if "busy" in answer else publishers.Rejected
        return verdict(error="the line does not take it")

    def close(self) -> None:
        """Have nothing to release."""


def ask(settings: Any, seconds: float, line: dict[str, Any]) -> dict[str, Any]:
    """Send a line and return its answer, or raise ConnectionError."""
    try:
        with socket.create_connection((settings["host"], settings["port"]), seconds) as connection:
            connection.sendall(json.dumps(line).encode() + b"\n")
            return dict(json.loads(connection.makefile().readline()))
    except (TimeoutError, ValueError) as error:
        raise ConnectionError("it does not answer.") from error
