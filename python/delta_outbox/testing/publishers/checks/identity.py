"""Checks of the id by which consumers and brokers de-duplicate."""

from __future__ import annotations

from dataclasses import dataclass, replace

from delta_outbox.lifecycle.results import Delivered
from delta_outbox.testing.demands import holds, same
from delta_outbox.testing.publishers.check import Scenario
from delta_outbox.testing.publishers.stage import Call, Stage, by_id


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What was seen: an attempt, a second one, a replay, and the ids that arrived."""

    first: Call
    retry: Call
    replay: Call
    arrived: frozenset[str]


def _play(stage: Stage) -> Identity:
    publisher = stage.open()
    event = stage.event("same")
    again = replace(event, attempt=2, claim_id=f"{event.claim_id}-2")
    anew = replace(event, lifecycle=1, claim_id=f"{event.claim_id}-3")
    first, retry, replay = (stage.publish(publisher, [one]) for one in (event, again, anew))
    arrived = frozenset(by_id(stage.arrivals(first, retry, replay)))
    return Identity(first=first, retry=retry, replay=replay, arrived=arrived)


IDENTITY = Scenario("identity", _play)


@IDENTITY.check()
def a_retry_is_the_same_delivery(seen: Identity) -> None:
    """A second attempt carries the id of the first: its event_id."""
    expected = {*seen.first.ids(), *seen.replay.ids()}
    same(sorted(expected), sorted(seen.arrived | set(seen.replay.ids())), "ids that arrived")
    holds(seen.retry.ids(Delivered), "the second attempt is not Delivered")


@IDENTITY.check()
def a_replay_is_a_new_delivery(seen: Identity) -> None:
    """A replay carries an id of its own, `event_id:lifecycle`, and arrives beside the first."""
    holds(seen.replay.ids(Delivered), "the replay is not Delivered")
    holds(seen.replay.ids()[0] in seen.arrived, f"{seen.replay.ids()[0]} has not arrived")
