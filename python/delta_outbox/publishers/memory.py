"""A destination inside this process: for unit tests and for examples.

It keeps events of the process that publishes. A relay publishes from executors, which are other
processes: there its events are gone when the worker ends. Use `jsonl` to look at what a relay did.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import ClassVar

from delta_outbox.lifecycle.results import Delivered, NotSent, Result
from delta_outbox.publishers.protocol import Event, EventBatch


class MemoryPublisher:
    """Keep events under the setting `name` until `clear`."""

    ordered: ClassVar[bool] = True
    _stores: ClassVar[dict[str, list[Event]]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def validate(cls, settings: Mapping[str, object]) -> None:
        """Refuse anything but a `name`."""
        unknown = sorted(set(settings) - {"name"})
        if unknown:
            raise ValueError(f"memory: the only setting is `name`. Got: {', '.join(unknown)}.")
        if not isinstance(settings.get("name", ""), str):
            raise ValueError("memory: `name` must be a string.")

    @classmethod
    def delivered(cls, name: str = "default") -> list[Event]:
        """Return what was delivered under a name, in order.

        Args:
            name: the setting `name` of the destination.
        """
        with cls._lock:
            return list(cls._stores.get(name, ()))

    @classmethod
    def clear(cls, name: str = "default") -> None:
        """Forget what was delivered under a name.

        Args:
            name: the setting `name` of the destination.
        """
        with cls._lock:
            cls._stores.pop(name, None)

    def open(self, settings: Mapping[str, object]) -> None:
        """Check the settings and choose the store."""
        self.validate(settings)
        self._name = str(settings.get("name", "default"))

    def publish(self, events: EventBatch) -> list[Result]:
        """Keep every event, none after the deadline."""
        if time.monotonic() >= events.deadline:
            return [NotSent()] * len(events)
        with self._lock:
            store = self._stores.setdefault(self._name, [])
            first = len(store)
            store.extend(events)
        return [Delivered(receipt={"number": first + i}) for i in range(len(events))]

    def close(self) -> None:
        """Keep what was delivered; there is nothing to release."""
