"""The relations of an outbox by name, and the Arrow form of the rows of their logs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from delta_outbox.core.errors import WrongUsage

FORMAT_VERSION: Final = 2
FORMAT_PROPERTY: Final = "delta_outbox.format_version"

LOGS: Final = (
    "outbox_events",
    "outbox_transitions",
    "outbox_commands",
    "outbox_progress",
    "outbox_relays",
    "outbox_purged",
)
PROJECTION: Final = "outbox_state"

_INSTANT: Final = pa.timestamp("us", tz="UTC")

# twin: macros/storage/ddl_transitions.sql::ddl_transitions
TRANSITIONS: Final = pa.schema(
    [
        ("epoch", pa.int32()),
        ("lane", pa.int32()),
        ("sequence", pa.int64()),
        ("event_id", pa.string()),
        ("arrival", pa.int64()),
        ("destination", pa.string()),
        ("lifecycle", pa.int32()),
        ("attempt", pa.int32()),
        ("from_state", pa.string()),
        ("to_state", pa.string()),
        ("reason", pa.string()),
        ("claim_id", pa.string()),
        ("relay_id", pa.string()),
        ("lease_expires_at", _INSTANT),
        ("claim_size", pa.int32()),
        ("publish_attempts", pa.int32()),
        ("crashes", pa.int32()),
        ("suspect", pa.int32()),
        ("occurred_at", _INSTANT),
        ("available_at", _INSTANT),
        ("error", pa.string()),
        ("receipt", pa.string()),
        ("outcome", pa.string()),
        ("outcome_data", pa.string()),
        ("actor", pa.string()),
        ("command_id", pa.string()),
        ("policy_version", pa.string()),
    ]
)
"""The columns of outbox_transitions that a writer gives; occurred_date is generated."""

# twin: macros/storage/ddl_commands.sql::ddl_commands
COMMANDS: Final = pa.schema(
    [
        ("command_id", pa.string()),
        ("kind", pa.string()),
        ("event_id", pa.string()),
        ("arrival", pa.int64()),
        ("destination", pa.string()),
        ("lifecycle", pa.int32()),
        ("arguments", pa.string()),
        ("actor", pa.string()),
        ("reason", pa.string()),
        ("requested_at", _INSTANT),
    ]
)
"""The columns of outbox_commands that a writer gives; requested_date is generated."""

# twin: macros/storage/ddl_relays.sql::ddl_relays
BEATS: Final = pa.schema(
    [
        ("relay_id", pa.string()),
        ("kind", pa.string()),
        ("lanes", pa.list_(pa.int32())),
        ("at", _INSTANT),
        ("version", pa.string()),
        ("driver_id", pa.string()),
    ]
)
"""The columns of outbox_relays that a writer gives; beat_date is generated."""


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The names of an outbox's relations.

    Args:
        schema: where they are.

    Raises:
        WrongUsage: the schema's name is not a plain identifier.
    """

    schema: str = "outbox"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", self.schema):
            raise WrongUsage(
                f"schema: must be letters, digits and underscores. Got: {self.schema!r}."
            )

    def __getitem__(self, name: str) -> str:
        """Return the full name of a relation, for example `outbox.outbox_events`."""
        return f"{self.schema}.{name}"

    @property
    def events(self) -> str:
        """The log of events."""
        return self["outbox_events"]

    @property
    def transitions(self) -> str:
        """The log of transitions."""
        return self["outbox_transitions"]

    @property
    def commands(self) -> str:
        """The log of what operators ask for."""
        return self["outbox_commands"]

    @property
    def progress(self) -> str:
        """The numbered writes of derived writers."""
        return self["outbox_progress"]

    @property
    def relays(self) -> str:
        """The heartbeats of relays."""
        return self["outbox_relays"]

    @property
    def purged(self) -> str:
        """What is left of the deliveries that were purged."""
        return self["outbox_purged"]

    @property
    def state(self) -> str:
        """The projection."""
        return self["outbox_state"]
