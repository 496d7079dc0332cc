"""How much later than its deadline a call may end."""

from __future__ import annotations

from typing import Final

GRACE: Final = 3.0  # seconds, for a busy machine; a call that ignores its deadline takes longer
