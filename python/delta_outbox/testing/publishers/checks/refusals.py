"""Checks of what a destination does not take: for good, or for now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from delta_outbox.lifecycle.results import Delivered, Failed, Rejected
from delta_outbox.publishers.protocol import Event
from delta_outbox.testing.demands import holds, same
from delta_outbox.testing.publishers.adapter import Arrival, Capability
from delta_outbox.testing.publishers.check import Scenario
from delta_outbox.testing.publishers.leaks import says_nothing_of
from delta_outbox.testing.publishers.stage import Call, Stage

_BAD = 1  # the place of the event that is not taken
_KEYLESS = (_BAD, 2)  # without a key, as one of its neighbours: nothing orders the two


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """What was seen: a call in which one event is not taken, and what arrived.

    Args:
        call: five events, no two of a key; the second is not taken.
        followed: a key of three events, the second of which is not taken; None if a call holds
            no two events of a key.
        after: a call of events that are well.
        arrived: ids that have arrived.
        content: of the events.
    """

    call: Call
    followed: Call | None
    after: Call
    arrived: frozenset[str]
    content: str

    @property
    def bad(self) -> str:
        """Return the id of what is not taken."""
        return self.call.ids()[_BAD]

    @property
    def verdict(self) -> object:
        """Return the class of the answer to what is not taken."""
        return dict(self.call.pairs_by_id).get(self.bad).__class__


def _play(stage: Stage, spoil: Callable[[Event], Event]) -> Refusal:
    publisher = stage.open()
    events = stage.events(5)
    for place in _KEYLESS:
        events[place] = replace(events[place], key=None, ordering_key=None)
    events[_BAD] = spoil(events[_BAD])
    call, followed = stage.publish(publisher, events), None
    if stage.has(Capability.ORDERED):
        of_key = [stage.event(f"k{number}", key="k") for number in range(3)]
        of_key[_BAD] = spoil(of_key[_BAD])
        followed = stage.publish(publisher, of_key)
    after = stage.publish(publisher, stage.events(3, "after"))
    arrivals: tuple[Arrival, ...] = stage.arrivals(call, after)
    return Refusal(
        call=call,
        followed=followed,
        after=after,
        arrived=frozenset(one.delivery_id for one in arrivals),
        content=stage.content,
    )


REFUSED = Scenario(
    "refused for good", lambda stage: _play(stage, stage.adapter.refused), Capability.REFUSED
)
FAILING = Scenario(
    "not taken for now", lambda stage: _play(stage, stage.adapter.failing), Capability.FAILING
)


@REFUSED.check()
def a_refusal_is_rejected(seen: Refusal) -> None:
    """What the destination refuses for good is Rejected."""
    same(Rejected, seen.verdict, "the answer to what is refused")


@REFUSED.check()
def what_is_refused_has_not_arrived(seen: Refusal) -> None:
    """What is refused arrives nowhere, neither cut nor by another way."""
    holds(seen.bad not in seen.arrived, "what is Rejected has arrived")


@REFUSED.check()
def answers_are_in_the_order_of_the_events(seen: Refusal) -> None:
    """Every result stands at the place of its event: Delivered are those that have arrived."""
    arrived = tuple(one for one in seen.call.ids() if one in seen.arrived)
    same(arrived, seen.call.ids(Delivered), "what is Delivered")


@REFUSED.check()
def a_refusal_does_not_stop_its_neighbours(seen: Refusal) -> None:
    """Events of other keys, and of none, are Delivered beside one that is refused."""
    same(4, len(seen.call.ids(Delivered)), "neighbours that are Delivered")


@REFUSED.check(Capability.ORDERED)
def nothing_of_its_key_follows_a_refusal(seen: Refusal) -> None:
    """Within a call, nothing of a key is sent behind an event of it that was refused."""
    _nothing_follows(seen)


@REFUSED.check()
def errors_hold_nothing_of_the_content(seen: Refusal) -> None:
    """An error repeats nothing of payload and header values, whatever the destination says."""
    says_nothing_of(seen.content, seen.call.results, "errors")


@REFUSED.check()
def it_works_after_a_refusal(seen: Refusal) -> None:
    """The instance delivers in the call that follows a refusal."""
    same(seen.after.ids(), seen.after.ids(Delivered), "what is Delivered afterwards")


@FAILING.check()
def what_is_not_taken_for_now_has_failed(seen: Refusal) -> None:
    """What the destination does not take for now is Failed: another attempt may succeed."""
    same(Failed, seen.verdict, "the answer to what is not taken for now")


@FAILING.check()
def what_has_failed_has_not_arrived(seen: Refusal) -> None:
    """What is Failed has certainly not arrived."""
    holds(seen.bad not in seen.arrived, "what is not taken for now has arrived")


@FAILING.check()
def a_failure_does_not_stop_its_neighbours(seen: Refusal) -> None:
    """Events of other keys, and of none, are Delivered beside one that fails."""
    same(4, len(seen.call.ids(Delivered)), "neighbours that are Delivered")


@FAILING.check(Capability.ORDERED)
def nothing_of_its_key_follows_a_failure(seen: Refusal) -> None:
    """Within a call, nothing of a key is sent behind an event of it that failed."""
    _nothing_follows(seen)


@FAILING.check()
def errors_of_a_failure_hold_nothing_of_the_content(seen: Refusal) -> None:
    """The error of a failure repeats nothing of payload and header values."""
    says_nothing_of(seen.content, seen.call.results, "errors")


def _nothing_follows(seen: Refusal) -> None:
    assert seen.followed is not None
    _first, _bad, follower = seen.followed.ids()
    holds(follower not in seen.followed.ids(Delivered), "the follower is Delivered")
    holds(follower not in seen.arrived, "the follower has arrived")
