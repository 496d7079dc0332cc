"""The settings of `delivery = "exactly_once"`, and the names that follow from them."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Final

AT_LEAST_ONCE: Final = "at_least_once"
EXACTLY_ONCE: Final = "exactly_once"
DEFAULT_REPLICATION: Final = 3
DEFAULT_PREFIX: Final = "delta-outbox"
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_PREFIX: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_NAMES: Final = ("marker_topic", "marker_replication", "transactional_id_prefix")


@dataclass(frozen=True, kw_only=True)
class ExactlyOnce:
    """How a destination delivers exactly once.

    Args:
        marker_topic: where a record of each transaction's events is written, within it.
        marker_replication: replicas that the marker topic must have at least.
        prefix: of transactional ids, for the brokers' access rules.
    """

    marker_topic: str
    marker_replication: int = DEFAULT_REPLICATION
    prefix: str = DEFAULT_PREFIX

    def transactional_id(self, slot: str, destination: str) -> str:
        """Return the name under which a slot sends.

        Args:
            slot: of a batch.
            destination: of the same batch.
        """
        return f"{self.prefix}.{slot}.{destination}"

    @property
    def probe_id(self) -> str:
        """Return the name under which it is tried whether transactions are possible."""
        return f"{self.prefix}.probe"

    @property
    def group(self) -> str:
        """Return the consumer group of those who read markers; nothing is committed under it."""
        return f"{self.prefix}.markers"


def parse_delivery(settings: MutableMapping[str, object]) -> ExactlyOnce | None:
    """Take the settings of delivery out of others; None for at least once.

    Args:
        settings: by dotted name.

    Raises:
        ValueError: one sentence about the first that breaks a rule.
    """
    delivery = settings.pop("delivery", AT_LEAST_ONCE)
    given = {name: settings.pop(name) for name in _NAMES if name in settings}
    if delivery not in (AT_LEAST_ONCE, EXACTLY_ONCE):
        raise ValueError(
            f"kafka: `delivery` must be {AT_LEAST_ONCE} or {EXACTLY_ONCE}. Got: {delivery!r}."
        )
    if delivery == AT_LEAST_ONCE:
        if given:
            raise ValueError(f'kafka: `{next(iter(given))}` needs `delivery = "{EXACTLY_ONCE}"`.')
        return None
    topic = given.get("marker_topic")
    if not isinstance(topic, str) or not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise ValueError(
            f'kafka: `delivery = "{EXACTLY_ONCE}"` needs `marker_topic`, a topic of its own. '
            f"Got: {topic!r}."
        )
    replication = given.get("marker_replication", DEFAULT_REPLICATION)
    if type(replication) is not int or replication < 1:
        raise ValueError(
            f"kafka: `marker_replication` must be a whole number from 1. Got: {replication!r}."
        )
    prefix = given.get("transactional_id_prefix", DEFAULT_PREFIX)
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise ValueError(
            "kafka: `transactional_id_prefix` must be 1 to 100 letters, digits, dots, hyphens or "
            f"underscores. Got: {prefix!r}."
        )
    return ExactlyOnce(marker_topic=topic, marker_replication=replication, prefix=prefix)
