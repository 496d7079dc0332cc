"""What became of a claim, by columns: it is what going through it row by row would give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.core.arrow import kinds_of, shared_texts
from delta_outbox.lifecycle.claim_policies import ClaimPolicies
from delta_outbox.lifecycle.claims import DELIVERIES, Claim, decide_endings, ending_rows, make_claim
from delta_outbox.lifecycle.endings import (
    Counters,
    Crashed,
    Ending,
    EndOfClaim,
    LeaseExpired,
    counters_at_claim,
    decide_ending,
)
from delta_outbox.lifecycle.endings_by_column import Endings
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.results import Delivered, Failed, JsonText, NotSent, Rejected, Unknown
from delta_outbox.lifecycle.results_by_column import Results
from delta_outbox.lifecycle.states import Reason, State
from delta_outbox.relay.publish import slice as worker
from delta_outbox.relay.publish.publishing import results_of
from delta_outbox.relay.summary import Summary

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
POLICIES = PolicySet.parse(
    [
        {"event_type": "both", "destination": "a|b|c", "max_attempts": "2"},
        {"event_type": "old", "destination": "b", "expires_after_seconds": "5"},
        {"event_type": "*", "destination": "a"},
    ]
)
CLAIMED = st.lists(
    st.fixed_dictionaries(
        {
            "event_type": st.sampled_from(["both", "old", "x", "y"]),
            "destination": st.sampled_from([None, "", "b", "gone"]),
            "attempts": st.integers(0, 2),
            "publish_attempts": st.integers(0, 2),
            "crashes": st.integers(0, 1),
            "suspect": st.integers(0, 1),
            "started_at": st.sampled_from([NOW, NOW - timedelta(seconds=9)]),
        }
    ),
    max_size=6,
)
SAID = st.none() | st.sampled_from(["1", '{"n":1}'])
RESULT: st.SearchStrategy[EndOfClaim] = st.one_of(
    st.builds(
        Delivered,
        receipt=SAID.map(lambda text: None if text is None else JsonText(text)),
        outcome=SAID,
        outcome_data=SAID.map(lambda text: None if text is None else JsonText(text)),
    ),
    st.sampled_from(
        [
            Failed(error="busy"),
            Failed(error="busy", retry_after=9.0),
            Rejected(error="no"),
            Unknown(error="?"),
            Unknown(),
            NotSent(),
            Crashed(error="gone"),
            LeaseExpired(),
        ]
    ),
)


def eligible(rows: list[dict[str, Any]]) -> pa.Table:
    """Return deliveries as the read view shows them."""
    full = [
        {"event_id": str(number), "arrival": 1, "lifecycle": 0, **row}
        for number, row in enumerate(rows)
    ]
    return pa.Table.from_pylist(full, schema=DELIVERIES)


def claimed(rows: list[dict[str, Any]]) -> Claim:
    """Claim deliveries."""
    return make_claim(eligible(rows), policies=POLICIES, now=NOW, claim_id="c")


def by_columns(results: Sequence[EndOfClaim]) -> Results[EndOfClaim]:
    """Return results of which only what was not delivered is an object."""
    others = {at: one for at, one in enumerate(results) if not isinstance(one, Delivered)}
    gone = [one if isinstance(one, Delivered) else Delivered() for one in results]
    said = {
        name: pa.array([getattr(one, name) for one in gone], pa.string())
        for name in ("receipt", "outcome", "outcome_data")
    }
    return Results(len(results), others, said)


@given(rows=CLAIMED)
def test_a_claim_by_columns_is_one_by_rows(rows: list[dict[str, Any]]) -> None:
    """Each event that was never claimed has a delivery for each destination of its policy, each
    other one for its own, in order; and each delivery has its policy.
    """
    claim = claimed(rows)
    expected = [
        (str(number), destination, POLICIES.match(row["event_type"]))
        for number, row in enumerate(rows)
        for destination in (
            [row["destination"]]
            if row["destination"]
            else POLICIES.match(row["event_type"]).destinations
        )
    ]
    columns = (claim.deliveries[name].to_pylist() for name in ("event_id", "destination"))
    assert expected == list(zip(*columns, claim.policies, strict=True))
    assert DELIVERIES == claim.deliveries.schema
    for kept in ([at % 2 == 0 for at in range(len(claim))], [False] * len(claim)):
        part = claim.part(pa.array(kept, pa.bool_()))
        some = [one for one, stays in zip(expected, kept, strict=True) if stays]
        columns = (part.deliveries[name].to_pylist() for name in ("event_id", "destination"))
        assert some == list(zip(*columns, part.policies, strict=True))
    if rows:
        assert min(policy.lease_seconds for *_, policy in expected) == claim.lease_seconds


@given(rows=CLAIMED, data=st.data())
def test_endings_by_columns_are_those_by_rows(rows: list[dict[str, Any]], data: Any) -> None:
    """Whatever the results, each delivery ends as the lifecycle says of it alone, and the log gets
    the rows that say so.
    """
    claim = claimed(rows)
    size = len(claim)
    results = data.draw(st.lists(RESULT, min_size=size, max_size=size))
    random = count(1)
    expected = [
        decide_ending(
            counters=counters_at_claim(
                Counters(
                    attempt=row["attempts"],
                    **{name: row[name] for name in ("publish_attempts", "crashes", "suspect")},
                )
            ),
            result=result,
            claim_size=9,
            policy=policy,
            now=NOW,
            started_at=row["started_at"],
            jitter=0.0 if isinstance(result, Delivered) else next(random) / 100,
        )
        for row, result, policy in zip(
            claim.deliveries.to_pylist(), results, claim.policies, strict=True
        )
    ]
    for given_ in (results, by_columns(results)):
        jitter = (number / 100 for number in count(1)).__next__
        endings = decide_endings(claim, given_, now=NOW, jitter=jitter, claim_size=9)
        assert expected == list(endings)
        assert expected[::2] == endings[::2]
        rows_ = ending_rows(claim, endings, now=NOW, claim_size=9)
        assert ending_rows(claim, expected, now=NOW, claim_size=9).equals(rows_)
        for ending, row in zip(expected, rows_.to_pylist(), strict=True):
            for name in ("to_state", "reason", "available_at", "error", "receipt", "outcome"):
                assert getattr(ending, name) == row[name]
            for name in ("publish_attempts", "crashes", "suspect"):
                assert getattr(ending.counters, name) == row[name]
            assert ending.counters.attempt == row["attempt"]
            assert ending.outcome_data == row["outcome_data"]
        assert Summary().plus(size, expected) == Summary().plus(size, endings)


def test_each_ending_is_counted_once() -> None:
    """A summary counts what was published, is retried, dead and released."""
    counters = Counters()
    kinds = [
        Ending(to_state=State.PUBLISHED, reason=Reason.DELIVERED, counters=counters),
        Ending(to_state=State.DEAD, reason=Reason.REJECTED, counters=counters),
        Ending(to_state=State.PENDING, reason=Reason.RELEASED, counters=counters),
        Ending(to_state=State.PENDING, reason=Reason.FAILED, counters=counters),
    ]
    endings = Endings(kinds, np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 3]))
    found = Summary(claimed=1, dead=1).plus(10, endings)
    assert Summary(claimed=11, published=4, dead=4, released=2, retried=1) == found


CODES = {
    Delivered: worker.DELIVERED,
    Failed: worker.FAILED,
    Rejected: worker.REJECTED,
    Unknown: worker.UNKNOWN,
    NotSent: worker.NOT_SENT,
    Crashed: worker.CRASHED,
}


@given(data=st.data())
def test_answers_by_columns_are_those_by_rows(data: Any) -> None:
    """Each delivery has the result that its answer says, in whatever order the answers come; what
    was not given to the workers has its own, and what has none crashed.
    """
    of_workers = RESULT.filter(lambda one: type(one) in CODES)
    results = data.draw(st.lists(of_workers | st.none() | st.just("unsent"), max_size=6))
    answers = [
        {"position": at, "code": CODES[type(one)]}
        | {
            name: getattr(one, name, None)
            for name in ("error", "retry_after", "receipt", "outcome", "outcome_data")
        }
        for at, one in enumerate(results)
        if one not in (None, "unsent")
    ]
    table = pa.Table.from_pylist(data.draw(st.permutations(answers)), schema=worker.RESULTS)
    unsent = {at: NotSent() for at, one in enumerate(results) if one == "unsent"}
    found = results_of(table, claimed([{"event_type": "x"}] * len(results)), unsent)
    lost = Crashed(error="no answer from the worker")
    expected = [lost if one is None else NotSent() if one == "unsent" else one for one in results]
    assert expected == found
    assert [at for at, one in enumerate(expected) if type(one) is not Delivered] == list(
        found.others
    )


def test_a_publisher_that_did_not_open_has_sent_nothing() -> None:
    """Where a destination did not open its deliveries are not sent."""
    row = {"position": 0, "code": worker.NOT_OPENED, "error": "refused"}
    table = pa.Table.from_pylist([row], schema=worker.RESULTS)
    assert [NotSent()] == results_of(table, claimed([{"event_type": "x"}]), {})


def test_two_answers_for_one_delivery_are_no_delivery() -> None:
    """Where one answer says delivered and another one does not, it is not believed."""
    rows = [
        {"position": 0, "code": worker.UNKNOWN, "error": "?"},
        {"position": 0, "code": worker.DELIVERED, "receipt": "1"},
    ]
    table = pa.Table.from_pylist(rows, schema=worker.RESULTS)
    claim = claimed([{"event_type": "x"} | dict.fromkeys(DELIVERIES.names[10:14], 0)])
    results = results_of(table, claim, {})
    assert [Unknown(error="?")] == results
    (ending,) = decide_endings(claim, results, now=NOW, jitter=lambda: 0.0)
    assert ending.receipt is None


@given(results=st.lists(RESULT, max_size=6), data=st.data())
def test_results_are_a_sequence(results: list[EndOfClaim], data: Any) -> None:
    """Results by columns are what a list of them is, also with some replaced or left out."""
    found = by_columns(results)
    assert results == found
    assert (len(results), results[::-1]) == (len(found), found[::-1])
    assert list(results) == [found[at - len(results)] for at in range(len(results))]
    assert found is Results.of(found)
    assert results == Results.of(results)
    positions = data.draw(st.sets(st.integers(0, len(results) - 1))) if results else set()
    changed: list[EndOfClaim] = [
        LeaseExpired() if at in positions else one for at, one in enumerate(results)
    ]
    for one in (found, Results.of(results)):
        replaced = one.replaced(dict.fromkeys(positions, LeaseExpired()))
        assert changed == replaced
        assert sorted(replaced.others) == list(replaced.others)
        assert [r for at, r in enumerate(results) if at not in positions] == one.without(positions)
    assert results != [*found, NotSent()]
    with pytest.raises(IndexError):
        found[len(results)]


@given(rows=st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 2)), max_size=9))
def test_rows_are_numbered_by_what_they_are(rows: list[tuple[int, int]]) -> None:
    """Rows have one number exactly where they are equal, and each number has its first row."""
    codes, firsts = kinds_of(*(np.array([row[at] for row in rows], np.int64) for at in (0, 1)))
    assert len(set(rows)) == len(firsts)
    assert rows == [rows[first] for first in firsts[codes]]
    assert [rows.index(rows[first]) for first in firsts] == firsts.tolist()


@given(texts=st.lists(st.none() | st.sampled_from(["", "a", "\u00e9"]), max_size=6))
def test_equal_texts_are_one_object(texts: list[str | None]) -> None:
    """Texts of a column come back as they are, each different one made once."""
    for column in (pa.array(texts, pa.string()), pa.array([*texts, "a"], pa.string())[:-1]):
        found = shared_texts(column)
        assert texts == found
        assert len(set(texts)) == len(set(map(id, found)))


@given(types=st.lists(st.sampled_from(["both", "old", "x", "y"]), max_size=6))
def test_policies_by_columns_are_those_of_the_types(types: list[str]) -> None:
    """Each delivery has the policy of its event type, and a value of it in a column."""
    column = pa.chunked_array([types[:2], types[2:]], pa.string())
    policies = ClaimPolicies.by_type(column, POLICIES)
    expected = [POLICIES.match(one) for one in types]
    assert expected == policies
    assert expected[1:] == policies[1:]
    assert expected[::-2] == policies.at(np.arange(len(types))[::-2])
    values = policies.column(lambda policy: policy.max_attempts, pa.int32())
    assert [policy.max_attempts for policy in expected] == values.to_pylist()
    assert Counter(set(expected)) == Counter(set(policies.present))
