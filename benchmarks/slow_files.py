"""A destination that takes its time: files, after a sleep for each event."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from delta_outbox.publishers import EventBatch, Result
from delta_outbox.publishers.jsonl import JsonlPublisher

TYPE: Final = "benchmarks.slow_files:SlowFiles"
_SECONDS: Final = "seconds_per_event"


class SlowFiles:
    """Sleep for a call as long as its events take, then write them as `jsonl` does."""

    ordered: ClassVar[bool] = True

    def __init__(self) -> None:
        self._files = JsonlPublisher()
        self._seconds = 0.0

    @classmethod
    def prepare(cls, settings: Mapping[str, object], home: Path) -> dict[str, object]:
        """Make `path` absolute, as `jsonl` does."""
        return JsonlPublisher.prepare(settings, home)

    @classmethod
    def validate(cls, settings: Mapping[str, object]) -> None:
        """Check what `jsonl` needs."""
        JsonlPublisher.validate(_of_files(settings))

    def open(self, settings: Mapping[str, object]) -> None:
        """Prepare as `jsonl` does."""
        self._seconds = float(str(settings[_SECONDS]))
        self._files.open(_of_files(settings))

    def publish(self, events: EventBatch) -> list[Result]:
        """Sleep, but not beyond the deadline, and write."""
        time.sleep(min(self._seconds * len(events), events.remaining_seconds()))
        return self._files.publish(events)

    def close(self) -> None:
        """Close as `jsonl` does."""
        self._files.close()


def _of_files(settings: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in settings.items() if name != _SECONDS}
