"""A destination that takes everything and keeps nothing: for measuring the relay itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import ClassVar

from delta_outbox.lifecycle.results import Delivered, NotSent, Result
from delta_outbox.publishers.protocol import EventBatch


class NullPublisher:
    """Deliver to nowhere."""

    ordered: ClassVar[bool] = True

    @classmethod
    def validate(cls, settings: Mapping[str, object]) -> None:
        """Refuse settings: there is nothing to set."""
        if settings:
            raise ValueError(f"null: has no settings. Got: {', '.join(sorted(settings))}.")

    def open(self, settings: Mapping[str, object]) -> None:
        """Check the settings."""
        self.validate(settings)

    def publish(self, events: EventBatch) -> list[Result]:
        """Answer Delivered for every event, NotSent after the deadline."""
        result: Result = Delivered() if time.monotonic() < events.deadline else NotSent()
        return [result] * len(events)

    def close(self) -> None:
        """Do nothing."""
