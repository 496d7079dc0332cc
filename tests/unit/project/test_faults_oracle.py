"""The oracle of the fault tests can fail: each thing that it is asked about it notices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.faults.oracle import Copy, check_deliveries, check_history, claimed_now, histories_of

GIVEN: dict[str, dict[str, Any]] = {
    f"e{number}": {"ordering_key": f"k{number % 2}", "payload": b"%d" % number}
    for number in range(4)
}
COPIES = [
    Copy(event_id=key, lifecycle=1, key=event["ordering_key"], value=event["payload"], at=0.0)
    for key, event in GIVEN.items()
]


def step(
    event_id: str, sequence: int, to_state: str, *, claim: str = "c1", reason: str = "delivered"
) -> dict[str, Any]:
    """Return a transition into or out of CLAIMED."""
    return {
        "event_id": event_id,
        "lifecycle": 1,
        "sequence": sequence,
        "from_state": "PENDING" if to_state == "CLAIMED" else "CLAIMED",
        "to_state": to_state,
        "claim_id": claim,
        "reason": "claimed" if to_state == "CLAIMED" else reason,
    }


def delivered(event_id: str) -> list[dict[str, Any]]:
    """Return the transitions of an event that was delivered at once."""
    return [step(event_id, 1, "CLAIMED"), step(event_id, 2, "PUBLISHED")]


def interrupted(event_id: str, reason: str) -> list[dict[str, Any]]:
    """Return the transitions of an event whose first claim ended otherwise."""
    return [
        step(event_id, 1, "CLAIMED"),
        step(event_id, 2, "PENDING", reason=reason),
        step(event_id, 2, "CLAIMED", claim="c2"),
        step(event_id, 3, "PUBLISHED", claim="c2"),
    ]


HISTORIES = histories_of(row for key in GIVEN for row in delivered(key))


def test_what_is_right_passes() -> None:
    """Every event once, in order, with a legal history."""
    check_deliveries(COPIES, HISTORIES, GIVEN)


@pytest.mark.parametrize(
    "copies",
    [
        COPIES[1:],
        [*COPIES, COPIES[0]],
        [*COPIES, replace(COPIES[0], event_id="e9")],
        [*COPIES, replace(COPIES[0], lifecycle=2)],
        [COPIES[2], COPIES[0], *COPIES[1::2]],
        [replace(COPIES[0], value=b"9"), *COPIES[1:]],
        [replace(COPIES[0], key="k1"), *COPIES[1:]],
    ],
    ids=["missing", "twice", "unknown", "lifecycle", "order", "value", "key"],
)
def test_wrong_deliveries_are_noticed(copies: list[Copy]) -> None:
    """What is missing, too much, out of order or changed fails."""
    with pytest.raises(AssertionError):
        check_deliveries(copies, HISTORIES, GIVEN)


@pytest.mark.parametrize("reason", ["lease_expired", "crashed", "unknown"])
def test_second_copy_needs_a_claim_that_was_lost(reason: str) -> None:
    """A copy more is right where nobody knows what a claim has sent; two more are not."""
    histories = HISTORIES | histories_of(interrupted("e0", reason))
    check_deliveries([*COPIES, COPIES[0]], histories, GIVEN)
    with pytest.raises(AssertionError):
        check_deliveries([*COPIES, COPIES[0], COPIES[0]], histories, GIVEN)


def test_released_event_has_no_second_copy() -> None:
    """What was released was not sent."""
    histories = HISTORIES | histories_of(interrupted("e0", "released"))
    with pytest.raises(AssertionError):
        check_deliveries([*COPIES, COPIES[0]], histories, GIVEN)


def test_event_that_is_not_published_is_noticed() -> None:
    """A message in the topic does not make up for an ending that is missing."""
    histories = HISTORIES | {"e0": delivered("e0")[:1]}
    with pytest.raises(AssertionError):
        check_deliveries(COPIES, histories, GIVEN)
    assert {"c1": {"e0"}} == claimed_now(histories)


@pytest.mark.parametrize(
    "history",
    [
        [step("e0", 1, "PUBLISHED")],
        [*delivered("e0"), step("e0", 3, "PUBLISHED")],
        [step("e0", 1, "CLAIMED"), step("e0", 2, "CLAIMED", claim="c2")],
        [step("e0", 1, "CLAIMED"), step("e0", 2, "PUBLISHED", claim="c2")],
        [{**step("e0", 1, "CLAIMED"), "to_state": "DEAD"}],
    ],
    ids=["not claimed", "ended twice", "claimed twice", "foreign ending", "no such step"],
)
def test_illegal_history_is_noticed(history: list[dict[str, Any]]) -> None:
    """A gap, a second ending, a second claim, the ending of another's claim, a step of no rule."""
    with pytest.raises(AssertionError):
        check_history(history)
