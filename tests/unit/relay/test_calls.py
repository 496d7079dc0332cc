"""How deliveries are cut into calls: nothing of a key before its predecessor's result."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.relay.publish.calls import plan_calls

# An event: its order scope and its destinations.
EVENTS = st.lists(
    st.tuples(
        st.sampled_from([None, "k1", "k2", "k3"]),
        st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2, unique=True),
    ),
    max_size=12,
)


def deliveries(
    events: list[tuple[str | None, list[str]]],
) -> tuple[list[str | None], list[str], list[str]]:
    """Return scopes, event ids and destinations, one per delivery."""
    rows = [
        (scope, f"e{number}", destination)
        for number, (scope, destinations) in enumerate(events)
        for destination in destinations
    ]
    return [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows]


@given(events=EVENTS, ordered=st.fixed_dictionaries({"a": st.booleans(), "b": st.booleans()}))
def test_every_delivery_is_in_one_call_of_its_destination(events, ordered):
    """Each delivery is in exactly one call, and a call is to one destination."""
    scopes, ids, destinations = deliveries(events)
    calls = list(plan_calls(scopes, ids, destinations, ordered=ordered))
    assert list(range(len(ids))) == sorted(place for call in calls for place in call)
    assert all(1 == len({destinations[place] for place in call}) for call in calls)


@given(events=EVENTS, ordered=st.fixed_dictionaries({"a": st.booleans(), "b": st.booleans()}))
def test_a_key_waits_for_its_predecessor(events, ordered):
    """An event of a key is in a later call than every delivery of the events before it."""
    scopes, ids, destinations = deliveries(events)
    calls = list(plan_calls(scopes, ids, destinations, ordered=ordered))
    number = {place: n for n, call in enumerate(calls) for place in call}
    for place, scope in enumerate(scopes):
        if scope is not None:
            before = [p for p in range(place) if scope == scopes[p] and ids[p] != ids[place]]
            assert all(number[p] < number[place] for p in before)


@given(events=EVENTS)
def test_without_order_no_call_holds_two_of_a_key(events):
    """A publisher without order never gets two events of one key in a call."""
    scopes, ids, _ = deliveries(events)
    for call in plan_calls(scopes, ids, ["a"] * len(ids), ordered={"a": False}):
        keys = [(scopes[place], ids[place]) for place in call if scopes[place] is not None]
        assert len({scope for scope, _ in keys}) == len(set(keys))


@given(scopes=st.lists(st.sampled_from([None, "k"]), min_size=1))
def test_an_ordered_destination_gets_all_at_once(scopes):
    """A publisher that keeps order gets everything in one call, in order."""
    ids = [f"e{n}" for n in range(len(scopes))]
    calls = list(plan_calls(scopes, ids, ["a"] * len(ids), ordered={"a": True}))
    assert [list(range(len(ids)))] == calls


def test_nothing_makes_no_call():
    """Without deliveries nobody is called."""
    assert [] == list(plan_calls([], [], [], ordered={"a": True}))
    assert [] == list(plan_calls([], [], [], ordered={}))
