"""A destination that tells everything it knows; workers import it from where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from delta_outbox.lifecycle.results import Delivered, Failed, Rejected, Result, Unknown
from delta_outbox.publishers.protocol import Event, EventBatch


class Chatterbox:
    """Repeat the settings, the payload and the headers, in the way that the event's type names."""

    ordered: ClassVar[bool] = False

    @classmethod
    def validate(cls, settings: Mapping[str, object]) -> None:
        """Raise where the settings say so."""
        if settings.get("raises") == "validate":
            raise KeyError(f"{dict(settings)}")
        if settings.get("raises") == "sentence":
            raise ValueError(f"bad settings: {settings['password']}, {settings['account']}")

    @classmethod
    def probe(cls, settings: Mapping[str, object], timeout: float) -> None:
        """Raise where the settings say so."""
        if settings.get("raises") == "probe":
            raise ConnectionError(f"{settings['url']} refused {settings['password']!r}")
        if settings.get("raises") == "probe from":
            try:
                raise OSError(f"{settings['account']}")
            except OSError as error:
                raise RuntimeError("refused") from error

    def open(self, settings: Mapping[str, object]) -> None:
        """Keep all of them."""
        self._settings = dict(settings)
        if settings.get("raises") == "open":
            raise ConnectionError(f"cannot open with {self._settings}")

    def publish(self, events: EventBatch) -> list[Result]:
        """Answer as the types say."""
        return [self._answer(event) for event in events]

    def close(self) -> None:
        """Have nothing to release."""

    def _answer(self, event: Event) -> Result:
        says = f"{self._settings} refused {event.payload!r} with {event.headers}"
        match event.event_type.removeprefix("canary."):
            case "failed":
                return Failed(error=says)
            case "rejected":
                return Rejected(error=f"400: {event.payload.decode()} {self._settings['password']}")
            case "unknown":
                return Unknown(error=f"{self._settings['account']} {event.headers}")
            case "raised":
                raise OSError(says)
            case _:
                return Delivered(receipt={"said": self._settings, "by": self._settings["account"]})
