"""When a relay that stands by looks at the work of another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from delta_outbox.relay.plan.planning import Planning
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


def test_new_events_are_left_to_who_works() -> None:
    """A relay that stands by has news when the other one ends, and not for each event that comes:
    it would poll without a pause.
    """
    gone = [False]
    planning = object.__new__(Planning)
    planning._stands_by = True
    planning._plan = cast("Any", SimpleNamespace(versions={"events": 1}))
    planning._standby = cast("Any", SimpleNamespace(owner_has_left=lambda: gone[0]))
    projection = SimpleNamespace(latest_version_here=lambda _: 2)
    tables = SimpleNamespace(events="events")
    planning._outbox = cast("Any", SimpleNamespace(projection=projection, tables=tables))
    assert not planning.has_news()
    gone[0] = True
    assert planning.has_news()
    gone[0] = planning._stands_by = False
    assert planning.has_news()
