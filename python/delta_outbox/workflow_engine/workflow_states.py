"""The states of instances, as the view `workflow_instances` has them."""

from __future__ import annotations

from typing import Final

OPEN: Final = ("running", "waiting_for_time", "waiting_for_person", "stranded")
STATES: Final = (*OPEN, "ended")
