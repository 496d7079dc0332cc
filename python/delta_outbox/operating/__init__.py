"""What an operator asks for: replay, kill, release. A request is checked, shown, then appended."""

from __future__ import annotations

__all__: list[str] = []
