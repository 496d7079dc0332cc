"""Checks of the order of a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delta_outbox.lifecycle.results import Delivered
from delta_outbox.testing.demands import holds, same
from delta_outbox.testing.publishers.adapter import Arrival, Capability
from delta_outbox.testing.publishers.check import Scenario
from delta_outbox.testing.publishers.stage import Call, Stage

_KEYS = ("a", "b", "c", "d")
_OF_EACH = 25  # events
_CALLS = 10


@dataclass(frozen=True, kw_only=True)
class Order:
    """What was seen: calls, and what arrived."""

    calls: tuple[Call, ...]
    arrivals: tuple[Arrival, ...]


def _within(stage: Stage) -> Order:
    publisher = stage.open()
    events = [stage.event(f"{key}{number}", key=key) for number in range(_OF_EACH) for key in _KEYS]
    call = stage.publish(publisher, events)
    return Order(calls=(call,), arrivals=stage.arrivals(call))


def _over_calls(stage: Stage) -> Order:
    publisher = stage.open()
    calls = tuple(
        stage.publish(publisher, [stage.event(f"{key}{number}", key=key) for key in _KEYS])
        for number in range(_CALLS)
    )
    return Order(calls=calls, arrivals=stage.arrivals(*calls))


WITHIN = Scenario("order within a call", _within, Capability.ORDERED)
OVER_CALLS = Scenario("order over calls", _over_calls)


@WITHIN.check()
def a_key_arrives_in_order_within_a_call(seen: Order) -> None:
    """Events of a key arrive in the order of the call, if the class says `ordered`."""
    _in_order(seen)


@OVER_CALLS.check()
def a_key_arrives_in_order_over_calls(seen: Order) -> None:
    """Events of a key arrive in the order of the calls, one after the other."""
    _in_order(seen)


def _in_order(seen: Order) -> None:
    for call in seen.calls:
        same(len(call.events), len(call.ids(Delivered)), "events that are Delivered")
    given = _by_key(seen, [one for call in seen.calls for one in call.ids()])
    arrived = _by_key(seen, list(dict.fromkeys(one.delivery_id for one in seen.arrivals)))
    for key, ids in given.items():
        holds(
            ids == arrived.get(key),
            f"the events of the key {key} arrived in another order: "
            f"{', '.join(one.rpartition('-')[2] for one in arrived.get(key, ()))}",
        )


def _by_key(seen: Order, ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
    # The key of the event, not of the message: not every transport carries one.
    keys = {event.delivery_id: f"{event.key}" for call in seen.calls for event in call.events}
    found: dict[str, list[str]] = {}
    for one in ids:
        if one in keys:
            found.setdefault(keys[one], []).append(one)
    return found
