"""Operators ask for replays, kills, releases and pauses: checked, shown, appended as commands."""

from __future__ import annotations

__all__: list[str] = []
