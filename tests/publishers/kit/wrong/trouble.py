"""Publishers that are wrong when the destination is in trouble, or the time is over."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tests.publishers.kit.right import RightPublisher

from delta_outbox.publishers import (
    Delivered,
    Event,
    EventBatch,
    Failed,
    NotSent,
    Rejected,
    Result,
    Unknown,
)


class AcknowledgesBeforeSending(RightPublisher):
    """Lies: answers Delivered, and sends behind the relay's back."""

    caught_by = (
        "nothing_is_delivered_by_a_stopped_destination",
        "nothing_is_delivered_by_a_silent_destination",
    )

    def publish(self, events: EventBatch) -> list[Result]:
        sending = threading.Thread(target=super().publish, args=(events,))
        sending.start()
        return [Delivered()] * len(events)


class TakesSendingForDelivery(RightPublisher):
    """Answers Delivered for what was sent and has no answer."""

    caught_by = ("nothing_is_delivered_by_a_silent_destination",)

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        return Delivered() if isinstance(result, Unknown) else result


class TakesSilenceForFailure(RightPublisher):
    """Answers Failed for what was sent and has no answer."""

    caught_by = ("what_was_sent_is_not_called_unsent", "a_lost_answer_is_no_failure")

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        return Failed(error="no answer") if isinstance(result, Unknown) else result


class BlamesTheEvent(RightPublisher):
    """Rejects events because nobody listens."""

    caught_by = ("a_stopped_destination_rejects_nothing",)

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        return Rejected(error="no") if isinstance(result, Failed) else result


class RetriesWhatIsSilent(RightPublisher):
    """Waits a quarter of the time for an answer, then sends again."""

    caught_by = ("what_had_no_answer_is_not_sent_again",)

    def publish(self, events: EventBatch) -> list[Result]:
        seconds = events.remaining_seconds() / 4
        return [self._until_answered(event, seconds) for event in events]

    def _until_answered(self, event: Event, seconds: float) -> Result:
        result: Result = Unknown()
        for _ in range(3):
            if isinstance(result, Unknown):
                result = self.attempt(event, seconds)
        return result


class RetriesOnItsOwn(RightPublisher):
    """Sends again when the connection breaks."""

    caught_by = ("what_lost_its_answer_is_not_sent_again",)

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        return super().attempt(event, seconds) if isinstance(result, Unknown) else result


class WaitsForEver(RightPublisher):
    """Waits for an answer for as long as it takes."""

    caught_by = ("a_call_ends_at_its_deadline",)

    def attempt(self, event: Event, seconds: float) -> Result:
        return super().attempt(event, 60 if seconds > 0 else 0)


class NeverRecovers(RightPublisher):
    """Delivers nothing any more after the first trouble."""

    caught_by = (
        "it_works_after_a_refusal",
        "it_works_again_after_a_stop",
        "it_works_again_after_silence",
        "it_works_again_after_a_lost_answer",
    )
    dead = False

    def publish(self, events: EventBatch) -> list[Result]:
        if self.dead:
            return [NotSent()] * len(events)
        results = super().publish(events)
        self.dead = any(not isinstance(result, Delivered) for result in results)
        return results


class IgnoresTheDeadline(RightPublisher):
    """Sends although the time is over."""

    caught_by = ("behind_the_deadline_nothing_arrives", "behind_the_deadline_all_is_not_sent")

    def attempt(self, event: Event, seconds: float) -> Result:
        return super().attempt(event, seconds or 1.0)


class TakesTheDeadlineForFailure(RightPublisher):
    """Answers Failed for what it had no time to send, which burns the budget of the event."""

    caught_by = ("behind_the_deadline_all_is_not_sent",)

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        return Failed(error="too late") if isinstance(result, NotSent) else result


class SendsTheRestAtTheEnd(RightPublisher):
    """Keeps what it had no time to send, and sends it when it is closed."""

    caught_by = ("closing_sends_nothing",)

    def open(self, settings: Mapping[str, Any]) -> None:
        super().open(settings)
        self.rest: list[Event] = []

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        if isinstance(result, NotSent):
            self.rest.append(event)
        return result

    def close(self) -> None:
        for event in self.rest:
            super().attempt(event, 1.0)
        self.rest.clear()
