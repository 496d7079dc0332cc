"""Which contracts strangers may be given: those by which nobody can stop the server."""

from __future__ import annotations

from collections.abc import Sequence

from delta_outbox.core.errors import BadSettings
from delta_outbox.workflow_engine.items import ItemType


def check_types(types: Sequence[ItemType]) -> None:
    """Demand that strangers cannot stop the server by an answer.

    Args:
        types: of items.

    Raises:
        BadSettings: a contract has patterns of Python's engine.
    """
    slow = [f"{one.workflow}.{one.task}" for one in types if one.has_slow_patterns]
    if slow:
        raise BadSettings(
            f"The contracts of items must have no patterns of Python's engine. Got: "
            f"{', '.join(slow)}.",
            remedy="Give patterns as text, and leave `regex_engine` as it is.",
        )
