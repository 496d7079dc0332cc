"""Whether one of many texts is there twice."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.core.hashing import may_repeat, numbers_of

KINDS = st.sampled_from([pa.string(), pa.large_string()])
TEXTS = st.lists(st.text(max_size=40).filter(lambda text: "\0" not in text))


@given(parts=st.lists(TEXTS))
def test_a_text_that_is_there_twice_is_found(parts: list[list[str]]):
    """It is found in whichever parts it is, and only then."""
    texts = [text for part in parts for text in part]
    columns = [pa.chunked_array([part], pa.string()) for part in parts]
    repeats = may_repeat(lambda: iter(columns), len(texts), most=7)
    assert (len(set(texts)) < len(texts)) == repeats


@given(
    texts=TEXTS, before=st.integers(0, 3), kind=st.sampled_from([pa.string(), pa.large_string()])
)
def test_a_number_is_of_the_text_alone(texts: list[str], before: int, kind: pa.DataType):
    """It does not depend on what the text stands beside, nor on how long others are."""
    alone = [int(numbers_of(pa.chunked_array([[text]], pa.string()))[0]) for text in texts]
    column = pa.chunked_array([pa.array([*["x" * 50] * before, *texts], kind).slice(before)])
    assert alone == numbers_of(column).tolist()


def test_one_long_text_costs_itself_alone():
    """A text of 400,000 characters among 50,000 ids takes its own room, not that of all of them;
    it is found twice, and its neighbours keep their numbers.
    """
    ids = [f"event-{n:09}" for n in range(50_000)]
    long = "long" * 100_000
    column = pa.chunked_array([[*ids, long]], pa.string())
    tracemalloc.start()
    found = numbers_of(column)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 * 2**20
    assert numbers_of(pa.chunked_array([ids])).tolist() == found[:-1].tolist()
    assert numbers_of(pa.chunked_array([[long]])).tolist() == found[-1:].tolist()
    assert not may_repeat(lambda: iter([column]), 50_001)
    twice = pa.chunked_array([[*ids, long, f"{long}!", long]], pa.string())
    assert may_repeat(lambda: iter([twice]), 50_003)


def test_ids_that_differ_little_have_other_numbers():
    """Numbered ids, and those that differ in one place only, whichever it is."""
    counted = [f"event-{n:09}" for n in range(100_000)]
    places = ["0" * at + mark + "0" * (40 - at) for at in range(40) for mark in "123456789abcdef"]
    for texts in (counted, places):
        assert len(texts) == len(np.unique(numbers_of(pa.chunked_array([texts]))))
