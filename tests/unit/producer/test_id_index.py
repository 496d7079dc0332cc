"""Numbers of ids: what was added is always found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.producer import id_index
from delta_outbox.producer.id_index import IdNumbers, number_of

numbers = st.integers(0, 30)


@given(
    first=st.lists(numbers), added=st.lists(st.lists(numbers)), asked=st.lists(numbers, max_size=3)
)
def test_it_holds_what_was_added(
    first: list[int], added: list[list[int]], asked: list[int]
) -> None:
    """Whether added at first or later, put in order meanwhile or not; and nothing else."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(id_index, "MOST_RECENT", 3)
        held = IdNumbers(np.array(first, np.int64))
        for more in added:
            held.add(np.array(more, np.int64))
    everything = {*first, *(one for more in added for one in more)}
    assert everything.isdisjoint(asked) is not held.hold_any(np.array(asked, np.int64))
    assert len(everything) <= len(held) <= len(first) + sum(map(len, added))


@given(event_id=st.text())
def test_a_number_fits_a_bigint(event_id: str) -> None:
    """It is what Spark's `bigint` and numpy's `int64` hold."""
    assert 0 <= number_of(event_id) < 2**63
