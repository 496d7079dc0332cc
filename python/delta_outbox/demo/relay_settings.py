"""What every home of the demo says about its relay."""

from __future__ import annotations

from typing import Final

RELAY_SETTINGS: Final = """\
[relay]
batch_size = 50000  # a year of flights waits at once; the default is 10000
"""
