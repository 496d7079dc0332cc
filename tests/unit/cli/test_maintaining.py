"""What an operator reads of a purge and of maintenance."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest

from delta_outbox.cli.inspection import show_text
from delta_outbox.cli.maintenance import maintain_text, purge_outcome
from delta_outbox.cli.render import console_for
from delta_outbox.operations.maintenance.purge_request import PurgeReport
from delta_outbox.operations.maintenance.purge_rules import Choice, Day, Kept

FIRST, SECOND = date(2026, 1, 1), date(2026, 1, 2)
GONE = Day(created_date=FIRST, states=Counter({"PUBLISHED": 7}))
KEPT = Kept(created_date=SECOND, why="1 open")
HOSTILE = "\x1b[2Jevil"


def text_of(parts: Iterable[Any]) -> str:
    """Return what a person reads."""
    stream = io.StringIO()
    console = console_for(stream)
    for part in parts:
        console.print(part)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("choice", "number", "expected", "exit_code"),
    [
        (Choice(days=[GONE]), None, "A preview of 7 deliveries of 1 day; nothing was written.", 0),
        (Choice(days=[GONE], kept=[KEPT]), 3, "Purge 3: 7 deliveries of 1 day are gone.", 1),
        (Choice(kept=[KEPT]), None, "Nothing to purge before 2026-02-01; nothing was written.", 1),
        (Choice(), None, "Nothing to purge before 2026-02-01; nothing was written.", 0),
    ],
)
def test_a_purge_says_what_went_and_what_stays(
    choice: Choice, number: int | None, expected: str, exit_code: int
) -> None:
    """What stays is listed with the reason, and is something to look at."""
    report = PurgeReport(choice=choice, number=number).as_dict()
    outcome = purge_outcome({"dry_run": number is None, "before": "2026-02-01", **report})
    text = text_of(outcome.text())
    assert expected in text
    assert exit_code == outcome.exit_code
    assert ("2026-01-02" in text, "1 open" in text) == (bool(choice.kept), bool(choice.kept))


def test_maintenance_says_what_it_did() -> None:
    """Each table is a line; a purge that was finished and a preview are said."""
    names = ("files_before", "files_after", "bytes_before", "bytes_after", "compacted", "removed")
    table = {"table": "outbox_events", **dict.fromkeys(names, 12345), "retain_hours": None}
    document = {"tables": [table], "finished_purge": 4, "heartbeats_removed": 9}
    text = text_of(maintain_text({"dry_run": False, **document}))
    assert "Purge 4 was interrupted, and is finished now." in text
    assert "Old heartbeats removed: 9." in text
    assert 6 == text.count("12345")
    assert "A preview; nothing was written." in text_of(
        maintain_text({"dry_run": True, **document})
    )


def test_a_purged_event_is_shown_as_one() -> None:
    """Of a purged event is said that it was purged; what others wrote cannot steer the terminal."""
    delivery = {"destination": "default", "state": "PUBLISHED", "ended_at": "2026-01-01"}
    purged = {"event_id": HOSTILE, "purged_because": HOSTILE, "deliveries": [delivery]}
    text = text_of(show_text({"purged": purged}))
    assert "This event was purged" in text
    assert "\\x1b[2Jevil" in text
    assert "\x1b" not in text
