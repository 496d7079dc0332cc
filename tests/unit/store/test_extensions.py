"""Until when an item is open, by where its delivery stands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.store.extensions import open_until

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
CLAIM, EXTENSION = NOW + timedelta(hours=1), NOW + timedelta(hours=2)


@pytest.mark.parametrize(
    ("until", "standing"),
    [
        (CLAIM, {"state": State.CLAIMED, "reason": Reason.CLAIMED, "claimed_by": TO_DO}),
        # An extension has ended the claim of `todo`, and makes it anew with its next append.
        (EXTENSION, {"state": State.PENDING, "reason": Reason.RELEASED}),
        # Not open yet: nobody has claimed it, or a relay has.
        (None, {"state": State.PENDING, "reason": None}),
        (None, {"state": State.CLAIMED, "reason": Reason.CLAIMED, "claimed_by": "relay-1"}),
        (None, {"state": State.PUBLISHED, "reason": Reason.COMPLETED}),
        (None, {"state": State.DEAD, "reason": Reason.OPERATOR}),
    ],
)
def test_an_item_is_open_between_two_claims(
    until: datetime | None, standing: dict[str, Any]
) -> None:
    """An item is open as long as `todo` has it, and while an extension makes its claim anew."""
    row = {
        "claimed_by": None,
        "lease_expires_at": CLAIM if standing["state"] is State.CLAIMED else None,
        "available_at": EXTENSION,
        **standing,
    }
    assert until == open_until(row)
