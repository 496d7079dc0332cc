"""Publishers that answer wrongly, or say too much."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from tests.publishers.kit.right import RightPublisher

from delta_outbox.publishers import Delivered, Event, EventBatch, Failed, NotSent, Rejected, Result


class ForgetsAResult(RightPublisher):
    """Answers for all events but the last."""

    caught_by = ("one_result_per_event",)

    def publish(self, events: EventBatch) -> list[Result]:
        return super().publish(events)[:-1]


class AnswersForNobody(RightPublisher):
    """Answers a call without events by None."""

    caught_by = ("an_empty_call_is_answered_by_nothing",)

    def publish(self, events: EventBatch) -> list[Result]:
        nothing: Any = None
        return super().publish(events) if events else nothing


class IsTimid(RightPublisher):
    """Sends no more than ten events of a call."""

    caught_by = ("what_is_well_is_delivered",)

    def publish(self, events: EventBatch) -> list[Result]:
        return super().publish(events[:10]) + [NotSent()] * len(events[10:])


class AnswersBackwards(RightPublisher):
    """Answers for the last event first."""

    caught_by = ("answers_are_in_the_order_of_the_events",)

    def publish(self, events: EventBatch) -> list[Result]:
        return super().publish(events)[::-1]


class ReceiptsOfItsOwn(RightPublisher):
    """Has receipts that no log can store and no process can send."""

    caught_by = ("receipts_have_a_json_form", "settings_and_results_can_be_pickled")

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        return Delivered(receipt=threading.Lock()) if isinstance(result, Delivered) else result


class ReceiptRepeatsThePayload(RightPublisher):
    """Keeps what was sent as the receipt."""

    caught_by = ("receipts_hold_nothing_of_the_content",)

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        receipt = {"sent": event.payload.decode("utf-8", "replace")}
        return replace(result, receipt=receipt) if isinstance(result, Delivered) else result


class ErrorRepeatsThePayload(RightPublisher):
    """Says what it could not send."""

    caught_by = (
        "errors_hold_nothing_of_the_content",
        "errors_of_a_failure_hold_nothing_of_the_content",
        "errors_of_a_stop_hold_no_content_and_no_secret",
    )

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        if isinstance(result, Rejected | Failed):
            return replace(result, error=f"{result.error}: {event.payload.decode()}")
        return result


class ErrorRepeatsHeaders(RightPublisher):
    """Says with which headers it was refused."""

    caught_by = ("errors_hold_nothing_of_the_content",)

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        if isinstance(result, Rejected):
            return Rejected(error=f"refused with {event.headers}")
        return result


class ErrorShowsThePassword(RightPublisher):
    """Says with which password nobody listened."""

    caught_by = ("errors_of_a_stop_hold_no_content_and_no_secret",)

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        if isinstance(result, Failed):
            return Failed(error=f"no way to log in with {self.password}")
        return result


class BelievesTheRefused(RightPublisher):
    """Answers Delivered for what the destination refused."""

    caught_by = ("a_refusal_is_rejected", "answers_are_in_the_order_of_the_events")

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        return Delivered() if isinstance(result, Rejected) else result


class RejectsForNow(RightPublisher):
    """Gives up for good on what the destination does not take for now."""

    caught_by = ("what_is_not_taken_for_now_has_failed",)

    def attempt(self, event: Event, seconds: float) -> Result:
        result = super().attempt(event, seconds)
        return Rejected(error="no") if isinstance(result, Failed) else result
