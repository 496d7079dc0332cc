"""Publishers that say the wrong thing about their settings and their destination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outbox_line import ask
from tests.publishers.kit.right import RightPublisher


class RefusesGoodSettings(RightPublisher):
    """Takes no port."""

    caught_by = ("good_settings_are_accepted",)

    @classmethod
    def validate(cls, settings: Mapping[str, Any]) -> None:
        super().validate({**settings, "the port": ""})


class TakesAnySetting(RightPublisher):
    """Does not notice a setting that does not exist."""

    caught_by = ("an_unknown_setting_is_refused",)

    @classmethod
    def validate(cls, settings: Mapping[str, Any]) -> None:
        super().validate({name: settings.get(name) for name in ("host", "port", "password")})


class ShowsSettings(RightPublisher):
    """Shows all settings when one is wrong."""

    caught_by = ("a_refusal_of_settings_shows_no_secret",)

    @classmethod
    def validate(cls, settings: Mapping[str, Any]) -> None:
        try:
            super().validate(settings)
        except ValueError as error:
            raise ValueError(f"wrong settings: {settings}") from error


class ConnectsToValidate(RightPublisher):
    """Tries the settings out."""

    caught_by = ("validate_does_not_connect",)

    @classmethod
    def validate(cls, settings: Mapping[str, Any]) -> None:
        super().validate(settings)
        cls.probe(settings, 1.0)


class ProbesInVain(RightPublisher):
    """Never finds its destination."""

    caught_by = ("a_probe_is_content_with_an_answer",)

    @classmethod
    def probe(cls, settings: Mapping[str, Any], timeout: float) -> None:
        raise ConnectionError("nobody is there")


class ProbesNothing(RightPublisher):
    """Is content with a destination without looking at it."""

    caught_by = ("a_probe_notices_that_nobody_listens", "a_probe_notices_silence")

    @classmethod
    def probe(cls, settings: Mapping[str, Any], timeout: float) -> None:
        """Do nothing."""


class ProbesForEver(RightPublisher):
    """Waits for a sign of life for as long as it takes."""

    caught_by = ("a_probe_notices_silence",)

    @classmethod
    def probe(cls, settings: Mapping[str, Any], timeout: float) -> None:
        ask(settings, 60.0, {"ping": True})
        raise ConnectionError("it took too long")
