"""The same id with the same content is present already; with other content it is rejected."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_outbox.core.settings import AppendSettings
from delta_outbox.producer.candidates import COLUMNS, complete
from delta_outbox.producer.log_match import against_log, same_content
from delta_outbox.producer.validation import validate

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


def table_of(*rows: dict[str, Any], names: tuple[str, ...] = ()) -> pa.Table:
    """Make candidates of one id, unless said otherwise."""
    full = [{"event_id": "a", "event_type": "t", "payload": b"1"} | row for row in rows]
    given_names = [name for name in COLUMNS if name in names or any(name in row for row in full)]
    return pa.table(
        {name: pa.array([row.get(name) for row in full], COLUMNS[name]) for name in given_names}
    )


def stored(**row: Any) -> pa.Table:
    """Make the row that the log would hold."""
    return complete(table_of(row), now=NOW)


def is_same(candidate: dict[str, Any], **existing: Any) -> bool:
    """Compare one candidate with one stored row."""
    return bool(same_content(table_of(candidate), stored(**existing))[0])


def test_only_given_columns_count() -> None:
    """A column that the candidate does not have is not compared."""
    assert is_same({}, ordering_key="k", headers=[("a", "b")], available_at=NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"event_type": "u"},
        {"payload": b"2"},
        {"ordering_key": "k2"},
        {"ordering_key": None},
        {"partition_key": "p"},
        {"headers": [("a", "c")]},
        {"headers": [("a", "b"), ("c", "d")]},
        {"headers": None},
        {"metadata": [("a", "b")]},
        {"available_at": LATER},
        {"created_at": LATER},
        {"ordinal": 9},
    ],
)
def test_any_given_column_that_differs_is_other_content(change: dict[str, Any]) -> None:
    """Every column that a producer may give makes a difference, null included."""
    existing = {"ordering_key": "k", "headers": [("a", "b")], "available_at": NOW}
    assert not is_same(existing | change, **existing)


def test_what_the_log_fills_in_is_not_given_when_null() -> None:
    """A second run that leaves created_at and ordinal to the log finds its events present."""
    assert is_same({"created_at": None, "ordinal": None}, created_at=LATER, ordinal=3)


def test_maps_are_sets() -> None:
    """The order of the entries makes no difference, nor does none against empty."""
    pairs = [("a", "1"), ("b", "2"), ("c", "1")]
    assert is_same({"headers": pairs}, headers=pairs[::-1])
    assert is_same({"headers": []}, headers=None)
    assert not is_same({"headers": [("a", "2"), ("b", "1")]}, headers=[("a", "1"), ("b", "2")])


MAPS = st.none() | st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)


@given(st.lists(st.tuples(MAPS, MAPS), max_size=8), st.randoms(use_true_random=False))
def test_maps_compare_like_dictionaries(
    pairs: list[tuple[dict[str, str] | None, dict[str, str] | None]], random: Any
) -> None:
    """Row by row, and whatever the rows around it, maps are the same when dictionaries are."""

    def shuffled(values: dict[str, str] | None) -> list[tuple[str, str]] | None:
        return None if values is None else random.sample(list(values.items()), len(values))

    ours = table_of(*({"headers": shuffled(left)} for left, _ in pairs), names=tuple(COLUMNS)[:3])
    theirs = table_of(
        *({"headers": shuffled(right)} for _, right in pairs), names=tuple(COLUMNS)[:3]
    )
    expected = [(left or {}) == (right or {}) for left, right in pairs]
    assert expected == same_content(ours, theirs).tolist()


def test_repeated_row_is_kept_once() -> None:
    """The same event twice in a batch is one event and no error."""
    found = validate(
        table_of({}, {"event_id": "b"}, {}), settings=AppendSettings(), now=NOW, lines=[4, 5, 6]
    )
    assert () == found.rejections
    assert (["a", "b"], [4, 5], 1) == (
        found.given["event_id"].to_pylist(),
        found.lines.tolist(),
        found.repeated,
    )


def test_contradicting_row_is_rejected() -> None:
    """The same id with other content in one batch is rejected, and the message says where."""
    table = table_of({}, {"payload": b"2", "ordering_key": "k"}, {})
    found = validate(table, settings=AppendSettings(), now=NOW, lines=[4, 5, 6]).rejections
    assert [(5, "event_id", "same_id_same_content")] == [(r.line, r.field, r.rule) for r in found]
    assert (
        "line 4 has this event_id with other content (payload, ordering_key)." == found[0].message
    )


def test_rows_without_id_are_not_repetitions_of_each_other() -> None:
    """Null is no id."""
    found = validate(
        table_of({"event_id": None}, {"event_id": None, "payload": b"2"}),
        settings=AppendSettings(),
        now=NOW,
    )
    assert ["required", "required"] == [one.rule for one in found.rejections]


def test_log_decides_between_new_present_and_contradicting() -> None:
    """Against the log every candidate is new, present already, or rejected."""
    candidate = table_of({}, {"event_id": "b"}, {"event_id": "c"}, {"event_id": "d"})
    existing = complete(
        table_of({"event_id": "c", "payload": b"2"}, {"event_id": "b"}, {"event_id": "z"}), now=NOW
    )
    found = against_log(candidate, existing, [1, 2, 3, 4])
    assert [False, True, False, False] == found.already_present.tolist()
    assert [(3, "the log has this event_id with other content (payload).")] == [
        (one.line, one.message) for one in found.rejections
    ]


def test_empty_log_has_nothing() -> None:
    """Against a log without any of the ids everything is new."""
    found = against_log(table_of({}), stored().slice(0, 0), [1])
    assert ([False], ()) == (found.already_present.tolist(), found.rejections)


ROWS = st.fixed_dictionaries(
    {"event_id": st.sampled_from("abc"), "payload": st.sampled_from([b"1", b"2"])},
    optional={
        "ordering_key": st.sampled_from(["k", None]),
        "headers": st.sampled_from([None, [], [("a", "1"), ("b", "2")], [("b", "2"), ("a", "1")]]),
        "created_at": st.sampled_from([NOW, None]),
    },
)


@settings(deadline=None)  # a busy machine is no fault
@given(st.lists(ROWS, min_size=1, max_size=8))
def test_a_batch_means_what_its_rows_mean_one_after_the_other(rows: list[dict[str, Any]]) -> None:
    """A row is repeated or rejected in a batch just as if the rows before it were in the log."""
    table = table_of(*rows)
    # The clock stands elsewhere, so that a time filled in is nobody's given time.
    whole = validate(table, settings=AppendSettings(), now=LATER)
    log = complete(table.slice(0, 0), now=LATER)
    new, present, rejected = [], 0, []
    for line in range(1, table.num_rows + 1):
        row = table.slice(line - 1, 1)
        found = against_log(row, log, [line])
        rejected += [one.line for one in found.rejections]
        present += int(found.already_present[0])
        if not found.already_present[0] and not found.rejections:
            new.append(line)
            log = pa.concat_tables([log, complete(row, now=LATER)])
    assert rejected == [one.line for one in whole.rejections]
    assert new == whole.lines.tolist()
    assert present == whole.repeated
