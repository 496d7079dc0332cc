"""Consumers: each delivery is taken into a Delta table once (docs/consumers.md)."""

from __future__ import annotations

from delta_outbox.consumer.inbox import Inbox, NoIdentity, insert_new, with_identity

__all__ = ["Inbox", "NoIdentity", "insert_new", "with_identity"]
