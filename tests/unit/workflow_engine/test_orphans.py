"""Items that nobody can answer."""

from __future__ import annotations

from tests.unit.workflow_engine.derived_log import NOW

from delta_outbox.workflow_engine.item_deliveries import WaitingItem
from delta_outbox.workflow_engine.items import orphans


def waiting(name: str, *roles: str) -> WaitingItem:
    """Return an item for some roles."""
    return WaitingItem(
        task_id=name,
        workflow="orders",
        instance="1",
        task="ask",
        title="Ask",
        visit=1,
        roles=roles,
        opened_at=NOW,
        due_at=None,
        expires_at=None,
        assigned_to="ann",
    )


def test_an_orphan_has_no_role_that_anybody_has() -> None:
    """One role that somebody has is enough, whoever is said to take care of the item."""
    items = [waiting("a", "clerk"), waiting("b", "clerk", "judge"), waiting("c", "judge")]
    assert items[2:] == orphans(items, {"clerk", "guest"})
    assert items == orphans(items, ())
    assert [] == orphans(items, {"clerk", "judge"})
