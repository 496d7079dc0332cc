"""The command `outbox`."""

from __future__ import annotations

__all__: list[str] = []
