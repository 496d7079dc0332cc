"""A claim as data: which deliveries, which rows of the log begin and end it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.core.reserved_names import TO_DO
from delta_outbox.core.tables import TRANSITIONS
from delta_outbox.lifecycle.claims import (
    DELIVERIES,
    Claim,
    claim_rows,
    decide_endings,
    ending_rows,
    in_order,
    make_claim,
    new_claim_id,
    still_live,
)
from delta_outbox.lifecycle.endings import Crashed, EndOfClaim, LeaseExpired
from delta_outbox.lifecycle.policy import PolicySet
from delta_outbox.lifecycle.results import Delivered, Failed, NotSent, Rejected, Unknown
from delta_outbox.lifecycle.states import LEGAL_TRANSITIONS, State
from delta_outbox.store.open_deliveries import Overview

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
NEWS = pa.schema(
    [
        TRANSITIONS.field(name)
        for name in ("event_id", "arrival", "destination", "from_state", "claim_id")
    ]
)
POLICIES = PolicySet.parse(
    [
        {"event_type": "both", "destination": "a|b", "lease_seconds": "10"},
        {"event_type": "*", "destination": "a", "backoff_jitter": "0"},
    ]
)


def delivery(event_id: str, event_type: str = "x", **given: Any) -> dict[str, Any]:
    """Return a row of the read view before its first claim."""
    return {
        "event_id": event_id,
        "arrival": 1,
        "event_type": event_type,
        "created_at": NOW,
        "ambiguous": False,
        "destination": "",
        "lifecycle": 0,
        "attempts": 0,
        "publish_attempts": 0,
        "crashes": 0,
        "suspect": 0,
        "started_at": NOW,
        **given,
    }


def claimed(*rows: dict[str, Any]) -> Claim:
    """Claim deliveries."""
    eligible = pa.Table.from_pylist(list(rows), schema=DELIVERIES)
    return make_claim(eligible, policies=POLICIES, now=NOW, claim_id="c")


def test_first_claim_names_the_destinations():
    """A new event gets a delivery per destination of its policy, in place, and keeps it."""
    claim = claimed(
        delivery("1", "both"), delivery("2"), delivery("3", "both", destination="b", attempts=1)
    )
    pairs = zip(
        claim.deliveries["event_id"].to_pylist(),
        claim.deliveries["destination"].to_pylist(),
        strict=True,
    )
    assert [("1", "a"), ("1", "b"), ("2", "a"), ("3", "b")] == list(pairs)
    assert [10, 10, 30, 10] == [policy.lease_seconds for policy in claim.policies]
    assert 10 == claim.lease_seconds
    assert DELIVERIES == claim.deliveries.schema


def test_claim_numbers_the_attempt_before_anything_is_sent():
    """A claim's rows carry the next attempt, the lease of their policy and the claim's size."""
    claim = claimed(delivery("1", "both"), delivery("2", attempts=4, publish_attempts=3, suspect=1))
    rows = claim_rows(claim).to_pylist()
    assert [1, 1, 5] == [row["attempt"] for row in rows]
    assert [3, 1] == [rows[2]["publish_attempts"], rows[2]["suspect"]]
    assert [10, 10, 30] == [(row["lease_expires_at"] - NOW).total_seconds() for row in rows]
    assert {(3, "c", "PENDING", "CLAIMED", "claimed", NOW)} == {
        (
            row["claim_size"],
            row["claim_id"],
            row["from_state"],
            row["to_state"],
            row["reason"],
            row["occurred_at"],
        )
        for row in rows
    }


def test_endings_follow_the_results():
    """Each delivery ends by its own result, in order, with the attempt that its claim numbered."""
    results: list[EndOfClaim] = [
        Delivered(receipt={"n": 1}),
        Failed(error="busy"),
        Rejected(error="no"),
        Unknown(),
        NotSent(),
        Crashed(),
        LeaseExpired(),
    ]
    claim = claimed(*(delivery(str(n), attempts=n) for n in range(len(results))))
    endings = decide_endings(claim, results, now=NOW, jitter=lambda: 0.5)
    rows = ending_rows(claim, endings, now=NOW).to_pylist()
    assert [
        ("PUBLISHED", "delivered"),
        ("PENDING", "failed"),
        ("DEAD", "rejected"),
        ("PENDING", "unknown"),
        ("PENDING", "released"),
        ("PENDING", "crashed"),
        ("PENDING", "lease_expired"),
    ] == [(row["to_state"], row["reason"]) for row in rows]
    assert [n + 1 for n in range(len(results))] == [row["attempt"] for row in rows]
    assert '{"n":1}' == rows[0]["receipt"]
    assert NOW + timedelta(seconds=1) == rows[1]["available_at"]
    assert all((State.CLAIMED, State(row["to_state"])) in LEGAL_TRANSITIONS for row in rows)
    assert {"c"} == {row["claim_id"] for row in rows}


def test_only_an_event_alone_pays_for_a_crash():
    """What remains of a larger claim is not alone: its size is that of its beginning."""
    claim = claimed(delivery("1"))
    (alone,) = decide_endings(claim, [Crashed()], now=NOW, jitter=lambda: 0.0)
    (among,) = decide_endings(claim, [Crashed()], now=NOW, jitter=lambda: 0.0, claim_size=9)
    assert (1, 0) == (alone.counters.crashes, among.counters.crashes)
    rows = ending_rows(claim, [among], now=NOW, claim_size=9)
    assert [9] == rows["claim_size"].to_pylist()


def test_a_result_for_every_delivery_is_demanded():
    """Results that do not match the claim one to one are an error, never a guess."""
    claim = claimed(delivery("1"), delivery("2"))
    with pytest.raises(ValueError, match="argument"):
        decide_endings(claim, [Delivered()], now=NOW, jitter=lambda: 0.0)


def test_rows_are_columns_of_the_log():
    """Both kinds of rows have only columns of the log, of a type that fits, and the key, which says
    on which lane they go.
    """
    claim = claimed(delivery("1", ordinal=3, available_at=NOW))
    endings = decide_endings(claim, [Delivered()], now=NOW, jitter=lambda: 0.0)
    for rows in (claim_rows(claim), ending_rows(claim, endings, now=NOW)):
        rows = rows.drop_columns(["ordering_key"])
        assert set(rows.column_names) <= set(TRANSITIONS.names)
        for name in rows.column_names:
            rows[name].cast(TRANSITIONS.field(name).type)


@pytest.mark.parametrize(
    ("ended", "claim_id", "kept"),
    [
        ((), "c", ["1", "2"]),  # nobody was there
        (("1",), "c", ["2"]),  # somebody has ended this very claim of one
        (("1", "2"), "c", []),
        (("1", "2"), "an earlier one", ["1", "2"]),  # which says nothing about this one
    ],
)
def test_an_ending_is_void_once_its_claim_has_been_ended(
    ended: tuple[str, ...], claim_id: str, kept: list[str]
):
    """What somebody else has ended is not ended again; the end of another claim does no harm, nor
    does what is no ending.
    """
    claim = claimed(delivery("1"), delivery("2"))
    news = [
        {
            "event_id": event_id,
            "arrival": 1,
            "destination": "a",
            "from_state": "CLAIMED",
            "claim_id": claim_id,
        }
        for event_id in ended
    ]
    # The claim itself may be among the news.
    news.append({**dict.fromkeys(NEWS.names), "from_state": "PENDING", "claim_id": "c"})
    endings = ending_rows(
        claim, decide_endings(claim, [Delivered()] * 2, now=NOW, jitter=lambda: 0.5), now=NOW
    )
    live = still_live(endings, pa.Table.from_pylist(news, schema=NEWS))
    assert kept == live["event_id"].to_pylist()


def test_claim_ids_differ():
    """No two claims share an id."""
    assert 100 == len({new_claim_id() for _ in range(100)})


@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 2),
            st.none() | st.integers(-1, 2),
            st.integers(0, 2),
            st.text(alphabet="aZ\u00e9\U0001f600", max_size=2),
        ),
        unique=True,
    )
)
def test_deliveries_are_put_in_the_order_of_the_outbox(
    rows: list[tuple[int, int | None, int, str]],
):
    """By arrival, ordinal with null last, created_at and the bytes of the id, like `position`."""
    deliveries = [
        delivery(
            event_id, arrival=arrival, ordinal=ordinal, created_at=NOW + timedelta(seconds=seconds)
        )
        for arrival, ordinal, seconds, event_id in rows
    ]
    ordered = in_order(pa.Table.from_pylist(deliveries, schema=DELIVERIES))
    expected = sorted(
        rows, key=lambda row: (row[0], row[1] is None, row[1] or 0, row[2], row[3].encode())
    )
    assert [row[3] for row in expected] == ordered["event_id"].to_pylist()
    assert [row[1] for row in expected] == ordered["ordinal"].to_pylist()


def test_what_a_window_has_to_list():
    """What waits, but for what has no key and is not due for a minute; not what is claimed."""
    found = Overview(
        at=NOW,
        open=9,
        due=3,
        later=1,
        next_due=None,
        next_later=None,
        claims=[{"deliveries": 2}, {"deliveries": 1}],
    )
    assert (3, 5) == (found.claimed, found.listable)
    assert NOW + timedelta(minutes=1) == found.soon


def test_a_task_has_a_claim_of_its_own() -> None:
    """Deliveries that are claimed one by one share nothing but the time of the claim."""
    eligible = pa.Table.from_pylist([delivery("e1"), delivery("e2")], schema=DELIVERIES)
    whole = make_claim(eligible, policies=POLICIES, now=NOW, claim_id="c")
    singles = whole.singles()
    assert [["e1"], ["e2"]] == [one.deliveries["event_id"].to_pylist() for one in singles]
    assert [1, 1] == [claim_rows(one)["claim_size"][0].as_py() for one in singles]
    assert 3 == len({"c", *(one.claim_id for one in singles)})
    assert [whole.policies[0]] == list(singles[0].policies)


def test_a_claim_may_be_held_by_somebody_else() -> None:
    """Who makes a claim for a person says who holds it, and until when."""
    eligible = pa.Table.from_pylist([delivery("e1")], schema=DELIVERIES)
    claim = make_claim(eligible, policies=POLICIES, now=NOW, claim_id="c")
    until = NOW + timedelta(days=400)
    (row,) = claim_rows(replace(claim, held_by=TO_DO, held_until=until)).to_pylist()
    assert (TO_DO, until) == (row["relay_id"], row["lease_expires_at"])
    (own,) = claim_rows(claim).to_pylist()
    assert (None, NOW + timedelta(seconds=30)) == (own["relay_id"], own["lease_expires_at"])
