"""Until when an item is open, by where its delivery stands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.lifecycle.claims import open_until
from delta_outbox.lifecycle.states import State

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
CLAIM = NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    ("until", "state", "claimed_by"),
    [
        (CLAIM, State.CLAIMED, TO_DO),
        (None, State.CLAIMED, "relay-1"),  # whose tasks could not be read
        (None, State.PENDING, None),  # nobody has claimed it yet, or an extension makes that anew
        (None, State.PUBLISHED, TO_DO),
        (None, State.DEAD, None),
    ],
)
def test_an_item_is_open_while_todo_has_it(
    until: datetime | None, state: State, claimed_by: str | None
) -> None:
    """An item can be answered as long as its claim is that of people."""
    row: dict[str, Any] = {"state": state, "claimed_by": claimed_by, "lease_expires_at": CLAIM}
    assert until == open_until(row)
