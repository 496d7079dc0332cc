"""Lanes without Spark: what plans say of them, where rows go, what is asked and shown."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_outbox.cli.lanes import lanes, lanes_outcome
from delta_outbox.cli.outcome import Invocation
from delta_outbox.cli.parser import parse
from delta_outbox.cli.render import console_for
from delta_outbox.core.errors import WrongUsage
from delta_outbox.delta.numbered_writes import NumberedWrite
from delta_outbox.operations.lanes import LaneRequest
from delta_outbox.store.epochs import FIRST, Epoch, begun_plan, closing_plan, read_epoch
from delta_outbox.store.lanes import lane_of

WHO: dict[str, Any] = {"actor": "ann", "reason": "growth"}
ROWS = pa.table(
    {"event_id": [f"e-{n}" for n in range(40)], "ordering_key": [None, "k"] * 20, "n": range(40)}
)


def planned(number: int, plan: dict[str, Any]) -> NumberedWrite:
    """Return a plan."""
    return NumberedWrite(number=number, plan=plan, planned_at=datetime(2026, 1, 1, tzinfo=UTC))


def test_a_change_is_two_plans() -> None:
    """Between the first and the second the old epoch ends; then the next one has begun."""
    assert read_epoch(None) == FIRST == Epoch(number=0, lanes=1)
    closing = closing_plan(FIRST, lanes=4, **WHO)
    ending = read_epoch(planned(1, closing))
    assert (0, 1, 4, True) == (ending.number, ending.lanes, ending.becomes, ending.is_ending)
    now = read_epoch(planned(2, begun_plan(closing)))
    assert (1, 4, None, False) == (now.number, now.lanes, now.becomes, now.is_ending)


@given(st.integers(1, 64))
def test_rows_go_to_the_lane_of_their_event(count: int) -> None:
    """Each row goes to one lane, that of its key or else of its id, in the order in which it came;
    so a key has one lane.
    """
    parts = Epoch(lanes=count).parts(ROWS)
    assert 40 == sum(part.num_rows for part in parts.values())
    for lane, part in parts.items():
        assert sorted(part["n"].to_pylist()) == part["n"].to_pylist()
        for row in part.drop_columns(["n"]).to_pylist():
            assert lane == lane_of(lanes=count, **row)
    assert {} == Epoch(lanes=count).parts(ROWS.slice(0, 0))


def _never() -> Any:
    raise AssertionError("opened")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--to", "4"], "--to needs --actor and --reason"),
        (["--apply"], "--apply needs --to"),
        (["--to", "1025", "--actor", "a", "--reason", "r"], "from 1 to 1024. Got: 1025"),
        (["--to", "2", "--actor", "a\nb", "--reason", "r"], "`actor`"),
    ],
)
def test_a_wrong_request_is_refused_at_once(words: list[str], problem: str) -> None:
    """Nothing is opened for it, and the message says what is wrong."""
    invocation = Invocation(
        told=_never, open=_never, open_served=_never, create=_never, errors=io.StringIO()
    )
    with pytest.raises(WrongUsage, match=problem):
        lanes(parse(["lanes", *words]), invocation)


def test_a_request_is_checked() -> None:
    """As from Python."""
    with pytest.raises(WrongUsage, match="Got: 0"):
        LaneRequest(lanes=0, **WHO)


@pytest.mark.parametrize(
    ("given", "expected", "exit_code"),
    [
        ({"to": None}, "Epoch 1: 4 lanes, 7 deliveries open, 2 of them claimed.", 0),
        ({"to": 1}, "Add --apply to begin epoch 2 with 1 lane.", 0),
        ({"to": 1, "begun": True, "dry_run": False}, "Epoch 1: 4 lanes", 0),
        ({"to": 8, "begun": False, "dry_run": False, "becomes": 8}, "ends, for 8 lanes", 1),
    ],
)
def test_the_lanes_are_shown(given: dict[str, Any], expected: str, exit_code: int) -> None:
    """Who works on which, what a preview would do, and what is not over yet."""
    relays = [
        {"relay_id": "r-1", "lanes": [0, 2], "last_beat_at": "2026-01-01"},
        {"relay_id": "r-2", "lanes": [], "last_beat_at": "2026-01-01"},
    ]
    document = {
        "dry_run": True, "epoch": 1, "lanes": 4, "becomes": None, "open": 7, "claimed": 2,
        "relays": relays, **given,
    }  # fmt: skip
    outcome = lanes_outcome(document)
    stream = io.StringIO()
    for part in outcome.text():
        console_for(stream).print(part)
    text = " ".join(stream.getvalue().split())
    assert expected in text
    assert "0, 2" in text
    assert "stands by" in text
    assert exit_code == outcome.exit_code
