"""The conformance kit: the rules of the Open Outbox texts as checks that any store can be put to.

`python -m delta_outbox.testing.conformance --store package.module:Factory`; docs/conformance.md
says how an adapter is written.
"""

from __future__ import annotations

from delta_outbox.testing.conformance.adapter import (
    EVENT,
    SHORT_LIVED,
    Adapter,
    Capability,
    Change,
    Held,
    Message,
    NewEvent,
    Noticed,
    Record,
    Refused,
    Step,
    Stores,
    Terms,
)

__all__ = [
    "EVENT",
    "SHORT_LIVED",
    "Adapter",
    "Capability",
    "Change",
    "Held",
    "Message",
    "NewEvent",
    "Noticed",
    "Record",
    "Refused",
    "Step",
    "Stores",
    "Terms",
]
