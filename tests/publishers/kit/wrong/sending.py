"""Publishers that send something else than they were given, or nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from tests.publishers.kit.right import RightPublisher

from delta_outbox.publishers import Delivered, Event, EventBatch, Failed, Rejected, Result


class _Sends(RightPublisher, ABC):
    """Sends another event than it was given."""

    def attempt(self, event: Event, seconds: float) -> Result:
        return super().attempt(self.altered(event), seconds)

    @abstractmethod
    def altered(self, event: Event) -> Event: ...


class _SendsHeaders(_Sends):
    """Sends other headers than it was given."""

    def altered(self, event: Event) -> Event:
        return replace(event, headers=self.headers(event.headers or {}))

    @abstractmethod
    def headers(self, given: Mapping[str, str | None]) -> Mapping[str, str | None]: ...


class SwallowsAnEvent(RightPublisher):
    """Forgets the fourth event of a call, and says that it is Delivered."""

    caught_by = ("what_is_delivered_has_arrived",)

    def publish(self, events: EventBatch) -> list[Result]:
        results = super().publish(EventBatch([*events[:3], *events[4:]], deadline=events.deadline))
        return [*results[:3], Delivered(), *results[3:]] if len(events) > 3 else results


class SendsTwice(RightPublisher):
    """Makes sure of every event by sending it again."""

    caught_by = ("what_is_delivered_has_arrived_once",)

    def attempt(self, event: Event, seconds: float) -> Result:
        super().attempt(event, seconds)
        return super().attempt(event, seconds)


class SendsCopies(RightPublisher):
    """Sends a copy with an id of its own beside every event."""

    caught_by = ("nothing_else_arrives",)

    def attempt(self, event: Event, seconds: float) -> Result:
        super().attempt(replace(event, event_id=f"{event.event_id}-copy"), seconds)
        return super().attempt(event, seconds)


class MarksWhatItSent(RightPublisher):
    """Writes into the headers of the events that it was given."""

    caught_by = ("what_is_given_is_not_changed",)

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        if event.headers:
            cast("dict[str, Any]", event.headers)["sent"] = "yes"
        return result


class DropsTheKey(_Sends):
    """Sends no key."""

    caught_by = ("the_key_arrives",)

    def altered(self, event: Event) -> Event:
        return replace(event, key=None)


class DropsHeaders(_SendsHeaders):
    """Sends none of the producer's headers."""

    caught_by = ("payload_and_headers_arrive", "many_headers_arrive")

    def headers(self, given: Mapping[str, str | None]) -> Mapping[str, str | None]:
        return {}


class NeedsHeaders(RightPublisher):
    """Rejects an event that has no headers."""

    caught_by = ("an_event_without_headers_arrives",)

    def attempt(self, event: Event, seconds: float) -> Result:
        if event.headers is None:
            return Rejected(error="there are no headers")
        return super().attempt(event, seconds)


class NeedsAKey(RightPublisher):
    """Rejects an event that has no key."""

    caught_by = ("an_event_without_a_key_arrives",)

    def attempt(self, event: Event, seconds: float) -> Result:
        if event.key is None:
            return Rejected(error="there is no key")
        return super().attempt(event, seconds)


class SendsNullForNothing(_Sends):
    """Sends `null` for an empty payload."""

    caught_by = ("an_empty_payload_arrives",)

    def altered(self, event: Event) -> Event:
        return replace(event, payload=event.payload or b"null")


class SendsText(_Sends):
    """Takes every payload for text."""

    caught_by = ("every_byte_arrives",)

    def altered(self, event: Event) -> Event:
        return replace(event, payload=event.payload.decode("utf-8", "replace").encode())


class TrimsThePayload(_Sends):
    """Ends every payload by a newline."""

    caught_by = ("payload_and_headers_arrive",)

    def altered(self, event: Event) -> Event:
        return replace(event, payload=event.payload + b"\n")


class CutsWhatIsLarge(_Sends):
    """Sends 64 KiB of a payload at most."""

    caught_by = ("a_large_payload_arrives",)

    def altered(self, event: Event) -> Event:
        return replace(event, payload=event.payload[:65_536])


class SendsAsciiHeaders(_SendsHeaders):
    """Leaves out what is not ASCII in the value of a header."""

    caught_by = ("unicode_in_headers_arrives",)

    def headers(self, given: Mapping[str, str | None]) -> Mapping[str, str | None]:
        return {
            name: value and value.encode("ascii", "ignore").decode()
            for name, value in given.items()
        }


class DropsEmptyHeaders(_SendsHeaders):
    """Leaves headers out whose value is empty."""

    caught_by = ("an_empty_header_arrives",)

    def headers(self, given: Mapping[str, str | None]) -> Mapping[str, str | None]:
        return {name: value for name, value in given.items() if value != ""}


class FillsHeaders(_SendsHeaders):
    """Sends an empty value where a header has none."""

    caught_by = ("a_header_without_a_value_arrives",)

    def headers(self, given: Mapping[str, str | None]) -> Mapping[str, str | None]:
        return {name: value or "" for name, value in given.items()}


class SendsTenHeaders(_SendsHeaders):
    """Sends ten headers at most."""

    caught_by = ("many_headers_arrive",)

    def headers(self, given: Mapping[str, str | None]) -> Mapping[str, str | None]:
        return dict(list(given.items())[:10])


class CountsAttemptsInTheId(_Sends):
    """Gives every attempt an id of its own."""

    caught_by = ("a_retry_is_the_same_delivery",)

    def altered(self, event: Event) -> Event:
        tail = "" if event.attempt == 1 else f"-{event.attempt}"
        return replace(event, event_id=event.event_id + tail)


class ForgetsTheLifecycle(_Sends):
    """Sends a replay by the id of the first delivery, so that a broker swallows it."""

    caught_by = ("a_replay_is_a_new_delivery",)

    def altered(self, event: Event) -> Event:
        return replace(event, lifecycle=0)


class SendsTheRefusedElsewhere(RightPublisher):
    """Sends what is refused another way, and says that it is Rejected."""

    caught_by = ("what_is_refused_has_not_arrived",)

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        if isinstance(result, Rejected):
            super().attempt(replace(event, route="elsewhere"), seconds)
        return result


class SendsTheFailedElsewhere(RightPublisher):
    """Sends what is not taken for now another way, and says that it has Failed."""

    caught_by = ("what_has_failed_has_not_arrived",)

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        if isinstance(result, Failed):
            super().attempt(replace(event, route="elsewhere"), seconds)
        return result


class CountsSecondsFrom1970(RightPublisher):
    """Takes a time that it cannot write for an event that cannot be sent."""

    caught_by = ("an_event_of_any_year_is_delivered",)

    def attempt(self, event: Event, seconds: float) -> Result:
        if event.created_at.timestamp() < 0:
            return Rejected(error="there is no time before 1970")
        return super().attempt(event, seconds)


class FailsWhatItCannotWrite(RightPublisher):
    """Calls an event that has no form a failure, as if another attempt could help."""

    caught_by = ("hostile_events_are_delivered_or_rejected",)

    def attempt(self, event: Event, seconds: float) -> Result:
        try:
            (event.key or "").encode()
        except UnicodeEncodeError:
            return Failed(error="it has no form")
        return super().attempt(event, seconds)


class GivesUpTheCall(RightPublisher):
    """Finds out while it sends that it cannot write a time, and gives up all that is left."""

    caught_by = ("neighbours_of_hostile_events_are_delivered",)

    def publish(self, events: EventBatch) -> list[Result]:
        left = [n for n, event in enumerate(events) if event.created_at.timestamp() < 0]
        first = left[0] if left else len(events)
        sent = super().publish(EventBatch(events[:first], deadline=events.deadline))
        return [*sent, *(Failed(error="broken off") for _ in events[first:])]
