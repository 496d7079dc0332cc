"""Of which days commands about items are asked for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from delta_outbox.workflow_engine.task_reader import commands_since


@pytest.mark.parametrize(
    ("opened", "expected"),
    [
        (["2026-11-28T10:00:00+00:00", "2026-11-30T10:00:00+00:00"], "2026-11-21"),
        (["0001-01-01T00:00:00+00:00"], "1969-12-25"),
        ([], "9999-12-24"),
    ],
)
def test_commands_are_asked_for_from_a_week_before_their_item(
    opened: list[str], expected: str
) -> None:
    """The first of some items decides; one of the year 1 does no harm, and of none nothing is."""
    instants = [datetime.fromisoformat(one).astimezone(UTC) for one in opened]
    assert f"date'{expected}'" == commands_since(instants)
