"""Checks of destinations that are away, that are silent, and whose answers are lost."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from delta_outbox.core.secrets import secrets_of
from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected
from delta_outbox.publishers.protocol import Publisher
from delta_outbox.testing.demands import holds
from delta_outbox.testing.publishers.adapter import Capability
from delta_outbox.testing.publishers.check import Scenario
from delta_outbox.testing.publishers.leaks import says_nothing_of, shows_none, words_of
from delta_outbox.testing.publishers.stage import Call, Stage

_PAUSE = 0.2  # seconds between two attempts of what is tried until it works


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """What was seen.

    Args:
        call: that met the trouble.
        answered: the call waited so long that the destination was made to answer again.
        limit: seconds after which it must have ended.
        works_again: whether the instance delivered once the trouble was over.
        arrived: how often each id has arrived in the end.
        content: of the events.
        secrets: of the settings.
        lost: whether an answer was lost.
    """

    call: Call
    answered: bool
    limit: float
    works_again: bool
    arrived: Mapping[str, int]
    content: str
    secrets: tuple[str, ...]
    lost: bool = False


def _stopped(stage: Stage) -> Trouble:
    publisher = _warm(stage)
    with stage.stopped():
        call = stage.publish(publisher, stage.events(3), seconds=stage.adapter.silence_seconds)
    return _afterwards(stage, publisher, call)


def _frozen(stage: Stage) -> Trouble:
    publisher = _warm(stage)
    seconds = stage.adapter.silence_seconds
    with stage.frozen(seconds) as helped:
        call = stage.publish(publisher, stage.events(3), seconds=seconds)
        answered = helped.is_set()
    return _afterwards(stage, publisher, call, answered=answered)


def _lost(stage: Stage) -> Trouble:
    publisher = _warm(stage)
    stage.adapter.lose_answer()
    event = stage.event("lost", payload=os.urandom(stage.adapter.large_bytes))
    call = stage.publish(publisher, [event])
    lost = stage.adapter.has_lost_answer()
    return replace(_afterwards(stage, publisher, call), lost=lost)


def _warm(stage: Stage) -> Publisher:
    """Return an instance whose connection is there."""
    publisher = stage.open()
    stage.publish(publisher, [stage.event("warm")])
    return publisher


def _afterwards(
    stage: Stage, publisher: Publisher, call: Call, *, answered: bool = False
) -> Trouble:
    works_again = _works_again(stage, publisher)
    counts = Counter(one.delivery_id for one in stage.arrivals(call))
    adapter = stage.adapter
    return Trouble(
        call=call,
        answered=answered,
        limit=adapter.silence_seconds + adapter.grace_seconds,
        works_again=works_again,
        arrived={one: counts[one] for one in call.ids()},
        content=stage.content,
        secrets=secrets_of(adapter.settings),
    )


def _works_again(stage: Stage, publisher: Publisher) -> bool:
    event = stage.event("again")
    until = time.monotonic() + stage.adapter.answer_seconds
    while True:
        again = stage.publish(publisher, [event])
        if again.ids(Delivered):
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE)
        event = replace(event, attempt=event.attempt + 1)


STOPPED = Scenario("stopped", _stopped, Capability.STOP)
FROZEN = Scenario("frozen", _frozen, Capability.FREEZE)
LOST = Scenario("answer lost", _lost, Capability.LOSE)


@STOPPED.check()
def nothing_is_delivered_by_a_stopped_destination(seen: Trouble) -> None:
    """While nobody listens nothing is Delivered: acknowledged is what has been sent."""
    _none(seen, Delivered)


@STOPPED.check()
def a_stopped_destination_rejects_nothing(seen: Trouble) -> None:
    """A destination that is away says nothing about events: none is Rejected."""
    _none(seen, Rejected)


@STOPPED.check()
def errors_of_a_stop_hold_no_content_and_no_secret(seen: Trouble) -> None:
    """Errors about a destination that is away hold nothing of the content and no secret."""
    says_nothing_of(seen.content, seen.call.results, "errors")
    shows_none(seen.secrets, map(words_of, seen.call.results), "errors")


@STOPPED.check()
def it_works_again_after_a_stop(seen: Trouble) -> None:
    """The same instance delivers once the destination is back."""
    holds(seen.works_again, "nothing is Delivered any more")


@FROZEN.check(Capability.ACKNOWLEDGED)
def nothing_is_delivered_by_a_silent_destination(seen: Trouble) -> None:
    """A destination that answers nothing has acknowledged nothing: none is Delivered."""
    holds(not seen.answered, "it waited beyond its deadline, so the answer proves nothing")
    _none(seen, Delivered)


@FROZEN.check()
def a_call_ends_at_its_deadline(seen: Trouble) -> None:
    """A call to a destination that answers nothing ends at the deadline."""
    holds(
        seen.call.seconds <= seen.limit,
        f"it took {seen.call.seconds:.1f} s, at most {seen.limit:.1f} s were expected",
    )


@FROZEN.check()
def what_was_sent_is_not_called_unsent(seen: Trouble) -> None:
    """What arrives after all was Unknown: never Failed, Rejected or NotSent."""
    _not_denied(seen)


@FROZEN.check()
def what_had_no_answer_is_not_sent_again(seen: Trouble) -> None:
    """Silence leads to no further attempt within the call: nothing arrives twice."""
    _once_at_most(seen)


@FROZEN.check()
def it_works_again_after_silence(seen: Trouble) -> None:
    """The same instance delivers once the destination answers again."""
    holds(seen.works_again, "nothing is Delivered any more")


@LOST.check()
def a_lost_answer_is_no_failure(seen: Trouble) -> None:
    """Whoever has sent and lost the answer knows nothing: it is not Failed, Rejected or NotSent."""
    _was_lost(seen)
    _not_denied(seen)


@LOST.check()
def what_lost_its_answer_is_not_sent_again(seen: Trouble) -> None:
    """A lost answer leads to no further attempt within the call: nothing arrives twice."""
    _was_lost(seen)
    _once_at_most(seen)


@LOST.check()
def it_works_again_after_a_lost_answer(seen: Trouble) -> None:
    """The same instance delivers in a later call."""
    holds(seen.works_again, "nothing is Delivered any more")


def _none(seen: Trouble, kind: type) -> None:
    count = len(seen.call.ids(kind))
    holds(not count, f"{count} of {len(seen.call.events)} events are {kind.__name__}")


def _not_denied(seen: Trouble) -> None:
    denied = [one for one in seen.call.ids(Failed, Rejected, NotSent) if seen.arrived[one]]
    holds(not denied, f"{len(denied)} events are said not to have been sent and have arrived")


def _was_lost(seen: Trouble) -> None:
    holds(seen.lost, "no answer was lost: do the settings of the adapter lead through its proxy?")


def _once_at_most(seen: Trouble) -> None:
    twice = [one for one, count in seen.arrived.items() if count > 1]
    holds(not twice, f"{len(twice)} events arrived more than once")
