"""The times of the demo, on which its workflows, third parties and audit agree; in seconds."""

from __future__ import annotations

from typing import Final

CALL: Final = 6.0
"""How long a call may take; the clients give up two seconds earlier."""
SLOW: Final = 1.5
"""How long a third party thinks that answers late, but in time."""
LATE: Final = 7.0
"""How long until a third party acts that acts late: nobody listens any more."""
SILENT: Final = 8.0
"""How long a third party keeps silent."""
SETTLES: Final = 15.0
"""After which nothing comes of a call any more."""
CUSTOMER: Final = 100.0
"""How long a customer may take to decide. Not much shorter: within the last minute of an item each
answer has to end it before anybody can be told that it counts.
"""
PAYMENT: Final = 120.0
"""How long a customer may take to pay. Not much shorter, likewise."""
ON_RECORD: Final = 60.0
"""How long after a call its outcome may not be on record yet, on a busy machine."""
