"""Publishers that break the order of a key, or let others pay for one event."""

from __future__ import annotations

from dataclasses import replace

from tests.publishers.kit.right import RightPublisher

from delta_outbox.publishers import Delivered, EventBatch, Failed, NotSent, Rejected, Result


class SendsBackwards(RightPublisher):
    """Sends the last event first; every answer stands at its place."""

    caught_by = ("a_key_arrives_in_order_within_a_call",)

    def publish(self, events: EventBatch) -> list[Result]:
        backwards = EventBatch(reversed(tuple(events)), deadline=events.deadline)
        return super().publish(backwards)[::-1]


class LagsBehind(RightPublisher):
    """Keeps every second call for the time after the next."""

    caught_by = ("a_key_arrives_in_order_over_calls",)
    kept: EventBatch | None = None

    def publish(self, events: EventBatch) -> list[Result]:
        if self.kept is None:
            self.kept = events
            return [Delivered()] * len(events)
        results = super().publish(events)
        super().publish(self.kept)
        self.kept = None
        return results


class FollowsWhatIsRefused(RightPublisher):
    """Goes on with a key whose event was refused."""

    caught_by = ("nothing_of_its_key_follows_a_refusal",)

    def holds_its_key(self, result: Result) -> bool:
        return super().holds_its_key(result) and not isinstance(result, Rejected)


class FollowsWhatHasFailed(RightPublisher):
    """Goes on with a key whose event was not taken."""

    caught_by = ("nothing_of_its_key_follows_a_failure",)

    def holds_its_key(self, result: Result) -> bool:
        return super().holds_its_key(result) and not isinstance(result, Failed)


class StopsAtTheFirstTrouble(RightPublisher):
    """Sends nothing behind an event that was not delivered, of whatever key."""

    caught_by = (
        "a_refusal_does_not_stop_its_neighbours",
        "a_failure_does_not_stop_its_neighbours",
    )

    def publish(self, events: EventBatch) -> list[Result]:
        results: list[Result] = []
        for event in events:
            if results and not isinstance(results[-1], Delivered):
                results.append(NotSent())
            else:
                results.append(self.attempt(event, events.remaining_seconds()))
        return results


class TakesNoKeyForAKey(RightPublisher):
    """Holds all events without a key behind one of them that was not delivered."""

    caught_by = (
        "a_refusal_does_not_stop_its_neighbours",
        "a_failure_does_not_stop_its_neighbours",
    )

    def publish(self, events: EventBatch) -> list[Result]:
        named = [replace(one, ordering_key=one.ordering_key or "") for one in events]
        return super().publish(EventBatch(named, deadline=events.deadline))
