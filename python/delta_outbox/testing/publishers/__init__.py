"""The publisher kit: what every publisher must keep, as checks that any publisher can be put to.

`check(adapter)` from Python, `python -m delta_outbox.testing.publishers package.module:Adapter`
from a shell; docs/publishers/own.md says how an adapter is written.
"""

from __future__ import annotations

from delta_outbox.testing.publishers.adapter import (
    Adapter,
    Arrival,
    Capability,
    Content,
    delivery_id_of,
)
from delta_outbox.testing.publishers.proxy import Proxy, TcpAdapter
from delta_outbox.testing.publishers.run import Finding, Verdict, check, complaints
from delta_outbox.testing.publishers.table import CHECKS, NAMES

__all__ = [
    "CHECKS",
    "NAMES",
    "Adapter",
    "Arrival",
    "Capability",
    "Content",
    "Finding",
    "Proxy",
    "TcpAdapter",
    "Verdict",
    "check",
    "complaints",
    "delivery_id_of",
]
