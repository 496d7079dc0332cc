"""Checks of a call to a destination that is well."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from delta_outbox.lifecycle.results import Delivered, to_json
from delta_outbox.testing.demands import holds, same
from delta_outbox.testing.publishers.adapter import Arrival, Capability
from delta_outbox.testing.publishers.check import Scenario
from delta_outbox.testing.publishers.leaks import says_nothing_of
from delta_outbox.testing.publishers.stage import RESULTS, Call, Stage, by_id

_MANY = 20  # events


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What was seen: a call, an empty one, what arrived, and what became of what was given."""

    call: Call
    empty: Call
    arrivals: tuple[Arrival, ...]
    content: str


def _play(stage: Stage) -> Answers:
    publisher = stage.open()
    call = stage.publish(publisher, stage.events(_MANY))
    empty = stage.publish(publisher, [])
    return Answers(call=call, empty=empty, arrivals=stage.arrivals(call), content=stage.content)


ANSWERS = Scenario("answers", _play)


@ANSWERS.check()
def one_result_per_event(seen: Answers) -> None:
    """A call answers with a list of one result per event, and with nothing else."""
    holds(isinstance(seen.call.answer, list), f"the answer is a {type(seen.call.answer).__name__}")
    same(_MANY, len(seen.call.results), "results of the call")
    strange = {type(one).__name__ for one in seen.call.results if type(one) not in RESULTS}
    holds(not strange, f"no results of the protocol: {', '.join(sorted(strange))}")


@ANSWERS.check()
def an_empty_call_is_answered_by_nothing(seen: Answers) -> None:
    """A call without events answers with an empty list."""
    same([], seen.empty.answer, "the answer to no events")


@ANSWERS.check()
def what_is_well_is_delivered(seen: Answers) -> None:
    """A destination that is well takes every event: all are Delivered."""
    same(seen.call.ids(), seen.call.ids(Delivered), "what is Delivered")


@ANSWERS.check()
def what_is_delivered_has_arrived(seen: Answers) -> None:
    """What is Delivered has arrived, as a consumer of the destination sees it."""
    missing = set(seen.call.ids(Delivered)) - set(by_id(seen.arrivals))
    holds(not missing, f"{len(missing)} events are Delivered and have not arrived")


@ANSWERS.check()
def what_is_delivered_has_arrived_once(seen: Answers) -> None:
    """A call makes one attempt per event: no event arrives twice."""
    counts = Counter(one.delivery_id for one in seen.arrivals)
    twice = [one for one, count in counts.items() if count > 1]
    holds(not twice, f"{len(twice)} events arrived more than once")


@ANSWERS.check()
def nothing_else_arrives(seen: Answers) -> None:
    """Nothing arrives that was not given, and ids arrive as they are."""
    strange = sorted(set(by_id(seen.arrivals)) - set(seen.call.ids()))
    holds(not strange, f"these ids were never given: {', '.join(strange[:3])}")


@ANSWERS.check()
def what_is_given_is_not_changed(seen: Answers) -> None:
    """A publisher leaves the events as they are that it was given."""
    for event in seen.call.events:
        same({"kit": seen.content}, event.headers, f"headers of {event.event_id} after the call")


@ANSWERS.check(Capability.KEYS)
def the_key_arrives(seen: Answers) -> None:
    """A consumer sees the key of the event."""
    arrived = by_id(seen.arrivals)
    for event in seen.call.events:
        for one in arrived.get(event.delivery_id, ()):
            same(event.key, one.key, f"the key of {event.event_id}")


@ANSWERS.check()
def receipts_have_a_json_form(seen: Answers) -> None:
    """Receipt and outcome data of a Delivered are JSON values."""
    for result in seen.call.results:
        if isinstance(result, Delivered):
            try:
                to_json(result.receipt), to_json(result.outcome_data)
            except (TypeError, ValueError) as error:
                holds(False, f"{type(error).__name__}: {error}")


@ANSWERS.check()
def receipts_hold_nothing_of_the_content(seen: Answers) -> None:
    """A receipt repeats nothing of payload and header values."""
    says_nothing_of(seen.content, seen.call.results, "receipts")
