"""The conformance kit: the rules of the Open Outbox texts as checks that any store can be put to.

`python -m delta_outbox.testing.conformance --store package.module:Factory`; docs/conformance.md
says how an adapter is written.

- adapter: what a store must offer, and may leave out
- check: what a scenario, a check and a rule are
- checks: the scenarios, and the checks that judge them
- clock: a clock that stands still until it is told to go on
- delta: the adapter of the outbox on Delta
- delta_setup: its policies, and what it has published
- delta_tampering: rewrites its logs, to see what is found
- journal: the record of the in-memory store
- memory: the reference store, in memory
- memory_policies: what the in-memory store promises, and how it cuts a claim
- memory_row: what it knows of one event
- report: the results as a table and as two documents
- rules: the rules of the four texts, each with its check
- run: plays every scenario
- stage: what scenarios do often, in short
- wrong: stores with one defect each, which the checks must find
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
