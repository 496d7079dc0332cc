"""What an operator reads: the preview, the warning, the command."""

from __future__ import annotations

import io
from typing import Any

import pytest

from delta_outbox.cli.operations import outcome_of
from delta_outbox.cli.render import console_for
from delta_outbox.operations.request_report import RequestReport

HOSTILE = "\x1b[2J\r\u202eevil\x07\x9b31m"
EXAMPLE = {
    "event_id": HOSTILE,
    "destination": "default",
    "state": "DEAD",
    "event_type": HOSTILE,
    "ordering_key": HOSTILE,
    "created_at": "2026-11-01T12:00:00.000000Z",
    "last_error": HOSTILE,
}
COUNTS = [{"state": "DEAD", "event_type": HOSTILE, "destination": "default", "deliveries": 12}]


def report(**given: Any) -> RequestReport:
    """Return a report of a replay."""
    return RequestReport(
        **{"kind": "replay", "counts": COUNTS, "examples": [EXAMPLE], "left_out": [], **given}
    )


def text_of(**document: Any) -> str:
    """Return what a person reads."""
    stream = io.StringIO()
    console = console_for(stream)
    for part in outcome_of(document).text():
        console.print(part)
    return stream.getvalue()


def test_data_cannot_steer_the_terminal() -> None:
    """Escape sequences in ids, types, keys and errors are shown, not obeyed."""
    left_out = [{**EXAMPLE, "refusal": f"is killed already by command {HOSTILE}"}]
    text = text_of(dry_run=True, **report(left_out=left_out, passed_keys=3).as_dict())
    assert not {char for char in text if not char.isprintable()} - {"\n"}
    assert "\\x1b[2J\\x0d\\u202eevil" in text


def test_a_preview_says_that_nothing_was_written() -> None:
    """A preview tells what it is about, warns, and says how to go on."""
    text = text_of(dry_run=True, **report(passed_keys=3).as_dict())
    assert "A preview of 12 deliveries; nothing was written. Add --apply" in text
    assert (
        "3 keys have later events delivered already: order on those keys is not restored." in text
    )


def test_a_command_says_what_became_of_it() -> None:
    """An appended command is named, with what became of its deliveries so far."""
    counts = {"done": 11, "waiting": 1, "refused": 0}
    document = report(command_id="c0ffee").as_dict()
    text = text_of(dry_run=False, status="waiting", status_counts=counts, **document)
    assert "Command c0ffee: 11 done, 1 waiting. `outbox show c0ffee` tells more." in text


@pytest.mark.parametrize(
    ("given", "more", "expected"),
    [
        ({}, {}, 0),
        ({"counts": [], "examples": []}, {}, 0),
        ({"left_out": [{**EXAMPLE, "refusal": "is PUBLISHED"}]}, {}, 1),
        ({}, {"status_counts": {"done": 11, "waiting": 1, "refused": 0}}, 0),
        ({}, {"status_counts": {"done": 11, "waiting": 0, "refused": 1}}, 1),
    ],
)
def test_exit_codes(given: dict[str, Any], more: dict[str, Any], expected: int) -> None:
    """What a request names and does not get, now or later, is something to look at."""
    assert expected == outcome_of({"dry_run": False, **report(**given).as_dict(), **more}).exit_code


def test_nothing_found() -> None:
    """Where nothing matches, nothing is written, and that is said."""
    text = text_of(dry_run=False, **report(counts=[], examples=[]).as_dict())
    assert "Nothing to replay; nothing was written." in text


def test_one_key_is_one_key() -> None:
    """A warning counts keys in English."""
    assert report(passed_keys=1).warnings[0].startswith("1 key has later events")
    assert [] == report().warnings
