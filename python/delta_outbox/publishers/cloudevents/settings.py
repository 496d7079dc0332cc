"""Settings of CloudEvents: the table `[publishers.<destination>.cloudevents]`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from delta_outbox.publishers.cloudevents.text import MEDIA_TYPE, NO_STRING

CLOUDEVENTS: Final = "cloudevents"
"""The table within the settings of a destination that is not its publisher's."""
DEFAULT_CONTENT_TYPE: Final = "application/json"
_ALLOWED: Final = ("source", "content_type", "extensions")
_RESERVED: Final = frozenset(
    """
    data data_base64 datacontenttype dataschema id partitionkey source specversion subject time
    traceparent tracestate type
    """.split()  # noqa: SIM905 - easier to check than thirteen quotes
)
_NAME: Final = re.compile(r"[a-z0-9]{1,20}")
_REFERENCE: Final = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
_ANYTHING: Final = re.compile(r"(?s).+")


@dataclass(frozen=True, kw_only=True)
class CloudEventSettings:
    """What events do not know of themselves.

    Args:
        source: URI-reference of whoever makes the events; with the id it identifies an event.
        content_type: of payloads whose producer names none.
        extensions: further attributes of every event.

    Raises:
        ValueError: one sentence about the first that breaks a rule.
    """

    source: str
    content_type: str = DEFAULT_CONTENT_TYPE
    extensions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _matches(_REFERENCE, self.source):
            raise ValueError(
                "cloudevents: `source` must be a URI-reference such as /shop/orders or "
                f"https://example.com/shop. Got: {self.source!r}."
            )
        if not _matches(MEDIA_TYPE, self.content_type):
            raise ValueError(
                "cloudevents: `content_type` must be a media type such as application/json. "
                f"Got: {self.content_type!r}."
            )
        if not isinstance(self.extensions, Mapping):
            raise ValueError("cloudevents: `extensions` must be a table of names and texts.")
        for name, value in self.extensions.items():
            if not _NAME.fullmatch(name) or name in _RESERVED:
                raise ValueError(
                    "cloudevents: the name of an extension must be 1 to 20 lower-case letters or "
                    f"digits, and no attribute that is set from the event. Got: {name!r}."
                )
            if not _matches(_ANYTHING, value) or NO_STRING.search(value):
                raise ValueError(
                    f"cloudevents: the extension `{name}` must be text without control characters."
                )


def _matches(rule: re.Pattern[str], value: object) -> bool:
    # Settings come from a file: they may be anything, whatever their type says.
    return isinstance(value, str) and rule.fullmatch(value) is not None


def parse_cloudevents(table: object) -> CloudEventSettings:
    """Check the table of a destination.

    Args:
        table: as the settings file has it.

    Raises:
        ValueError: one sentence about the first setting that breaks a rule.
    """
    if not isinstance(table, Mapping):
        raise ValueError("cloudevents: must be a table with `source`.")
    for name in table:
        if name not in _ALLOWED:
            close = difflib.get_close_matches(name, _ALLOWED, n=1)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            raise ValueError(
                f"cloudevents: `{name}` is not among the settings that can be given.{hint}"
            )
    if "source" not in table:
        raise ValueError(
            "cloudevents: `source` must be given, for with the id it identifies an event: a "
            "URI-reference such as /shop/orders."
        )
    return CloudEventSettings(**table)
