"""Checks of a call whose deadline has passed."""

from __future__ import annotations

from dataclasses import dataclass

from delta_outbox.lifecycle.results import NotSent
from delta_outbox.testing.demands import holds, same
from delta_outbox.testing.publishers.check import Scenario
from delta_outbox.testing.publishers.stage import Call, Stage, by_id


@dataclass(frozen=True, kw_only=True)
class Late:
    """What was seen: a call behind its deadline, what had arrived of it, also after `close`."""

    call: Call
    arrived: frozenset[str]
    arrived_after_close: frozenset[str]


def _play(stage: Stage) -> Late:
    publisher = stage.open()
    stage.publish(publisher, [stage.event("warm")])
    call = stage.publish(publisher, stage.events(3, "late"), seconds=-1.0)
    arrived = frozenset(by_id(stage.arrivals()))
    publisher.close()
    after = frozenset(by_id(stage.arrivals()))
    late = frozenset(call.ids())
    return Late(call=call, arrived=arrived & late, arrived_after_close=after & late)


LATE = Scenario("deadline", _play)


@LATE.check()
def behind_the_deadline_all_is_not_sent(seen: Late) -> None:
    """A call whose deadline has passed answers NotSent for every event."""
    same(seen.call.ids(), seen.call.ids(NotSent), "what is NotSent")


@LATE.check()
def behind_the_deadline_nothing_arrives(seen: Late) -> None:
    """A call whose deadline has passed sends nothing."""
    holds(not seen.arrived, f"{len(seen.arrived)} events have arrived")


@LATE.check()
def closing_sends_nothing(seen: Late) -> None:
    """`close` sends nothing of what was left."""
    sent = seen.arrived_after_close - seen.arrived
    holds(not sent, f"{len(sent)} events have arrived")
