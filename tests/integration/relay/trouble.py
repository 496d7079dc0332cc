"""A destination that does what the payload tells it; workers import it from where it lies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Result
from delta_outbox.publishers.protocol import Event, EventBatch

GIVE_UP = 240.0  # seconds until a slow event fails without having been overtaken


class Trouble:
    """Fail always, once or slowly, hold back once, kill the worker, or deliver."""

    ordered: ClassVar[bool] = False

    def open(self, settings: Mapping[str, object]) -> None:
        """Need nothing."""

    def publish(self, events: EventBatch) -> list[Result]:
        """Answer as the payloads say."""
        return [self._answer(event) for event in events]

    def close(self) -> None:
        """Have nothing to release."""

    def _answer(self, event: Event) -> Result:
        if event.payload == b"fail":
            return Failed(error=f"attempt {event.attempt} failed")
        if event.payload == b"fail once" and event.attempt == 1:
            return Failed(error="the first attempt failed")
        word, _, path = event.payload.decode().partition(" until ")
        if word == "slow" and event.attempt == 1:
            return Failed(error=f"overtaken: {_wait_for(Path(path))}")
        if word == "enough":
            Path(path).touch()
        if event.payload == b"kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if event.payload == b"hold once" and event.attempt == 1:
            return NotSent()
        return Delivered()


def _wait_for(path: Path) -> bool:
    """Wait until a file exists, and say whether it does."""
    until = time.monotonic() + GIVE_UP
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.1)
    return path.exists()
