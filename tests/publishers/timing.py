"""How much later than its deadline a call may end."""

from __future__ import annotations

from typing import Final

# Seconds. On a busy machine a process may not run for some; a call that ignores its deadline waits
# for a server that is frozen, or says nothing, for ever.
GRACE: Final = 20.0
