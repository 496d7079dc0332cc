"""Which relay works on which lanes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.relay.plan.lane_share import share_of


@given(st.integers(1, 12), st.integers(1, 5), st.data())
def test_relays_find_a_share_each(lanes: int, relays: int, data: st.DataObject) -> None:
    """Whatever relays have at first: after a few polls in any order no lane has two, each lane has
    one, the parts are equal, and nobody changes any more.
    """
    names = [f"r{n}" for n in range(relays)]
    some = st.frozensets(st.integers(0, 15), max_size=15)
    living = {name: data.draw(some) for name in names}
    for _ in range(3):
        for name in data.draw(st.permutations(names)):
            living[name] = share_of(name, living, lanes=lanes, most=64)
    settled = dict(living)
    for name in names:
        settled[name] = share_of(name, settled, lanes=lanes, most=64)
    assert living == settled
    assert sorted(lane for its in living.values() for lane in its) == [*range(lanes)]
    sizes = [len(living[name]) for name in names]
    assert sorted(sizes, reverse=True) == sizes
    assert max(sizes) - min(sizes) <= 1


def test_a_relay_that_dies_leaves_its_lanes() -> None:
    """Its lanes go to who is left; one that stands by for lack of lanes takes over."""
    assert {0, 1, 2, 3} == share_of("b", {"b": {1, 3}}, lanes=4, most=64)
    assert set() == share_of("b", {"a": {0}, "b": {0}}, lanes=1, most=64)
    assert {0} == share_of("b", {"b": set()}, lanes=1, most=64)


def test_a_relay_with_few_lanes_goes_round() -> None:
    """Who may not have all that are free, and finds nothing to do, comes to each of those on which
    something is due, and to none that is another's; with nothing due there, it stays.
    """
    own, seen = share_of("a", {"a": set(), "b": {4}}, lanes=6, most=2), set[int]()
    assert {0, 1} == own
    for _ in range(3):
        living = {"a": own, "b": {4}}
        own = share_of("a", living, lanes=6, most=2, to={0, 3, 4, 5})
        assert 2 == len(own)
        seen |= own
    assert {0, 3, 5} <= seen <= {0, 1, 3, 5}
    assert own == share_of("a", {"a": own, "b": {4}}, lanes=6, most=2)
    assert own == share_of("a", {"a": own, "b": {4}}, lanes=6, most=2, to={4})
