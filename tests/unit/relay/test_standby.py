"""When a relay that stands by looks at the work of another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from delta_outbox.relay.plan.standby import Standby


def test_the_end_of_the_owner_is_told_once() -> None:
    """At the end of its process, once: where a third relay is next, it is not asked for again."""
    gone: set[str] = set()
    heart = SimpleNamespace(earlier=lambda: ["owner"], is_gone=gone.__contains__)
    claims = SimpleNamespace(is_alone=False, is_gone=lambda _: False)
    outbox: Any = SimpleNamespace(expired_claims=claims)
    standby = Standby(outbox, cast("Any", heart), cast("Any", None))
    assert not standby.owner_has_left()  # there is none yet
    assert standby.has_owner([])
    assert not standby.owner_has_left()
    gone.add("owner")
    assert standby.owner_has_left()
    assert not standby.owner_has_left()
    heart.earlier = lambda: ["next"]
    assert standby.has_owner([])
    assert not standby.owner_has_left()
    gone.add("next")
    assert standby.owner_has_left()
