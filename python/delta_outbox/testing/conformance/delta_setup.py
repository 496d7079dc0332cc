"""What the kit needs of an outbox on Delta: policies with small figures, and what is published."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.api import Outbox
from delta_outbox.core.globs import glob_to_regex
from delta_outbox.core.settings import RelaySettings
from delta_outbox.core.tables import Tables
from delta_outbox.lifecycle.claims import Claim
from delta_outbox.publishers.jsonl import read_lines
from delta_outbox.relay.publish.publishing import Publishing
from delta_outbox.testing.conformance.adapter import SHORT_LIVED, Message, Terms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEASE_SECONDS: Final = 120.0
BACKOFF_SECONDS: Final = 60.0

TERMS: Final = Terms(
    # Without the owner's word a lease is over when it has ended by more than clocks may differ.
    lease_seconds=LEASE_SECONDS + RelaySettings().clock_skew_seconds + 1,
    backoff_seconds=BACKOFF_SECONDS,
    max_attempts=3,
    max_crashes=2,
    age_seconds=600,
)


def set_policies(spark: SparkSession, tables: Tables) -> None:
    """Put the policies of the kit before all others.

    Args:
        spark: the session to write with.
        tables: the names of the relations.
    """
    ages = ((SHORT_LIVED, TERMS.age_seconds), ("conformance.*", None))
    for position, (event_type, age_seconds) in enumerate(ages, start=-len(ages)):
        row: dict[str, object] = {
            "position": position,
            "event_type": f"'{event_type}'",
            "event_type_regex": f"r'{glob_to_regex(event_type)}'",
            "destination": "'default'",
            "route": "'{event_type}'",
            "format": "'raw'",
            "ordering": "'strict'",
            "order_scope": "'key'",
            "on_dead": "'continue'",
            "max_attempts": TERMS.max_attempts,
            "max_crashes": TERMS.max_crashes,
            "lease_seconds": LEASE_SECONDS,
            "backoff_max_seconds": BACKOFF_SECONDS,
            "backoff_jitter": 0,
            "expires_after_seconds": "null" if age_seconds is None else age_seconds,
        }
        names, values = ", ".join(row), ", ".join(map(str, row.values()))
        spark.sql(f"insert into {tables['policy_rows']} ({names}) values ({values})")


def messages_of(outbox: Outbox, claim: Claim, folder: Path) -> Mapping[str, Message]:
    """Publish a claim to files, as a relay does, and return what is in them.

    Args:
        outbox: whose claim it is.
        claim: the claim.
        folder: empty; takes the files.
    """
    Publishing(
        outbox.spark,
        outbox.tables,
        outbox.statements,
        destinations={"default": ("jsonl", {"path": str(folder)})},
        payload_formats={},
        parallelism=1,
    ).publish(claim)
    return {line["event_id"]: _message(line) for line in read_lines(folder)}


def _message(line: Mapping[str, Any]) -> Message:
    text = line.get("payload")
    payload = base64.b64decode(line["payload_base64"]) if text is None else text.encode("utf-8")
    return Message(
        event_id=line["event_id"],
        event_type=line["event_type"],
        payload=payload,
        headers=line["headers"],
        key=line["key"],
    )
