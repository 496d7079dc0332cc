"""The rules of the four Open Outbox texts, and the known defects, each with its check."""

from __future__ import annotations

from typing import Final

from delta_outbox.testing.conformance.check import Rule
from delta_outbox.testing.conformance.rules.defects import DEFECTS
from delta_outbox.testing.conformance.rules.event_model import EVENT_MODEL
from delta_outbox.testing.conformance.rules.lifecycle import LIFECYCLE
from delta_outbox.testing.conformance.rules.store_contract import STORE_CONTRACT
from delta_outbox.testing.conformance.rules.terminology import TERMINOLOGY

PARTS: Final = {
    "L": "Processing lifecycle",
    "S": "Store contract",
    "E": "Event model",
    "T": "Terminology",
    "D": "Known defects of relays",
}

RULES: Final[tuple[Rule, ...]] = (
    *LIFECYCLE,
    *STORE_CONTRACT,
    *EVENT_MODEL,
    *TERMINOLOGY,
    *DEFECTS,
)
