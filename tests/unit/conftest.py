"""Settings of the unit tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is no fault: no example has a time to keep.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
