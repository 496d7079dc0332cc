"""How many attempts may be claimed."""

from __future__ import annotations

from typing import Any

from delta_outbox.workflow_engine.hosts.call import TaskFacts
from delta_outbox.workflow_engine.hosts.places import HostLimits, Places


def test_a_slow_third_party_leaves_places_to_the_others() -> None:
    """Nobody takes more places than it leaves free; who has none gets one while there is one."""
    facts: dict[str, Any] = {"category": "idempotent", "asynchronous": True}
    bank, post = (TaskFacts(third_party=one, **facts) for one in ("bank", "post"))
    places = Places(HostLimits(in_loops=8), {"a/a": bank, "b/b": post})
    taken = [places.take(bank) for _ in range(8)]
    assert 4 == sum(taken)
    assert (0, 2) == (places.room(bank), places.room(post))
    assert 2 == sum(places.take(post) for _ in range(8))
    places.give(bank)
    assert (0, 0) == (places.room(bank), places.room(post))
    alone = Places(HostLimits(in_loops=8), {"a/a": bank})
    assert 8 == alone.room(bank)
