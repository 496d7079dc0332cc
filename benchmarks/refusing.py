"""A destination that is down: every attempt fails at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from delta_outbox.publishers import EventBatch, Failed, Result


class Refusing:
    """Deliver nothing."""

    ordered: ClassVar[bool] = True

    def open(self, settings: Mapping[str, object]) -> None:
        """Need nothing."""

    def publish(self, events: EventBatch) -> list[Result]:
        """Refuse every event."""
        return [Failed(error="the benchmark has it down")] * len(events)

    def close(self) -> None:
        """Have nothing to release."""
