"""Rounds keep the order of a key whatever fails."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.publishers import Event
from delta_outbox.publishers.key_rounds import KeyRounds

CREATED_AT = datetime(2026, 1, 1, tzinfo=UTC)


def _event(key: str | None, route: str = "t", ordering_key: str | None = "") -> Event:
    return Event(
        event_id="e",
        event_type="t",
        key=key,
        ordering_key=key if ordering_key == "" else ordering_key,
        payload=b"",
        created_at=CREATED_AT,
        route=route,
    )


def test_events_without_order_are_one_round():
    """Keys that differ, no key, and a key that only places an event never wait."""
    events = [_event("a"), _event("b"), _event(None), _event(None)]
    events += [_event("place", ordering_key="x"), _event("place", ordering_key="y")]
    assert KeyRounds(events).cut(range(6), one_per_key=False) == ([0, 1, 2, 3, 4, 5], [], [])


def test_the_first_of_a_key_travels_alone():
    """Its successors follow in one pipeline once it is confirmed."""
    rounds = KeyRounds([_event("a")] * 4)
    assert rounds.cut(range(4), one_per_key=False) == ([0], [1, 2, 3], [])
    rounds.confirm(0)
    assert rounds.cut([1, 2, 3], one_per_key=False) == ([1, 2, 3], [], [])


def test_one_per_key_never_pipelines():
    """A careful round has one event of a key, confirmed or not."""
    rounds = KeyRounds([_event("a")] * 3)
    rounds.confirm(0)
    assert rounds.cut([1, 2], one_per_key=True) == ([1], [2], [])


def test_a_change_of_topic_waits():
    """A successor in another topic waits, and all behind it."""
    rounds = KeyRounds([_event("a"), _event("a"), _event("a", "u"), _event("a")])
    rounds.confirm(0)
    assert rounds.cut([1, 2, 3], one_per_key=False) == ([1], [2, 3], [])


def test_nothing_of_a_blocked_key_is_sent():
    """After a failure nothing of the key is sent; other keys go on."""
    rounds = KeyRounds([_event("a"), _event("a"), _event("b")])
    rounds.block(0)
    assert rounds.cut([1, 2], one_per_key=False) == ([2], [], [1])


def test_another_producer_starts_anew():
    """What one producer confirmed does not protect the pipeline of the next."""
    rounds = KeyRounds([_event("a")] * 3)
    rounds.confirm(0)
    rounds.forget_confirmed()
    assert rounds.cut([1, 2], one_per_key=False) == ([1], [2], [])


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("tu"), st.booleans()), max_size=40),
    st.booleans(),
)
def test_no_later_event_overtakes_a_failed_one(plan, one_per_key):
    """Against the most hostile broker, what is delivered of a key is a prefix of it, in order.

    That broker takes, within a round, whatever follows a refused event in a partition where it
    has accepted nothing before, and delivers different topics in the reverse order.
    """
    events = [_event(key, route) for key, route, _ in plan]
    rounds = KeyRounds(events)
    accepted: set[tuple[str, str]] = set()
    delivered: list[int] = []
    waiting: list[int] = list(range(len(plan)))
    while waiting:
        taken, left, _ = rounds.cut(waiting, one_per_key=one_per_key)
        assert taken or not left
        broken: set[tuple[str, str]] = set()
        known = set(accepted)
        for position in sorted(taken, key=lambda p: plan[p][1], reverse=True):
            key, route, good = plan[position]
            place = (key, route)
            if good and not (place in broken and place in known):
                delivered.append(position)
                accepted.add(place)
                rounds.confirm(position)
            else:
                broken.add(place)
                rounds.block(position)
        waiting = left
    for key in "abc":
        of_key = [p for p in range(len(plan)) if plan[p][0] == key]
        bad = next((n for n, p in enumerate(of_key) if not plan[p][2]), len(of_key))
        assert [p for p in delivered if plan[p][0] == key] == of_key[:bad]
