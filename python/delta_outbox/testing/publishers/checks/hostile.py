"""Checks of events that a plain INSERT may hold, between events that are well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from delta_outbox.lifecycle.results import Delivered, Rejected
from delta_outbox.publishers.protocol import Event
from delta_outbox.testing.demands import holds, same
from delta_outbox.testing.publishers.adapter import Arrival
from delta_outbox.testing.publishers.check import Scenario
from delta_outbox.testing.publishers.stage import Call, Stage, by_id

TIMES: Final[Mapping[str, datetime]] = {
    "year-1": datetime.min.replace(tzinfo=UTC),
    "year-1969": datetime(1969, 7, 20, 20, 17, 40, tzinfo=UTC),
    "last-before-1970": datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    "year-2106": datetime(2106, 2, 7, 6, 28, 16, tzinfo=UTC),  # beyond 32 bits of seconds
    "year-9999": datetime.max.replace(tzinfo=UTC),
}
_KEYS: Final = {
    "empty-key": "",
    "long-key": "k" * 1024,
    "odd-key": "\u0001\u200b \U0001f680",
    "key-with-line-end": "a\r\nb: c",
    "key-with-nul": "a\0b",
    "key-that-is-no-text": "a\ud800b",
}
_HEADERS: Final[Mapping[str, Mapping[str, str | None]]] = {
    "header-without-name": {"": "x"},
    "header-named-with-blank": {"a b": "x"},
    "header-named-with-line-end": {"a\r\nb": "x"},
    "header-named-at-length": {"n" * 300: "x"},
    "header-named-by-no-text": {"a\ud800": "x"},
    "header-with-line-end": {"a": "x\r\ny: z"},
    "header-with-nul": {"a": "x\0y"},
    "header-of-no-text": {"a": "x\ud800y"},
    "header-at-length": {"a": "x" * 100_000},
}
_LARGE: Final = 2 * 2**20  # bytes of a payload; more than some transports carry


@dataclass(frozen=True, kw_only=True)
class Hostile:
    """What was seen: a call, which of its events are of what kind, and what arrived."""

    call: Call
    well: Sequence[str]
    times: Sequence[str]
    others: Sequence[str]
    arrived: Mapping[str, Sequence[Arrival]]

    def of(self, ids: Sequence[str]) -> Sequence[tuple[Event, Any]]:
        """Return the events with these delivery ids, and their results."""
        return [pair for pair in self.call.pairs if pair[0].delivery_id in ids]


def _play(stage: Stage) -> Hostile:
    times = [replace(stage.event(name), created_at=at) for name, at in TIMES.items()]
    others = [
        *(replace(stage.event(name), key=key, ordering_key=key) for name, key in _KEYS.items()),
        *(replace(stage.event(name), headers=given) for name, given in _HEADERS.items()),
        replace(stage.event("large"), payload=b"x" * _LARGE),
    ]
    events, well = [stage.event("well")], ["well"]
    for number, one in enumerate([*times, *others]):
        well.append(f"well-{number}")
        events += [one, stage.event(well[-1])]
    call = stage.publish(stage.open(), events)
    return Hostile(
        call=call,
        well=[stage.prefix + name for name in well],
        times=[event.delivery_id for event in times],
        others=[event.delivery_id for event in others],
        arrived=by_id(stage.arrivals(call)),
    )


HOSTILE = Scenario("hostile", _play)


@HOSTILE.check()
def an_event_of_any_year_is_delivered(seen: Hostile) -> None:
    """An event of any year from 1 to 9999 is Delivered, without its time if the transport has none
    for it.
    """
    for event, result in seen.of(seen.times):
        same(Delivered, type(result), f"the answer to {event.created_at}")
        arrived = seen.arrived.get(event.delivery_id, ())
        holds(arrived, f"the event of {event.created_at} has not arrived")
        holds(
            all(one.payload == event.payload for one in arrived),
            f"the payload of the event of {event.created_at} is another",
        )


@HOSTILE.check()
def hostile_events_are_delivered_or_rejected(seen: Hostile) -> None:
    """Keys, headers and sizes that a transport cannot carry are Rejected, one by one."""
    for event, result in seen.of(seen.others):
        holds(
            isinstance(result, Delivered | Rejected),
            f"the answer to {event.event_id} is {result!r}",
        )


@HOSTILE.check()
def neighbours_of_hostile_events_are_delivered(seen: Hostile) -> None:
    """Whatever an event holds, those before and behind it are Delivered and have arrived."""
    for event, result in seen.of(seen.well):
        same(Delivered, type(result), f"the answer to {event.event_id}")
        holds(event.delivery_id in seen.arrived, f"{event.event_id} has not arrived")
